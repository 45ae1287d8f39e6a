//! A page of many objects, and what it waits for.
//!
//! Over one stream of bytes objects arrive in the order in which they were asked for (HTTP/2 on TCP). Where
//! each has a stream of its own (HTTP/3 on QUIC), an object is there when its own bytes are.

use std::collections::VecDeque;

use aqmlab_net::Time;

/// An object of a page; its bytes include headers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Object {
    /// Bytes of its request.
    pub(crate) request: u64,
    /// Bytes of the response.
    pub(crate) response: u64,
    /// How urgent the response is (RFC 9218, section 4.1): from 0, which goes first, to 7.
    pub(crate) urgency: u8,
}

/// Objects that are asked for together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Wave {
    /// So many of the page's objects, from the first on, name these.
    pub(crate) awaits: u32,
    /// Time to parse those.
    pub(crate) parse: Time,
    /// Number behind the last object of the wave.
    pub(crate) end: u32,
}

/// A page: its objects in the order in which they are asked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Page {
    pub(crate) objects: Vec<Object>,
    /// In order; together they have all objects.
    pub(crate) waves: Vec<Wave>,
    /// Bytes of the client's and of the server's part of a TLS handshake before it, over one stream of bytes.
    pub(crate) tls: Option<[u64; 2]>,
    /// Each object has a stream of its own; else all share one.
    pub(crate) has_streams: bool,
}

impl Page {
    /// Bytes of all requests and of all responses.
    pub(crate) fn bytes(&self) -> [u64; 2] {
        let tls = self.tls.filter(|_| !self.has_streams).unwrap_or_default();
        let objects = self.objects.iter();
        objects.fold(tls, |[asked, answered], object| {
            [asked + object.request, answered + object.response]
        })
    }
}

/// What an end of a page does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    /// It waits for bytes.
    Wait,
    /// It parses what names the next objects, and goes on meanwhile.
    Parse(Time),
    /// It takes note of an object that has arrived.
    Note,
    /// It asks for an object on a stream of its own: its number, and the bytes of the request.
    Ask(u32, u64),
    /// It asks for all of a wave in one go of so many bytes.
    AskAll(u64),
    /// It answers the request with this number.
    Answer(u32, Object),
}

/// How far a page has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Loading {
    /// Objects that arrived or, at a server, requests that did: those that nobody has taken note of yet.
    news: VecDeque<u32>,
    /// Which objects have arrived, and how many.
    has: Vec<bool>,
    arrived: u32,
    /// So many have from the first on.
    prefix: u32,
    /// The next object to ask for, and its wave.
    next: u32,
    wave: usize,
    /// When that wave's names are parsed, once it is known.
    parsed_at: Option<Time>,
    /// Over one stream of bytes: behind which byte the next object ends.
    boundary: u64,
}

impl Loading {
    pub(crate) fn new(page: &Page) -> Self {
        let [_, certificate] = page.tls.unwrap_or_default();
        Self {
            news: VecDeque::new(),
            has: vec![false; page.objects.len()],
            arrived: 0,
            prefix: 0,
            next: 0,
            wave: 0,
            parsed_at: None,
            boundary: certificate + page.objects.first().map_or(0, |it| it.response),
        }
    }

    /// An object has arrived on a stream of its own or, at a server, a request has.
    pub(crate) fn on_arrival(&mut self, number: u32) {
        self.news.push_back(number);
    }

    /// Over one stream of bytes, of which so many have arrived: what is whole now.
    fn divide(&mut self, page: &Page, received: u64) {
        let news = self.news.len() as u32;
        let mut number = self.arrived + news;
        while received >= self.boundary && number < page.objects.len() as u32 {
            self.news.push_back(number);
            number += 1;
            let next = page.objects.get(number as usize);
            self.boundary = next.map_or(u64::MAX, |next| self.boundary + next.response);
        }
    }

    /// What the client does next, with so many bytes received: none if it has the page. Behind it, how many
    /// bytes are to arrive until it can do more.
    pub(crate) fn client(&mut self, page: &Page, received: u64, now: Time) -> Option<(Next, u64)> {
        if !page.has_streams {
            self.divide(page, received);
        }
        let until = match page.has_streams {
            true => u64::MAX,
            false => self.boundary,
        };
        if let Some(number) = self.news.pop_front() {
            self.has[number as usize] = true;
            self.arrived += 1;
            while self.has.get(self.prefix as usize) == Some(&true) {
                self.prefix += 1;
            }
            return Some((Next::Note, until));
        }
        while let Some(wave) = page.waves.get(self.wave) {
            let Some(parsed_at) = self.parsed_at else {
                if self.prefix < wave.awaits {
                    return Some((Next::Wait, until));
                }
                self.parsed_at = Some(now + wave.parse);
                if wave.parse > Time::ZERO {
                    return Some((Next::Parse(wave.parse), until));
                }
                continue;
            };
            if now < parsed_at {
                return Some((Next::Wait, until));
            }
            let first = self.next;
            if page.has_streams && first < wave.end {
                self.next += 1;
                let bytes = page.objects[first as usize].request;
                return Some((Next::Ask(first, bytes), until));
            }
            (self.next, self.parsed_at) = (wave.end, None);
            self.wave += 1;
            if !page.has_streams {
                let asked = &page.objects[first as usize..wave.end as usize];
                let bytes = asked.iter().map(|it| it.request).sum();
                return Some((Next::AskAll(bytes), until));
            }
        }
        let has_all = self.arrived as usize == page.objects.len();
        (!has_all).then_some((Next::Wait, until))
    }

    /// What the server does next, where objects have streams.
    pub(crate) fn server(&mut self, page: &Page) -> Next {
        match self.news.pop_front() {
            Some(number) => Next::Answer(number, page.objects[number as usize]),
            None => Next::Wait,
        }
    }
}
