//! What results call links, parts, losses and errors; which errors of recording reach an engine.

use std::collections::BTreeSet;
use std::io::Write;

use aqmlab_net::Time;
use aqmlab_record::{
    ClassMetrics, Discard, Exchange, Flow, LinkDirection, LinkStats, LostSegment, MeasuredSpan,
    Metrics, Part, PathCount, PortParts, QueueSamples, Records, RetransmittedKinds, RunError,
    TraceRow, View,
};
use aqmlab_scenario::Scenario;
use aqmlab_tcp::Retransmissions;

fn scenario(topology: &str) -> Scenario {
    let text = format!(
        "measure = {{ warm_up = \"3 s\", duration = \"5 s\" }}\n{topology}\n\
         traffic = [{{ kind = \"bulk\", flows = 1, rtt = {{ kind = \"constant\", rtt = \"20 ms\" }} }}]"
    );
    Scenario::parse(&text, &[], &mut |_| unreachable!("it names no files")).unwrap()
}

fn dumbbell() -> Scenario {
    scenario(
        "topology = { kind = \"dumbbell\", bottleneck = { rate = \"10 Mbit/s\", discipline = { kind = \"codel\" } } }",
    )
}

#[test]
fn a_link_has_two_directions_and_random_numbers_of_their_own() {
    let names = LinkDirection::all(&dumbbell().topology.network());
    let found = names.iter().map(|name| (&*name.link, name.direction));
    assert!(found.eq([("bottleneck", "forward"), ("bottleneck", "reverse")]));
    assert_eq!(names[1].stream(), "reverse");
    let other = LinkDirection {
        link: "uplink".to_owned(),
        direction: "reverse",
    };
    assert_eq!(other.stream(), "uplink/reverse");
    let first =
        |name: &LinkDirection, seed, purpose| name.random_stream(seed, purpose).uniform().to_bits();
    let draws = [
        first(&names[0], 1, "loss"),
        first(&names[1], 1, "loss"),
        first(&other, 1, "loss"),
        first(&names[0], 2, "loss"),
        first(&names[0], 1, "law"),
    ];
    assert_eq!(BTreeSet::from(draws).len(), draws.len());
    assert_eq!(draws[0], first(&names[0], 1, "loss"));
}

#[test]
fn the_measured_span_is_half_open() {
    let span = MeasuredSpan::of(&dumbbell().measure);
    let s = Time::from_secs;
    assert_eq!((span.start, span.end), (s(3), s(8)));
    assert_eq!(span.duration(), s(5));
    let nano = Time::from_nanos(1);
    let inside = [s(3) - nano, s(3), s(8) - nano, s(8)].map(|time| span.contains(time));
    assert_eq!(inside, [false, true, true, false]);
    let overlaps = [(0, 3), (0, 4), (4, 6), (7, 10), (8, 10), (0, 10)];
    let overlaps = overlaps.map(|(from, to)| span.overlap(s(from), s(to)));
    assert_eq!(overlaps, [0, 1, 2, 1, 0, 5].map(s));
}

#[test]
fn columns_of_a_breakdown_are_called_apart() {
    let parts = Part::ALL.map(Part::column);
    let counts = PathCount::ALL.map(PathCount::column);
    let names: BTreeSet<_> = parts.iter().chain(&counts).collect();
    assert_eq!(names.len(), Part::ALL.len() + PathCount::ALL.len());
    assert!(parts.iter().all(|name| name.ends_with("_ns")));
    let meanings = Part::ALL.map(Part::meaning).into_iter();
    let mut meanings = meanings.chain(PathCount::ALL.map(PathCount::meaning));
    assert!(meanings.all(|meaning| meaning.ends_with('.') && meaning.trim() == meaning));
    use LostSegment::{Data, Fin, Handshake, Limit, Syn};
    let lost = [Syn, Data, Fin, Handshake, Limit].map(LostSegment::name);
    assert_eq!(lost, ["syn", "data", "fin", "handshake", "limit"]);
}

#[test]
fn kinds_are_those_of_which_something_was_sent_again() {
    for bits in 0..8_u32 {
        let [syn, fin, data] = [0, 1, 2].map(|bit| 3 * (bits >> bit & 1));
        let again = Retransmissions {
            syn,
            fin,
            data,
            timeouts: 1,
        };
        let kinds = RetransmittedKinds::from(again);
        assert_eq!(
            [kinds.syn, kinds.fin, kinds.data],
            [syn, fin, data].map(|count| count > 0)
        );
    }
}

/// A full disk.
struct Full;

impl Full {
    fn error<T>() -> Result<T, RunError> {
        Err(RunError::Record("a file".to_owned()))
    }
}

impl Records for Full {
    fn begin(&mut self, classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        match classes.len() {
            1 => Ok(()),
            _ => Self::error(),
        }
    }

    fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        Self::error()
    }

    fn response(&mut self, _row: &Exchange) {}

    fn begin_breakdowns(&mut self, _ports: &[PortParts]) -> Result<(), RunError> {
        Self::error()
    }

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

    fn check(&mut self) -> Result<(), RunError> {
        Self::error()
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        _links: &[&LinkStats],
    ) -> Result<(), RunError> {
        Self::error()
    }
}

#[test]
fn an_error_of_recording_ends_the_run() {
    let mut scenario = dumbbell();
    let links: [&LinkStats; 0] = [];
    let mut metrics = Metrics::new(&scenario, View::Sockets, links, Box::new(Full)).unwrap();
    assert!(metrics.check().is_err());
    assert!(metrics.capture().is_err());
    let refused = metrics.begin_breakdowns(Vec::new()).unwrap_err();
    assert_eq!(refused.to_string(), "cannot write a file");
    let none: [&mut LinkStats; 0] = [];
    assert!(metrics.finish(&scenario, none, 0).is_err());
    scenario.traffic.push(scenario.traffic[0].clone());
    assert!(Metrics::new(&scenario, View::Sockets, links, Box::new(Full)).is_err());
    assert!(Metrics::new(&scenario, View::Sockets, links, Box::new(Discard)).is_ok());
}
