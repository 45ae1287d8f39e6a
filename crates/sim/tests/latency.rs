//! Delays, round trips and losses of a run, against theory and against what its capture shows.

use crate::common;

use std::collections::{HashMap, VecDeque};
use std::fs::{self, File};

use aqmlab_capture::CaptureReader;
use aqmlab_parquet::recorder;
use aqmlab_record::{FlowSummary, Summary};
use common::{parse, run};

fn near(found: Option<f64>, expected: f64, tolerance: f64) -> bool {
    found.is_some_and(|found| (found - expected).abs() <= tolerance)
}

/// Transfers over an idle link of 10 Mbit/s, one segment of 1500 bytes at a time, each of which is
/// acknowledged at once.
fn one_at_a_time(hosts: &str, profile: &str) -> FlowSummary {
    let text = format!(
        r#"
        [measure]
        warm_up = "2 s"
        duration = "20 s"
        [topology]
        kind = "dumbbell"
        {hosts}
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        framing = "none"
        discipline = {{ kind = "droptail", limit = "100 packets" }}
        [[traffic]]
        kind = "bulk"
        name = "download"
        flows = 1
        tcp = {{ profile = "{profile}", mss = "1460 bytes", send_buffer = "1460 bytes", delayed_ack = {{ kind = "off" }} }}
        rtt = {{ kind = "constant", rtt = "40 ms" }}
        "#
    );
    run(&text).flows["download"].clone()
}

#[test]
fn on_an_idle_link_the_round_trip_is_propagation_and_transmission() {
    // 1500 and 40 bytes at 10 Mbit/s.
    let links = 0.001_2 + 0.000_032;
    // The same on two more links each way, of 100 Mbit/s.
    let access = links + 2.0 * links / 10.0;
    let fast_hosts = "hosts = { rate = \"100 Mbit/s\", framing = \"none\" }";
    for (hosts, transmission) in [
        ("", links),
        ("hosts = { delay_at = \"servers\" }", links),
        ("hosts = { delay_at = \"clients\" }", links),
        (fast_hosts, access),
    ] {
        let flows = one_at_a_time(hosts, "rfc");
        let idle = 0.040 + transmission;
        for found in [
            flows.rtt_min_s,
            flows.rtt_mean_s,
            flows.rtt_idle_s,
            flows.rtt_p50_s,
            flows.rtt_p99_s,
        ] {
            assert!(near(found, idle, 1e-8), "{hosts}: {found:?} {idle}");
        }
        // It has begun with the shorter one of the handshake.
        assert!(near(flows.srtt_mean_s, idle, 1e-6), "{hosts}: {flows:?}");
        assert_eq!(flows.rtt_increase_p95_s, Some(0.0), "{hosts}");
        assert_eq!((flows.count, flows.still_open), (0, 1));
        // A segment each round trip.
        let goodput = 1460.0 * 8.0 / idle;
        assert!((flows.goodput_bps / goodput - 1.0).abs() < 0.01);
        assert_eq!(flows.fairness_jain, Some(1.0));
        let sent_again = (flows.span_retransmitted_data, flows.span_retransmitted_syn);
        assert_eq!(sent_again, (Some(0), Some(0)));
    }
}

#[test]
fn under_load_the_round_trip_grows_by_the_queue() {
    // Windows that fill the queue and never overflow it: what is not on the way waits.
    let text = r#"
        [measure]
        warm_up = "20 s"
        duration = "40 s"
        [topology]
        kind = "dumbbell"
        [topology.bottleneck]
        rate = "10 Mbit/s"
        delay = "5 ms"
        framing = "none"
        discipline = { kind = "droptail", limit = "1000 packets" }
        [[traffic]]
        kind = "bulk"
        name = "download"
        flows = 4
        tcp = { profile = "rfc", mss = "1460 bytes", send_buffer = "36500 bytes", delayed_ack = { kind = "off" } }
        rtt = { kind = "constant", rtt = "40 ms" }
    "#;
    let summary = run(text);
    let link = &summary.links["bottleneck"]["forward"];
    let flows = &summary.flows["download"];
    // 100 segments of 1.2 ms: a round trip of 120 ms, whatever the path takes.
    assert!(near(flows.rtt_mean_s, 0.120, 1e-3), "{flows:?}");
    assert!(near(flows.rtt_idle_s, 0.041_232, 1e-8));
    let sojourn = link.sojourn_mean_s.expect("packets");
    assert!(
        near(flows.rtt_increase_p50_s, sojourn, 0.02 * sojourn),
        "{flows:?} {sojourn}"
    );
    assert_eq!((flows.count, flows.still_open), (0, 4));
    let cwnd = flows.cwnd_mean_bytes.expect("samples");
    assert!(cwnd >= 36_500.0 && flows.cwnd_end_bytes.expect("open") >= 36_500.0);
    // All of them are measured, though none ends.
    assert!((flows.goodput_bps / (10e6 * 1460.0 / 1500.0) - 1.0).abs() < 0.001);
    assert!(flows.fairness_jain.expect("goodput") > 0.99);
}

const LIMIT: usize = 20;
const RATE: u64 = 2_000_000;
const DELAY: u64 = 1_000_000;
/// Nanoseconds between a server and the link, of datagrams and of transfers.
const ACCESS: [u64; 2] = [19_000_000, 29_000_000];
const SPAN: std::ops::Range<u64> = 5_000_000_000..35_000_000_000;

const MIXED: &str = r#"
    [measure]
    warm_up = "5 s"
    duration = "30 s"
    record = []
    capture = "bottleneck"
    [topology]
    kind = "dumbbell"
    [topology.bottleneck]
    rate = "2 Mbit/s"
    delay = "1 ms"
    framing = "none"
    discipline = { kind = "droptail", limit = "20 packets" }
    [[traffic]]
    kind = "cbr"
    name = "calls"
    flows = 3
    rate = "150 kbit/s"
    packet = "500 bytes"
    gaps = "exponential"
    rtt = { kind = "constant", rtt = "40 ms" }
    [[traffic]]
    kind = "bulk"
    name = "downloads"
    flows = 3
    tcp = "rfc"
    rtt = { kind = "constant", rtt = "60 ms" }
"#;

/// A packet towards the clients as the capture has it: when it came to the queue, who sent it to
/// whom, its IP bytes, and for a segment with data its sequence number.
struct Captured {
    time: u64,
    ends: Vec<u8>,
    size: u64,
    is_datagram: bool,
    seq: Option<u32>,
}

fn captured(text: &str, name: &str) -> (Summary, Vec<Captured>) {
    let directory = std::env::temp_dir().join(format!("aqmlab-{name}-{}", std::process::id()));
    fs::create_dir_all(&directory).expect("a folder");
    let scenario = parse(text);
    let records = recorder(Some(&directory), &scenario.measure);
    let summary = aqmlab_sim::run(&scenario, records, &mut |_| true).expect("the run succeeds");
    let file = File::open(directory.join("capture.pcapng")).expect("a capture");
    let mut reader = CaptureReader::new(file).expect("pcapng");
    let mut packets = Vec::new();
    while let Some(record) = reader.next_packet().expect("pcapng") {
        let data = record.data;
        let is_datagram = data[9] == 17;
        let port = u16::from_be_bytes([data[20], data[21]]);
        if port >= 1024 {
            continue; // Of a client.
        }
        let size = u64::from(record.original);
        let header = 20
            + if is_datagram {
                8
            } else {
                u64::from(data[32] >> 4) * 4
            };
        let seq = u32::from_be_bytes([data[24], data[25], data[26], data[27]]);
        packets.push(Captured {
            time: record.time.expect("a time").as_nanos(),
            ends: data[12..24].to_vec(),
            size,
            is_datagram,
            seq: (!is_datagram && size > header).then_some(seq),
        });
    }
    fs::remove_dir_all(&directory).expect("it is there");
    (summary, packets)
}

/// First come, first served, with room for some packets beside the one that is sent: how long each
/// packet waits, if it is let in.
fn waits(packets: &[Captured]) -> Vec<Option<u64>> {
    let mut begins = VecDeque::new();
    let mut free = 0;
    let wait = |packet: &Captured| {
        begins.retain(|begin| *begin > packet.time);
        if begins.len() >= LIMIT {
            return None;
        }
        let begin = free.max(packet.time);
        begins.push_back(begin);
        free = begin + packet.size * 8 * 1_000_000_000 / RATE;
        Some(begin - packet.time)
    };
    packets.iter().map(wait).collect()
}

/// The statistics of some times in nanoseconds: count, mean, maximum and percentiles in seconds.
struct Times(Vec<u64>);

impl Times {
    fn mean(&self) -> f64 {
        self.0.iter().sum::<u64>() as f64 / self.0.len() as f64 / 1e9
    }

    fn max(&self) -> f64 {
        *self.0.iter().max().expect("some") as f64 / 1e9
    }

    /// Whether a percentile is that of the times, to within 1/128.
    fn has(&self, share: f64, found: Option<f64>) -> bool {
        let mut sorted = self.0.clone();
        sorted.sort_unstable();
        let rank = (share * sorted.len() as f64).ceil() as usize;
        let exact = sorted[rank.max(1) - 1] as f64 / 1e9;
        found.is_some_and(|found| exact - 1e-12 <= found && found <= exact * 129.0 / 128.0 + 1e-12)
    }
}

#[test]
fn queueing_is_what_a_queue_makes_of_the_captured_arrivals() {
    let (summary, packets) = captured(MIXED, "queueing");
    let waits = waits(&packets);
    let link = &summary.links["bottleneck"]["forward"];
    let of = |wanted: fn(&Captured) -> bool| {
        let packets = packets.iter().zip(&waits);
        let left = packets.filter(|(packet, _)| wanted(packet));
        let left = left.filter_map(|(packet, wait)| Some((packet.time, (*wait)?)));
        let measured = left.filter(|(time, wait)| SPAN.contains(&(time + wait)));
        Times(measured.map(|(_, wait)| wait).collect())
    };
    let all = of(|_| true);
    assert!(near(link.sojourn_mean_s, all.mean(), 1e-12));
    assert_eq!(link.sojourn_max_s, Some(all.max()));
    for (share, found) in [
        (0.5, link.sojourn_p50_s),
        (0.9, link.sojourn_p90_s),
        (0.95, link.sojourn_p95_s),
        (0.99, link.sojourn_p99_s),
        (0.999, link.sojourn_p999_s),
    ] {
        assert!(all.has(share, found), "{share} {found:?}");
    }
    for (name, times) in [
        ("calls", of(|packet| packet.is_datagram)),
        ("downloads", of(|packet| !packet.is_datagram)),
    ] {
        let class = &link.classes[name];
        assert_eq!(class.left_packets, times.0.len() as u64, "{name}");
        assert!(near(class.sojourn_mean_s, times.mean(), 1e-12), "{name}");
        assert_eq!(class.sojourn_max_s, Some(times.max()), "{name}");
        assert!(times.has(0.99, class.sojourn_p99_s), "{name}");
    }
    let dropped = packets.iter().zip(&waits);
    let dropped = dropped.filter(|(packet, wait)| wait.is_none() && SPAN.contains(&packet.time));
    assert_eq!(link.dropped_packets, dropped.count() as u64);
}

#[test]
fn datagrams_meet_what_a_queue_makes_of_the_captured_arrivals() {
    let (summary, packets) = captured(MIXED, "datagrams");
    let waits = waits(&packets);
    // Of each flow, in the order of sending: when each datagram was sent, and when it arrived.
    let mut flows = HashMap::<_, Vec<(u64, Option<u64>)>>::new();
    for (packet, wait) in packets.iter().zip(waits) {
        if packet.is_datagram {
            let sent = packet.time - ACCESS[0];
            let transmission = packet.size * 8 * 1_000_000_000 / RATE;
            let arrived = wait.map(|wait| packet.time + wait + transmission + DELAY);
            flows.entry(&packet.ends).or_default().push((sent, arrived));
        }
    }
    assert_eq!(flows.len(), 3);
    let (mut delays, mut variations) = (Vec::new(), Vec::new());
    let (mut jitters, mut gap, mut losses, mut longest) = (Vec::new(), 0, 0_u64, 0);
    for datagrams in flows.values() {
        let mut before: Option<(u64, Option<u64>)> = None;
        let (mut last, mut jitter, mut in_row) = (None::<(u64, u64)>, 0.0, 0);
        for &(sent, arrived) in datagrams {
            if let Some(arrived) = arrived {
                in_row = 0;
                let (delay, measured) = (arrived - sent, SPAN.contains(&arrived));
                if let Some((last_arrived, last_delay)) = last {
                    let difference = delay.abs_diff(last_delay) as f64 / 1e9;
                    jitter += (difference - jitter) / 16.0;
                    if measured {
                        gap = gap.max(arrived - last_arrived.max(SPAN.start));
                    }
                }
                last = Some((arrived, delay));
                if measured {
                    delays.push(delay);
                    jitters.push(jitter);
                    if let Some((sent, Some(arrived))) = before {
                        variations.push(delay.abs_diff(arrived - sent));
                    }
                }
            } else if SPAN.contains(&(sent + ACCESS[0])) {
                in_row += 1;
                losses += 1;
                longest = longest.max(in_row);
            }
            before = Some((sent, arrived));
        }
    }
    let (delays, variations) = (Times(delays), Times(variations));
    let calls = &summary.flows["calls"];
    assert_eq!(calls.datagrams_lost, losses);
    assert!(losses > 10 && longest > 1, "{losses} {longest}");
    assert_eq!(calls.datagram_loss_run_max, Some(longest));
    assert!(near(calls.datagram_delay_mean_s, delays.mean(), 1e-12));
    assert_eq!(calls.datagram_delay_max_s, Some(delays.max()));
    for (share, delay, variation) in [
        (0.5, calls.datagram_delay_p50_s, calls.datagram_ipdv_p50_s),
        (0.95, calls.datagram_delay_p95_s, calls.datagram_ipdv_p95_s),
        (0.99, calls.datagram_delay_p99_s, calls.datagram_ipdv_p99_s),
    ] {
        assert!(delays.has(share, delay), "{share} {delay:?}");
        assert!(variations.has(share, variation), "{share} {variation:?}");
    }
    let jitter = jitters.iter().sum::<f64>() / jitters.len() as f64;
    assert!(
        near(calls.datagram_jitter_s, jitter, 1e-9),
        "{calls:?} {jitter}"
    );
    assert!(near(calls.datagram_gap_max_s, gap as f64 / 1e9, 1e-12));
    let all = &summary.flows["all"];
    assert_eq!(all.datagram_delay_p99_s, calls.datagram_delay_p99_s);
    assert_eq!(all.datagram_jitter_s, calls.datagram_jitter_s);
}

#[test]
fn transfers_without_end_send_again_what_the_capture_shows_twice() {
    let (summary, packets) = captured(MIXED, "repeated");
    let mut behind = HashMap::<_, u32>::new();
    let mut repeated = 0;
    for packet in &packets {
        if let Some(seq) = packet.seq {
            let first_new = behind.entry(&packet.ends).or_default();
            let sent = packet.time - ACCESS[1];
            repeated += u64::from(seq < *first_new && SPAN.contains(&sent));
            *first_new = (*first_new).max(seq + 1);
        }
    }
    let flows = &summary.flows["downloads"];
    assert!(repeated > 20, "{repeated}");
    assert_eq!(flows.span_retransmitted_data, Some(repeated));
    assert_eq!((flows.retransmitted_data, flows.still_open), (0, 3));
    assert!(flows.span_timeouts.is_some() && flows.cwnd_end_bytes.is_some());
}

#[test]
fn a_datagram_on_an_idle_link_takes_its_way_wherever_the_delay_is() {
    for delay_at in ["both", "servers", "clients"] {
        let text = format!(
            r#"
            [measure]
            warm_up = "2 s"
            duration = "10 s"
            [topology]
            kind = "dumbbell"
            hosts = {{ delay_at = "{delay_at}" }}
            [topology.bottleneck]
            rate = "10 Mbit/s"
            delay = "5 ms"
            framing = "none"
            discipline = {{ kind = "droptail", limit = "100 packets" }}
            [[traffic]]
            kind = "cbr"
            flows = 1
            rate = "200 kbit/s"
            packet = "500 bytes"
            rtt = {{ kind = "constant", rtt = "40 ms" }}
            "#
        );
        let flows = run(&text).flows["cbr"].clone();
        // 500 bytes at 10 Mbit/s, 5 ms, and what the server delays of the other 30 ms.
        let server = [("both", 0.015), ("servers", 0.030), ("clients", 0.0)];
        let (_, server) = server.into_iter().find(|it| it.0 == delay_at).expect("one");
        let delay = 0.000_4 + 0.005 + server;
        for found in [flows.datagram_delay_mean_s, flows.datagram_delay_max_s] {
            assert!(near(found, delay, 1e-9), "{delay_at}: {found:?} {delay}");
        }
        // One every 20 ms, to the nanosecond.
        assert!(near(flows.datagram_gap_max_s, 0.020, 1e-8), "{flows:?}");
        assert!(near(flows.datagram_jitter_s, 0.0, 1e-9), "{flows:?}");
        assert!(near(flows.datagram_ipdv_p99_s, 0.0, 1e-9), "{flows:?}");
        assert_eq!(
            (flows.datagram_loss_run_max, flows.datagram_loss_rate),
            (Some(0), Some(0.0))
        );
    }
}

#[test]
fn what_was_not_there_has_no_delay() {
    let flows = one_at_a_time("", "rfc");
    assert_eq!(flows.datagram_delay_mean_s, None);
    assert_eq!(
        (flows.datagram_jitter_s, flows.datagram_gap_max_s),
        (None, None)
    );
    assert_eq!(
        (flows.datagram_loss_run_max, flows.datagram_loss_rate),
        (None, None)
    );
}
