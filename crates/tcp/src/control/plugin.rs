//! Congestion controls that come from outside ([`aqmlab_plugin`]). What every control needs is done
//! here: round trips are measured, and a callback that is missing is Reno's.

use std::borrow::Cow;

use aqmlab_declare::tagged::{self, Located};
use aqmlab_declare::{About, Declared, Parameters, Problem, Refused};
use aqmlab_net::Time;
use aqmlab_plugin::abi::{AQMLAB_ECHO, AQMLAB_LOSS, AQMLAB_TIMEOUT, AqmlabAck};
use aqmlab_plugin::failure::{self, Failure};
use aqmlab_plugin::{Callback, Callbacks, Instance, Makers, PluginKind, Settings};
use schemars::{JsonSchema, Schema, SchemaGenerator};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

use super::congestion_control::{
    Ack, Cause, Congestion, CongestionControl, ControlParameters, Decrease,
};
use super::history::History;
use super::window::Window;
use crate::profile::{DecreaseBase, Profile};

/// Parameters of a plug-in: those that it declares.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Params {
    settings: Settings,
}

impl<'de> Deserialize<'de> for Params {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let table = tagged::table(deserializer)?;
        let settings = Settings::read(PluginKind::Control, table, &[]).map_err(Located::pass)?;
        Ok(Self { settings })
    }
}

impl Serialize for Params {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        self.settings.write(&mut map)?;
        map.end()
    }
}

impl JsonSchema for Params {
    fn schema_name() -> Cow<'static, str> {
        "PluginControl".into()
    }

    fn inline_schema() -> bool {
        true
    }

    #[inline]
    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        Settings::schema([])
    }
}

impl Parameters for Params {
    const ABOUT: About = About {
        title: "A congestion control of your own",
        paper: "Your own: a Python class, a class compiled with numba, or a shared object with the \
                C ABI of aqmlab.h",
        purpose: "Runs a congestion control from a file outside aqmlab (--plugin FILE).",
        departures: &[],
        memory: "the send time of each segment in flight and the state of the plug-in",
    };
}

/// What a plug-in declares has bounds of its own.
impl Declared for Params {
    const CHANGEABLE: &'static [&'static str] = &[];

    fn check_each(&self) -> Result<(), Problem> {
        Ok(())
    }

    fn refused() -> Vec<Refused> {
        Vec::new()
    }
}

impl ControlParameters for Params {
    type Control = PluginControl;
}

impl Params {
    /// What a connection begins with.
    pub(crate) fn control(&self) -> PluginControl {
        let Makers::Control(maker) = &self.settings.plugin.makers else {
            unreachable!("it was found among congestion controls");
        };
        let callbacks = self.settings.plugin.callbacks;
        let mut running = Running {
            settings: self.settings,
            instance: maker.make(self.settings.values),
            callbacks,
            event: AqmlabAck::default(),
        };
        running.tell(Callback::Start);
        PluginControl {
            history: History::default(),
            running: Some(running),
        }
    }
}

/// A plug-in at work for a connection.
#[derive(Clone, Debug, Default)]
pub(crate) struct PluginControl {
    history: History,
    /// Nothing only in a connection that was never made.
    running: Option<Running>,
}

#[derive(Clone, Debug)]
struct Running {
    settings: Settings,
    instance: Box<dyn Instance<AqmlabAck>>,
    callbacks: Callbacks,
    event: AqmlabAck,
}

const fn nanos(time: Time) -> i64 {
    time.as_nanos() as i64
}

impl Running {
    /// Tells the instance of the event, if it listens; whether it does.
    #[inline]
    fn tell(&mut self, callback: Callback) -> bool {
        let listens = self.callbacks.has(callback);
        if listens {
            self.instance.call(callback, &mut self.event);
        }
        listens
    }

    fn see_window(&mut self, window: &Window) {
        (self.event.cwnd, self.event.ssthresh) = (window.cwnd, window.ssthresh);
    }

    fn see_ack(&mut self, ack: &Ack<'_>, rtt: Option<Time>, segments: usize) {
        let event = &mut self.event;
        event.now = nanos(ack.now);
        event.acked = ack.acked as i64;
        event.una = ack.una as i64;
        event.max = ack.max as i64;
        event.rtt = rtt.map_or(-1, nanos);
        event.segments = segments as i64;
        event.mss = ack.profile.mss.0 as i64;
    }

    /// The window that it has set; none if it is no window.
    fn window(&self, callback: Callback) -> Option<(f64, f64)> {
        let AqmlabAck {
            cwnd,
            ssthresh,
            mss,
            ..
        } = self.event;
        if cwnd.is_finite() && ssthresh >= 0.0 {
            // A sender never waits for ever: a segment can be in flight.
            let cwnd = cwnd.max(mss as f64);
            return Some((cwnd, ssthresh));
        }
        let problem =
            format!("set cwnd to {cwnd} and ssthresh to {ssthresh}; expected numbers of bytes");
        failure::set(Failure {
            plugin: self.settings.plugin.name,
            callback: callback.name(),
            error: problem.into(),
        });
        None
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(problem) = self.settings.overwritten(&*self.instance) {
            failure::set(Failure {
                plugin: self.settings.plugin.name,
                callback: "its parameters",
                error: problem.into(),
            });
        }
    }
}

impl PluginControl {
    /// The round trip that an ACK measures.
    fn measure(&mut self, ack: &Ack<'_>) -> Option<Time> {
        let sent = self.history.acknowledge_unrepaired(ack.una)?;
        Some(ack.now - sent.at)
    }
}

impl CongestionControl for PluginControl {
    type Params = Params;

    fn on_send(&mut self, seq: u64, end: u64, resent: bool, now: Time) {
        if let Some(running) = &mut self.running
            && running.callbacks.has(Callback::OnSend)
        {
            let event = &mut running.event;
            event.now = nanos(now);
            event.una = seq as i64;
            event.max = end as i64;
            event.resent = i64::from(resent);
            event.segments = self.history.len() as i64;
            running.tell(Callback::OnSend);
        }
        self.history.on_send(seq, end, resent, now);
    }

    fn on_ack(&mut self, _: &Params, window: &mut Window, ack: &Ack<'_>) {
        let rtt = self.measure(ack);
        let mut reno = *window;
        reno.grow_as_reno(1.0, ack);
        let Some(running) = &mut self.running else {
            return;
        };
        running.see_ack(ack, rtt, self.history.len());
        running.see_window(window);
        running.event.slow_start = i64::from(window.in_slow_start(ack.profile));
        running.event.reno = reno.cwnd;
        if !running.tell(Callback::OnAck) {
            *window = reno;
        } else if let Some(set) = running.window(Callback::OnAck) {
            (window.cwnd, window.ssthresh) = set;
        }
    }

    fn on_recovery_ack(&mut self, ack: &Ack<'_>) {
        let rtt = self.measure(ack);
        if let Some(running) = &mut self.running {
            running.see_ack(ack, rtt, self.history.len());
            running.tell(Callback::OnRecoveryAck);
        }
    }

    fn on_congestion(
        &mut self,
        _: &Params,
        window: &Window,
        congestion: &Congestion<'_>,
    ) -> Decrease {
        let Some(running) = &mut self.running else {
            return Decrease::HALF;
        };
        // RFC 9438, section 4.6: flight_size, or cwnd, as implementations do.
        let base = match congestion.profile.multiplicative_decrease_base {
            DecreaseBase::FlightSize => congestion.flight,
            DecreaseBase::Cwnd | DecreaseBase::FractionalCwnd => congestion.window,
        } as f64;
        running.see_window(window);
        let event = &mut running.event;
        event.now = nanos(congestion.now);
        event.flight = congestion.flight as i64;
        event.mss = congestion.profile.mss.0 as i64;
        event.segments = self.history.len() as i64;
        event.base = base;
        event.ssthresh = base / 2.0;
        event.cause = match congestion.cause {
            Cause::Loss => AQMLAB_LOSS,
            Cause::Echo => AQMLAB_ECHO,
            Cause::Timeout => AQMLAB_TIMEOUT,
        };
        let callback = match congestion.cause {
            Cause::Timeout if running.callbacks.has(Callback::OnTimeout) => Callback::OnTimeout,
            _ => Callback::OnLoss,
        };
        match running.tell(callback) {
            true => running
                .window(callback)
                .map_or(Decrease::HALF, |set| Decrease::Bytes(set.1)),
            false => Decrease::HALF,
        }
    }

    fn on_undo(&mut self, _: &Params, window: &mut Window) {
        let Some(running) = &mut self.running else {
            return;
        };
        running.see_window(window);
        if running.tell(Callback::OnUndo)
            && let Some(set) = running.window(Callback::OnUndo)
        {
            (window.cwnd, window.ssthresh) = set;
        }
    }

    fn pacing_rate(&self, _: &Params, _: &Window, _: &Profile, _: Option<Time>) -> Option<f64> {
        let pacing = self
            .running
            .as_ref()
            .map_or(0.0, |running| running.event.pacing);
        (pacing.is_finite() && pacing > 0.0).then_some(pacing)
    }
}
