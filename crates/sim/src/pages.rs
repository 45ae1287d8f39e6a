//! A page of objects, of which the network loses one packet: over TCP all objects behind it wait, over QUIC
//! those do whose bytes it had.
//!
//! 8 Mbit/s both ways without framing, a round trip of 100 ms. The HTML names eight objects of 2,880 bytes with
//! their headers. Over TCP these are three segments of 960 bytes of payload each. `header` is what a segment
//! adds, whatever its options, so that a segment takes a millisecond.

use aqmlab_net::{Role, Time};
use aqmlab_record::Discard;
use aqmlab_scenario::Scenario;

use crate::engine::Plain;
use crate::event_queue::WheelQueue;
use crate::memory::Memory;
use crate::world::{Shortcuts, Steps, World};

const OBJECTS: u64 = 8;

/// What one page does with these packets of the server lost: its load time, and the times of its objects
/// together, in nanoseconds.
fn page(transport: &str, lost: &[u32]) -> (u64, u64) {
    let text = format!(
        "[measure]\nwarm_up = '0 s'\nduration = '10 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '8 Mbit/s'\nframing = 'none'\ndelay = '0 s'\n\
         discipline = {{ kind = 'droptail', limit = '100 packets' }}\n\
         [[traffic]]\nname = 'one'\nkind = 'http3-web'\nusers = 1\nobjects = 9\nobjects_sigma = 0\n\
         html = '760 bytes'\nobject = '2680 bytes'\nobject_sigma = 0\nfirst_wave = 0.99\n\
         critical = 0.01\nparse_min = '10 ms'\nparse_max = '10 ms'\nthink = '1000 s'\n\
         start_within = '0 s'\nrtt = {{ kind = 'constant', rtt = '100 ms' }}\ntls = false\n\
         tcp = {{ profile = 'linux', mss = '960 bytes', initial_window = 30, header = '40 bytes' }}\n\
         quic = {{ initial_window = '60000 bytes', burst = 64 }}\ntransport = '{transport}'"
    );
    let scenario = Scenario::parse(&text, &[], &mut |name| panic!("it asks for {name}"))
        .unwrap_or_else(|error| panic!("{error}"));
    let records = Box::new(Discard);
    let world = World::<Plain<WheelQueue>>::new(
        &scenario,
        Shortcuts::default(),
        records,
        Memory::UNLIMITED,
    );
    let mut world = Box::new(world.unwrap());
    world.network_mut().doom(Role::Server, lost);
    world.run_until(Time::NEVER).unwrap();
    let quality = &world.end(&scenario).unwrap().quality["one"];
    let nanos = |seconds: Option<f64>| (seconds.unwrap() * 1e9).round();
    let all = nanos(
        quality
            .object_index_mean_s
            .map(|mean| mean * (OBJECTS + 1) as f64),
    );
    (nanos(quality.page_load_p50_s) as u64, all as u64)
}

/// One way of the path, a full segment on the wire, and an ACK without and with a SACK block: 40 and 52 bytes.
const WAY: u64 = 50_000_000;
const SEGMENT: u64 = 1_000_000;
const ACK: u64 = 40_000;
const SYN_ACK: u64 = 60_000;
const SACK: u64 = 52_000;

/// Segments of the objects, and of each.
const SEGMENTS: u64 = 3 * OBJECTS;

/// When the page is complete although this segment of the objects, from 0 on, was lost as it left; `whole` if none
/// is. None where the sender's time-out repairs it, whose average of round trips is not computed here.
fn repaired(segment: u64, whole: u64) -> Option<u64> {
    let behind = SEGMENTS - 1 - segment;
    // The lost segment takes no time on the wire.
    let all_others = whole - SEGMENT;
    let noticed = match behind {
        // The third ACK with a SACK block (RFC 8985, section 6.2, step 4: DupThresh).
        3.. => all_others - (behind - 3) * SEGMENT,
        // Fewer: a quarter of the smallest round trip later, that of the handshake, and Linux's 2 ms.
        1 | 2 => all_others + (SYN_ACK + WAY + ACK + WAY) / 4 + 2_000_000,
        _ => return None,
    };
    Some(noticed + (SACK + WAY) + (SEGMENT + WAY))
}

#[test]
fn over_tcp_all_objects_behind_a_lost_segment_wait_for_its_repair() {
    let (whole, times) = page("tcp", &[]);
    // When an object arrives if nothing is lost: three segments before the next one.
    let clean = |object| whole - 3 * SEGMENT * (OBJECTS - 1 - object);
    for segment in 0..SEGMENTS {
        // The server's packets before them: its SYN, an ACK, the HTML, and another ACK.
        let (load, found) = page("tcp", &[5 + segment as u32]);
        match repaired(segment, whole) {
            Some(expected) => assert_eq!(load, expected, "{segment}"),
            None => assert!(load > whole + 2 * WAY, "{segment}: {load}"),
        }
        // The object whose segment is lost, and all behind it, arrive with the repair.
        let waits = (segment / 3..OBJECTS).map(|object| load - clean(object));
        assert_eq!(found, times + waits.sum::<u64>(), "{segment}");
    }
}

#[test]
fn over_quic_only_the_objects_wait_whose_bytes_were_lost() {
    let (whole, times) = page("quic", &[]);
    // Datagrams with bytes of objects: of one, or of two.
    for number in 5..25 {
        let (load, found) = page("quic", &[number]);
        let (late, more) = (load - whole, found - times);
        // Without loss the objects arrive within 30 ms. The others come up to a datagram earlier.
        assert!(more + 10_000_000 > late, "{number}: {late} {more}");
        assert!(more < 2 * (late + 30_000_000), "{number}: {late} {more}");
    }
}
