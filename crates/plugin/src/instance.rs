//! An algorithm at work.

use std::fmt::Debug;

use crate::declared::Value;

/// The events of an instance: the names of the callbacks, in the order of the ABI's records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[allow(missing_docs, reason = "the ABI's records say what each is")]
pub enum Callback {
    Start,
    OnArrival,
    OnOverflow,
    OnDeparture,
    OnIdle,
    Tick,
    OnLink,
    OnChange,
    Enqueue,
    Dequeue,
    OnHead,
    OnAck,
    OnRecoveryAck,
    OnSend,
    OnLoss,
    OnTimeout,
    OnUndo,
}

impl Callback {
    /// How many there are.
    pub const COUNT: usize = Self::DISCIPLINE.len() + Self::CONTROL.len() - 1;

    /// Those of a queue discipline.
    pub const DISCIPLINE: &'static [Self] = &[
        Self::Start,
        Self::OnArrival,
        Self::OnOverflow,
        Self::OnDeparture,
        Self::OnIdle,
        Self::Tick,
        Self::OnLink,
        Self::OnChange,
        Self::Enqueue,
        Self::Dequeue,
        Self::OnHead,
    ];

    /// Those of a congestion control.
    pub const CONTROL: &'static [Self] = &[
        Self::Start,
        Self::OnAck,
        Self::OnRecoveryAck,
        Self::OnSend,
        Self::OnLoss,
        Self::OnTimeout,
        Self::OnUndo,
    ];

    /// Its name in every language.
    pub const fn name(self) -> &'static str {
        match self {
            Self::Start => "start",
            Self::OnArrival => "on_arrival",
            Self::OnOverflow => "on_overflow",
            Self::OnDeparture => "on_departure",
            Self::OnIdle => "on_idle",
            Self::Tick => "tick",
            Self::OnLink => "on_link",
            Self::OnChange => "on_change",
            Self::Enqueue => "enqueue",
            Self::Dequeue => "dequeue",
            Self::OnHead => "on_head",
            Self::OnAck => "on_ack",
            Self::OnRecoveryAck => "on_recovery_ack",
            Self::OnSend => "on_send",
            Self::OnLoss => "on_loss",
            Self::OnTimeout => "on_timeout",
            Self::OnUndo => "on_undo",
        }
    }
}

/// The callbacks that a plug-in has.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Callbacks(u32);

impl Callbacks {
    /// With one more.
    #[must_use]
    pub const fn with(self, callback: Callback) -> Self {
        Self(self.0 | 1 << callback as u8)
    }

    /// Whether it has this one.
    #[inline]
    pub const fn has(self, callback: Callback) -> bool {
        self.0 & 1 << callback as u8 != 0
    }

    /// Whether it has any of these.
    pub fn has_any(self, callbacks: &[Callback]) -> bool {
        callbacks.iter().any(|&callback| self.has(callback))
    }
}

/// What a callback in Python answers that returns nothing.
pub const NOTHING: i64 = i64::MIN;

/// An algorithm at work; `E` is the record of its events.
pub trait Instance<E>: Debug + Send + Sync {
    /// Tells it of an event. Only called for callbacks that the plug-in has. What goes wrong is a
    /// [`failure`](crate::failure); the answer is [`NOTHING`] then, and from then on.
    fn call(&mut self, callback: Callback, event: &mut E) -> i64;

    /// Sets its parameters, in the order of their declaration.
    fn set(&mut self, values: &[Value]);

    /// Appends its variables, in the order of their declaration.
    fn variables(&self, out: &mut Vec<f64>);

    /// Which parameter is another than it was set to, if one is: their values are the scenario's.
    fn overwritten(&self, values: &[Value]) -> Option<usize>;

    /// A copy in the same state.
    fn boxed_clone(&self) -> Box<dyn Instance<E>>;
}

impl<E> Clone for Box<dyn Instance<E>> {
    fn clone(&self) -> Self {
        self.boxed_clone()
    }
}

/// Makes instances.
pub trait Maker<E>: Debug + Send + Sync {
    /// An instance with these parameters, not started yet.
    fn make(&self, values: &[Value]) -> Box<dyn Instance<E>>;
}
