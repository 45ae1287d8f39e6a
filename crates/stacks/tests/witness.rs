//! Our QUIC beside quinn, datagram by datagram, and what is quinn's own: `records/quic.md` names the
//! tests.
#![cfg(all(feature = "quinn", feature = "quic"))]

use crate::wire;

use aqmlab_net::{Bytes, Role, Time};
use aqmlab_stacks::{Class, Control, EarlyData, Quic, Quinn};
use aqmlab_tcp::CongestionControlKind;
use wire::Pair;

const DATAGRAM: Bytes = Bytes(1200);

fn own(server_flight: u64, window: u64) -> Class {
    let [reno] = ["Reno"].map(|name| {
        let mut all = CongestionControlKind::all().into_iter();
        all.find(|it| format!("{it:?}").starts_with(name)).unwrap()
    });
    Class::quic(&Quic {
        congestion_control: reno,
        datagram: DATAGRAM,
        initial_window: Some(Bytes(window)),
        server_flight: Bytes(server_flight),
        pace_bursts: true,
        ..Quic::default()
    })
}

fn quinn(control: Control, server_flight: u64, window: u64) -> Class {
    let settings = Quinn {
        congestion_control: control,
        datagram: DATAGRAM,
        initial_window: Bytes(window),
        server_flight: Bytes(server_flight),
        mtu_discovery: false,
        ..Quinn::default()
    };
    Class::quinn(&settings).unwrap()
}

/// Datagrams of an end before the client has everything.
fn count(pair: &Pair, role: Role) -> usize {
    let end = pair.finished.unwrap();
    let log = pair.log.iter();
    log.filter(|(at, from, _)| *from == role && *at < end)
        .count()
}

/// Payloads of the datagrams that a server sends at a time.
fn sent_at(pair: &Pair, time: Time) -> Vec<usize> {
    let log = pair.log.iter();
    log.filter(|(at, from, _)| *at == time && *from == Role::Server)
        .map(|(.., size)| *size)
        .collect()
}

#[test]
fn handshakes_and_short_answers_are_those_of_quinn_to_the_packet() {
    for flight in [700, 2_500, 4_500, 6_000] {
        let classes = [own(flight, 12_000), quinn(Control::NewReno, flight, 12_000)];
        for way in [5, 20, 100].map(Time::from_millis) {
            for answer in [1_000, 10_000, 20_000, 100_000] {
                let setting = format!("{flight} bytes of TLS, {way:?}, {answer} bytes");
                let [ours, theirs] = classes
                    .each_ref()
                    .map(|class| Pair::new(class, (1, way), answer, |_| false).run());
                let servers = [&ours, &theirs].map(|it| count(it, Role::Server));
                assert_eq!(servers[0], servers[1], "{setting}");
                // A handshake's parameters have some bytes more or less.
                let connected = [&ours, &theirs].map(|it| it.connected.unwrap());
                let apart = connected[0].max(connected[1]) - connected[0].min(connected[1]);
                assert!(apart <= Time::from_micros(60), "{setting}: {connected:?}");
                // Quinn acknowledges the server's connection ids later, so that its ACKs are one
                // packet off. What the ACKs clock ends a little later.
                let [own_end, their_end] = [&ours, &theirs].map(|it| it.finished.unwrap());
                let late = their_end.as_secs_f64() / own_end.as_secs_f64();
                assert!((1.0..1.03).contains(&late), "{setting}: {late}");
            }
        }
    }
}

/// A window of two datagrams holds two (RFC 9002, section 7); quinn sends one. `poll_transmit` asks
/// whether what is in flight *reaches* the window.
#[test]
fn quinn_leaves_a_datagram_of_the_window_unused() {
    // The rest of a server's flight is acknowledged when the request comes.
    for (class, expected) in [
        (own(700, 2_400), 2),
        (quinn(Control::NewReno, 700, 2_400), 1),
        (quinn(Control::Cubic, 700, 2_400), 1),
    ] {
        let pair = Pair::new(&class, (1, Time::from_millis(20)), 100_000, |_| false).run();
        let second = Time::from_nanos(60_982_400);
        let sizes = sent_at(&pair, second);
        let full = sizes.iter().filter(|size| **size > 1_100).count();
        assert_eq!(full, expected, "{sizes:?}");
    }
}

/// The window falls when a server's first flight loses a packet. Quinn's NewReno takes the time of its
/// own making for the beginning of a recovery: what leaves in that moment shows no congestion.
#[test]
fn quinns_new_reno_does_not_answer_a_loss_of_the_first_flight() {
    let second_flight = |class: &Class| {
        let pair = Pair::new(class, (1, Time::from_millis(20)), 100_000, |it| it == 2).run();
        let log = pair.log.iter();
        // The answer begins a round trip and more after the repair.
        let answer = log.filter(|(at, from, _)| {
            *from == Role::Server && (100..125).contains(&(at.as_nanos() / 1_000_000))
        });
        answer.count()
    };
    let ours = second_flight(&own(2_500, 12_000));
    let theirs = second_flight(&quinn(Control::NewReno, 2_500, 12_000));
    let cubic = second_flight(&quinn(Control::Cubic, 2_500, 12_000));
    // Seven tenths of the window are seven datagrams, one of which quinn leaves unused.
    assert_eq!((ours, theirs, cubic), (5, 9, 6));
}

#[test]
fn early_data_saves_a_round_trip_unless_it_is_rejected() {
    let first_byte = |early_data| {
        let class = Class::quic(&Quic {
            early_data,
            server_flight: Bytes(560),
            ..Quic::default()
        });
        let pair = Pair::new(&class, (1, Time::from_millis(20)), 20_000, |_| false).run();
        assert_eq!(pair.received, 20_000, "{early_data:?}");
        pair.first_byte.unwrap().as_nanos() / 1_000_000
    };
    let [off, accepted, rejected] =
        [EarlyData::Off, EarlyData::Accepted, EarlyData::Rejected].map(first_byte);
    // A round trip of 40 ms, and the datagrams of the server's wire.
    assert_eq!((accepted / 40, off / 40, rejected / 40), (1, 2, 2));
}
