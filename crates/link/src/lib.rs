//! One direction of a link: queue discipline, device ring, wire.
//!
//! A [`Port`] takes the packets that arrive at a link and reports what becomes of them: dropped by
//! the discipline, lost on the wire, or at the far end at such a time with such an ECN field. It
//! reads no clock and keeps no events. Its caller states the time at which each thing happens, so
//! an event loop that is always in time and a router that looks up late get the same answers.
//!
//! [`Air`] is Wi-Fi: a medium that an access point and its stations share, with the queues of all.
//! [`Stations`] says which station a client host is.
//! [`AccessLinks`] are the hosts' own links, which have no discipline and never drop.
//!
//! Times are nanoseconds since the start of the run ([`Time`](aqmlab_net::Time)), sizes are IP
//! bytes; the framing is added here.
//!
//! # A queue between two ends of your own
//!
//! Any protocol without sockets and clocks of its own can be behind any queue. The caller keeps the
//! time: it asks for the next moment at which something happens, and goes there. What waits in the
//! port is the caller's (`T` of [`Port<T>`](Port)): numbers here, bytes of packets elsewhere.
//!
//! A sender keeps a window of packets under way and halves it, once in a round trip, when a
//! packet comes back with a mark. It crosses FQ-CoDel at 10 Mbit/s:
//!
//! ```
//! use std::collections::BTreeSet;
//!
//! use aqmlab_aqm::Details;
//! use aqmlab_link::{Port, Transmission};
//! use aqmlab_net::{Ecn, FlowKey, Packet, Time};
//! use aqmlab_record::LinkDirection;
//! use aqmlab_scenario::{Scenario, Topology};
//!
//! let text = r#"
//!     measure = { warm_up = "0 s", duration = "10 s" }
//!     topology.kind = "dumbbell"
//!     topology.bottleneck = { rate = "10 Mbit/s", delay = "10 ms", framing = "none", discipline = { kind = "fq-codel" } }
//!     traffic = [{ kind = "bulk", flows = 1, rtt = { kind = "constant", rtt = "20 ms" } }]
//! "#;
//! let scenario = Scenario::parse(text, &[], &mut |_| unreachable!("it names no files")).unwrap();
//! let Topology::Dumbbell(dumbbell) = &scenario.topology else { unreachable!() };
//! let name = &LinkDirection::all(&scenario.topology.network())[0];
//! let link = &dumbbell.bottleneck.forward;
//! let mut port: Port<u64> = Port::stored(name, link, 1, &scenario.measure);
//!
//! // The sender's state, and what is on its way back: packet, and whether it was marked or lost.
//! let (mut window, mut sent, mut acked, mut cut_until) = (10.0_f64, 0, 0, 0);
//! let mut acks: BTreeSet<(Time, u64, bool)> = BTreeSet::new();
//! let (mut now, mut dropped, mut congested) = (Time::ZERO, Vec::new(), 0);
//! while now < Time::from_secs(10) {
//!     let mut outcomes = Vec::new();
//!     if port.next_departure() <= now {
//!         outcomes.extend(port.depart(now, &mut dropped));
//!     }
//!     while acks.first().is_some_and(|ack| ack.0 <= now) {
//!         let (_, number, is_congested) = acks.pop_first().unwrap();
//!         acked += 1;
//!         window += 1.0 / window;
//!         if is_congested && number >= cut_until {
//!             (window, cut_until, congested) = (window / 2.0, sent, congested + 1);
//!         }
//!     }
//!     while ((sent - acked) as f64) < window.max(2.0) {
//!         let packet = Packet { size: 1500, ecn: Ecn::Ect0, dscp: 0, flow: FlowKey(7) };
//!         outcomes.extend(match port.arrive(now, packet, 0) {
//!             Transmission::Waits => port.take_in(now, (packet, 0), sent, Details::default, &mut dropped),
//!             decided => Some((sent, decided)),
//!         });
//!         sent += 1;
//!     }
//!     for (number, transmission) in outcomes {
//!         if let Transmission::Arrives(at, ecn) = transmission {
//!             acks.insert((at + Time::from_millis(10), number, ecn == Ecn::Ce));
//!         }
//!     }
//!     acks.extend(dropped.drain(..).map(|it| (it.at + Time::from_millis(20), it.item, true)));
//!     let next_ack = acks.first().map_or(Time::NEVER, |ack| ack.0);
//!     now = port.next_departure().min(next_ack);
//! }
//! // Ten seconds have room for 8333 packets. Marks keep the queue short.
//! assert!(acked > 7900, "{acked}");
//! assert!(congested > 5, "{congested}");
//! let wait = port.stats().sojourn().quantiles_s([0.95])[0].unwrap();
//! assert!(wait < 0.02, "{wait}");
//! ```

mod access;
#[cfg(feature = "air")]
mod air;
#[cfg(not(feature = "air"))]
#[path = "no_air.rs"]
mod air;
mod bypass;
mod fifo_service;
mod gate;
mod port;
mod queue_service;
mod ring_buffer;
mod stations;
mod wire;

pub use access::AccessLinks;
pub use air::Air;
pub use port::{Port, PortState};
pub use stations::Stations;
pub use wire::{Dropped, Served, Transmission, Way};
