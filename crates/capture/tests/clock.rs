//! A clock that was set forward, and pauses that look like one.

use aqmlab_capture::{ACK, Notes, Options, Plan, TcpImage};
use aqmlab_traffic::vector::ConnectionVector;

use crate::common::{Pair, Tap, vectors};

/// Four downloads of ten seconds, a packet of each every 10 ms, acknowledged 1 ms later.
const CONNECTIONS: u16 = 4;
const PACKETS: u32 = 1000;

/// A packet: when its sender sends it, when it passes, the number of its connection and its own
/// number, and whether it is an acknowledgement.
#[derive(Clone, Copy)]
struct One {
    sent_ms: f64,
    ms: f64,
    port: u16,
    number: u32,
    is_ack: bool,
}

fn downloads() -> Vec<One> {
    let packets = (0..PACKETS).flat_map(|number| (0..CONNECTIONS).map(move |port| (number, port)));
    let both = packets.flat_map(|(number, port)| {
        let ms = 150.0 + 10.0 * f64::from(number) + 2.5 * f64::from(port);
        [(ms, false), (ms + 1.0, true)].map(|(ms, is_ack)| One {
            sent_ms: ms,
            ms,
            port: 40_000 + port,
            number,
            is_ack,
        })
    });
    both.collect()
}

/// The file: with time stamps of so many ticks in a second, or without.
fn file(packets: &[One], ticks: Option<f64>) -> Vec<u8> {
    let mut tap = Tap::new();
    for port in 0..CONNECTIONS {
        tap.handshake(35.0 * f64::from(port), &Pair::new(40_000 + port));
    }
    for one in packets {
        let pair = Pair::new(one.port);
        let side = usize::from(!one.is_ack);
        let stamp = ticks.map(|rate| {
            let origin = u32::MAX - 3000 - u32::from(one.port) + side as u32 * 3000;
            (origin.wrapping_add((one.sent_ms * rate / 1e3) as u32), 1)
        });
        let sent = 1448 * one.number;
        let (seq, ack, len) = match one.is_ack {
            true => (pair.isn[0] + 1, pair.isn[1] + 1 + sent + 1448, 0),
            false => (pair.isn[1] + 1 + sent, pair.isn[0] + 1, 1448),
        };
        let tcp = TcpImage {
            seq,
            ack,
            flags: ACK,
            window: 1000,
            timestamps: stamp,
            ..TcpImage::default()
        };
        tap.image(one.ms, &pair, side, tcp, len);
    }
    tap.bytes()
}

/// From the middle on the clock is off by so many milliseconds.
fn set(mut packets: Vec<One>, by_ms: f64) -> Vec<One> {
    let half = packets.len() / 2;
    for one in &mut packets[half..] {
        one.ms += by_ms;
    }
    packets
}

fn notes(file: &[u8]) -> Notes {
    Plan::read(file, &mut |_| true).unwrap().notes
}

fn bodies(file: &[u8]) -> Vec<ConnectionVector> {
    vectors(file, Options::default()).0
}

#[test]
fn a_clock_that_was_set_forward_is_said_and_mended() {
    let clean = bodies(&file(&downloads(), Some(1e3)));
    for rate in [1e2, 1e3, 1e6] {
        for by in [1e3, 60e3, 3600e3] {
            let found = file(&set(downloads(), by), Some(rate));
            let notes = notes(&found);
            assert_eq!(notes.set_forward_s.len(), 1, "{by} {rate}");
            assert!(
                (notes.set_forward_s[0] - by / 1e3).abs() < 0.02,
                "{notes:?}"
            );
            assert!(notes.set_back_s.is_empty() && notes.unclear_silences_s.is_empty());
            // No idle time: each connection has one response, as in the clean capture.
            assert_eq!(bodies(&found), clean);
        }
    }
}

#[test]
fn a_clock_that_is_set_forward_in_a_pause_is_found() {
    let mut packets = downloads();
    let half = packets.len() / 2;
    for one in &mut packets[half..] {
        one.sent_ms += 2e3;
        one.ms += 62e3;
    }
    let by = notes(&file(&packets, Some(1e3))).set_forward_s;
    assert!(by.len() == 1 && (by[0] - 60.0).abs() < 0.02, "{by:?}");
}

#[test]
fn a_clock_that_is_set_forward_and_back_is_mended_twice() {
    let mut packets = set(downloads(), 60e3);
    let late = packets.len() * 3 / 4;
    for one in &mut packets[late..] {
        one.ms -= 60e3;
    }
    let notes = notes(&file(&packets, Some(1e3)));
    assert_eq!((notes.set_forward_s.len(), notes.set_back_s.len()), (1, 1));
    assert!((notes.set_forward_s[0] - notes.set_back_s[0]).abs() < 0.05);
    assert_eq!(notes.out_of_order, 0);
}

/// Data that were under way are acknowledged without a repetition a minute later.
#[test]
fn without_time_stamps_expired_timers_decide() {
    let mut packets = downloads();
    // Four data packets, then their four acknowledgements.
    packets.chunks_mut(8).for_each(|eight| {
        let begin = eight[0].ms;
        eight.sort_by_key(|one| one.is_ack);
        for (place, one) in eight.iter_mut().enumerate() {
            one.ms = begin + place as f64;
        }
    });
    let cut = 4004;
    let planted = |by: f64| {
        let mut packets = packets.clone();
        packets[cut..].iter_mut().for_each(|one| one.ms += by);
        notes(&file(&packets, None))
    };
    let minute = planted(60e3);
    assert_eq!(minute.set_forward_s.len(), 1);
    assert!((minute.set_forward_s[0] - 60.0).abs() < 0.02);
    // A timer may be longer than a second.
    let second = planted(2e3);
    assert!(second.set_forward_s.is_empty());
    assert_eq!(second.unclear_silences_s.len(), 1);
    assert!((second.unclear_silences_s[0][1] - 2.0).abs() < 0.02);
}

#[test]
fn a_pause_of_everything_is_no_clock() {
    for by in [1e3, 60e3, 3600e3] {
        let mut packets = set(downloads(), by);
        let half = packets.len() / 2;
        for one in &mut packets[half..] {
            one.sent_ms += by;
        }
        let notes = notes(&file(&packets, Some(1e3)));
        assert!(notes.set_forward_s.is_empty() && notes.unclear_silences_s.is_empty());
    }
}

/// The link is down for two seconds; its queue then hands out what was sent before.
#[test]
fn an_outage_that_holds_packets_is_no_clock() {
    let mut packets = downloads();
    let half = packets.len() / 2;
    for one in &mut packets[half..] {
        one.ms += 2e3;
        // Receivers answer when data come; the sender's last window is 2 s late.
        if one.is_ack || one.ms > 7800.0 {
            one.sent_ms += 2e3;
        }
    }
    let notes = notes(&file(&packets, Some(1e3)));
    assert!(notes.set_forward_s.is_empty(), "{notes:?}");
}

/// What is sent again was not acknowledged in time: time has passed.
#[test]
fn data_that_are_sent_again_show_a_pause() {
    let mut packets = set(downloads(), 60e3);
    let half = packets.len() / 2;
    let again: Vec<One> = (0..usize::from(CONNECTIONS))
        .map(|one| {
            let mut again = packets[half - 2 - 2 * one];
            again.ms = packets[half].ms - 1.0;
            again
        })
        .collect();
    // Their acknowledgements did not come.
    for one in 0..usize::from(CONNECTIONS) {
        packets.remove(half - 1 - 2 * one);
    }
    let half = half - usize::from(CONNECTIONS);
    packets.splice(half..half, again);
    let notes = notes(&file(&packets, None));
    assert!(notes.set_forward_s.is_empty() && notes.unclear_silences_s.is_empty());
}

/// In the morning others come: nothing contradicts a night, and nothing proves it.
#[test]
fn a_night_may_be_a_clock() {
    let mut packets = downloads();
    let half = packets.len() / 2;
    for one in &mut packets[half..] {
        one.port += 100;
        one.ms += 8.0 * 3600e3;
        one.sent_ms = one.ms;
    }
    for ticks in [None, Some(1e3)] {
        let notes = notes(&file(&packets, ticks));
        assert!(notes.set_forward_s.is_empty());
        let [at, long] = notes.unclear_silences_s[0];
        assert!((at - 5.1).abs() < 0.1 && (long - 28_800.0).abs() < 0.1);
    }
}

/// People think for seconds: such pauses are not worth a word.
#[test]
fn ordinary_pauses_are_not_mentioned() {
    let mut packets = downloads();
    let mut pause = 0.0;
    for (place, one) in packets.iter_mut().enumerate() {
        if place % 200 == 0 {
            pause += 1000.0 + (place % 7) as f64 * 900.0;
        }
        one.ms += pause;
    }
    let notes = notes(&file(&packets, None));
    assert!(notes.set_forward_s.is_empty() && notes.unclear_silences_s.is_empty());
}
