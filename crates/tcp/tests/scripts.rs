//! Packet scripts: what one end point sends when it is sent what a script says. Every file of
//! `tests/scripts` is a test; its README.md explains the language.

use crate::script;

use std::fs;
use std::path::Path;

#[test]
fn every_script_holds() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| {
            path.extension()
                .is_some_and(|extension| extension == "script")
        })
        .collect();
    paths.sort();
    let failures: Vec<_> = paths
        .iter()
        .filter_map(|path| {
            let text = fs::read_to_string(path).unwrap();
            let name = path.file_stem().unwrap().to_string_lossy();
            script::play(&text)
                .err()
                .map(|error| format!("{name}: {error}"))
        })
        .collect();
    assert!(failures.is_empty(), "\n{}", failures.join("\n"));
    assert!(paths.len() >= 80, "only {} scripts", paths.len());
}

#[test]
fn a_script_that_does_not_hold_is_found_out() {
    let open = "profile rfc\nopen 0.1\n";
    for (wrong, message) in [
        ("0.1 > A 1+100 ack 1", "nothing"),
        ("0.1 write 100\n0.1 > A 1+99 ack 1", "found A 1+100 ack 1"),
        ("0.1 write 100\n0.2 > A 1+100 ack 1", "at 100 ms"),
        ("0.1 write 100", "unexpected: 100 ms: A 1+100 ack 1"),
        ("0.1 cwnd 4", "cwnd is 3, not 4"),
        (
            "0.1 write 100\n0.1 > A 1+100 ack 1 ect",
            "found A 1+100 ack 1",
        ),
        ("0.1 jump", "unknown"),
        ("0.05 write 1", "goes back"),
    ] {
        let error = script::play(&format!("{open}{wrong}\n")).expect_err(wrong);
        assert!(error.contains(message), "{wrong}: {error}");
    }
}
