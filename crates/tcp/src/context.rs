//! What every step of an end point is given.

use aqmlab_net::Time;

use crate::profile::Profile;
use crate::rto::HostClock;

/// What an end point needs to know besides its own state.
#[derive(Clone, Copy, Debug)]
pub struct Context<'a> {
    /// The current time.
    pub now: Time,
    /// The stack.
    pub profile: &'a Profile,
    /// The timers of the host that it runs on.
    pub host: &'a HostClock,
}
