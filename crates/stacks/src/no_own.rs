//! What stands for the settings of our QUIC where it is left out: there are none.

use std::sync::Arc;

use aqmlab_declare::check::Problem;
use aqmlab_declare::parameters;
use aqmlab_quic::Config;

/// aqmlab's own QUIC, which this build does not have.
#[parameters]
pub struct Quic {}

/// There is none either.
#[derive(Debug)]
pub enum EarlyData {}

/// As for the settings themselves.
#[allow(missing_docs)]
impl Quic {
    pub const fn check(&self) -> Result<(), Problem> {
        Ok(())
    }

    pub const fn phases(&self) -> &'static [&'static str] {
        &[]
    }

    pub(crate) fn config(&self) -> Arc<Config> {
        unreachable!("no scenario has the transport quic")
    }
}
