//! The inner state of chosen connections over time: `flow_trace.parquet`.

use std::path::Path;
use std::sync::Arc;

use aqmlab_net::{Role, Time};
use aqmlab_scenario::FlowTrace;
use aqmlab_tcp::{Probe, RecoveryState};
use aqmlab_traffic::Script;
use arrow::array::{Float64Builder, StringDictionaryBuilder, UInt64Builder};
use arrow::datatypes::{DataType, Field, UInt8Type};

use crate::RunError;
use crate::event_queue::EventQueue;
use crate::limits;
use crate::recorder::{GROUP, Table, column, word};
use crate::world::World;

/// Which connections are followed, and when each had its last row.
#[derive(Debug)]
pub(crate) struct Tracer {
    wanted: Option<FlowTrace>,
    /// How many connections of each class are chosen already.
    taken: Vec<u32>,
    /// The connections that are followed just now.
    followed: Vec<Followed>,
}

#[derive(Debug)]
struct Followed {
    slot: u32,
    next_row: Time,
}

impl Tracer {
    pub(crate) fn new(wanted: Option<FlowTrace>, classes: usize) -> Self {
        Self {
            wanted,
            taken: vec![0; classes],
            followed: Vec::new(),
        }
    }

    /// Whether a connection that opens now is to be followed.
    pub(crate) fn takes(&mut self, class: usize, now: Time, script: &Script) -> bool {
        let Some(wanted) = &self.wanted else {
            return false;
        };
        let [_, bytes] = script.bytes();
        let takes = self.taken[class] < wanted.flows
            && now >= wanted.after
            && bytes >= wanted.min_response.0;
        self.taken[class] += u32::from(takes);
        takes
    }

    pub(crate) fn follow(&mut self, slot: u32) {
        let next_row = Time::ZERO;
        self.followed.push(Followed { slot, next_row });
    }

    pub(crate) fn forget(&mut self, slot: u32) {
        self.followed.retain(|followed| followed.slot != slot);
    }

    /// Whether this connection gets a row now.
    fn is_due(&mut self, slot: u32, now: Time) -> bool {
        let period = self
            .wanted
            .as_ref()
            .map_or(Time::NEVER, |wanted| wanted.period);
        let mut followed = self.followed.iter_mut();
        match followed.find(|followed| followed.slot == slot) {
            Some(followed) if followed.next_row <= now => {
                followed.next_row = now + period;
                true
            }
            _ => false,
        }
    }
}

impl<A: EventQueue> World<A> {
    /// Something has happened at this end of a connection that is followed.
    #[cold]
    pub(crate) fn trace(&mut self, index: u32, side: Role) {
        if side == Role::Client || !self.tracer.is_due(index, self.now) {
            return;
        }
        if let Some(connection) = &self.slots[index as usize].connection {
            let overrides = connection.overrides.as_deref();
            let profile = limits::profile(&self.classes, connection.class, overrides, side);
            self.recorder.trace(&TraceRow {
                flow: self.network.routes[index as usize].flow(),
                class: usize::from(connection.class),
                time: self.now,
                probe: connection.ends[side as usize].probe(profile),
            });
        }
    }
}

/// The state of a connection's sender.
#[derive(Clone, Copy, Debug)]
pub(crate) struct TraceRow {
    pub(crate) flow: u64,
    pub(crate) class: usize,
    pub(crate) time: Time,
    pub(crate) probe: Probe,
}

/// The table `flow_trace.parquet`.
pub(crate) struct Traces {
    file: Table,
    classes: Vec<String>,
    rows: usize,
    flow: UInt64Builder,
    class: StringDictionaryBuilder<UInt8Type>,
    time: Float64Builder,
    cwnd: UInt64Builder,
    ssthresh: UInt64Builder,
    in_flight: UInt64Builder,
    rtt: Float64Builder,
    rto: Float64Builder,
    state: StringDictionaryBuilder<UInt8Type>,
    queueing_delay: Float64Builder,
    law_segments: Float64Builder,
}

impl Traces {
    pub(crate) fn new(path: &Path, classes: &[String]) -> Result<Self, RunError> {
        let optional = |name| Field::new(name, DataType::Float64, true);
        let fields = vec![
            column("flow", &DataType::UInt64),
            word("class"),
            column("time_s", &DataType::Float64),
            column("cwnd_bytes", &DataType::UInt64),
            column("ssthresh_bytes", &DataType::UInt64),
            column("in_flight_bytes", &DataType::UInt64),
            optional("rtt_s"),
            column("rto_s", &DataType::Float64),
            word("state"),
            optional("queueing_delay_s"),
            optional("law_segments"),
        ];
        Ok(Self {
            file: Table::create(path, fields)?,
            classes: classes.to_vec(),
            rows: 0,
            flow: UInt64Builder::new(),
            class: StringDictionaryBuilder::new(),
            time: Float64Builder::new(),
            cwnd: UInt64Builder::new(),
            ssthresh: UInt64Builder::new(),
            in_flight: UInt64Builder::new(),
            rtt: Float64Builder::new(),
            rto: Float64Builder::new(),
            state: StringDictionaryBuilder::new(),
            queueing_delay: Float64Builder::new(),
            law_segments: Float64Builder::new(),
        })
    }

    pub(crate) fn add(&mut self, row: &TraceRow) -> Result<(), RunError> {
        let probe = &row.probe;
        let seconds = |time: Option<Time>| time.map(Time::as_secs_f64);
        self.flow.append_value(row.flow);
        self.class.append_value(&self.classes[row.class]);
        self.time.append_value(row.time.as_secs_f64());
        self.cwnd.append_value(probe.cwnd);
        self.ssthresh.append_value(probe.ssthresh);
        self.in_flight.append_value(probe.in_flight);
        self.rtt.append_option(seconds(probe.round_trip));
        self.rto.append_value(probe.timeout.as_secs_f64());
        self.state.append_value(match probe.recovery_state {
            RecoveryState::Open => "open",
            RecoveryState::Recovery => "fast-recovery",
            RecoveryState::Loss => "go-back",
        });
        self.queueing_delay
            .append_option(seconds(probe.control.queueing_delay));
        self.law_segments.append_option(probe.control.segments);
        self.rows += 1;
        if self.rows == GROUP {
            self.write()
        } else {
            Ok(())
        }
    }

    fn write(&mut self) -> Result<(), RunError> {
        self.rows = 0;
        self.file.write(vec![
            Arc::new(self.flow.finish()),
            Arc::new(self.class.finish()),
            Arc::new(self.time.finish()),
            Arc::new(self.cwnd.finish()),
            Arc::new(self.ssthresh.finish()),
            Arc::new(self.in_flight.finish()),
            Arc::new(self.rtt.finish()),
            Arc::new(self.rto.finish()),
            Arc::new(self.state.finish()),
            Arc::new(self.queueing_delay.finish()),
            Arc::new(self.law_segments.finish()),
        ])
    }

    pub(crate) fn close(mut self) -> Result<(), RunError> {
        self.write()?;
        self.file.close()
    }
}
