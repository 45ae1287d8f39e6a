//! What one direction of the router works on: a way of its own, or one of two that share the air.

use std::sync::{Arc, Mutex, MutexGuard};

use aqmlab_link::PortState;
use aqmlab_net::Time;
use aqmlab_record::{LinkStats, StationsOnAir};
use aqmlab_scenario::{Scenario, Wifi};

use crate::clock::Clock;
use crate::ledger::Ledger;
use crate::path::Path;
use crate::path::on_air::OnAir;
use crate::routes::Side;

/// What one direction of the router works on.
#[derive(Debug)]
pub(crate) enum Lane {
    /// A way of its own.
    Alone(Box<Path>),
    /// One of both that share the air: that of the packets from this side.
    Shared(Arc<Mutex<OnAir>>, Side),
}

/// What a direction leaves behind.
#[derive(Debug)]
pub(crate) struct Left {
    /// Of what was its own, or of all that was shared: one of the directions has that.
    pub(crate) links: Vec<LinkStats>,
    pub(crate) stations: Vec<StationsOnAir>,
    /// Of a program's connections.
    pub(crate) ledger: Option<Ledger>,
    /// Packets of no connection, which were thrown away.
    pub(crate) strays: u64,
}

impl Lane {
    /// Both ways of a link, and of the air if there is Wi-Fi.
    pub(crate) fn both(scenario: &Scenario, wifi: Option<&Wifi>, paths: [Path; 2]) -> [Self; 2] {
        match wifi {
            None => paths.map(|path| Self::Alone(Box::new(path))),
            Some(wifi) => {
                let shared = Arc::new(Mutex::new(OnAir::new(scenario, wifi, paths)));
                Side::BOTH.map(|from| Self::Shared(shared.clone(), from))
            }
        }
    }

    /// A host has sent a packet, which is read now.
    pub(crate) fn enter(&mut self, clock: Clock, bytes: &[u8]) {
        match self {
            Self::Alone(path) => path.enter(clock.now(), bytes),
            Self::Shared(shared, from) => {
                let mut shared = locked(shared);
                shared.enter(*from, clock.now(), bytes);
            }
        }
    }

    /// Does what had to be done by `now`.
    pub(crate) fn advance(&mut self, now: Time) {
        match self {
            Self::Alone(path) => path.advance(now),
            Self::Shared(shared, _) => locked(shared).advance(now),
        }
    }

    /// What the direction is doing at `now`.
    pub(crate) fn observe(&mut self, now: Time) -> PortState {
        match self {
            Self::Alone(path) => path.observe(now),
            Self::Shared(shared, from) => locked(shared).observe(*from, now),
        }
    }

    /// A packet that should be out by `now`, and since when.
    pub(crate) fn pop(&mut self, now: Time) -> Option<(Time, Box<[u8]>)> {
        match self {
            Self::Alone(path) => path.pop(now),
            Self::Shared(shared, from) => locked(shared).pop(*from, now),
        }
    }

    /// When there is something to do next.
    pub(crate) fn next(&self) -> Time {
        match self {
            Self::Alone(path) => path.next(),
            Self::Shared(shared, from) => locked(shared).next(*from),
        }
    }

    /// The run is over at `end`, which is not part of it.
    pub(crate) fn close(self, end: Time) -> Left {
        match self {
            Self::Alone(mut path) => Left {
                strays: path.strays(),
                ledger: path.take_ledger(),
                links: path.close(end),
                stations: Vec::new(),
            },
            Self::Shared(shared, from) => {
                let (ledger, strays) = locked(&shared).take_ledger(from);
                // The direction that ends last closes both.
                let shared = Arc::into_inner(shared).map(Mutex::into_inner);
                let (links, stations) = match shared {
                    Some(shared) => shared.expect(UNPOISONED).close(end),
                    None => Default::default(),
                };
                Left {
                    links,
                    stations,
                    ledger,
                    strays,
                }
            }
        }
    }
}

fn locked(shared: &Mutex<OnAir>) -> MutexGuard<'_, OnAir> {
    shared.lock().expect(UNPOISONED)
}

const UNPOISONED: &str = "nothing panics while it holds the lock";
