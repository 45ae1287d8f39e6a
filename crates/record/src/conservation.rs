//! The check that no packet was lost or made by mistake.

use aqmlab_aqm::Counters;

use crate::RunError;

/// Where every packet of a run went.
#[derive(Clone, Copy, Debug, Default)]
pub struct Conservation {
    /// Sent by hosts.
    pub sent: u64,
    /// Received by hosts.
    pub delivered: u64,
    /// Dropped by a queue or lost at random.
    pub dropped: u64,
    /// On their way when the run ended.
    pub in_flight: u64,
}

impl Conservation {
    /// Every packet that was sent was delivered, was dropped, or is under way: `in_flight`, or one
    /// of those that ports `kept`. Connections cannot have more under way than there are.
    pub fn check(&self, kept: u64, claimed: u64) -> Result<(), RunError> {
        let Self {
            sent,
            delivered,
            dropped,
            in_flight,
        } = *self;
        let waiting = in_flight + kept;
        if sent == delivered + dropped + waiting && claimed <= waiting {
            return Ok(());
        }
        Err(RunError::Conservation(format!(
            "{sent} segments sent, but {delivered} delivered + {dropped} dropped or lost + \
             {waiting} in flight (connections count {claimed})"
        )))
    }
}

/// Every packet that came to a queue was dropped, departed or waits there; `backlog` is how many
/// the discipline itself counts.
pub fn check_queue(
    name: &str,
    counters: &Counters,
    waiting: u64,
    backlog: u64,
) -> Result<(), RunError> {
    let (arrived, dropped) = (counters.arrived_packets, counters.dropped_packets());
    let departed = counters.departed_packets;
    if arrived == dropped + departed + waiting && backlog == waiting {
        return Ok(());
    }
    Err(RunError::Conservation(format!(
        "{name} queue: {arrived} packets arrived, but {dropped} dropped + {departed} departed + \
         {waiting} waiting (the discipline counts {backlog})"
    )))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_packet_too_many_or_too_few_is_told() {
        let balanced = Conservation {
            sent: 10,
            delivered: 5,
            dropped: 2,
            in_flight: 1,
        };
        assert!(balanced.check(2, 3).is_ok());
        for (kept, claimed) in [(1, 0), (3, 0), (2, 4)] {
            let reported = balanced.check(kept, claimed).unwrap_err().to_string();
            assert!(reported.contains("10 segments sent"), "{reported}");
        }
        let counters = Counters {
            arrived_packets: 3,
            departed_packets: 1,
            ..Counters::default()
        };
        assert!(check_queue("forward", &counters, 2, 2).is_ok());
        assert!(check_queue("forward", &counters, 1, 1).is_err());
        assert!(check_queue("forward", &counters, 2, 1).is_err());
    }
}
