//! What stands for Wi-Fi where it is left out: nobody can make one.

use std::convert::Infallible;
use std::marker::PhantomData;

use aqmlab_aqm::Known;
use aqmlab_net::{Packet, Time};
use aqmlab_record::{AirTally, LinkStats, RunError};

use crate::wire::{Dropped, Served, Transmission, Way};

/// A shared medium that there is none of.
#[derive(Debug)]
pub struct Air<T>(Infallible, PhantomData<T>);

/// As for the medium itself.
#[allow(missing_docs)]
impl<T> Air<T> {
    pub fn take_in(
        &mut self,
        _: Time,
        _: (Packet, u16),
        _: T,
        _: (usize, Way),
        _: impl Known,
        _: &mut Vec<Dropped<T>>,
    ) {
        match self.0 {}
    }

    pub const fn next_departure(&self) -> Time {
        match self.0 {}
    }

    pub const fn depart(&mut self, _: Time, _: &mut Vec<Dropped<T>>) -> Option<(T, Transmission)> {
        match self.0 {}
    }

    pub const fn last_served(&self) -> Served {
        match self.0 {}
    }

    pub const fn transmission_time(&self, _: usize, _: u32, _: u8) -> Time {
        match self.0 {}
    }

    pub const fn catch_up(&mut self, _: Time) {
        match self.0 {}
    }

    pub const fn close(&mut self, _: Time) {
        match self.0 {}
    }

    pub const fn unseen_begins(&self, _: Time) -> u64 {
        match self.0 {}
    }

    pub const fn stats_mut(&mut self) -> [&mut LinkStats; 2] {
        match self.0 {}
    }

    pub fn into_stats(self) -> ([LinkStats; 2], Vec<[AirTally; 2]>) {
        match self.0 {}
    }

    pub const fn stored_packets(&self) -> u64 {
        match self.0 {}
    }

    pub const fn check_conservation(&self) -> Result<(), RunError> {
        match self.0 {}
    }
}
