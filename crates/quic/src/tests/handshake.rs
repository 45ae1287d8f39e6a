//! Handshake, keys, amplification, 0-RTT.

use super::*;
use crate::config::Early;

/// The kinds of the packets that an end has sent.
fn kinds(pair: &Pair, end: usize) -> Vec<Kind> {
    pair.of(end).iter().flat_map(|it| it.kinds()).collect()
}

#[test]
fn pn01_numbers_count_up_in_each_space() {
    let mut lost = false;
    let mut pair = Pair::with(config(), move |seen| {
        if seen.data() > 0 && !lost {
            lost = true;
            return Wire::Drop;
        }
        Wire::Pass
    });
    pair.run(ms(200));
    pair.send(SERVER, 5_000);
    pair.run(ms(1_000));
    for kind in [Kind::Initial, Kind::Handshake, Kind::OneRtt] {
        let packets = pair
            .of(SERVER)
            .into_iter()
            .flat_map(|it| it.packets.clone());
        let numbers: Vec<u64> = packets
            .filter(|it| it.kind == kind)
            .map(|it| it.number)
            .collect();
        let expected: Vec<u64> = (0..numbers.len() as u64).collect();
        assert!(!numbers.is_empty());
        assert_eq!(numbers, expected, "{kind:?}");
    }
    // What was lost went again, with a number of its own.
    let offset_zero = pair.of(SERVER).into_iter().filter(|it| {
        it.frames()
            .any(|frame| matches!(frame, Frame::Stream { offset: 0, .. }))
    });
    assert_eq!(offset_zero.count(), 2);
    assert_eq!(pair.read[CLIENT], 5_000);
}

#[test]
fn pn04_ak01_packets_of_one_datagram_are_acknowledged_each_and_at_once() {
    let mut pair = Pair::new(config());
    pair.run(ms(100));
    let first = pair.of(SERVER)[0].clone();
    assert_eq!(first.kinds()[..2], [Kind::Initial, Kind::Handshake]);
    // The client's answer in the same instant acknowledges both, in their own spaces.
    let answers = pair.of(CLIENT);
    let answer: Vec<_> = answers.iter().filter(|it| it.at == ms(40)).collect();
    for kind in [Kind::Initial, Kind::Handshake] {
        let mut packets = answer.iter().flat_map(|it| &it.packets);
        assert!(
            packets.any(|it| it.kind == kind && it.ack.is_some()),
            "{kind:?}"
        );
    }
    // The server, too: it acknowledges the client's hello when it comes.
    assert_eq!((first.at, first.packets[0].ack.is_some()), (ms(20), true));
}

#[test]
fn pn05_hs01_levels_rise_within_a_datagram_and_initial_ones_are_long() {
    let shared = Arc::new(Config {
        server_flight: 300,
        ..config()
    });
    let [mut client, mut server] =
        Role::BOTH.map(|role| Connection::new(Arc::clone(&shared), role, Time::ZERO));
    let mut carried = Vec::new();
    let hello = client.transmit(ms(0), &mut carried).unwrap();
    assert_eq!(hello.size, 1200);
    server.receive(ms(20), Ecn::NotEct, &carried);
    // A server may speak before the client has answered.
    let stream = server.open(true).unwrap();
    server.write(stream, 200, true);
    carried.clear();
    let flight = server.transmit(ms(20), &mut carried).unwrap();
    let kinds: Vec<Kind> = parse(&carried).iter().map(|it| it.kind).collect();
    assert_eq!(kinds, [Kind::Initial, Kind::Handshake, Kind::OneRtt]);
    assert_eq!(flight.size, 1200);
    // The client holds what it cannot read before the rest of the datagram has been taken.
    client.receive(ms(40), Ecn::NotEct, &carried);
    assert_eq!(client.next_event(), Some(Event::Established));
    assert_eq!(client.next_event(), Some(Event::Readable(stream)));
    carried.clear();
    let answer = client.transmit(ms(40), &mut carried).unwrap();
    let kinds: Vec<Kind> = parse(&carried).iter().map(|it| it.kind).collect();
    assert_eq!(kinds[..2], [Kind::Initial, Kind::Handshake]);
    assert!(answer.size >= 1200);
}

#[test]
fn hs02_a_server_discards_an_initial_packet_in_a_short_datagram() {
    for (size, answers) in [(1199_u16, false), (1200, true)] {
        let mut pair = Pair::new(config());
        let mut carried = Vec::new();
        pair.ends[CLIENT].transmit(ms(0), &mut carried).unwrap();
        carried[..PREFIX].copy_from_slice(&size.to_be_bytes());
        pair.ends[SERVER].receive(ms(20), Ecn::NotEct, &carried);
        let answer = pair.ends[SERVER].transmit(ms(20), &mut Vec::new());
        assert_eq!(answer.is_some(), answers);
    }
}

/// A server whose messages take more than it may send at once.
fn long_flight() -> Config {
    Config {
        server_flight: 4_500,
        ..config()
    }
}

#[test]
fn hs03_a_server_sends_three_times_what_it_has_received() {
    let mut pair = Pair::new(long_flight());
    pair.run(ms(200));
    let at = |at| {
        let sent = pair.of(SERVER).into_iter().filter(move |it| it.at == at);
        sent.map(|it| it.size).sum::<usize>()
    };
    assert_eq!(at(ms(20)), 3_600);
    assert!(at(ms(60)) > 900, "the rest, a round trip later");
    assert_eq!(pair.at(CLIENT, Event::Established), Some(ms(80)));
}

#[test]
fn hs04_hs05_a_blocked_server_waits_and_the_client_asks() {
    // The first answer of the client is lost.
    let mut pair = Pair::with(long_flight(), |seen| {
        match seen.from == CLIENT && seen.at == ms(40) {
            true => Wire::Drop,
            false => Wire::Pass,
        }
    });
    pair.run(ms(70));
    assert_eq!(pair.ends[SERVER].recovery_deadline(), Time::NEVER);
    let before = pair.of(SERVER).len();
    pair.run(ms(1_000));
    // Its probe time-out: 40 ms, and four times half of that.
    let asked = pair
        .of(CLIENT)
        .into_iter()
        .find(|it| it.at > ms(40))
        .unwrap();
    assert_eq!(asked.at, ms(40 + 120));
    assert!(asked.kinds().contains(&Kind::Handshake));
    assert!(asked.packets.iter().any(|it| it.has(&Frame::Ping)));
    let next = pair.of(SERVER)[before];
    assert_eq!(next.at, asked.at + WAY, "the server says nothing by itself");
    assert!(pair.has(CLIENT, Event::Established));
}

#[test]
fn hs06_hs07_ld10_keys_are_discarded_with_all_that_was_sent() {
    let mut pair = Pair::new(config());
    pair.run(ms(1_000));
    for end in [CLIENT, SERVER] {
        let kinds = kinds(&pair, end);
        let last = kinds.iter().rposition(|it| *it == Kind::Initial).unwrap();
        let first = kinds.iter().position(|it| *it == Kind::Handshake).unwrap();
        // A client's last Initial packet is in the datagram of its first Handshake packet.
        assert!(last <= first + 1, "{kinds:?}");
        assert_eq!(pair.ends[end].in_flight(), 0);
    }
    let done = pair
        .of(SERVER)
        .into_iter()
        .find(|it| it.frames().any(|it| *it == Frame::HandshakeDone));
    let confirmed = done.unwrap().at + WAY;
    for seen in pair.of(CLIENT) {
        assert!(seen.at <= confirmed || seen.kinds() == [Kind::OneRtt]);
    }
}

#[test]
fn hs08_a_server_confirms_as_soon_as_it_can() {
    let mut pair = Pair::new(config());
    pair.run(ms(200));
    let after = pair
        .of(SERVER)
        .into_iter()
        .find(|it| it.at >= ms(60))
        .unwrap();
    assert_eq!(after.at, ms(60));
    assert!(after.frames().any(|it| *it == Frame::HandshakeDone));
}

#[test]
fn hs09_handshake_done_goes_again_until_it_arrives() {
    let mut pair = Pair::with(config(), |seen| {
        match seen.from == SERVER && seen.at == ms(60) {
            true => Wire::Drop,
            false => Wire::Pass,
        }
    });
    pair.run(ms(2_000));
    let all = pair.of(SERVER).into_iter();
    let done = all.filter(|it| it.frames().any(|it| *it == Frame::HandshakeDone));
    assert!(done.count() >= 2);
    assert_eq!(pair.ends[SERVER].in_flight(), 0);
}

#[test]
fn connection_ids_are_offered_with_the_first_keys_and_again_if_lost() {
    let offers = |seen: &Seen| {
        let frames = seen
            .frames()
            .map(|it| matches!(it, Frame::NewConnectionId(_)));
        frames.filter(|it| *it).count()
    };
    let shared = Config {
        connection_ids: 4,
        ..config()
    };
    let mut pair = Pair::new(shared.clone());
    pair.run(ms(1_000));
    for (end, at) in [(SERVER, 20), (CLIENT, 40)] {
        let all: Vec<_> = pair
            .of(end)
            .into_iter()
            .filter(|it| offers(it) > 0)
            .collect();
        assert_eq!((all.len(), offers(all[0]), all[0].at), (1, 4, ms(at)));
    }
    let mut lost = 0;
    let mut pair = Pair::with(shared, move |seen| {
        match seen.from == CLIENT && offers(seen) > 0 {
            true if lost == 0 => {
                lost += 1;
                Wire::Drop
            }
            _ => Wire::Pass,
        }
    });
    pair.run(ms(3_000));
    let all: usize = pair.of(CLIENT).into_iter().map(offers).sum();
    // The probe says them again, and once more what is then found lost.
    assert!((8..=12).contains(&all), "{all}");
}

/// A client that has been there before.
fn resumed(accepted: bool) -> Config {
    let limits = config().limits;
    Config {
        early: Some(Early {
            remembered: Limits {
                stream: 3_000,
                ..limits
            },
            accepted,
        }),
        ..config()
    }
}

#[test]
fn hs10_hs12_early_data_leaves_in_the_first_flight_within_remembered_limits() {
    let mut pair = Pair::new(resumed(true));
    let stream = pair.ends[CLIENT].open(true).unwrap();
    pair.ends[CLIENT].write(stream, 5_000, true);
    pair.run(ms(20));
    let early: Vec<_> = pair
        .of(CLIENT)
        .into_iter()
        .filter(|it| it.at == ms(0))
        .collect();
    assert_eq!(early.iter().map(|it| it.data()).sum::<u64>(), 3_000);
    assert!(early.iter().any(|it| it.kinds().contains(&Kind::ZeroRtt)));
    // The server has it after half a round trip, and acknowledges it with 1-RTT keys.
    assert_eq!(pair.read[SERVER], 3_000);
    let answer = pair.of(SERVER).into_iter().flat_map(|it| &it.packets);
    assert!(
        answer
            .clone()
            .any(|it| it.kind == Kind::OneRtt && it.ack.is_some())
    );
    pair.run(ms(1_000));
    assert_eq!(pair.read[SERVER], 5_000);
    let later = pair.of(CLIENT).into_iter().filter(|it| it.at >= ms(40));
    assert!(
        later
            .flat_map(|it| it.kinds())
            .all(|kind| kind != Kind::ZeroRtt)
    );
}

#[test]
fn hs11_rejected_early_data_goes_again_and_arrives_once() {
    let mut pair = Pair::new(resumed(false));
    let stream = pair.ends[CLIENT].open(true).unwrap();
    pair.ends[CLIENT].write(stream, 2_500, true);
    pair.run(ms(59));
    assert_eq!(pair.read[SERVER], 0);
    pair.run(ms(60));
    assert_eq!(pair.read[SERVER], 2_500, "a round trip later");
    pair.run(ms(2_000));
    assert_eq!(pair.read[SERVER], 2_500);
    assert_eq!(pair.ends[CLIENT].in_flight(), 0);
    assert!(pair.has(CLIENT, Event::Delivered(stream)));
}

#[test]
fn hs13_answers_take_two_round_trips_and_one_with_early_data() {
    let mut pair = Pair::new(config());
    pair.run(ms(40));
    assert_eq!(pair.at(CLIENT, Event::Established), Some(ms(40)));
    pair.send(CLIENT, 100);
    pair.run(ms(60));
    pair.send(SERVER, 1000);
    pair.run(ms(80));
    assert_eq!(pair.at(CLIENT, Event::Readable(3)), Some(ms(80)));
    let mut pair = Pair::new(resumed(true));
    let stream = pair.ends[CLIENT].open(true).unwrap();
    pair.ends[CLIENT].write(stream, 100, true);
    pair.run(ms(20));
    assert_eq!(pair.read[SERVER], 100);
    pair.send(SERVER, 1000);
    pair.run(ms(40));
    assert_eq!(pair.at(CLIENT, Event::Readable(3)), Some(ms(40)));
}

#[test]
fn a_server_that_nobody_has_spoken_to_has_no_timer() {
    let mut server = Connection::new(Arc::new(config()), Role::Server, ms(5));
    assert_eq!(server.deadline(), Time::NEVER);
    server.expire(ms(60_000));
    assert_eq!(
        (server.deadline(), server.next_event()),
        (Time::NEVER, None)
    );
    // A first byte starts its idle time.
    server.receive(ms(60_000), Ecn::NotEct, &[0, 1]);
    assert_eq!(server.deadline(), ms(5 + 30_000));
}
