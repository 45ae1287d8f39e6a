//! The addresses of a program and of the far end.

use std::net::Ipv4Addr;

/// The address of the far end, which stands for the host.
pub(super) const FAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 1);
/// Its name.
pub(super) const HOST_NAME: &str = "host.aqmlab";
/// The address of the program.
pub(crate) const NEAR: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 2);
/// The address of the built-in services, whatever else the far end stands for.
pub(super) const TEST: Ipv4Addr = Ipv4Addr::new(100, 64, 0, 3);
/// Its name.
pub(super) const TEST_NAME: &str = "test.aqmlab";
