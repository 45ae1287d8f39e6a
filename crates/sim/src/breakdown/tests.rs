//! Where the time of single responses goes, to the nanosecond.
//!
//! 8 Mbit/s both ways without framing, a round trip of 100 ms, segments of 960 bytes: data take 1 ms, an
//! ACK 40 us, a SYN 44, a request of 360 bytes 400. One connection on an idle network; some of its
//! segments are dropped as they leave. Times below are in microseconds.

mod quic;

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, Mutex};

use aqmlab_net::Role;
use aqmlab_record::{
    Breakdown, ClassMetrics, Exchange, Flow, LinkStats, LossOnPath, LostSegment, PARTS_OF_PORT,
    Part, PathCount, QueueSamples, Records, RunError, StoryEvent, StoryRow, TraceRow,
};
use aqmlab_scenario::Scenario;

use super::paths::Paths;
use super::*;
use crate::engine::{Engine, Explained};
use crate::event_queue::WheelQueue;
use crate::memory::Memory;
use crate::oracle::HeapQueue;
use crate::world::{Shortcuts, Steps, World};

/// A response, and where its time went.
#[derive(Clone, Debug, PartialEq)]
struct Row {
    response: u64,
    parts: Vec<u64>,
    counts: Vec<u64>,
    loss: Option<LossOnPath>,
}

impl Row {
    fn part(&self, part: Part) -> u64 {
        self.parts[part as usize]
    }

    fn count(&self, what: PathCount) -> u64 {
        self.counts[what as usize]
    }
}

/// Keeps the rows, and the events of the connection's story.
#[derive(Clone, Default)]
struct Rows(Arc<Mutex<Vec<Row>>>, Arc<Mutex<Vec<StoryRow>>>);

/// The parts of an exchange by the story that ends with this event; when it began, and how often
/// something was dropped on the way.
fn retrace(story: &[StoryRow], last: &StoryRow, parts: usize) -> (Vec<u64>, u64, usize) {
    let (mut sums, mut drops) = (vec![0; parts], 0);
    let mut at = last.cause;
    loop {
        let row = &story[at as usize - 1];
        assert!(
            row.number == at && row.cause < at,
            "causes come first: {row:?}"
        );
        if let Some(part) = row.part {
            sums[usize::from(part)] += row.duration.as_nanos();
        }
        let is_lost = |it: &&StoryRow| it.cause == at && it.event == StoryEvent::Dropped;
        drops += story.iter().filter(is_lost).count();
        if row.event == StoryEvent::Asked {
            return (sums, row.time.as_nanos(), drops);
        }
        at = row.cause;
    }
}

impl Records for Rows {
    fn begin(&mut self, _classes: &[String], _probes: &[&'static str]) -> Result<(), RunError> {
        Ok(())
    }

    fn response(&mut self, _row: &Exchange) {}

    fn breakdown(&mut self, row: &Exchange, breakdown: &Breakdown<'_>) {
        let row = Row {
            response: row.response_time().as_nanos(),
            parts: breakdown.parts.to_vec(),
            counts: breakdown.counts.to_vec(),
            loss: breakdown.loss,
        };
        assert_eq!(row.parts.iter().sum::<u64>(), row.response, "{row:?}");
        self.0.lock().unwrap().push(row);
    }

    fn story(&mut self, row: &StoryRow) {
        let mut story = self.1.lock().unwrap();
        story.push(*row);
        if row.event == StoryEvent::Answered {
            let rows = self.0.lock().unwrap();
            let last = rows.last().unwrap();
            let (parts, start, drops) = retrace(&story, row, last.parts.len());
            assert_eq!(
                parts, last.parts,
                "the story has the parts of the breakdown"
            );
            assert_eq!(row.time.as_nanos() - start, last.response);
            assert_eq!(drops as u64, last.count(PathCount::Losses));
        }
    }

    fn flow(&mut self, _row: &Flow) {}

    fn trace(&mut self, _row: &TraceRow) {}

    fn queue(&mut self, _samples: &QueueSamples) {}

    fn check(&mut self) -> Result<(), RunError> {
        Ok(())
    }

    fn finish(
        self: Box<Self>,
        _classes: &[ClassMetrics],
        _links: &[&LinkStats],
    ) -> Result<(), RunError> {
        Ok(())
    }
}

/// `steps`: it is stopped and observed that often.
fn run_with<E: Engine<Causes = Paths>>(
    scenario: &Scenario,
    doomed: [&[u32]; 2],
    shortcuts: Shortcuts,
    steps: u64,
) -> Vec<Row> {
    let rows = Rows::default();
    let records = Box::new(rows.clone());
    let world = World::<E>::new(scenario, shortcuts, records, Memory::UNLIMITED);
    let mut world = Box::new(world.unwrap());
    for (sender, numbers) in Role::BOTH.into_iter().zip(doomed) {
        world.network_mut().doom(sender, numbers);
    }
    for step in 1..=steps {
        let time = Time::from_micros(37_773 * step);
        world.run_until(time).unwrap();
        let _ = world.observe(time);
    }
    world.run_until(Time::NEVER).unwrap();
    assert_eq!(world.network_mut().causes_mut().held(), (0, 0), "forgotten");
    world.end(scenario).unwrap();
    let rows = rows.0.lock().unwrap();
    rows.clone()
}

const NONE: Shortcuts = Shortcuts {
    computed_departures: false,
    shifted_clocks: false,
    changeable: false,
};

/// The rows of a run, which every machinery gives.
fn run(scenario: &Scenario, doomed: [&[u32]; 2]) -> Vec<Row> {
    let rows = run_with::<Explained<WheelQueue>>(scenario, doomed, Shortcuts::default(), 0);
    let slow = run_with::<Explained<HeapQueue>>(scenario, doomed, NONE, 0);
    assert_eq!(slow, rows, "the slow machinery");
    let computed = Shortcuts {
        computed_departures: true,
        ..NONE
    };
    let unshifted = run_with::<Explained<WheelQueue>>(scenario, doomed, computed, 0);
    assert_eq!(unshifted, rows, "clocks that are not shifted");
    let changeable = Shortcuts {
        changeable: true,
        ..Shortcuts::default()
    };
    let stepped = run_with::<Explained<WheelQueue>>(scenario, doomed, changeable, 200);
    assert_eq!(stepped, rows, "a world that can change, in steps");
    rows
}

/// Keys of the scenario and their values.
type Settings<'a> = &'a [(&'a str, &'a str)];

const RFC: &str = "profile = 'rfc', mss = '960 bytes'";

/// A scenario of one class over the network of these cases, with some settings.
fn scenario(class: &str, tcp: &str, settings: Settings, folder: &Path) -> Scenario {
    let text = format!(
        "[measure]\nwarm_up = '0 s'\nduration = '60 s'\nrecord = []\nbreakdown = true\nstory = 0\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '8 Mbit/s'\nframing = 'none'\ndelay = '0 s'\n\
         discipline = {{ kind = 'droptail', limit = '100 packets' }}\n\
         [[traffic]]\nname = 'one'\n{class}\ntcp = {{ {tcp} }}\n"
    );
    let settings = settings
        .iter()
        .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()));
    let settings: Vec<_> = settings.collect();
    Scenario::load_text(&text, folder, &settings).unwrap_or_else(|error| panic!("{error}\n{text}"))
}

/// A folder of this test's own, that goes with it.
struct Folder(PathBuf);

impl Folder {
    fn new() -> Self {
        static NUMBER: AtomicU32 = AtomicU32::new(0);
        let number = NUMBER.fetch_add(1, Ordering::Relaxed);
        let name = format!("aqmlab-breakdown-{}-{number}", std::process::id());
        let path = std::env::temp_dir().join(name);
        fs::create_dir_all(&path).unwrap();
        Self(path)
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// What the segments of a connection are that are dropped, client's and server's.
type Doomed = [&'static [u32]; 2];

/// Parts in microseconds that are not 0.
type Expected = &'static [(Part, u64)];

/// The exchanges of a connection vector whose ADUs are these lines, with other keys of the stack, and
/// settings.
fn recorded(adus: &str, tcp: &str, settings: Settings, doomed: Doomed) -> Vec<Row> {
    let folder = Folder::new();
    let vector = format!("S 0 1 100 5000\nr 100000\n{adus}");
    fs::write(folder.0.join("one.cvec"), vector).unwrap();
    let class = "kind = 'vectors'\nfile = 'one.cvec'\ncopies = 1\nrtt = { kind = 'vector' }";
    let tcp = format!("{RFC}{tcp}");
    run(&scenario(class, &tcp, settings, &folder.0), doomed)
}

/// A single exchange of 360 bytes and so many.
fn exchange(bytes: u64, tcp: &str, doomed: Doomed) -> Row {
    exchange_over(bytes, tcp, &[], doomed)
}

/// A single exchange with settings.
fn exchange_over(bytes: u64, tcp: &str, settings: Settings, doomed: Doomed) -> Row {
    let adus = format!("I 0 0 360\nA 0 1 {bytes}\nA 5000000 0 0\n");
    let rows = recorded(&adus, tcp, settings, doomed);
    assert_eq!(rows.len(), 1);
    rows[0].clone()
}

/// The waits of the server's segments and of the client's, and all transmission of the links.
fn ports(row: &Row) -> [u64; 3] {
    let [forward, reverse] = [0, 1].map(|port| Part::ALL.len() + PARTS_OF_PORT * port);
    assert_eq!((row.parts[forward + 1], row.parts[reverse + 1]), (0, 0));
    [
        row.parts[forward],
        row.parts[reverse],
        row.parts[forward + 2] + row.parts[reverse + 2],
    ]
}

/// Compares a row with the parts that are not 0: `[T, Wu, Wd]` of the ports, D of all propagation
/// behind the handshake, and others.
#[track_caller]
fn check(row: &Row, response: u64, [data, transmission, up, down]: [u64; 4], others: Expected) {
    let of_data = [
        Part::PropagationExchange,
        Part::PropagationSlowStart,
        Part::PropagationCongestionAvoidance,
        Part::PropagationReceiveWindow,
        Part::PropagationRecovery,
    ];
    let mut found: Vec<(Part, u64)> = Vec::new();
    for part in Part::ALL {
        if row.part(part) > 0 && !of_data.contains(&part) {
            found.push((part, row.part(part)));
        }
    }
    let expected: Vec<_> = others.iter().map(|(part, us)| (*part, us * 1000)).collect();
    assert_eq!(found, expected, "{row:?}");
    let propagation: u64 = of_data.iter().map(|part| row.part(*part)).sum();
    assert_eq!(propagation, data * 1000, "propagation of data");
    assert_eq!(ports(row), [down * 1000, up * 1000, transmission * 1000]);
    assert_eq!(row.response, response * 1000);
}

const HANDSHAKE: (Part, u64) = (Part::PropagationHandshake, 100_000);
const SERVER: (Part, u64) = (Part::Application, 1);

#[test]
fn a_short_response_takes_two_round_trips() {
    let row = exchange(960, "", [&[], &[]]);
    check(&row, 201_529, [100_000, 1_488, 40, 0], &[HANDSHAKE, SERVER]);
    assert_eq!(row.count(PathCount::TripsHandshake), 2);
    assert_eq!(row.count(PathCount::TripsExchange), 2);
    assert_eq!(row.loss, None);
}

#[test]
fn a_lost_syn_or_its_answer_waits_for_the_clients_timer() {
    let parts = [HANDSHAKE, (Part::SynTimeout, 1_000_000), SERVER];
    for doomed in [[&[1][..], &[]], [&[], &[1]]] {
        let row = exchange(960, "", doomed);
        check(
            &row,
            1_201_529,
            [100_000, 1_488, 40, 0],
            Vec::leak(parts.to_vec()),
        );
        assert_eq!(row.count(PathCount::SynTimeouts), 1);
    }
    // The SYN was lost on the way of this path, and its answer is no segment of it.
    let loss = exchange(960, "", [&[1], &[]]).loss.unwrap();
    assert_eq!((loss.segment, loss.reason), (LostSegment::Syn, "forced"));
    assert_eq!((loss.time, loss.port), (Time::from_secs(1), Some(0)));
}

#[test]
fn a_lost_request_or_response_waits_for_a_timer() {
    let parts: Expected = &[HANDSHAKE, (Part::Timeout, 1_000_000), SERVER];
    let row = exchange(960, "", [&[3], &[]]);
    check(&row, 1_201_489, [100_000, 1_488, 0, 0], parts);
    let row = exchange(960, "", [&[], &[2]]);
    check(&row, 1_201_529, [100_000, 1_488, 40, 0], parts);
    assert_eq!(row.count(PathCount::Losses), 1);
    let parts: Expected = &[HANDSHAKE, (Part::Timeout, 3_000_000), SERVER];
    let row = exchange(960, "", [&[], &[2, 4]]);
    check(&row, 3_201_529, [100_000, 1_488, 40, 0], parts);
    assert_eq!(row.count(PathCount::Timeouts), 2);
}

#[test]
fn a_window_costs_round_trips() {
    let row = exchange(9_600, "", [&[], &[]]);
    check(
        &row,
        407_609,
        [300_000, 3_568, 40, 4_000],
        &[HANDSHAKE, SERVER],
    );
    let trips = |what| row.count(what);
    assert_eq!(
        [PathCount::TripsExchange, PathCount::TripsSlowStart].map(trips),
        [2, 4]
    );
    assert_eq!(row.part(Part::PropagationSlowStart), 200_000_000);
}

#[test]
fn fast_retransmit_is_recovery_without_a_timer() {
    let row = exchange(9_600, "", [&[], &[5]]);
    let parts: Expected = &[HANDSHAKE, (Part::RecoveryFast, 203_080), SERVER];
    check(&row, 608_689, [300_000, 3_568, 40, 2_000], parts);
    assert_eq!(row.loss.unwrap().segment, LostSegment::Data);
}

#[test]
fn two_losses_wait_for_the_timer_and_for_its_repair() {
    let row = exchange(9_600, "", [&[], &[5, 6]]);
    let parts: Expected = &[
        HANDSHAKE,
        (Part::Timeout, 1_000_000),
        (Part::RecoveryBeforeTimer, 101_040),
        (Part::RecoveryBehindTimer, 101_040),
        SERVER,
    ];
    check(&row, 1_607_689, [300_000, 3_568, 40, 2_000], parts);
}

#[test]
fn delayed_acks_are_waited_for() {
    let row = exchange(1_920, ", initial_window = 1", [&[], &[]]);
    let parts: Expected = &[HANDSHAKE, (Part::DelayedAck, 200_000), SERVER];
    check(&row, 502_569, [200_000, 2_528, 40, 0], parts);
    assert_eq!(row.count(PathCount::DelayedAcks), 1);
}

#[test]
fn a_lost_ack_is_the_delay_of_the_next_one() {
    let row = exchange(3_840, "", [&[], &[]]);
    check(
        &row,
        303_569,
        [200_000, 2_528, 40, 1_000],
        &[HANDSHAKE, SERVER],
    );
    let row = exchange(3_840, "", [&[4], &[]]);
    let parts: Expected = &[HANDSHAKE, (Part::DelayedAck, 200_000), SERVER];
    check(&row, 504_569, [200_000, 2_528, 40, 2_000], parts);
    let row = exchange(3_840, "", [&[4, 5], &[]]);
    let parts: Expected = &[HANDSHAKE, (Part::Timeout, 1_000_000), SERVER];
    check(&row, 1_302_569, [200_000, 2_528, 40, 0], parts);
    assert_eq!(row.count(PathCount::FirstCopiesArrived), 1);
    assert_eq!(row.loss, None);
}

#[test]
fn a_second_exchange_begins_with_its_request() {
    let adus = "I 0 0 360\nA 0 1 960\nI 0 500000 360\nA 0 30000 960\nA 5000000 0 0\n";
    let rows = recorded(adus, "", &[], [&[], &[]]);
    check(
        &rows[0],
        201_529,
        [100_000, 1_488, 40, 0],
        &[HANDSHAKE, SERVER],
    );
    let thinks: Expected = &[(Part::Application, 30_000)];
    check(&rows[1], 131_400, [100_000, 1_400, 0, 0], thinks);
}

#[test]
fn hosts_links_have_parts_of_their_own() {
    let row = exchange_over(960, "", &[("topology.hosts.rate", "4 Mbit/s")], [&[], &[]]);
    let parts: Expected = &[
        HANDSHAKE,
        (Part::TransmissionHosts, 6_560),
        (Part::WaitHosts, 156),
        SERVER,
    ];
    check(&row, 208_205, [100_000, 1_488, 0, 0], parts);
}

#[test]
fn a_response_may_end_with_a_fin() {
    let class = "kind = 'poisson'\nrate = '0.2 /s'\nrtt = { kind = 'constant', rtt = '100 ms' }\n\
                 request = { kind = 'constant', size = '360 bytes' }\n\
                 response = { kind = 'constant', size = '960 bytes' }";
    let scenario = scenario(class, RFC, &[], Path::new("."));
    let row = &run(&scenario, [&[], &[]])[0];
    check(row, 201_568, [100_000, 528, 40, 1_000], &[HANDSHAKE]);
    let row = &run(&scenario, [&[], &[3]])[0];
    let parts: Expected = &[
        HANDSHAKE,
        (Part::Timeout, 1_000_000),
        (Part::RecoveryBeforeTimer, 301_040),
    ];
    check(row, 1_501_608, [100_000, 528, 40, 0], parts);
    assert_eq!(row.loss.unwrap().segment, LostSegment::Fin);
}

/// The receiver tells at once that half of its buffer has been read: each segment lets one go.
#[test]
fn a_full_receive_window_costs_round_trips_of_its_own() {
    let tcp = ", initial_window = 10, receive_buffer = '1920 bytes'";
    let row = exchange(3_840, tcp, [&[], &[]]);
    check(
        &row,
        303_569,
        [200_000, 2_528, 40, 1_000],
        &[HANDSHAKE, SERVER],
    );
    assert_eq!(row.part(Part::PropagationReceiveWindow), 100_000_000);
    assert_eq!(row.count(PathCount::TripsReceiveWindow), 2);
}

#[test]
fn congestion_avoidance_has_trips_of_its_own() {
    let tcp = ", initial_window = 2, initial_ssthresh = '1920 bytes'";
    let row = exchange(3_840, tcp, [&[], &[]]);
    check(
        &row,
        304_569,
        [200_000, 2_528, 40, 2_000],
        &[HANDSHAKE, SERVER],
    );
    assert_eq!(row.part(Part::PropagationCongestionAvoidance), 100_000_000);
    assert_eq!(row.count(PathCount::TripsCongestionAvoidance), 2);
}

/// The first of six segments is lost. What the fifth duplicate ACK lets go, the eighth segment, arrives
/// behind the repair.
#[test]
fn new_data_in_recovery_takes_trips_of_recovery() {
    let row = exchange(7_680, ", initial_window = 6", [&[], &[2]]);
    check(
        &row,
        306_569,
        [200_000, 2_528, 40, 4_000],
        &[HANDSHAKE, SERVER],
    );
    assert_eq!(row.part(Part::PropagationRecovery), 100_000_000);
    assert_eq!(row.count(PathCount::TripsRecovery), 2);
    assert_eq!(row.loss, None);
}

// ---- RACK: ACKs with a SACK block have 12 bytes more ----

const RACK: &str = ", recovery = 'rack-tlp'";

/// Of three segments the first is lost. The other two are too few to show the loss at once: it is
/// waited for a quarter of the least round trip, that of the handshake, 100,084 us.
#[test]
fn rack_waits_for_its_reordering_window() {
    let row = exchange(2_880, RACK, [&[], &[2]]);
    let parts: Expected = &[
        HANDSHAKE,
        (Part::ReorderingTimer, 25_021),
        (Part::RecoveryBeforeTimer, 102_052),
        SERVER,
    ];
    check(&row, 328_602, [100_000, 1_488, 40, 0], parts);
    assert_eq!(row.count(PathCount::Losses), 1);
    assert_eq!(row.loss.unwrap().time, Time::from_micros(127_073));
}

/// The first of three segments is lost, and the second of those that the SACKs let go. RACK's timer finds
/// the first loss, and what follows waits for its repair; the second loss is repaired meanwhile.
#[test]
fn a_timer_that_was_set_for_earlier_segments_finds_no_later_loss() {
    let tcp = format!("{RACK}, initial_window = 3");
    let row = exchange(5_760, &tcp, [&[], &[2, 6]]);
    assert_eq!(row.count(PathCount::Losses), 1, "{row:?}");
    assert_eq!(row.part(Part::ReorderingTimer), 25_021_000, "{row:?}");
    assert_eq!(row.part(Part::RecoveryBeforeTimer), 102_052_000, "{row:?}");
    assert_eq!(row.part(Part::RecoveryBehindTimer), 0, "{row:?}");
}

/// Of three segments the last is lost: nothing behind it shows that. The smoothed round trip is
/// 100,328.5 us, of samples of 100,084 and 102,040.
#[test]
fn a_lost_tail_waits_for_its_probe() {
    let tcp = format!("{RACK}, tail_loss_probe = {{ kind = 'on' }}");
    let row = exchange(2_880, &tcp, [&[], &[4]]);
    let parts: Expected = &[
        HANDSHAKE,
        (Part::TailLossProbe, 200_657 + 200_000),
        (Part::RecoveryBeforeTimer, 102_040),
        SERVER,
    ];
    check(&row, 704_226, [100_000, 1_488, 40, 0], parts);
    assert_eq!(row.count(PathCount::TailLossProbes), 1);
    assert_eq!(row.count(PathCount::Timeouts), 0);
}

/// Of four segments the last two are lost. The probe is the last one again; its ACK shows that the one
/// before is lost, too.
#[test]
fn a_loss_that_a_probe_shows_is_repaired_behind_its_timer() {
    let tcp = format!("{RACK}, tail_loss_probe = {{ kind = 'on' }}, ack_every = 1");
    let tcp = format!("{tcp}, initial_window = 4");
    let row = exchange(3_840, &tcp, [&[], &[4, 5]]);
    // Twice the smoothed round trip, in nanoseconds: of samples of 100,084, 101,040 and 102,040 us.
    assert_eq!(row.part(Part::TailLossProbe), 200_866_124);
    assert_eq!(row.part(Part::RecoveryBeforeTimer), 102_040_000);
    assert_eq!(row.part(Part::RecoveryBehindTimer), 101_052_000);
    assert_eq!(row.response, 605_487_124);
    assert_eq!(ports(&row), [0, 40_000, 1_488_000]);
    assert_eq!(row.count(PathCount::TailLossProbes), 1);
}

/// Behind ten segments that leave at once: 1.2 times the window of eleven in each smoothed round trip,
/// 100,084 us, is one in 7,582.
#[test]
fn paced_segments_wait_for_their_time() {
    let tcp = format!("{RACK}, pacing = 'linux', initial_window = 11");
    let tcp = format!("{tcp}, initial_ssthresh = '1000 bytes'");
    let row = exchange(10_560, &tcp, [&[], &[]]);
    assert_eq!(row.part(Part::Pacing) / 1000, 7_582, "{row:?}");
    assert_eq!(row.parts.iter().sum::<u64>(), row.response, "{row:?}");
}

// ---- the link ----

#[test]
fn the_device_ring_has_a_part_of_its_own() {
    let ring = [("topology.bottleneck.device_ring", "1 packets")];
    let row = exchange_over(2_880, "", &ring, [&[], &[]]);
    assert_eq!(row.response, 203_529_000);
    let [forward, reverse] = [0, 1].map(|port| Part::ALL.len() + PARTS_OF_PORT * port);
    // The third segment waits for the second one to leave the ring, then for its transmission.
    assert_eq!(row.parts[forward..forward + 2], [1_000_000, 1_000_000]);
    // The request waits in the ring for the ACK in front of it.
    assert_eq!(row.parts[reverse..reverse + 2], [0, 40_000]);
}

#[test]
fn what_is_held_up_on_the_wire_has_a_part_of_its_own() {
    let all = [(
        "topology.bottleneck.reordering",
        "{ share = 1.0, delay = '5 ms' }",
    )];
    let row = exchange_over(960, "", &all, [&[], &[]]);
    let parts: Expected = &[HANDSHAKE, SERVER, (Part::HoldUp, 20_000)];
    check(&row, 221_529, [100_000, 1_488, 40, 0], parts);
    // The delay shrinks between the first segment and the second, which may not overtake it. Its server
    // delays what it sends by 40 ms.
    let shrinks = [
        ("topology.bottleneck.delay", "10 ms"),
        (
            "topology.bottleneck.delay_changes",
            "[{ at = '192 ms', delay = '0 s' }]",
        ),
    ];
    let row = exchange_over(1_920, "", &shrinks, [&[], &[]]);
    let parts: Expected = &[HANDSHAKE, SERVER, (Part::HoldUp, 9_000)];
    check(&row, 201_529, [90_000, 1_488, 40, 1_000], parts);
}

/// Timers that do not expire while a segment is under way for tens of seconds.
const PATIENT: &str = ", rto_initial = '60 s', rto_min = '60 s'";

#[test]
fn waits_of_many_seconds_are_exact() {
    let slow = [("topology.bottleneck.rate", "1 kbit/s")];
    let row = exchange_over(1_920, PATIENT, &slow, [&[], &[]]);
    let times = [100_000, 11_904_000, 320_000, 8_000_000];
    check(&row, 20_424_001, times, &[HANDSHAKE, SERVER]);
    let hosts = [(
        "topology.hosts",
        "{ clients = 1, servers = 1, rate = '1 kbit/s' }",
    )];
    let row = exchange_over(960, PATIENT, &hosts, [&[], &[]]);
    // The hosts' links have Ethernet's framing: 1640 bytes on the path and 78 of the ACK before the
    // request.
    let parts: Expected = &[
        HANDSHAKE,
        (Part::TransmissionHosts, 2 * 13_120_000),
        (Part::WaitHosts, 624_000),
        SERVER,
    ];
    check(&row, 27_065_489, [100_000, 1_488, 0, 0], parts);
}

#[test]
fn a_random_delay_before_segments_is_another_timer() {
    let row = exchange(960, ", random_send_delay = '1 ms'", [&[], &[]]);
    let other = row.part(Part::OtherTimer);
    // The request and the answer wait for it.
    assert!((1..=2_000_000).contains(&other), "{other}");
    assert_eq!(row.part(Part::Pacing), 0);
}

// ---- users ----

/// A page over HTTP/2: TLS, HTML of a segment, 10 ms to parse it, an object of so many bytes.
fn page(object: u64, doomed: Doomed) -> Vec<Row> {
    let class = format!(
        "kind = 'http2-web'\nusers = 1\nobjects = 2\nobjects_sigma = 0\nhtml = '760 bytes'\n\
         object = '{object} bytes'\nobject_sigma = 0\nfirst_wave = 0.6\ncritical = 0.6\n\
         parse_min = '10 ms'\nparse_max = '10 ms'\nstart_within = '0 s'\n\
         rtt = {{ kind = 'constant', rtt = '100 ms' }}"
    );
    let tcp = format!("{RFC}, initial_window = 10, nagle = false");
    run(&scenario(&class, &tcp, &[], Path::new(".")), doomed)
}

#[test]
fn a_page_over_http2_is_one_path_through_all_that_it_waits_for() {
    let parts: Expected = &[HANDSHAKE, (Part::Application, 10_000)];
    let rows = page(1_720, [&[], &[]]);
    for row in &rows {
        check(row, 418_475, [300_000, 3_435, 40, 5_000], parts);
        assert_eq!(row.count(PathCount::TripsExchange), 6);
    }
    assert!(!rows.is_empty());
}

/// The first of five segments of the object is lost: the other four wait behind the hole until the
/// third of them has brought it back.
#[test]
fn streams_wait_behind_a_hole_for_its_repair() {
    let rows = page(4_600, [&[], &[8]]);
    let parts: Expected = &[
        HANDSHAKE,
        (Part::RecoveryFast, 103_040),
        (Part::Application, 10_000),
    ];
    check(&rows[0], 520_515, [300_000, 3_435, 40, 4_000], parts);
    assert_eq!(rows[0].loss.unwrap().segment, LostSegment::Data);
}

// ---- what nobody asks for ----

/// `run_with` finds that nothing is held of the transfers, which are still under way then.
#[test]
fn endless_transfers_take_no_memory() {
    let class = "kind = 'bulk'\nflows = 3\nrtt = { kind = 'constant', rtt = '100 ms' }";
    let endless = scenario(class, RFC, &[], Path::new("."));
    assert!(run(&endless, [&[], &[5, 9]]).is_empty());
    // One that ends is explained.
    let class = format!("{class}\nsize = '100 kB'");
    let finite = scenario(&class, RFC, &[], Path::new("."));
    assert_eq!(run(&finite, [&[], &[5, 9]]).len(), 3);
}
