//! How much a source asks of a network, without a packet of it.

use std::ops::Range;

use aqmlab_net::{Role, Time};

use crate::ideal::{Burst, Watch};
use crate::script::Connect;

/// Segments that one acknowledgement answers.
const SEGMENTS_PER_ACK: f64 = 2.0;

/// Segments without data that each end of a connection sends at its beginning and its end.
const SEGMENTS_WITHOUT_DATA: f64 = 3.0;

/// Counts the IP bytes that a source sends each way within a span of time: data, and about the
/// headers and acknowledgements that TCP adds. Datagrams are left out.
///
/// That is not what a simulation would count to the byte, but it goes up and down with it, from
/// one seed or one span to another: which large files are asked for decides over both.
#[derive(Clone, Debug)]
pub struct Offered {
    span: Range<Time>,
    segment: f64,
    header: f64,
    /// From the servers' side to the clients' side, and back.
    bytes: [f64; 2],
}

impl Offered {
    /// Counts within `span`; segments have up to `segment` bytes of data and `header` more.
    pub const fn new(span: Range<Time>, segment: f64, header: f64) -> Self {
        Self {
            span,
            segment,
            header,
            bytes: [0.0; 2],
        }
    }

    /// Bytes from the servers' side of the network to the clients' side, and back.
    pub const fn bytes(&self) -> [f64; 2] {
        self.bytes
    }

    /// Which part of a burst lies within the span.
    fn share(&self, burst: &Burst) -> f64 {
        let Range { start, end } = self.span;
        if burst.until <= burst.from {
            return f64::from(u8::from((start..end).contains(&burst.from)));
        }
        let within = burst.until.min(end).saturating_sub(burst.from.max(start));
        within.as_secs_f64() / (burst.until - burst.from).as_secs_f64()
    }
}

impl Watch for Offered {
    fn connection(&mut self, at: Time, _: Time, connect: &Connect, bursts: &[Burst]) {
        if self.span.contains(&at) {
            for bytes in &mut self.bytes {
                *bytes += SEGMENTS_WITHOUT_DATA * self.header;
            }
        }
        self.exchange(connect, bursts);
    }

    fn exchange(&mut self, connect: &Connect, bursts: &[Burst]) {
        for burst in bursts {
            let share = self.share(burst);
            if share > 0.0 {
                let segments = (burst.bytes as f64 / self.segment).ceil();
                let acks = (segments / SEGMENTS_PER_ACK).ceil();
                let goes_back = (burst.party == Role::Client) != connect.flipped;
                let way = usize::from(goes_back);
                self.bytes[way] += share * (burst.bytes as f64 + segments * self.header);
                self.bytes[1 - way] += share * acks * self.header;
            }
        }
    }

    fn datagram(&mut self, _: Time, _: u32, _: u32) {}

    fn refused(&mut self, _: Time) {}
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::script::Script;

    #[test]
    fn data_headers_and_acknowledgements_are_counted_within_the_span() {
        let s = Time::from_secs;
        let connect = |flipped| Connect {
            token: 0,
            client: 0,
            server: 0,
            rtt: Time::from_millis(100),
            flipped,
            script: Script::single(100, 10_000),
            limits: None,
            begins_with_tls: false,
        };
        let burst = |party, bytes, from, until| Burst {
            party,
            bytes,
            from: s(from),
            until: s(until),
        };
        let request = burst(Role::Client, 100, 2, 2);
        // Half of it lies behind the end.
        let response = burst(Role::Server, 10_000, 3, 5);
        let late = burst(Role::Server, 10_000, 4, 5);
        let mut offered = Offered::new(s(1)..s(4), 1000.0, 40.0);
        offered.connection(s(1), s(5), &connect(false), &[request, response, late]);
        let from_server = 3.0 * 40.0 + 40.0 + (10_000.0 + 400.0) / 2.0;
        let from_client = 3.0 * 40.0 + 140.0 + 5.0 * 40.0 / 2.0;
        assert_eq!(offered.bytes(), [from_server, from_client]);
        offered.connection(s(4), s(5), &connect(true), &[request, response]);
        assert_eq!(
            offered.bytes(),
            [
                from_server + from_client - 120.0,
                from_client + from_server - 120.0
            ]
        );
    }
}
