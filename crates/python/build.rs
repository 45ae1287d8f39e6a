//! Gives the engine a fingerprint: a hash of the source that decides what a run's results are.
//! Results of an engine that has changed are not taken for those of the present one, even between
//! two versions.

use std::path::{Path, PathBuf};
use std::{env, fs, io};

/// The crates that compute; bindings do not.
const ROOMS: [&str; 6] = ["net", "aqm", "tcp", "traffic", "scenario", "sim"];

/// What a crate is made of, apart from its tests.
const PARTS: [&str; 4] = ["Cargo.toml", "src", "profiles", "data"];

fn main() -> io::Result<()> {
    let here = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").expect("set by cargo"));
    let crates = here.parent().expect("stands among the other crates");
    let mut files = Vec::new();
    for room in ROOMS {
        for part in PARTS {
            let path = crates.join(room).join(part);
            if path.exists() {
                println!("cargo::rerun-if-changed={}", path.display());
                collect(&path, &mut files)?;
            }
        }
    }
    files.sort();
    let mut hash = Fnv1a::default();
    for file in files {
        let name = file.strip_prefix(crates).expect("was found there");
        hash.update(name.to_string_lossy().as_bytes());
        hash.update(&fs::read(&file)?);
    }
    println!("cargo::rustc-env=AQMLAB_FINGERPRINT={:016x}", hash.0);
    Ok(())
}

fn collect(path: &Path, files: &mut Vec<PathBuf>) -> io::Result<()> {
    if path.is_file() {
        files.push(path.to_owned());
        return Ok(());
    }
    for entry in fs::read_dir(path)? {
        collect(&entry?.path(), files)?;
    }
    Ok(())
}

/// The hash of G. Fowler, L. C. Noll, K.-P. Vo (RFC 9923) with 64 bits: short, and the same
/// everywhere.
struct Fnv1a(u64);

impl Default for Fnv1a {
    fn default() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }
}

impl Fnv1a {
    fn update(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.0 = (self.0 ^ u64::from(*byte)).wrapping_mul(0x0100_0000_01b3);
        }
    }
}
