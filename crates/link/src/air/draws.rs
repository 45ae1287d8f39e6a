//! Random numbers of the air.

use aqmlab_net::RandomStream;

/// Where random numbers come from.
#[derive(Debug)]
pub(super) enum Draws {
    Stream(RandomStream),
    /// These, one after another.
    #[cfg(test)]
    Script(std::collections::VecDeque<f64>),
}

impl Draws {
    /// Uniform on [0, 1).
    pub(super) fn uniform(&mut self) -> f64 {
        match self {
            Self::Stream(stream) => stream.uniform(),
            #[cfg(test)]
            Self::Script(numbers) => numbers.pop_front().expect("the script has a number"),
        }
    }

    /// One of 0, 1, ..., n - 1.
    pub(super) fn below(&mut self, n: u32) -> u32 {
        (self.uniform() * f64::from(n)) as u32
    }
}
