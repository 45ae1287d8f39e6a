//! Which transport each connection of a class has.

use aqmlab_net::RandomStream;
use aqmlab_scenario::Traffic;
use aqmlab_stacks::{Class, HAS_QUIC, HAS_STACKS};

/// What the connections of a class have in place of TCP.
#[derive(Debug)]
struct Wanted {
    draws: RandomStream,
    /// What some of its connections have, each with the share of it and of those before it.
    kinds: Vec<(f64, Class)>,
}

impl Wanted {
    fn new(seed: u64, class: &Traffic) -> Self {
        let shares = class.transport;
        let quinn = Class::quinn(&class.quinn).filter(|_| shares.quinn > 0.0);
        let quinn = quinn.map(|kind| (shares.quinn, kind)).into_iter();
        let has_quic = HAS_QUIC && shares.quic > 0.0;
        let quic = has_quic.then(|| (shares.quinn + shares.quic, Class::quic(&class.quic)));
        Self {
            draws: RandomStream::new(seed, &format!("transport {}", class.drawn_as()), 0),
            kinds: quinn.chain(quic).collect(),
        }
    }
}

/// The transports of all classes. A build without stacks has TCP alone.
#[derive(Debug)]
pub(crate) struct Transports(Vec<Wanted>);

impl Transports {
    pub(crate) fn new(seed: u64, classes: &[Traffic]) -> Self {
        let classes = classes.iter().filter(|_| HAS_STACKS);
        Self(classes.map(|class| Wanted::new(seed, class)).collect())
    }

    /// What the next connection of a class has, if that is not TCP.
    pub(crate) fn next(&mut self, class: usize) -> Option<&Class> {
        if !HAS_STACKS {
            return None;
        }
        let Wanted { draws, kinds } = &mut self.0[class];
        let most = kinds.last()?.0;
        // One kind for all needs no draw.
        let draw = if kinds.len() == 1 && most >= 1.0 {
            0.0
        } else {
            draws.uniform()
        };
        let kind = kinds.iter().find(|(share, _)| draw < *share);
        kind.map(|(_, kind)| kind)
    }
}
