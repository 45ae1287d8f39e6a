//! The version of aqmlab.

/// The version of aqmlab, as Python packages state it (PEP 440): what Cargo calls `1.2.0-dev`, the
/// development of 1.2.0, is `1.2.0.dev0`.
pub fn version() -> String {
    of_cargo(env!("CARGO_PKG_VERSION"))
}

fn of_cargo(version: &str) -> String {
    version.replace("-dev", ".dev0")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_development_version_is_one_of_python() {
        assert_eq!(of_cargo("1.2.0"), "1.2.0");
        assert_eq!(of_cargo("1.2.0-dev"), "1.2.0.dev0");
        assert!(!version().contains('-'));
    }
}
