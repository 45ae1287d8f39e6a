//! One direction of a link, with its queue, for C and whatever calls C.
//!
//! [`abi`] has the functions and records that cross the border; `include/aqmlab-link.h` is generated
//! from it. Behind them is a [`Port`](aqmlab_link::Port) that stores its packets.

pub mod abi;
mod direction;
