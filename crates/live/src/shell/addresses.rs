//! The addresses of a program and of the far end.

/// The address of the far end, which stands for the host.
pub(super) const FAR: &str = "100.64.0.1";
/// Its name.
pub(super) const HOST_NAME: &str = "host.aqmlab";
/// The address of the program.
pub(super) const NEAR: &str = "100.64.0.2";
