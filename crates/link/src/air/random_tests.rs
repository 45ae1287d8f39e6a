//! The air under random schedules.

use std::collections::{BTreeMap, BTreeSet};

use aqmlab_aqm::Details;
use aqmlab_scenario::{Ampdu, Modulation, Phy};
use proptest::prelude::*;

use super::tests::{marked, measure, room, wifi};
use super::*;

/// Packets that come at random times, for random stations, in both directions.
#[derive(Clone, Debug)]
struct Schedule {
    arrivals: Vec<(u64, usize, bool, u32, u8)>,
    edca: Edca,
    queue: AccessPointQueue,
    is_fair: bool,
    errors: Vec<f64>,
    subframes: u32,
    retries: u32,
}

/// A packet: its station, whether it goes up, its code point, and its number.
type Item = (usize, bool, u8, u64);

impl Schedule {
    fn air(&self) -> Air<Item> {
        let wifi = Wifi {
            queue: self.queue,
            airtime_fairness: self.is_fair,
            edca: self.edca,
            retries: self.retries,
            discipline: room(20),
            fifo: aqmlab_scenario::Packets(60),
            ampdu: Ampdu {
                subframes: Some(self.subframes),
                ..Ampdu::default()
            },
            ..wifi(Phy::Ht20, Vec::new())
        };
        let rate = |mcs: u32| PhyRate::new(Phy::Ht20, Modulation::Mcs(mcs % 8, 1 + mcs / 8));
        let rates = [15, 7, 3, 0].map(rate);
        Air::with_rates(&wifi, rates.into(), self.errors.clone(), 5, &measure())
    }

    /// All that happens, as text, and at each arrival how many departures and begins there were.
    fn happens(&self, is_step_by_step: bool) -> (String, Vec<u64>) {
        let mut air = self.air();
        air.is_step_by_step = is_step_by_step;
        let (mut dropped, mut happened, mut counts) = (Vec::new(), String::new(), Vec::new());
        let (mut now, mut departures) = (Time::ZERO, 0);
        let mut play = |air: &mut Air<Item>, end: Time, dropped: &mut Vec<_>| {
            while air.next_departure() < end {
                let at = air.next_departure();
                if let Some((item, transmission)) = air.depart(at, dropped) {
                    let served = air.last_served();
                    happened += &format!("{at:?} {item:?} {transmission:?} {served:?}\n");
                }
                departures += 1;
            }
            departures + air.unseen_begins(end)
        };
        let just = Time::from_nanos(1);
        for (number, (gap, station, up, size, dscp)) in self.arrivals.iter().enumerate() {
            now += Time::from_nanos(*gap);
            counts.push(play(&mut air, now, &mut dropped));
            counts.push(play(&mut air, now + just, &mut dropped));
            let number = number as u64;
            air.take_in(
                now,
                marked(number, *size, *dscp),
                (*station, *up, *dscp, number),
                (*station, if *up { Way::Up } else { Way::Down }),
                Details::default,
                &mut dropped,
            );
        }
        counts.push(play(&mut air, Time::from_secs(60), &mut dropped));
        air.close(Time::from_secs(60));
        let ends = (dropped, air.tallies(), air.stats());
        (format!("{happened}{ends:?}"), counts)
    }
}

fn schedule() -> impl Strategy<Value = Schedule> {
    let code_point = prop_oneof![Just(0u8), Just(46), Just(34), Just(8)];
    let arrival = (
        0..60_000u64,
        0..4usize,
        any::<bool>(),
        40..1500u32,
        code_point,
    );
    let error = prop_oneof![Just(0.0), 0.0..0.9];
    (
        prop::collection::vec(arrival, 1..300),
        any::<bool>(),
        any::<bool>(),
        prop_oneof![Just(Edca::Off), Just(Edca::Rfc8325), Just(Edca::Precedence)],
        prop::collection::vec(error, 4),
        0..40u32,
        0..4u32,
    )
        .prop_map(
            |(arrivals, is_fifo, is_fair, edca, errors, subframes, retries)| Schedule {
                arrivals,
                edca,
                queue: match is_fifo {
                    true => AccessPointQueue::Fifo,
                    false => AccessPointQueue::Mac80211,
                },
                is_fair,
                errors,
                subframes,
                retries,
            },
        )
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(96))]

    /// Nobody begins while another sends, every packet comes or is lost once, and the packets of a
    /// station come in their order, code point by code point.
    #[test]
    fn any_schedule_keeps_the_rules_of_the_medium(schedule in schedule()) {
        let mut air = schedule.air();
        air.is_step_by_step = true;
        let mut dropped = Vec::new();
        let mut came: BTreeMap<(usize, bool, u8), Vec<u64>> = BTreeMap::new();
        let (mut now, mut delivered, mut busy_until) = (0, 0, 0);
        let mut seen = 0;
        let mut play = |air: &mut Air<Item>, until: Time, dropped: &mut Vec<_>| {
            while air.next_departure() <= until {
                let at = air.next_departure();
                if let Some(((station, up, dscp, number), _)) = air.depart(at, dropped) {
                    came.entry((station, up, dscp)).or_default().push(number);
                    delivered += 1;
                }
                if let Some(exchange) = air.exchange.as_ref().filter(|it| it.end > busy_until) {
                    assert!(exchange.begin >= busy_until, "two are on the air");
                    assert!(air.senders.iter().all(|it| it.end <= exchange.end));
                    let nodes = air.senders.iter().map(|it| it.contender / air.categories.count());
                    let nodes: BTreeSet<usize> = nodes.collect();
                    assert_eq!(nodes.len(), air.senders.len(), "a node sends twice at a time");
                    busy_until = exchange.end;
                    seen += 1;
                }
            }
            delivered
        };
        for (number, (gap, station, up, size, dscp)) in schedule.arrivals.iter().enumerate() {
            now += gap;
            play(&mut air, Time::from_nanos(now), &mut dropped);
            let item = (*station, *up, *dscp, number as u64);
            let way = if *up { Way::Up } else { Way::Down };
            air.take_in(
                Time::from_nanos(now),
                marked(number as u64, *size, *dscp),
                item,
                (*station, way),
                Details::default,
                &mut dropped,
            );
            let delivered = play(&mut air, Time::ZERO, &mut dropped);
            let all = air.stored_packets() + dropped.len() as u64 + delivered;
            prop_assert_eq!(all, number as u64 + 1);
            prop_assert!(air.check_conservation().is_ok());
        }
        let last = Time::from_secs(60);
        let delivered = play(&mut air, last, &mut dropped);
        prop_assert_eq!(air.stored_packets(), 0);
        prop_assert_eq!(air.next_departure(), Time::NEVER);
        prop_assert_eq!(delivered + dropped.len() as u64, schedule.arrivals.len() as u64);
        prop_assert!(seen > 0);
        for numbers in came.values() {
            prop_assert!(numbers.is_sorted(), "out of order: {:?}", numbers);
        }
    }

    /// An exchange whose end is foreseen takes one departure less. Nothing else is different.
    #[test]
    fn foreseen_ends_change_nothing(schedule in schedule()) {
        prop_assert_eq!(schedule.happens(false), schedule.happens(true));
    }
}

#[test]
fn the_begin_of_a_lone_sender_is_no_departure() {
    let schedule = Schedule {
        arrivals: Vec::new(),
        edca: Edca::Off,
        queue: AccessPointQueue::Mac80211,
        is_fair: true,
        errors: vec![0.0; 4],
        subframes: 1,
        retries: 3,
    };
    let mut air = schedule.air();
    let mut dropped = Vec::new();
    let item = (0, true, 0, 0);
    let load = marked(0, 1500, 0);
    air.take_in(
        Time::ZERO,
        load,
        item,
        (0, Way::Up),
        Details::default,
        &mut dropped,
    );
    let end = air.next_departure();
    assert_eq!(end, air.transmission_time(0, 1500, 0));
    assert_eq!(air.depart(end, &mut dropped).map(|it| it.0), Some(item));
    assert_eq!(
        (air.unseen_begins(end), air.next_departure()),
        (1, Time::NEVER)
    );
}
