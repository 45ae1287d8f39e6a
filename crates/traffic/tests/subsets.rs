//! Subsets of a whole: classes that share the connections of one model.

use aqmlab_net::{Frequency, Time};
use aqmlab_traffic::ideal::{self, Burst, Watch};
use aqmlab_traffic::packmime::Http;
use aqmlab_traffic::{
    Activity, Connect, Direction, HostCounts, Model, Packmime, PackmimeRtt, Rtt, Setting, Source,
    Subset,
};

const HOSTS: HostCounts = HostCounts {
    clients: 3,
    servers: 2,
};

#[derive(Default)]
struct Connections {
    /// When each opened, its response and its round trip.
    opened: Vec<(Time, Connect)>,
    refused: u64,
}

impl Watch for Connections {
    fn connection(&mut self, at: Time, _: Time, connect: &Connect, _: &[Burst]) {
        self.opened.push((at, connect.clone()));
    }

    fn datagram(&mut self, _: Time, _: u32, _: u32) {}

    fn refused(&mut self, _: Time) {
        self.refused += 1;
    }
}

/// What a subset of the class "web" opens in 100 s; without one, the whole.
fn subset(interval: Option<(f64, f64)>, max_connections: u32) -> Connections {
    let model = Model::Packmime(Packmime {
        rate: Some(Frequency(40.0)),
        http: Http::Http10,
        server_delay: true,
        response_scale: 1.0,
    });
    let rtt = Rtt::Packmime {
        table: PackmimeRtt::Ns2,
        extra: Time::ZERO,
    };
    let subset = interval.map(|(from, to)| Subset {
        of: "web".to_owned(),
        from,
        to,
    });
    let mut source = Source::new(
        &model,
        &Setting {
            rtt: &rtt,
            direction: Direction::Both,
            hosts: HOSTS,
            seed: 3,
            class: "web",
        },
    )
    .expect("a complete model")
    .with_activity(Activity {
        max_connections,
        ..Activity::default()
    })
    .with_subset(subset.as_ref(), 3);
    let mut seen = Connections::default();
    ideal::play(&mut source, Time::from_secs(100), 65_535, &mut seen);
    seen
}

fn described(connections: &[(Time, Connect)]) -> Vec<String> {
    let describe = |(at, connect): &(Time, Connect)| format!("{at:?} {connect:?}");
    connections.iter().map(describe).collect()
}

#[test]
fn subsets_have_all_connections_of_the_whole_between_them() {
    let whole = subset(None, u32::MAX).opened;
    let subsets = [(0.0, 0.2), (0.2, 0.6), (0.6, 1.0)].map(|interval| {
        let opened = subset(Some(interval), u32::MAX).opened;
        let share = opened.len() as f64 / whole.len() as f64;
        let width = interval.1 - interval.0;
        assert!((share - width).abs() < 0.03, "{share} of {}", whole.len());
        opened
    });
    let mut together = subsets.concat();
    together.sort_by_key(|(at, _)| *at);
    assert_eq!(described(&together), described(&whole));
}

#[test]
fn a_larger_subset_has_the_connections_of_a_smaller_one() {
    let small = described(&subset(Some((0.8, 1.0)), u32::MAX).opened);
    let large = described(&subset(Some((0.5, 1.0)), u32::MAX).opened);
    assert!(small.len() < large.len());
    assert!(small.iter().all(|connection| large.contains(connection)));
}

#[test]
fn the_connections_of_other_subsets_are_not_refused() {
    let seen = subset(Some((0.0, 0.5)), 1);
    let all = subset(Some((0.0, 0.5)), u32::MAX).opened.len() as u64;
    assert_eq!(seen.opened.len() as u64 + seen.refused, all);
    assert!(seen.refused > 0);
}

#[test]
fn an_interval_lies_within_0_to_1() {
    for (from, to, right) in [
        (0.0, 1.0, true),
        (0.5, 0.5, false),
        (-0.1, 0.5, false),
        (0.0, 1.1, false),
    ] {
        let subset = Subset {
            of: "web".to_owned(),
            from,
            to,
        };
        assert_eq!(subset.check().is_ok(), right, "{from} to {to}");
    }
}
