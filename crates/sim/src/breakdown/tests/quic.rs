//! The same over QUIC, whose datagrams have 1,200 bytes and 28 of IP and UDP.
//!
//! A byte takes a microsecond. A packet of the handshake has 42 bytes around its frames (25 of the header, 1
//! of its number, 16 of its tag), an Initial one 43, one of data 26. ACKs count ECN marks and have 8 bytes.
//!
//! - The client's hello fills a datagram: 1,228.
//! - The server's hello has 90 bytes, its flight 2,573: two full datagrams, and a third of 486.
//! - The client's last 52 bytes and the request of 360 leave together, with an ACK: 523.
//! - The server's first data come behind HANDSHAKE_DONE (1) and two tickets (182 with their head): 960 bytes
//!   make 1,209, and 981 fill a datagram.

use super::*;

/// The client's hello, what is behind the two full datagrams of the server, and the client's answer with the
/// request.
const BEFORE: u64 = 1_228 + 486 + 523;
const FULL: u64 = 1_228;
/// How long the rest of the server's flight waits behind the rest of it.
const BEHIND: u64 = 2 * FULL;

/// The first of the responses with so many bytes to requests of 360, each on a connection of its own.
fn exchange(bytes: u64, quic: &str, doomed: Doomed) -> Row {
    let class = format!(
        "kind = 'poisson'\nrate = '0.2 /s'\nrtt = {{ kind = 'constant', rtt = '100 ms' }}\n\
         request = {{ kind = 'constant', size = '360 bytes' }}\n\
         response = {{ kind = 'constant', size = '{bytes} bytes' }}\n\
         transport = 'quic'\nquic = {{ connection_ids = 0{quic} }}"
    );
    let rows = run(&scenario(&class, RFC, &[], Path::new(".")), doomed);
    rows[0].clone()
}

/// [`check`] with nanoseconds: all parts but those of the ports and propagation behind the handshake.
#[track_caller]
fn check_ns(row: &Row, data: u64, [transmission, down]: [u64; 2], others: &[(Part, u64)]) {
    let mut row = row.clone();
    let mut sum = (data + transmission + down) * 1000;
    for (part, time) in others {
        assert_eq!(row.part(*part), *time, "{part:?} of {row:?}");
        row.parts[*part as usize] = 0;
        sum += time;
    }
    assert_eq!(row.response, sum, "{row:?}");
    row.response -= others.iter().map(|(_, time)| time).sum::<u64>();
    check(
        &row,
        data + transmission + down,
        [data, transmission, 0, down],
        &[],
    );
}

const HANDSHAKE: (Part, u64) = (Part::PropagationHandshake, 100_000_000);

/// The estimate of RFC 9002, section 5.3, in nanoseconds: smoothed, and its variation.
fn estimate(samples: &[u64]) -> (u64, u64) {
    let (mut smoothed, mut variation) = (samples[0], samples[0] / 2);
    for sample in &samples[1..] {
        variation = variation * 3 / 4 + smoothed.abs_diff(*sample) / 4;
        smoothed = smoothed * 7 / 8 + sample / 8;
    }
    (smoothed, variation)
}

/// What the server has measured when the request arrives: the first datagram twice, by its packets of two
/// kinds, and the others. Their ACKs have 1,228, 78 and 523 bytes.
const MEASURED: [u64; 4] = [102_456_000, 102_456_000, 102_534_000, 103_465_000];

#[test]
fn a_short_response_takes_two_round_trips() {
    let row = exchange(960, "", [&[], &[]]);
    check_ns(&row, 100_000, [BEFORE + 1_209, BEHIND], &[HANDSHAKE]);
    assert_eq!(row.count(PathCount::TripsHandshake), 2);
    assert_eq!(row.count(PathCount::TripsExchange), 2);
    assert_eq!(row.loss, None);
}

/// The flight of 300 bytes leaves with the first 600 of the response, in a full datagram; the other 360
/// follow in 420.
#[test]
fn early_data_that_is_accepted_saves_the_handshake() {
    let quic = ", server_flight = '300 bytes', early_data = 'accepted'";
    let row = exchange(960, quic, [&[], &[]]);
    check_ns(&row, 100_000, [FULL + 420, FULL], &[]);
    assert_eq!(row.count(PathCount::TripsExchange), 2);
    assert_eq!(row.count(PathCount::TripsHandshake), 0);
}

#[test]
fn early_data_that_is_rejected_goes_again_behind_the_handshake() {
    let row = exchange(960, ", early_data = 'rejected'", [&[], &[]]);
    assert_eq!(row, exchange(960, "", [&[], &[]]));
}

/// Three times the client's 1,200 bytes are too few for 6,073: the rest waits for the client's first ACK.
#[test]
fn a_long_flight_of_the_server_waits_until_it_knows_the_address() {
    let row = exchange(960, ", server_flight = '6000 bytes'", [&[], &[]]);
    let others = [(Part::PropagationHandshake, 200_000_000)];
    for (part, time) in others {
        assert_eq!(row.part(part), time);
    }
    assert_eq!(row.part(Part::PropagationExchange), 100_000_000);
    assert_eq!(row.count(PathCount::TripsHandshake), 4);
    let at_ports: u64 = row.parts[Part::ALL.len()..].iter().sum();
    assert_eq!(row.response, 300_000_000 + at_ports);
}

/// Without a sample the probe time-out is 333 ms and four times half of that.
#[test]
fn a_lost_hello_waits_for_the_first_probe() {
    let row = exchange(960, "", [&[1], &[]]);
    let probe = (Part::HandshakeProbeTimeout, 999_000_000);
    check_ns(&row, 100_000, [BEFORE + 1_209, BEHIND], &[HANDSHAKE, probe]);
    assert_eq!(row.count(PathCount::HandshakeProbeTimeouts), 1);
    let loss = row.loss.unwrap();
    assert_eq!(
        (loss.segment, loss.reason),
        (LostSegment::Handshake, "forced")
    );
}

/// The end of the server's flight is lost: its time-out counts no delay of ACKs.
#[test]
fn a_lost_end_of_the_flight_waits_for_the_servers_probe() {
    let row = exchange(960, "", [&[], &[3]]);
    let (smoothed, variation) = estimate(&MEASURED[..3]);
    let probe = (Part::HandshakeProbeTimeout, smoothed + 4 * variation);
    // The answer acknowledges two ranges, and the flight waits for nobody.
    check_ns(&row, 100_000, [BEFORE + 2 + 1_209, 0], &[HANDSHAKE, probe]);
}

/// The client's last message is lost, and the request with it. A probe brings the message back; the request
/// is free to go again when the handshake is confirmed: 125 bytes there, 237 back.
#[test]
fn a_request_that_is_lost_with_the_handshake_waits_for_its_end() {
    let row = exchange(960, "", [&[4], &[]]);
    let (smoothed, variation) = estimate(&MEASURED[..1]);
    let others = [
        HANDSHAKE,
        (Part::HandshakeProbeTimeout, smoothed + 4 * variation),
        (Part::RecoveryBehindTimer, 100_362_000),
    ];
    // The request alone has 426 bytes with its ACK, the response 1,026.
    check_ns(&row, 100_000, [FULL + 486 + 426 + 1_026, BEHIND], &others);
    // In 0-RTT: the probe repeats the hello, and the handshake takes two round trips.
    let quic = ", server_flight = '300 bytes', early_data = 'accepted'";
    let row = exchange(960, quic, [&[1], &[]]);
    let others = [
        (Part::HandshakeProbeTimeout, 999_000_000),
        (Part::RecoveryBehindTimer, (200_000 + 3 * FULL + 237) * 1000),
    ];
    check_ns(&row, 100_000, [426 + 1_026, 0], &others);
}

#[test]
fn a_lost_tail_waits_for_a_probe() {
    let row = exchange(960, "", [&[], &[4]]);
    let (smoothed, variation) = estimate(&MEASURED);
    let probe = (Part::ProbeTimeout, smoothed + 4 * variation + 25_000_000);
    // Its copy has no ACK.
    check_ns(&row, 100_000, [BEFORE + 1_201, BEHIND], &[HANDSHAKE, probe]);
    assert_eq!(row.count(PathCount::ProbeTimeouts), 1);
    assert_eq!(row.loss.unwrap().segment, LostSegment::Data);
}

/// The first of nine datagrams is lost. The third behind it shows that, by an ACK of 62.
#[test]
fn a_packet_that_three_have_overtaken_is_lost() {
    let row = exchange(9_600, "", [&[], &[4]]);
    let shown = (Part::RecoveryFast, (100_000 + 4 * FULL + 62) * 1000);
    // The copy goes without the ACK of the first one, and with two bytes of a length.
    check_ns(&row, 100_000, [BEFORE + 1_222, BEHIND], &[HANDSHAKE, shown]);
    assert_eq!(row.count(PathCount::Losses), 1);
}

/// The seventh of nine is lost. Only two come behind it, and the first one's ACK of two ranges makes the
/// server wait until nine eighths of that round trip are over.
#[test]
fn a_packet_that_two_have_overtaken_waits_for_the_time_threshold() {
    let row = exchange(9_600, "", [&[], &[10]]);
    let latest = (100_000 + 7 * FULL + 64) * 1000;
    let others = [
        HANDSHAKE,
        (Part::ReorderingTimer, latest * 9 / 8 - latest),
        (Part::RecoveryBeforeTimer, latest),
    ];
    check_ns(&row, 100_000, [BEFORE + FULL, BEHIND], &others);
}

/// The client opens its windows of 2,400 bytes when it has read 2,151, with an ACK and two limits: 69. The last
/// 600 bytes have 668.
#[test]
fn a_full_window_costs_a_round_trip_of_its_own() {
    let row = exchange(3_000, ", receive_window = '2400 bytes'", [&[], &[]]);
    check_ns(
        &row,
        200_000,
        [BEFORE + FULL + 69 + 668, BEHIND + FULL],
        &[HANDSHAKE],
    );
    assert_eq!(row.part(Part::PropagationReceiveWindow), 100_000_000);
    assert_eq!(row.count(PathCount::TripsReceiveWindow), 2);
}

/// Those limits are lost. The client has measured 102,456 us and, by its request, 101,751.
#[test]
fn a_lost_limit_waits_for_the_clients_probe() {
    let row = exchange(3_000, ", receive_window = '2400 bytes'", [&[5], &[]]);
    let (smoothed, variation) = estimate(&[102_456_000, 101_751_000]);
    let probe = (Part::ProbeTimeout, smoothed + 4 * variation + 25_000_000);
    // The ACK is not repeated, and the one of the copy has two ranges.
    let last = [BEFORE + FULL + 61 + 670, BEHIND + FULL];
    check_ns(&row, 200_000, last, &[HANDSHAKE, probe]);
    assert_eq!(row.part(Part::PropagationReceiveWindow), 100_000_000);
    assert_eq!(row.loss.unwrap().segment, LostSegment::Limit);
}

/// Five datagrams of a window: every second one is acknowledged at once, and lets the sixth go with 939 bytes in
/// 999. If both such ACKs are lost, that of the fifth does, 25 ms late and a byte longer.
#[test]
fn a_lone_packet_waits_for_its_acknowledgement() {
    let window = ", initial_window = '6000 bytes'";
    let row = exchange(6_600, window, [&[], &[]]);
    let way = BEFORE + FULL + 62 + 999;
    check_ns(&row, 200_000, [way, BEHIND + FULL], &[HANDSHAKE]);
    assert_eq!(row.count(PathCount::TripsSlowStart), 2);
    let row = exchange(6_600, window, [&[5, 6], &[]]);
    let delayed = (Part::DelayedAck, 25_000_000);
    let way = [way + 1, BEHIND + 4 * FULL];
    check_ns(&row, 200_000, way, &[HANDSHAKE, delayed]);
    assert_eq!(row.count(PathCount::DelayedAcks), 1);
}

/// Two datagrams leave at once. The third waits for the pace, and finds the link idle.
#[test]
fn a_paced_datagram_waits_for_its_time() {
    let row = exchange(3_000, ", burst = 2", [&[], &[]]);
    let pacing = row.part(Part::Pacing);
    // At most a datagram at 1.25 windows of 12,000 bytes in a round trip, and the debt of the handshake.
    assert!((1..3 * 8_208_000).contains(&pacing), "{pacing}");
    let others = [HANDSHAKE, (Part::Pacing, pacing)];
    check_ns(&row, 100_000, [BEFORE + 909, BEHIND], &others);
}

/// A tail and two copies are lost. With the second copy a PING leaves, of 55. The client's ACK of it is 25 ms
/// late, has 63 bytes and shows the loss.
#[test]
fn bytes_that_are_lost_again_keep_the_vector_of_their_first_datagram() {
    let row = exchange(960, "", [&[], &[4, 5, 6]]);
    let (smoothed, variation) = estimate(&MEASURED);
    let timeout = smoothed + 4 * variation + 25_000_000;
    let others = [
        HANDSHAKE,
        (Part::ProbeTimeout, 3 * timeout),
        (Part::RecoveryBehindTimer, (125_000 + 55 + 63) * 1000),
    ];
    check_ns(&row, 100_000, [BEFORE + 1_201, BEHIND], &others);
    assert_eq!(row.count(PathCount::ProbeTimeouts), 2);
    assert_eq!(row.count(PathCount::Losses), 1);
}
