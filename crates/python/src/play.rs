//! A source at work on an ideal network, for Python: columns of numbers.

use aqmlab_net::Time;
use aqmlab_scenario::{ClassError, Scenario};
use aqmlab_traffic::ideal::{self, Burst, UNLIMITED, Watch};
use aqmlab_traffic::{Connect, Direction, Offered};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};

/// What a source did, a column for each number.
#[derive(Default)]
struct Columns {
    /// Connections: when they opened and closed, and their round-trip times; seconds.
    opened_s: Vec<f64>,
    closed_s: Vec<f64>,
    rtt_s: Vec<f64>,
    /// Their number of exchanges.
    exchanges: Vec<f64>,
    /// Exchanges: bytes, and seconds that server and client wait.
    request_bytes: Vec<f64>,
    response_bytes: Vec<f64>,
    pause_s: Vec<f64>,
    /// Datagrams: when, and IP bytes.
    datagram_s: Vec<f64>,
    datagram_bytes: Vec<f64>,
    /// When connections were refused.
    refused_s: Vec<f64>,
}

impl Watch for Columns {
    fn connection(&mut self, at: Time, end: Time, connect: &Connect, _: &[Burst]) {
        self.opened_s.push(at.as_secs_f64());
        self.closed_s.push(end.as_secs_f64());
        self.rtt_s.push(connect.rtt.as_secs_f64());
        let exchanges = connect.script.exchanges();
        self.exchanges.push(exchanges.len().max(1) as f64);
        for exchange in exchanges {
            self.request_bytes.push(exchange.request as f64);
            self.response_bytes.push(exchange.response as f64);
            self.pause_s
                .push((exchange.think + exchange.pause).as_secs_f64());
        }
        if exchanges.is_empty() {
            // Not made of exchanges: all that each side sends, as if it were one.
            let [request, response] = connect.script.bytes();
            self.request_bytes.push(request as f64);
            self.response_bytes.push(response as f64);
            self.pause_s.push(0.0);
        }
    }

    fn datagram(&mut self, at: Time, _: u32, size: u32) {
        self.datagram_s.push(at.as_secs_f64());
        self.datagram_bytes.push(f64::from(size));
    }

    fn refused(&mut self, at: Time) {
        self.refused_s.push(at.as_secs_f64());
    }
}

impl Columns {
    fn named(self) -> [(&'static str, Vec<f64>); 10] {
        [
            ("opened_s", self.opened_s),
            ("closed_s", self.closed_s),
            ("rtt_s", self.rtt_s),
            ("exchanges", self.exchanges),
            ("request_bytes", self.request_bytes),
            ("response_bytes", self.response_bytes),
            ("pause_s", self.pause_s),
            ("datagram_s", self.datagram_s),
            ("datagram_bytes", self.datagram_bytes),
            ("refused_s", self.refused_s),
        ]
    }
}

/// About the bytes of its columns, here and in Python; of closed loops nobody knows how many rows
/// they have.
pub(crate) fn column_bytes(scenario: &Scenario, index: usize, seconds: f64) -> f64 {
    const CONNECTION: f64 = 2.0 * 8.0 * 7.0;
    const DATAGRAM: f64 = 2.0 * 8.0 * 2.0;
    let model = scenario.traffic[index].model.parameters();
    let connections = match model.population_key().counts_per_second() {
        true => model.population().unwrap_or_default(),
        false => 0.0,
    };
    seconds * (connections * CONNECTION + model.packets_per_s() * DATAGRAM)
}

/// What class `index` does in its first `seconds`: for each column its name and the numbers as the
/// bytes of little-endian doubles.
pub(crate) fn play<'py>(
    py: Python<'py>,
    scenario: &Scenario,
    index: usize,
    seconds: f64,
) -> PyResult<Result<Bound<'py, PyDict>, ClassError>> {
    let mut source = match scenario.source(index) {
        Ok(source) => source,
        Err(error) => return Ok(Err(error)),
    };
    let mut columns = Columns::default();
    let end = Time::from_secs_f64(seconds);
    py.detach(|| ideal::play(&mut source, end, UNLIMITED, &mut columns));
    let table = PyDict::new(py);
    for (name, column) in columns.named() {
        let bytes: Vec<u8> = column.into_iter().flat_map(f64::to_le_bytes).collect();
        table.set_item(name, PyBytes::new(py, &bytes))?;
    }
    Ok(Ok(table))
}

/// IP bits per second that class `index` asks for in the measured span, about: the mean of the
/// directions in which its responses go.
pub(crate) fn offered_bps(
    py: Python<'_>,
    scenario: &Scenario,
    index: usize,
) -> Result<f64, ClassError> {
    let class = &scenario.traffic[index];
    let mut source = scenario.source(index)?;
    let begin = scenario.measure.warm_up;
    let end = begin.saturating_add(scenario.measure.duration);
    // Responses are most of what a class sends.
    let [client, server] = class.tcp.ends();
    let (segment, header) = (
        server.mss.0.min(client.mss.0) as f64,
        server.header.0 as f64,
    );
    let window = client.receive_buffer.0.min(server.send_buffer.0);
    let mut offered = Offered::new(begin..end, segment, header);
    py.detach(|| ideal::play(&mut source, end, window, &mut offered));
    let [there, back] = offered.bytes();
    let bytes = match class.direction {
        Direction::Forward => there,
        Direction::Reverse => back,
        Direction::Both => f64::midpoint(there, back),
    };
    Ok(8.0 * bytes / scenario.measure.duration.as_secs_f64())
}
