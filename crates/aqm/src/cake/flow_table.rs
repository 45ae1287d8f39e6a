//! Where a flow finds its queue: a table in sets of eight, in which a flow takes a free queue of its
//! set before it shares one; and hosts, found the same way.

/// Places of a set.
const WAYS: u32 = 8;

/// How a place was found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Found {
    /// It is in use by the same.
    Known,
    /// It was free.
    Free,
    /// All of the set is in use: it is shared.
    Shared,
}

/// Places that remember by a tag who used them last.
#[derive(Clone, Debug)]
pub(super) struct Ways {
    tags: Vec<u32>,
}

impl Ways {
    /// So many places, a multiple of eight.
    pub(super) fn new(places: u32) -> Self {
        Self {
            tags: vec![0; places as usize],
        }
    }

    /// The place for a hash, which keeps it as its tag.
    #[inline]
    pub(super) fn find(&mut self, hash: u32, in_use: impl Fn(u32) -> bool) -> (u32, Found) {
        let home = hash % self.tags.len() as u32;
        if self.tags[home as usize] == hash && in_use(home) {
            return (home, Found::Known);
        }
        self.search(home, hash, in_use)
    }

    #[inline(never)]
    fn search(&mut self, home: u32, hash: u32, in_use: impl Fn(u32) -> bool) -> (u32, Found) {
        let set = home - home % WAYS;
        let mut places = (0..WAYS).map(|way| set + (home + way) % WAYS);
        if let Some(place) = places
            .clone()
            .find(|&place| self.tags[place as usize] == hash)
        {
            let found = match in_use(place) {
                true => Found::Known,
                false => Found::Free,
            };
            return (place, found);
        }
        let (place, found) = match places.find(|&place| !in_use(place)) {
            Some(free) => (free, Found::Free),
            None => (home, Found::Shared),
        };
        self.tags[place as usize] = hash;
        (place, found)
    }
}

/// Hosts, and how many bulk flows each has.
#[derive(Clone, Debug)]
pub(super) struct Hosts {
    ways: Ways,
    bulk: Vec<u32>,
}

impl Hosts {
    pub(super) fn new(places: u32) -> Self {
        Self {
            ways: Ways::new(places),
            bulk: vec![0; places as usize],
        }
    }

    /// The place of a host.
    pub(super) fn find(&mut self, hash: u32) -> u32 {
        let bulk = &self.bulk;
        let (place, _) = self.ways.find(hash, |place| bulk[place as usize] > 0);
        place
    }

    pub(super) fn add(&mut self, place: u32) {
        self.bulk[place as usize] += 1;
    }

    pub(super) fn remove(&mut self, place: u32) {
        self.bulk[place as usize] -= 1;
    }

    #[inline]
    pub(super) fn bulk(&self, place: u32) -> u32 {
        self.bulk[place as usize]
    }
}

#[cfg(test)]
mod tests {
    use aqmlab_net::RandomStream;

    use super::*;

    #[test]
    fn ck08_a_flow_takes_a_free_queue_of_its_set_before_it_shares_one() {
        let mut ways = Ways::new(1024);
        let mut used = [false; 1024];
        // Nine flows whose home is place 83: set 80 to 87, looked at from 83 on.
        let flows = (0..9).map(|flow| 83 + 1024 * flow);
        let found: Vec<_> = flows
            .map(|hash| {
                let (place, found) = ways.find(hash, |place| used[place as usize]);
                used[place as usize] = true;
                (place, found)
            })
            .collect();
        let places: Vec<_> = found.iter().map(|(place, _)| *place).collect();
        assert_eq!(places, [83, 84, 85, 86, 87, 80, 81, 82, 83]);
        assert!(found[..8].iter().all(|(_, found)| *found == Found::Free));
        assert_eq!(found[8].1, Found::Shared);
        // A flow that is known is found where it is.
        let again = ways.find(83 + 5 * 1024, |place| used[place as usize]);
        assert_eq!(again, (80, Found::Known));
    }

    /// The sheet's table of flows that find no queue of their own: its figures are for a Poisson
    /// number of flows per set, those here for exactly so many flows.
    #[test]
    fn few_flows_share_a_queue() {
        for (flows, most) in [(100, 0.000_2), (300, 0.001), (500, 0.010), (1000, 0.140)] {
            let mut stream = RandomStream::new(1, "flows", flows);
            let mut shared = 0;
            for _ in 0..200 {
                let mut ways = Ways::new(1024);
                let mut used = vec![false; 1024];
                for _ in 0..flows {
                    let hash = (stream.uniform() * 4_294_967_296.0) as u32;
                    let (place, found) = ways.find(hash, |place| used[place as usize]);
                    used[place as usize] = true;
                    shared += u32::from(found == Found::Shared);
                }
            }
            let share = f64::from(shared) / (200.0 * flows as f64);
            assert!(share <= most, "{flows}: {share}");
        }
    }
}
