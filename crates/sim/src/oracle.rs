//! The slow, obvious machinery that the fast one must agree with: a binary heap of events, an
//! event for every end of a transmission, and a fingerprint of what reaches the bottleneck.

use std::cell::Cell;
use std::cmp::Reverse;
use std::collections::BinaryHeap;

use aqmlab_net::{Rate, Time};
use aqmlab_record::{Discard, Summary};
use aqmlab_scenario::Scenario;

use crate::engine::Plain;
use crate::event::Event;
use crate::event_queue::{EventQueue, Next, WheelQueue};
use crate::fingerprint::Fingerprint;
use crate::memory::Memory;
use crate::wheel::Wheel;
use crate::world::{Shortcuts, Steps, World};

/// A heap in which departures are entries like all others.
pub(crate) struct HeapQueue {
    heap: BinaryHeap<Reverse<Entry>>,
    pushed: u64,
    /// Which entry of each port counts.
    departures: Vec<u64>,
}

/// At equal times departures come first, then what was pushed earlier.
struct Entry {
    time: Time,
    is_event: bool,
    number: u64,
    next: Next,
}

impl Entry {
    fn key(&self) -> (Time, bool, u64) {
        (self.time, self.is_event, self.number)
    }
}

impl PartialEq for Entry {
    fn eq(&self, other: &Self) -> bool {
        self.key() == other.key()
    }
}

impl Eq for Entry {}

impl PartialOrd for Entry {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Entry {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.key().cmp(&other.key())
    }
}

impl HeapQueue {
    fn add(&mut self, time: Time, next: Next) -> u64 {
        self.pushed += 1;
        self.heap.push(Reverse(Entry {
            time,
            is_event: matches!(next, Next::Event(_)),
            number: self.pushed,
            next,
        }));
        self.pushed
    }
}

impl EventQueue for HeapQueue {
    fn new(ports: usize, _fastest: Rate) -> Self {
        Self {
            heap: BinaryHeap::new(),
            pushed: 0,
            departures: vec![0; ports],
        }
    }

    fn push(&mut self, time: Time, event: Event) {
        self.add(time, Next::Event(event));
    }

    fn set_departure(&mut self, port: usize, time: Time) {
        self.departures[port] = 0;
        if time < Time::NEVER {
            self.departures[port] = self.add(time, Next::Departure(port));
        }
    }

    fn next(&mut self, end: Time) -> Option<(Time, Next)> {
        loop {
            let Reverse(entry) = self.heap.peek()?;
            if entry.time >= end {
                return None;
            }
            let Reverse(entry) = self.heap.pop()?;
            match entry.next {
                Next::Departure(port) if self.departures[port] != entry.number => {}
                next => return Some((entry.time, next)),
            }
        }
    }
}

thread_local! {
    /// How wide the buckets of the next odd wheel are. One type has all widths, so that its world is
    /// compiled once.
    static SHIFT: Cell<u32> = const { Cell::new(0) };
}

/// A wheel with fine buckets of another width.
struct OddWheel(WheelQueue);

impl EventQueue for OddWheel {
    fn new(ports: usize, _fastest: Rate) -> Self {
        let wheel = Wheel::with_bucket_shift(SHIFT.get());
        Self(WheelQueue::with_wheel(ports, wheel))
    }

    fn push(&mut self, time: Time, event: Event) {
        self.0.push(time, event);
    }

    fn set_departure(&mut self, port: usize, time: Time) {
        self.0.set_departure(port, time);
    }

    fn next(&mut self, end: Time) -> Option<(Time, Next)> {
        self.0.next(end)
    }
}

fn run<Q: EventQueue>(text: &str, shortcuts: Shortcuts) -> (Summary, Fingerprint) {
    let scenario = Scenario::parse(text, &[], &mut |name| panic!("no file {name}"));
    let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
    let mut world =
        World::<Plain<Q>>::new(&scenario, shortcuts, Box::new(Discard), Memory::UNLIMITED)
            .expect("a world");
    world.run_until(Time::NEVER).expect("the run succeeds");
    let (mut summary, fingerprint) = world.end_with_fingerprint(&scenario);
    // How many events there were is what differs.
    summary.events = 0;
    (summary, fingerprint)
}

const NONE: Shortcuts = Shortcuts {
    computed_departures: false,
    shifted_clocks: false,
    changeable: false,
};

/// Every machinery gives what the slow one gives.
fn all_agree(text: &str) {
    let (expected, fingerprint) = run::<HeapQueue>(text, NONE);
    assert!(fingerprint.count > 10_000, "{fingerprint:?}");
    let check = |name: &str, (summary, found): (Summary, Fingerprint)| {
        assert_eq!(
            found, fingerprint,
            "{name}: the bottleneck saw something else"
        );
        assert_eq!(summary, expected, "{name}");
    };
    let computed = Shortcuts {
        computed_departures: true,
        ..NONE
    };
    let shifted = Shortcuts {
        shifted_clocks: true,
        ..NONE
    };
    check("registers", run::<WheelQueue>(text, NONE));
    check("computed departures", run::<WheelQueue>(text, computed));
    check("shifted clocks", run::<WheelQueue>(text, shifted));
    check(
        "all shortcuts",
        run::<WheelQueue>(text, Shortcuts::default()),
    );
    check(
        "heap, all shortcuts",
        run::<HeapQueue>(text, Shortcuts::default()),
    );
    for (name, shift) in [("narrow buckets", 9), ("wide buckets", 19)] {
        SHIFT.set(shift);
        check(name, run::<OddWheel>(text, Shortcuts::default()));
    }
}

fn scenario(bottleneck: &str, hosts: &str, traffic: &str) -> String {
    format!(
        r#"
        [measure]
        warm_up = "3 s"
        duration = "17 s"
        [topology]
        kind = "dumbbell"
        {hosts}
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "2 ms"
        {bottleneck}
        {traffic}
        "#
    )
}

/// Two slow links in a row, one with changes of its rate; traffic over both and over each, and
/// routes that differ between there and back.
fn network(first: &str, hosts: &str, traffic: &[(&str, &str)]) -> String {
    let classes = traffic.iter().enumerate().map(|(number, (path, class))| {
        format!("{class}\nname = \"class-{number}\"\npath = \"{path}\"\n")
    });
    let classes: String = classes.collect();
    format!(
        r#"
        [measure]
        warm_up = "3 s"
        duration = "17 s"
        [topology]
        kind = "network"
        {hosts}
        [topology.links.first]
        rate = "10 Mbit/s"
        delay = "2 ms"
        {first}
        [topology.links.second]
        rate = "8 Mbit/s"
        delay = "1 ms"
        {DROPTAIL}
        rate_changes = [{{ at = "6 s", rate = "4 Mbit/s" }}, {{ at = "12 s", rate = "9 Mbit/s" }}]
        [topology.links.aside]
        rate = "100 Mbit/s"
        {DROPTAIL}
        reordering = {{ share = 0.01, delay = "3 ms" }}
        [topology.paths.both]
        links = ["first", "second"]
        back = ["-aside", "-first"]
        [topology.paths.only-first]
        links = ["-first"]
        [topology.paths.only-second]
        links = ["second"]
        {classes}
        "#
    )
}

const WEB: &str = r#"
    [[traffic]]
    kind = "poisson"
    direction = "both"
    rate = "190 /s"
    request = { kind = "constant", size = "400 bytes" }
    response = { kind = "bounded-pareto", shape = 1.2, minimum = "1850 bytes", maximum = "1 MB" }
    tcp = "rfc"
    rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }
"#;

const USERS: &str = r#"
    [[traffic]]
    kind = "mah-web"
    users = 3600
    direction = "both"
    tcp = "freebsd-2.2.8"
    rtt = { kind = "uniform", min = "10 ms", max = "150 ms" }
"#;

const BULK: &str = r#"
    [[traffic]]
    kind = "bulk"
    flows = 12
    start_within = "2 s"
    tcp = { profile = "rfc", ecn = true }
    rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"#;

const CBR: &str = r#"
    [[traffic]]
    kind = "cbr"
    flows = 3
    rate = "1.1 Mbit/s"
    packet = "500 bytes"
    gaps = "exponential"
    rtt = { kind = "uniform", min = "20 ms", max = "100 ms" }
"#;

const DROPTAIL: &str = r#"discipline = { kind = "droptail", limit = "40 packets" }"#;
const RED: &str = r#"discipline = { kind = "red", min_th = "5 packets", max_th = "20 packets", limit = "80 packets", gentle = true, ecn = true }"#;

#[test]
fn machinery_agrees_on_web_behind_droptail() {
    all_agree(&scenario(DROPTAIL, "", WEB));
}

#[test]
fn machinery_agrees_on_a_buffer_of_bytes_that_often_overflows() {
    let bytes = r#"discipline = { kind = "droptail", limit = "12 kB" }"#;
    all_agree(&scenario(bytes, "", WEB));
}

#[test]
fn machinery_agrees_on_bulk_with_ecn_behind_red() {
    all_agree(&scenario(RED, "", BULK));
}

#[test]
fn machinery_agrees_on_users_with_host_links_and_a_device_ring() {
    let bottleneck = format!("device_ring = \"8 packets\"\nloss = 0.002\n{RED}");
    let hosts = r#"hosts = { clients = 4, servers = 3, rate = "20 Mbit/s" }"#;
    all_agree(&scenario(&bottleneck, hosts, USERS));
}

#[test]
fn machinery_agrees_on_a_mix_of_open_loop_users_and_datagrams() {
    all_agree(&scenario(RED, "", &[WEB, USERS, BULK, CBR].concat()));
}

#[test]
fn machinery_agrees_wherever_the_delay_lies() {
    let unc = USERS.replace("mah-web", "unc-web").replace("3600", "1700");
    for end in ["clients", "servers"] {
        let pure = format!("hosts = {{ delay_at = \"{end}\" }}");
        all_agree(&scenario(DROPTAIL, &pure, &[&unc, CBR].concat()));
        all_agree(&network(RED, &pure, &[("both", &unc), ("only-first", WEB)]));
        let links = format!("hosts = {{ delay_at = \"{end}\", rate = \"20 Mbit/s\" }}");
        all_agree(&scenario(RED, &links, USERS));
    }
}

#[test]
fn who_delays_does_not_change_a_round_trip() {
    // Hardly a queue: what a response takes is round trips and transmissions.
    let web = WEB.replace("190 /s", "20 /s");
    let quartiles = |end: &str| {
        let hosts = format!("hosts = {{ delay_at = \"{end}\", rate = \"20 Mbit/s\" }}");
        let (summary, _) =
            run::<WheelQueue>(&scenario(DROPTAIL, &hosts, &web), Shortcuts::default());
        let responses = &summary.responses["all"];
        [responses.p25_s, responses.p50_s, responses.p75_s].map(|time| time.expect("responses"))
    };
    let both = quartiles("both");
    for end in ["clients", "servers"] {
        for (found, expected) in quartiles(end).into_iter().zip(both) {
            assert!(
                (found / expected - 1.0).abs() < 0.02,
                "{end}: {found} {expected}"
            );
        }
    }
}

#[test]
fn machinery_agrees_with_options_in_the_segments() {
    let sack = WEB.replace("\"rfc\"", r#"{ profile = "linux", ecn = true }"#);
    let sync = BULK.replace(
        r#"{ profile = "rfc", ecn = true }"#,
        r#"{ profile = "freebsd-4.5", congestion_control = "sync-tcp" }"#,
    );
    let one_way = BULK.replace(
        r#"{ profile = "rfc", ecn = true }"#,
        r#""ns-one-way"
    name = "one-way""#,
    );
    let clocks = r#"hosts = { clock_offset = "5 s", clock_drift = 500 }"#;
    all_agree(&scenario(RED, clocks, &[sack, sync, one_way].concat()));
}

#[test]
fn machinery_agrees_where_the_decision_falls_on_departure() {
    let codel = r#"discipline = { kind = "codel", target = "10 ms", ecn = true }"#;
    all_agree(&scenario(codel, "", &[WEB, BULK].concat()));
    // The queue is short at times, and at times its few places are full.
    let few = codel.replace("ecn", r#"limit = "9 packets", ecn"#);
    all_agree(&scenario(&few, "", WEB));
    let early = codel.replace("10 ms", "3 ms");
    all_agree(&network(&early, "", &[("both", WEB), ("only-first", CBR)]));
}

#[test]
fn computed_departures_count_as_the_events_that_they_stand_for() {
    let summary = |text: &str, changeable| {
        let scenario = Scenario::parse(text, &[], &mut |name| panic!("no file {name}"));
        let scenario = scenario.unwrap_or_else(|error| panic!("{error}"));
        let shortcuts = Shortcuts {
            changeable,
            ..Shortcuts::default()
        };
        let world = World::<Plain<WheelQueue>>::new(
            &scenario,
            shortcuts,
            Box::new(Discard),
            Memory::UNLIMITED,
        );
        let mut world = Box::new(world.expect("a world"));
        world.run_until(Time::NEVER).expect("the run succeeds");
        world.end(&scenario).expect("nothing is written")
    };
    for (target, load) in [("10 ms", "190 /s"), ("3 ms", "190 /s"), ("5 ms", "60 /s")] {
        let discipline = format!("discipline = {{ kind = \"codel\", target = \"{target}\" }}");
        let text = scenario(&discipline, "", &WEB.replace("190 /s", load));
        assert_eq!(summary(&text, false), summary(&text, true), "{target}");
    }
}

#[test]
fn machinery_agrees_where_departures_are_drawn() {
    let dualpi2 = r#"discipline = { kind = "dualpi2", target = "5 ms", ecn = true }"#;
    all_agree(&scenario(dualpi2, "", &[WEB, BULK].concat()));
}

/// The shaper holds packets back while the wire is free.
#[test]
fn machinery_agrees_behind_a_shaper() {
    let cake = r#"discipline = { kind = "cake", bandwidth = "3 Mbit/s", ack_filter = "on" }"#;
    all_agree(&scenario(cake, "", &[WEB, BULK].concat()));
}

#[test]
fn machinery_agrees_on_a_link_that_cannot_always_send() {
    let trace = "trace = { opportunities = [1, 1, 2, 5, 5, 5, 6, 9, 9, 12], aggregate = 2 }\n\
                 outages = [{ at = '2 s', duration = '300 ms' }]";
    let changes =
        "delay_changes = [{ at = '1 s', delay = '9 ms' }, { at = '3 s', delay = '1 ms' }]";
    for discipline in [
        DROPTAIL,
        r#"discipline = { kind = "codel", ecn = true }"#,
        r#"discipline = { kind = "fq-codel" }"#,
    ] {
        let out = "outages = [{ at = '1 s', duration = '1 s' }]\ndevice_ring = '4 packets'";
        all_agree(&scenario(&format!("{trace}\n{discipline}"), "", WEB));
        for varying in [changes, out] {
            all_agree(&scenario(&format!("{varying}\n{discipline}"), "", BULK));
        }
    }
}

/// Packets leave together, losses begin and end, and a policer takes no time.
#[test]
fn machinery_agrees_on_a_policed_link_whose_packets_leave_together() {
    let changes = "loss_changes = [{ at = '1 s', loss = 0.02 }, { at = '3 s', loss = 0.0 }]";
    let policer = "policer = { rate = '6 Mbit/s', burst = '20 kB' }";
    for varying in ["ack_batch = '5 ms'", changes, policer] {
        for discipline in [DROPTAIL, r#"discipline = { kind = "fq-codel" }"#] {
            all_agree(&scenario(&format!("{varying}\n{discipline}"), "", BULK));
        }
    }
}

/// Applications write at a rate, or take back what is not sent.
#[test]
fn machinery_agrees_on_senders_that_the_application_limits() {
    let pauses = "pauses = [{ at = '2 s', for = '1 s' }, { at = '5 s', for = '400 ms' }]";
    for keys in [pauses.to_owned(), format!("limit = '600 kbit/s'\n{pauses}")] {
        let limited = BULK.replace("flows = 12", &format!("flows = 12\n{keys}"));
        all_agree(&scenario(DROPTAIL, "", &limited));
    }
}

#[test]
fn machinery_agrees_on_users_who_go_by_what_they_hear() {
    let users = r#"
        [[traffic]]
        kind = "abr-video"
        viewers = 2
        rtt = { kind = "constant", rtt = "40 ms" }
        [[traffic]]
        kind = "video-conference"
        streams = 2
        direction = "both"
        rtt = { kind = "constant", rtt = "40 ms" }
        [[traffic]]
        kind = "http2-web"
        users = 2
        think = "1 s"
        rtt = { kind = "constant", rtt = "40 ms" }
        [[traffic]]
        kind = "game"
        players = 1
        rate = "1 Mbit/s"
        rtt = { kind = "constant", rtt = "40 ms" }
        "#;
    all_agree(&scenario(DROPTAIL, "", users));
}

#[test]
fn machinery_agrees_where_hosts_remember_their_peers() {
    let text = |cache: &str| {
        let tcp = format!("tcp = {{ profile = \"freebsd-4.5\", peer_cache = \"{cache}\" }}");
        let hosts = "hosts = { clients = 2, servers = 2 }";
        scenario(DROPTAIL, hosts, &WEB.replace("tcp = \"rfc\"", &tcp))
    };
    let plain = run::<HeapQueue>(&text("off"), NONE);
    for cache in ["at-syn", "when-complete"] {
        all_agree(&text(cache));
        let remembered = run::<HeapQueue>(&text(cache), NONE);
        assert_ne!(remembered.1, plain.1, "{cache}");
    }
}

#[test]
fn machinery_agrees_on_a_network_of_links() {
    let traffic = [("both", WEB), ("only-first", BULK), ("only-second", CBR)];
    all_agree(&network(RED, "", &traffic));
}

#[test]
fn machinery_agrees_on_a_network_where_the_decision_falls_on_departure() {
    let codel = r#"discipline = { kind = "codel", target = "10 ms", ecn = true }"#;
    let traffic = [("both", BULK), ("only-first", WEB), ("only-second", USERS)];
    all_agree(&network(codel, "", &traffic));
}
