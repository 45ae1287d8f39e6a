//! Closed loop: users who fetch the pages of [`http2_web`](crate::http2_web) over HTTP/3 (RFC 9114).

use std::borrow::Cow;

use aqmlab_declare::check::Problem;
use aqmlab_declare::{About, Declared, Parameters, Refused};
use aqmlab_net::RandomStream;
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::{Deserialize, Serialize};

use crate::error::SourceError;
use crate::http2_web::{Draft, HEADER, Http2Web, PageSource, REQUESTS, TLS};
use crate::model::{ModelParameters, ModelSource, OpenFile, Opening, PopulationKey};
use crate::page::{Object, Page, Wave};
use crate::script::{Played, Script};
use crate::setting::Setting;

/// Users who fetch pages of many objects, each object over a stream of its own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Http3Web(pub Http2Web);

/// Urgency of the HTML and of scripts and style sheets, and that of all else: its default (RFC 9218, section
/// 4.1).
const URGENCIES: [u8; 2] = [1, 3];

impl Declared for Http3Web {
    const KEYS: &'static [&'static str] = Http2Web::KEYS;
    const CHANGEABLE: &'static [&'static str] = Http2Web::CHANGEABLE;

    fn check_each(&self) -> Result<(), Problem> {
        self.0.check_each()
    }

    fn refused() -> Vec<Refused> {
        Http2Web::refused()
    }
}

impl JsonSchema for Http3Web {
    fn schema_name() -> Cow<'static, str> {
        "Http3Web".into()
    }

    #[inline]
    fn json_schema(generator: &mut SchemaGenerator) -> Schema {
        Http2Web::json_schema(generator)
    }
}

impl Parameters for Http3Web {
    const ABOUT: About = About {
        title: "Web pages over HTTP/3",
        paper: "M. Bishop, HTTP/3, RFC 9114, 2022; K. Oku, L. Pardue, Extensible Prioritization \
                Scheme for HTTP, RFC 9218, 2022",
        purpose: "Closed loop: users fetch the pages of http2-web over one QUIC connection per \
                  page, one stream per object. A loss delays only objects that lost bytes. \
                  `transport` is `\"quic\"` by default. Connections over TCP use HTTP/2.",
        departures: &[
            "Messages are as large as in HTTP/2. No stream waits for QPACK.",
            "The server first sends HTML, scripts and style sheets, then the rest, each in request \
             order.",
            "Every page opens a new connection.",
        ],
        memory: Http2Web::ABOUT.memory,
    };

    fn check_together(&self) -> Result<(), Problem> {
        self.0.check_together()
    }
}

impl ModelParameters for Http3Web {
    fn example() -> &'static str {
        r#"[[traffic]]
kind = "http3-web"
users = 20
rtt = { kind = "constant", rtt = "40 ms" }
"#
    }

    fn population_key(&self) -> PopulationKey {
        self.0.population_key()
    }

    fn population(&self) -> Option<f64> {
        self.0.population()
    }

    fn set_population(&mut self, population: f64) {
        self.0.set_population(population);
    }

    fn opening(&self) -> Opening {
        self.0.opening()
    }

    fn is_for_streams() -> bool {
        true
    }

    fn source(
        &self,
        setting: &Setting<'_>,
        _files: &mut OpenFile<'_>,
    ) -> Result<Box<dyn ModelSource>, SourceError> {
        // A build without QUIC refuses the class, and need not know how to draw its pages.
        if !cfg!(feature = "http3") {
            unreachable!("no scenario has this model");
        }
        Ok(Box::new(PageSource::new(&self.0, setting, page)?))
    }
}

/// What happens on the connection of a page.
fn page(params: &Http2Web, draws: &mut RandomStream) -> Script {
    let draft = Draft::draw(params, draws);
    let object = |request, response, is_critical: bool| Object {
        request,
        response,
        urgency: URGENCIES[usize::from(!is_critical)],
    };
    let html = object(REQUESTS[0], params.html.0 + HEADER, true);
    let others = draft.objects.iter().enumerate();
    let others = others.map(|(place, bytes)| object(REQUESTS[1], *bytes, place < draft.critical));
    let objects: Vec<Object> = std::iter::once(html).chain(others).collect();
    let first = Wave {
        awaits: 0,
        parse: aqmlab_net::Time::ZERO,
        end: 1,
    };
    // The HTML names the first of them, those that are critical the others.
    let ends = [draft.named, draft.objects.len()];
    let awaits = [0, draft.critical];
    let others = draft.parse.iter().zip(ends.iter().zip(awaits));
    let others = others.filter_map(|(parse, (end, awaits))| {
        parse.map(|parse| Wave {
            awaits: 1 + awaits as u32,
            parse,
            end: 1 + *end as u32,
        })
    });
    let [_, server] = draft.programs(params);
    let page = Page {
        waves: std::iter::once(first).chain(others).collect(),
        objects,
        tls: params.tls.then_some(TLS),
        has_streams: false,
    };
    Script::Page(Box::new(Played::new(page, server)))
}
