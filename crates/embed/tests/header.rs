//! `aqmlab-link.h` is what cbindgen makes of `src/abi.rs` (`AQMLAB_RENEW=1` writes it anew), and a
//! program in C that uses it sees the link that Rust sees.

use std::path::{Path, PathBuf};
use std::process::Command;

const START: &str = "\
/* A link with its queue, for C: any of aqmlab's queues between two ends of your own, in whatever
   time you keep.

   Build the library with `cargo build --release -p aqmlab-embed` and link with `-laqmlab_embed`.
   crates/embed/tests/window.c is an example. Generated from crates/embed/src/abi.rs. */";

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_header_is_current() {
    let place = root().join("include/aqmlab-link.h");
    let config = cbindgen::Config {
        language: cbindgen::Language::C,
        header: Some(START.to_owned()),
        include_guard: Some("AQMLAB_LINK_H".to_owned()),
        sys_includes: vec!["stddef.h".to_owned(), "stdint.h".to_owned()],
        no_includes: true,
        usize_is_size_t: true,
        cpp_compat: true,
        documentation_style: cbindgen::DocumentationStyle::C,
        ..Default::default()
    };
    let made = cbindgen::Builder::new()
        .with_config(config)
        .with_src(root().join("src/abi.rs"))
        .generate()
        .expect("abi.rs can be said in C");
    let mut text = Vec::new();
    made.write(&mut text);
    let text = String::from_utf8(text).expect("a header is text");
    if std::env::var_os("AQMLAB_RENEW").is_some() {
        std::fs::write(&place, &text).expect("the header can be written");
    }
    let stands = std::fs::read_to_string(&place).unwrap_or_default();
    assert!(
        stands == text,
        "write it anew: AQMLAB_RENEW=1 cargo test -p aqmlab-embed"
    );
}

/// Where cargo has put the library for this test.
fn libraries() -> PathBuf {
    let own = std::env::current_exe().expect("this program has a file");
    own.parent().expect("it is in a folder").to_owned()
}

#[test]
fn a_program_in_c_is_behind_the_queue() {
    if Command::new("cc").arg("--version").output().is_err() {
        eprintln!("NO TEST OF THE C INTERFACE WAS RUN: there is no C compiler (cc)");
        return;
    }
    let (folder, library) = (std::env::temp_dir(), libraries());
    let program = folder.join(format!("aqmlab-window-{}", std::process::id()));
    let built = Command::new("cc")
        .args(["-std=c99", "-Wall", "-Wextra", "-Werror", "-O1"])
        .arg("-I")
        .arg(root().join("include"))
        .arg(root().join("tests/window.c"))
        .arg("-L")
        .arg(&library)
        .arg("-laqmlab_embed")
        .arg(format!("-Wl,-rpath,{}", library.display()))
        .arg("-o")
        .arg(&program)
        .output()
        .expect("cc is there");
    let said = String::from_utf8_lossy(&built.stderr);
    assert!(built.status.success(), "{said}");
    let answer = Command::new(&program).output();
    std::fs::remove_file(&program).expect("the program is ours");
    let answer = answer.expect("it can be run");
    let said = String::from_utf8_lossy(&answer.stderr);
    assert!(answer.status.success(), "{said}");
    let numbers: Vec<f64> = String::from_utf8_lossy(&answer.stdout)
        .split_whitespace()
        .map(|word| word.parse().expect("the program prints numbers"))
        .collect();
    let [acked, cuts, lost, longest_ms] = numbers[..] else {
        panic!("{numbers:?}");
    };
    // Ten seconds have room for 8333 packets. Marks keep the queue short, and nothing is lost.
    assert!(acked > 7900.0, "{acked}");
    assert!(cuts > 5.0, "{cuts}");
    assert!(lost == 0.0, "{lost}");
    assert!((5.0..80.0).contains(&longest_ms), "{longest_ms}");
}
