//! Packet scripts: what one end point sends when it is sent what a script says. Every file of
//! `tests/scripts` is a test; its README.md explains the language.

use std::fs;
use std::path::Path;

use aqmlab_tcp::script::{self, Fault};

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
    for (wrong, line, expected, found) in [
        (
            "0.1 > A 1+100 ack 1",
            3,
            "A 1+100 ack 1 at 100 ms",
            "nothing",
        ),
        (
            "0.1 write 100\n0.1 > A 1+99 ack 1",
            4,
            "A 1+99 ack 1 at 100 ms",
            "A 1+100 ack 1 at 100 ms",
        ),
        (
            "0.1 write 100\n0.2 > A 1+100 ack 1",
            4,
            "A 1+100 ack 1 at 200 ms",
            "A 1+100 ack 1 at 100 ms",
        ),
        ("0.1 write 100", 0, "nothing", "A 1+100 ack 1 at 100 ms"),
        ("0.1 cwnd 4", 3, "cwnd 4", "cwnd 3"),
        (
            "0.1 write 100\n0.1 > A 1+100 ack 1 ect",
            4,
            "A 1+100 ack 1 ect at 100 ms",
            "A 1+100 ack 1 at 100 ms",
        ),
    ] {
        let failure = script::play(&format!("{open}{wrong}\n")).expect_err(wrong);
        let (expected, found) = (expected.to_owned(), found.to_owned());
        assert_eq!(failure.fault, Fault::Differs { expected, found });
        assert_eq!(failure.line.map_or(0, |(number, _)| number), line);
    }
}

#[test]
fn what_cannot_be_read_is_said() {
    let open = "profile rfc\nopen 0.1\n";
    for (wrong, message) in [
        ("0.1 jump", "unknown word jump"),
        ("0.05 write 1", "time goes back"),
        ("1e300 quiet", "expected 0 to 1000000 seconds"),
        ("nan quiet", "expected 0 to 1000000 seconds"),
        ("0.1 < A 1 ack 99999999999", "below 4294967296"),
        ("0.1 < A 1 ack 1 accecn 1/2/3/4", "found 4 counters"),
        ("0.1 < A 1 ack 1 accecn 1/99999999", "up to 16777215"),
        ("0.1 < A 1 ack 1 x4000000000", "at most x10000"),
        ("0.1 < A 1 ack", "ack lacks its value"),
        ("0.1 write 4000000000", "less than 2 GiB"),
        ("set mss = ", "expected KEY = VALUE"),
        ("set mss = 5\n0.1 quiet\n0.1 cwnd 1", "mss"),
        ("0.1 cwnd many", "expected a number"),
    ] {
        let failure = script::play(&format!("{open}{wrong}\n")).expect_err(wrong);
        let Fault::Unreadable(found) = &failure.fault else {
            panic!("{wrong}: {failure}");
        };
        assert!(found.contains(message), "{wrong}: {found}");
        assert!(!found.contains('\n'), "{found}");
    }
    assert!(script::play("# nothing\n").is_err());
}
