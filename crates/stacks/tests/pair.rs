//! Two ends and a wire: times to the nanosecond, and the same bytes for the same seed.
#![cfg(feature = "quinn")]

use crate::wire;

use aqmlab_net::{Bytes, Time};
use aqmlab_stacks::{Class, Control, Quinn};
use wire::{BYTE, Pair};

/// One way of the path.
const WAY: Time = Time::from_millis(20);

fn quinn(control: Control) -> Quinn {
    Quinn {
        congestion_control: control,
        server_flight: Bytes(560),
        ..Quinn::default()
    }
}

fn pair(settings: &Quinn, seed: u64, answer: u64, lost: fn(u64) -> bool) -> Pair {
    let class = Class::quinn(settings).unwrap();
    Pair::new(&class, (seed, WAY), answer, lost)
}

#[test]
fn handshake_and_first_byte_take_what_arithmetic_says() {
    for control in [Control::Cubic, Control::NewReno] {
        let pair = pair(&quinn(control), 1, 20_000, |_| false).run();
        // A round trip, and a datagram of 1,200 bytes with its headers on the server's wire.
        let round_trip = Time::from_nanos(40_000_000 + 1_228 * BYTE);
        assert_eq!(round_trip, Time::from_nanos(40_982_400));
        assert_eq!(pair.connected, Some(round_trip));
        assert_eq!(pair.first_byte, Some(round_trip + round_trip));
        assert_eq!(pair.received, 20_000);
    }
}

#[test]
fn a_server_sends_three_times_what_it_has_received_and_no_more() {
    // The limit, and a full datagram while any byte of it is left.
    for (flight, round_trips) in [(700, 1), (3_000, 1), (4_500, 2), (6_000, 2)] {
        let settings = Quinn {
            server_flight: Bytes(flight),
            ..Quinn::default()
        };
        let pair = pair(&settings, 1, 1_000, |_| false).run();
        let connected = pair.connected.unwrap().as_nanos();
        let found = (connected - connected % 40_000_000) / 40_000_000;
        assert_eq!(found, round_trips, "{flight} bytes: {connected} ns");
    }
}

#[test]
fn the_same_seed_gives_the_same_bytes() {
    let run = |control, seed| pair(&quinn(control), seed, 1_000_000, |it| it % 97 == 0).run();
    let [cubic, again, reno, other] = [
        (Control::Cubic, 1),
        (Control::Cubic, 1),
        (Control::NewReno, 1),
        (Control::Cubic, 2),
    ]
    .map(|(control, seed)| run(control, seed));
    assert_eq!((cubic.received, cubic.hash), (1_000_000, again.hash));
    assert!(cubic.losses > 0 && cubic.finished == again.finished);
    assert!(cubic.hash != reno.hash && cubic.hash != other.hash);
    // Another hash is another behaviour of quinn or of its random generator: results change.
    let pinned = [11_061_195_279_100_579_285, 2_424_064_481_760_711_507];
    assert_eq!([cubic.hash, reno.hash], pinned);
}

#[test]
fn what_the_wire_loses_comes_again() {
    for seed in 1..20 {
        let pair = pair(&quinn(Control::Cubic), seed, 100_000, |it| it % 7 == 3).run();
        assert_eq!(pair.received, 100_000);
        assert!(pair.finished.is_some() && pair.losses > 0);
    }
}
