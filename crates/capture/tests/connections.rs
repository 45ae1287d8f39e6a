//! Connections packet by packet: what is told apart, and what is said of the rest.

use crate::common;

use std::collections::BTreeMap;

use aqmlab_capture::{ConvertError, Omission, Options, Origin, Part, Partial, TcpImage};
use aqmlab_net::Time;
use common::{ACK, FIN, Pair, RST, SYN, Tap, at_once, spoken, try_vectors, vectors};

/// Two exchanges; the server thinks 50 ms and 5 ms, the client 700 ms; it closes after 1 s.
///
/// The tap sees the server 20 ms and the client 10 ms away (there and back).
fn two_exchanges(tap: &mut Tap, from: f64, pair: &Pair) {
    tap.handshake(from, pair);
    let at = |ms: f64| from + ms;
    tap.at(at(30.1), pair, (0, ACK, 0, 0, 300));
    tap.at(at(50.1), pair, (1, ACK, 0, 300, 0));
    tap.at(at(100.1), pair, (1, ACK, 0, 300, 1460));
    tap.at(at(100.2), pair, (1, ACK, 1460, 300, 1000));
    tap.at(at(110.2), pair, (0, ACK, 300, 2460, 0));
    tap.at(at(810.2), pair, (0, ACK, 300, 2460, 400));
    tap.at(at(835.2), pair, (1, ACK, 2460, 700, 5));
    tap.at(at(845.2), pair, (0, ACK, 700, 2465, 0));
    tap.at(at(1835.2), pair, (1, ACK | FIN, 2465, 700, 0));
    tap.at(at(1845.2), pair, (0, ACK | FIN, 700, 2466, 0));
    tap.at(at(1865.2), pair, (1, ACK, 2466, 701, 0));
}

const TWO_EXCHANGES: [(char, u64, f64); 4] = [
    ('I', 300, 50.0),
    ('A', 2460, 700.0),
    ('I', 400, 5.0),
    ('A', 5, 1000.0),
];

#[test]
fn exchanges_become_epochs_without_the_network() {
    let mut tap = Tap::new();
    two_exchanges(&mut tap, 0.0, &Pair::new(4000));
    let (vectors, report) = tap.vectors();
    let [vector] = &vectors[..] else {
        panic!("{vectors:?}");
    };
    assert_eq!(spoken(vector), TWO_EXCHANGES);
    assert_eq!(vector.start, Time::ZERO);
    assert_eq!(vector.rtt, Some(Time::from_millis(30)));
    // 1000 units, scaled by 2^3.
    assert_eq!(vector.windows, [Some(8000); 2]);
    assert_eq!(vector.segments, [Some(1460); 2]);
    assert_eq!((report.packets.tcp, report.packets.repeated), (14, 0));
    assert_eq!(report.vectors.initiator_bytes, 700);
    assert_eq!(report.vectors.acceptor_bytes, 2465);
    assert_eq!(report.connections.initiator_by.of(Origin::Syn), 1);
    assert_eq!(report.connections.partial.total(), 0);
}

#[test]
fn sequence_numbers_may_wrap() {
    for isn in [
        [u32::MAX, u32::MAX - 2000],
        [u32::MAX - 100, 7],
        [1 << 31, (1 << 31) - 50],
    ] {
        let mut tap = Tap::new();
        two_exchanges(
            &mut tap,
            0.0,
            &Pair {
                isn,
                ..Pair::new(4000)
            },
        );
        let (vectors, _) = tap.vectors();
        assert_eq!(spoken(&vectors[0]), TWO_EXCHANGES, "{isn:?}");
    }
}

#[test]
fn vectors_come_in_order_of_start_whatever_ends_first() {
    let mut tap = Tap::new();
    let long = Pair::new(5000);
    tap.handshake(0.0, &long);
    tap.at(40.0, &long, (0, ACK, 0, 0, 10));
    two_exchanges(&mut tap, 100.0, &Pair::new(4000));
    two_exchanges(&mut tap, 3000.0, &Pair::new(4001));
    tap.at(9000.0, &long, (1, ACK, 0, 10, 10));
    tap.at(9001.0, &long, (0, ACK | FIN, 10, 10, 0));
    tap.at(9021.0, &long, (1, ACK | FIN, 10, 11, 0));
    tap.at(9031.0, &long, (0, ACK, 11, 11, 0));
    let (vectors, report) = tap.vectors();
    let starts: Vec<_> = vectors.iter().map(|vector| vector.start).collect();
    assert_eq!(starts, [0, 100, 3000].map(Time::from_millis));
    let mut ids: Vec<_> = vectors.iter().map(|vector| vector.id).collect();
    ids.sort_unstable();
    assert_eq!(ids, [1, 2, 3]);
    assert_eq!(report.connections.live_max, 3, "closed ones linger");
}

/// Lost behind the tap, before the tap, and out of order; the sizes stay, and thinking begins when
/// the last piece has come.
#[test]
fn losses_and_reordering_change_no_size() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(31.0, &pair, (0, ACK, 0, 0, 1000));
    // 1000..2000 is lost before the tap, 2000..3000 comes before 3000..4000 overtakes it.
    tap.at(31.2, &pair, (0, ACK, 3000, 0, 500));
    tap.at(31.3, &pair, (0, ACK, 2000, 0, 1000));
    tap.at(51.0, &pair, (1, ACK, 0, 1000, 0));
    tap.at(300.0, &pair, (0, ACK, 1000, 0, 1000));
    tap.at(320.0, &pair, (1, ACK, 0, 3500, 0));
    // The answer, after 40 ms; its first transmission is lost behind the tap; overlaps.
    tap.at(360.0, &pair, (1, ACK, 0, 3500, 100));
    tap.at(660.0, &pair, (1, ACK, 0, 3500, 250));
    tap.at(670.0, &pair, (0, ACK, 3500, 250, 0));
    // Needless repetition.
    tap.at(671.0, &pair, (1, ACK, 0, 3500, 250));
    tap.at(770.0, &pair, (0, ACK | FIN, 3500, 250, 0));
    tap.at(790.0, &pair, (1, ACK | FIN, 250, 3501, 0));
    tap.at(800.0, &pair, (0, ACK, 3501, 251, 0));
    let (vectors, report) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('I', 3500, 40.0), ('A', 250, 110.0)]);
    assert_eq!(report.packets.repeated, 3);
}

#[test]
fn silence_ends_an_adu_only_if_nothing_kept_the_side_from_sending() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(30.0, &pair, (0, ACK, 0, 0, 100));
    tap.at(50.0, &pair, (1, ACK, 0, 100, 0));
    // 400 ms of silence, then 600 ms.
    tap.at(430.0, &pair, (0, ACK, 100, 0, 100));
    tap.at(450.0, &pair, (1, ACK, 0, 200, 0));
    tap.at(1030.0, &pair, (0, ACK, 200, 0, 100));
    // Not acknowledged for 3 s.
    tap.at(4030.0, &pair, (0, ACK, 300, 0, 100));
    // Closed window for 2 s.
    let closed = TcpImage {
        seq: pair.isn[1] + 1,
        ack: pair.isn[0] + 1 + 400,
        flags: ACK,
        window: 0,
        ..TcpImage::default()
    };
    tap.image(4050.0, &pair, 1, closed, 0);
    tap.at(6050.0, &pair, (1, ACK, 0, 400, 0));
    tap.at(6060.0, &pair, (0, ACK, 400, 0, 100));
    tap.at(6080.0, &pair, (1, ACK | FIN, 0, 500, 0));
    let (vectors, _) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('I', 200, 600.0), ('I', 300, 20.0)]);
}

/// The tap sees an acknowledgement that its receiver never gets: the time-out that follows is not a
/// pause. A pause behind such a time-out is one.
#[test]
fn time_outs_for_lost_acknowledgements_are_no_silence() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    for n in 0..3 {
        let at = 30.0 + 3000.0 * n as f64;
        let sent = 200 * n;
        tap.at(at, &pair, (0, ACK, sent, 0, 100));
        tap.at(at + 20.0, &pair, (1, ACK, 0, sent + 100, 0));
        tap.at(at + 1000.0, &pair, (0, ACK, sent, 0, 100));
        tap.at(at + 1020.0, &pair, (1, ACK, 0, sent + 100, 0));
        tap.at(at + 1030.0, &pair, (0, ACK, sent + 100, 0, 100));
        tap.at(at + 1050.0, &pair, (1, ACK, 0, sent + 200, 0));
    }
    let (vectors, _) = tap.vectors();
    let sizes: Vec<_> = spoken(&vectors[0]).iter().map(|adu| adu.1).collect();
    assert_eq!(sizes, [200, 200, 200]);
}

/// The client is 600 ms away from the tap: that it answers an acknowledgement 600 ms later is no
/// silence of its application, 1300 ms are.
#[test]
fn round_trips_over_a_long_path_are_no_silence() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.at(0.0, &pair, (0, SYN, 0, 0, 0));
    tap.at(20.0, &pair, (1, SYN | ACK, 0, 0, 0));
    tap.at(620.0, &pair, (0, ACK, 0, 0, 0));
    tap.at(621.0, &pair, (0, ACK, 0, 0, 100));
    tap.at(641.0, &pair, (1, ACK, 0, 100, 0));
    tap.at(1245.0, &pair, (0, ACK, 100, 0, 100));
    tap.at(1265.0, &pair, (1, ACK, 0, 200, 0));
    tap.at(2565.0, &pair, (0, ACK, 200, 0, 100));
    let (vectors, _) = tap.vectors();
    assert_eq!(
        spoken(&vectors[0]),
        [('I', 200, 1320.0), ('I', 100, 1000.0)]
    );
}

#[test]
fn the_idle_time_is_an_option() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    for n in 0..3 {
        let at = 30.0 + 200.0 * n as f64;
        tap.at(at, &pair, (0, ACK, 100 * n, 0, 100));
        tap.at(at + 20.0, &pair, (1, ACK, 0, 100 * (n + 1), 0));
    }
    let bytes = tap.bytes();
    let adus = |idle| {
        let idle = Time::from_millis(idle);
        let options = Options {
            idle,
            ..Options::default()
        };
        let (vectors, _) = vectors(&bytes, options);
        spoken(&vectors[0]).len()
    };
    assert_eq!((adus(500), adus(100)), (1, 3));
}

/// Both have data on the way that the other has not acknowledged.
#[test]
fn crossing_data_make_a_connection_concurrent() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    // A clean exchange, then crossing ones, silence, and more.
    tap.at(30.0, &pair, (0, ACK, 0, 0, 100));
    tap.at(60.0, &pair, (1, ACK, 0, 100, 200));
    tap.at(100.0, &pair, (0, ACK, 100, 200, 100));
    tap.at(110.0, &pair, (1, ACK, 200, 100, 300));
    tap.at(120.0, &pair, (1, ACK, 500, 200, 0));
    tap.at(121.0, &pair, (0, ACK, 200, 500, 0));
    tap.at(1100.0, &pair, (0, ACK, 200, 500, 50));
    tap.at(1120.0, &pair, (1, ACK, 500, 250, 0));
    tap.at(1200.0, &pair, (0, ACK | FIN, 250, 500, 0));
    tap.at(1320.0, &pair, (1, ACK | FIN, 500, 251, 0));
    tap.at(1330.0, &pair, (0, ACK, 251, 501, 0));
    let (vectors, report) = tap.vectors();
    assert_eq!(
        at_once(&vectors[0]),
        [vec![(200, 1000.0), (50, 100.0)], vec![(500, 1210.0)]]
    );
    assert_eq!(
        (report.vectors.sequential, report.vectors.concurrent),
        (0, 1)
    );
}

#[test]
fn an_acceptor_may_speak_first() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(150.0, &pair, (1, ACK, 0, 0, 90));
    tap.at(165.0, &pair, (0, ACK, 0, 90, 20));
    tap.at(1165.0, &pair, (0, ACK | FIN, 20, 90, 0));
    let (vectors, _) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('A', 90, 5.0), ('I', 20, 1000.0)]);
}

/// The acknowledgement of the SYN-ACK passed the tap and was lost behind it: the acceptor is silent
/// because it does not know that it may speak, and speaks as soon as it does.
#[test]
fn a_handshake_repeated_behind_the_tap_is_no_silence() {
    for thinking in [0.0, 700.0] {
        let mut tap = Tap::new();
        let pair = Pair::new(4000);
        tap.handshake(0.0, &pair);
        tap.at(1020.0, &pair, (1, SYN | ACK, 0, 0, 0));
        tap.at(1030.0, &pair, (0, ACK, 0, 0, 0));
        tap.at(1050.0 + thinking, &pair, (1, ACK, 0, 0, 90));
        tap.at(1065.0 + thinking, &pair, (0, ACK, 0, 90, 20));
        tap.at(2065.0 + thinking, &pair, (0, ACK | FIN, 20, 90, 0));
        let (vectors, _) = tap.vectors();
        let mut expected = vec![('A', 90, 5.0), ('I', 20, 1000.0)];
        if thinking > 0.0 {
            expected.insert(0, ('A', 0, thinking));
        }
        assert_eq!(spoken(&vectors[0]), expected);
    }
}

/// A wait before the first ADU has no place in the format but behind an ADU of no bytes.
#[test]
fn a_long_silence_in_the_beginning_is_kept() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(2030.0, &pair, (0, ACK, 0, 0, 90));
    let (vectors, _) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('I', 0, 2000.0), ('I', 90, 1000.0)]);
}

#[test]
fn keep_alives_are_no_data() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(30.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(50.0, &pair, (1, ACK, 0, 90, 0));
    for n in 1..4 {
        let at = 5000.0 * f64::from(n);
        tap.at(at, &pair, (0, ACK, 89, 0, u32::from(n % 2 == 0)));
        tap.at(at + 20.0, &pair, (1, ACK, 0, 90, 0));
    }
    tap.at(20000.0, &pair, (0, ACK | FIN, 90, 0, 0));
    let (vectors, report) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('I', 90, 19970.0)]);
    assert_eq!(report.packets.keep_alives, 3);
}

#[test]
fn ports_may_be_used_again() {
    let mut tap = Tap::new();
    let mut pair = Pair::new(4000);
    two_exchanges(&mut tap, 0.0, &pair);
    pair.isn = [77_777, 88_888];
    // Within a second of the first one's end; it is open when its ports are taken once more.
    tap.handshake(2500.0, &pair);
    tap.at(2531.0, &pair, (0, ACK, 0, 0, 11));
    pair.isn = [99_777, 99_888];
    two_exchanges(&mut tap, 4000.0, &pair);
    let (vectors, report) = tap.vectors();
    assert_eq!(vectors.len(), 3);
    assert_eq!(spoken(&vectors[0]), TWO_EXCHANGES);
    assert_eq!(spoken(&vectors[1]), [('I', 11, 1000.0)]);
    assert_eq!(spoken(&vectors[2]), TWO_EXCHANGES);
    assert_eq!(report.connections.partial.of(Part::End), 1);
    assert_eq!((report.connections.seen, report.packets.repeated), (3, 0));
}

#[test]
fn syns_may_be_repeated_and_give_no_round_trip_then() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.at(0.0, &pair, (0, SYN, 0, 0, 0));
    tap.at(3000.0, &pair, (0, SYN, 0, 0, 0));
    tap.at(3001.0, &pair, (1, SYN | ACK, 0, 0, 0));
    tap.at(3011.0, &pair, (0, ACK, 0, 0, 0));
    tap.at(3012.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(3037.0, &pair, (1, ACK, 0, 90, 9));
    let (vectors, report) = tap.vectors();
    assert_eq!(vectors[0].start, Time::ZERO);
    // 10 ms to the client from the SYN-ACK, 25 ms to the server from the data.
    assert_eq!(vectors[0].rtt, Some(Time::from_millis(35)));
    assert_eq!(report.connections.seen, 1);
}

#[test]
fn what_becomes_no_vector_is_counted() {
    let mut tap = Tap::new();
    let [silent, refused, empty, stray, good] = [1, 2, 3, 4, 5].map(|n| Pair::new(4000 + n));
    tap.at(0.0, &silent, (0, SYN, 0, 0, 0));
    tap.at(1000.0, &silent, (0, SYN, 0, 0, 0));
    tap.at(1100.0, &refused, (0, SYN, 0, 0, 0));
    tap.at(1120.0, &refused, (1, RST | ACK, 0, 0, 0));
    tap.handshake(1200.0, &empty);
    tap.at(1300.0, &empty, (0, ACK | FIN, 0, 0, 0));
    tap.at(1320.0, &empty, (1, ACK | FIN, 0, 1, 0));
    tap.at(1330.0, &empty, (0, ACK, 1, 1, 0));
    tap.at(1400.0, &stray, (0, RST, 0, 0, 0));
    two_exchanges(&mut tap, 2000.0, &good);
    let (vectors, report) = tap.vectors();
    assert_eq!(vectors.len(), 1);
    let skipped = &report.connections.skipped;
    for omission in [Omission::Unanswered, Omission::Refused, Omission::NoData] {
        assert_eq!(skipped.of(omission), 1, "{omission:?}");
    }
    assert_eq!(
        skipped.total() + report.connections.made,
        report.connections.seen
    );
    assert_eq!(report.packets.stray, 1);
}

#[test]
fn a_reset_ends_a_connection_that_spoke() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(30.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(60.0, &pair, (1, ACK, 0, 90, 900));
    tap.at(95.0, &pair, (0, RST, 90, 0, 0));
    // Still on the way.
    tap.at(96.0, &pair, (1, ACK, 900, 90, 900));
    let (vectors, report) = tap.vectors();
    assert_eq!(spoken(&vectors[0]), [('I', 90, 10.0), ('A', 900, 35.0)]);
    assert_eq!(
        (report.packets.stray, report.connections.partial.total()),
        (1, 0)
    );
}

/// The middle of a connection.
fn middle(tap: &mut Tap, pair: &Pair) {
    tap.at(0.0, pair, (1, ACK, 7000, 300, 1000));
    tap.at(10.0, pair, (0, ACK, 300, 8000, 0));
    tap.at(20.0, pair, (0, ACK, 300, 8000, 50));
    tap.at(50.0, pair, (1, ACK, 8000, 350, 500));
    tap.at(60.0, pair, (0, ACK, 350, 8500, 0));
}

/// How many connections are left out because they are partial, where none is whole.
fn dropped(capture: &[u8]) -> u64 {
    let options = Options {
        partial: Partial::Drop,
        ..Options::default()
    };
    match try_vectors(capture, options) {
        Err(ConvertError::NoVectors(report)) => report.connections.skipped.of(Omission::Partial),
        other => panic!("{other:?}"),
    }
}

#[test]
fn partial_connections_are_kept_or_dropped() {
    let mut tap = Tap::new();
    middle(&mut tap, &Pair::new(4000));
    let bytes = tap.bytes();
    let (vectors, report) = vectors(&bytes, Options::default());
    // The server's port says who is who; 10 ms to the client and 30 ms to the server at least.
    assert_eq!(
        spoken(&vectors[0])[..2],
        [('A', 1000, 10.0), ('I', 50, 0.0)]
    );
    assert_eq!(vectors[0].windows, [None; 2], "their scale is not known");
    let partial_count = |part| report.connections.partial.of(part);
    assert_eq!(
        (partial_count(Part::Beginning), partial_count(Part::End)),
        (1, 1)
    );
    assert_eq!(report.connections.initiator_by.of(Origin::Port), 1);

    assert_eq!(dropped(&bytes), 1);
}

#[test]
fn without_syn_the_ports_or_the_first_data_tell_the_initiator() {
    let initiator = |client, server| {
        let mut pair = Pair::new(client);
        pair.server.set_port(server);
        let mut tap = Tap::new();
        middle(&mut tap, &pair);
        let (vectors, report) = tap.vectors();
        let origin = [Origin::Port, Origin::FirstSender]
            .into_iter()
            .find(|&origin| report.connections.initiator_by.of(origin) == 1);
        (spoken(&vectors[0])[0].0, origin.expect("one of them"))
    };
    // The server (in truth) sends the first data that are seen.
    assert_eq!(initiator(4000, 443), ('A', Origin::Port));
    assert_eq!(initiator(443, 4000), ('I', Origin::Port));
    assert_eq!(initiator(50_000, 8080), ('A', Origin::Port));
    assert_eq!(initiator(50_000, 50_001), ('I', Origin::FirstSender));
}

#[test]
fn a_syn_ack_is_beginning_enough() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.at(20.0, &pair, (1, SYN | ACK, 0, 0, 0));
    tap.at(30.0, &pair, (0, ACK, 0, 0, 0));
    tap.at(31.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(60.0, &pair, (1, ACK | FIN, 0, 90, 9));
    tap.at(70.0, &pair, (0, ACK | FIN, 90, 10, 0));
    let (vectors, report) = tap.vectors();
    assert_eq!(spoken(&vectors[0])[0].0, 'I');
    assert_eq!(report.connections.initiator_by.of(Origin::SynAck), 1);
    assert_eq!(report.connections.partial.total(), 0);
}

/// What the missing direction sent is known from its acknowledgements.
#[test]
fn one_direction_tells_the_sizes_of_both() {
    for seen in [0, 1] {
        let mut tap = Tap::new();
        let pair = Pair::new(4000);
        let mut at = |ms: f64, segment: common::Seg| {
            if segment.0 == seen {
                tap.at(ms, &pair, segment);
            }
        };
        at(0.0, (0, SYN, 0, 0, 0));
        at(20.0, (1, SYN | ACK, 0, 0, 0));
        at(30.0, (0, ACK, 0, 0, 0));
        at(31.0, (0, ACK, 0, 0, 90));
        at(80.0, (1, ACK, 0, 90, 1460));
        at(81.0, (1, ACK, 1460, 90, 1460));
        at(91.0, (0, ACK, 90, 2920, 0));
        at(191.0, (0, ACK, 90, 2920, 10));
        at(231.0, (1, ACK, 2920, 100, 77));
        at(241.0, (0, ACK, 100, 2997, 0));
        at(1231.0, (1, ACK | FIN, 2997, 100, 0));
        at(1241.0, (0, ACK | FIN, 100, 2998, 0));
        at(1261.0, (1, ACK, 2998, 101, 0));
        let bytes = tap.bytes();
        let (vectors, report) = vectors(&bytes, Options::default());
        let sizes: Vec<_> = spoken(&vectors[0])
            .iter()
            .map(|&(c, n, _)| (c, n))
            .collect();
        assert_eq!(
            sizes,
            [('I', 90), ('A', 2920), ('I', 10), ('A', 77)],
            "side {seen}"
        );
        assert_eq!(vectors[0].rtt, None);
        assert_eq!(report.connections.partial.of(Part::Direction), 1);
        assert_eq!(dropped(&bytes), 1);
    }
}

/// Two packets that the capture lost, in the middle of ADUs and between them.
#[test]
fn what_a_capture_lost_is_known_from_acknowledgements() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(31.0, &pair, (0, ACK, 0, 0, 1000));
    // 1000..1500 is not in the capture.
    tap.at(61.0, &pair, (1, ACK, 0, 1500, 700));
    // 700..900 is not.
    tap.at(71.0, &pair, (0, ACK, 1500, 900, 50));
    tap.at(101.0, &pair, (1, ACK, 900, 1550, 10));
    let (vectors, _) = tap.vectors();
    let sizes: Vec<_> = spoken(&vectors[0])
        .iter()
        .map(|&(c, n, _)| (c, n))
        .collect();
    assert_eq!(sizes, [('I', 1500), ('A', 900), ('I', 50), ('A', 10)]);
}

#[test]
fn silent_connections_are_given_up_and_found_to_begin_anew() {
    let mut tap = Tap::new();
    let (pair, clock) = (Pair::new(4000), Pair::new(4001));
    tap.handshake(0.0, &pair);
    tap.at(31.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(51.0, &pair, (1, ACK, 0, 90, 9));
    for minute in 1..60 {
        tap.at(60_000.0 * f64::from(minute), &clock, (0, RST, 0, 0, 0));
    }
    tap.at(3_600_000.0, &pair, (0, ACK, 90, 9, 33));
    let (vectors, report) = tap.vectors();
    assert_eq!(vectors.len(), 2);
    assert_eq!(spoken(&vectors[1]), [('I', 33, 1000.0)]);
    let partial_count = |part| report.connections.partial.of(part);
    assert_eq!(
        (partial_count(Part::Close), partial_count(Part::Beginning)),
        (1, 1)
    );
}

#[test]
fn impossible_numbers_are_ignored() {
    let mut tap = Tap::new();
    let pair = Pair::new(4000);
    tap.handshake(0.0, &pair);
    tap.at(31.0, &pair, (0, ACK, 0, 0, 90));
    tap.at(32.0, &pair, (0, ACK, 1 << 30, 0, 900));
    tap.at(33.0, &pair, (0, ACK, 90, (1 << 30) + 1, 0));
    tap.at(51.0, &pair, (1, ACK, 0, 90, 9));
    let (vectors, report) = tap.vectors();
    let sizes: Vec<_> = spoken(&vectors[0])
        .iter()
        .map(|&(c, n, _)| (c, n))
        .collect();
    assert_eq!(sizes, [('I', 90), ('A', 9)]);
    assert_eq!(report.packets.implausible, 2);
}

#[test]
fn the_report_is_json_with_reasons() {
    let mut tap = Tap::new();
    middle(&mut tap, &Pair::new(4000));
    let (_, report) = tap.vectors();
    let json = serde_json::to_value(&report).unwrap();
    assert_eq!(json["connections"]["partial"]["beginning not seen"], 1);
    assert_eq!(json["connections"]["initiator_by"]["port"], 1);
    let skipped: BTreeMap<String, u64> =
        serde_json::from_value(json["packets"]["skipped"].clone()).unwrap();
    assert_eq!(skipped, BTreeMap::new(), "only reasons that occur");
}
