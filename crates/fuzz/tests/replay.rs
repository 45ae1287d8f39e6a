//! What fuzzing kept, once more: inputs that reach much of the code, and those that once failed.

use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_fuzz::TARGETS;

fn folder(kind: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../../fuzz")
        .join(kind)
}

/// The names of what is in a folder, in order.
fn names(folder: &Path) -> Vec<String> {
    let Ok(entries) = fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    names
}

#[test]
fn every_kept_input_passes() {
    for target in TARGETS {
        for kind in ["corpus", "regressions"] {
            let folder = folder(kind).join(target.name);
            for name in names(&folder) {
                let input = fs::read(folder.join(&name)).unwrap();
                let passed = std::panic::catch_unwind(|| (target.check)(&input));
                assert!(passed.is_ok(), "fuzz/{kind}/{}/{name} fails", target.name);
            }
        }
    }
}

#[test]
fn every_target_has_a_corpus_and_an_executable_and_every_corpus_a_target() {
    let targets: Vec<&str> = TARGETS.iter().map(|target| target.name).collect();
    for target in &targets {
        let kept = names(&folder("corpus").join(target)).len();
        assert!(kept > 0, "fuzz/corpus/{target} is empty");
        let executable = folder("src/bin").join(format!("{target}.rs"));
        assert!(executable.is_file(), "{} is missing", executable.display());
    }
    for kind in ["corpus", "regressions"] {
        for name in names(&folder(kind)) {
            assert!(
                targets.contains(&name.as_str()),
                "fuzz/{kind}/{name}: no target"
            );
        }
    }
}

#[test]
fn nothing_is_too_short() {
    for target in TARGETS {
        for length in 0..40 {
            (target.check)(&vec![0; length]);
            (target.check)(&vec![0xff; length]);
        }
    }
}
