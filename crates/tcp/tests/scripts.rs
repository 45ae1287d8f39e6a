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
        ("0.1 cwnd many", "expected a number"),
        ("set mss = \"500 bytes\"", "found mss behind connect"),
        ("profile linux", "found profile behind connect"),
        ("0.1 listen", "found a second listen"),
    ] {
        let failure = script::play(&format!("{open}{wrong}\n")).expect_err(wrong);
        let Fault::Unreadable(found) = &failure.fault else {
            panic!("{wrong}: {failure}");
        };
        assert!(found.contains(message), "{wrong}: {found}");
        assert!(!found.contains('\n'), "{found}");
    }
    for (text, message) in [
        ("# nothing\n", "found no line"),
        ("profile rfc\n0.1 close\n", "no end point"),
        ("profile rfc\nset mss = 5\nopen 0.1\n", "mss"),
        ("profile rfc\n0.1 < A 1 ack 1\n", "no end point"),
        ("profile none\nopen 0.1\n", "none"),
    ] {
        let failure = script::play(text).expect_err(text);
        assert!(matches!(failure.fault, Fault::Unreadable(_)), "{failure}");
        assert!(failure.to_string().contains(message), "{text}: {failure}");
    }
}

/// Draws numbers, the same in every run.
struct Draws(u64);

impl Draws {
    fn below(&mut self, end: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        (self.0 % end.max(1) as u64) as usize
    }

    /// Cuts, replaces, doubles or garbles a line.
    fn garble(&mut self, lines: &mut Vec<String>, other: &str) {
        let place = self.below(lines.len());
        let mut letters: Vec<char> = lines[place].chars().collect();
        let at = self.below(letters.len());
        match self.below(5) {
            0 => letters.truncate(at),
            1 => letters = other.chars().collect(),
            2 => lines.insert(place, lines[place].clone()),
            3 if at < letters.len() => letters[at] = char::from(self.below(256) as u8),
            _ => {
                if let Some(at) = letters.iter().position(char::is_ascii_digit) {
                    let power = self.below(11) as u32;
                    let number = self.below(10_usize.pow(power)).to_string();
                    letters.splice(at..=at, number.chars());
                }
            }
        }
        lines[place] = letters.into_iter().collect();
    }
}

#[test]
fn no_text_breaks_the_interpreter() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/scripts");
    let mut paths: Vec<_> = fs::read_dir(folder)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .collect();
    paths.sort();
    let texts: Vec<_> = paths
        .iter()
        .map(|path| fs::read_to_string(path).unwrap())
        .collect();
    let mut draws = Draws(0x9e37_79b9);
    let mut outcomes = [0_u32; 3];
    for _ in 0..2000 {
        let text = &texts[draws.below(texts.len())];
        let mut lines: Vec<_> = text.lines().map(str::to_owned).collect();
        for _ in 0..=draws.below(3) {
            let others: Vec<_> = texts[draws.below(texts.len())].lines().collect();
            let other = others[draws.below(others.len())];
            draws.garble(&mut lines, other);
        }
        let text = lines.join("\n");
        let outcome = std::panic::catch_unwind(|| script::play(&text).map_err(|it| it.fault));
        match outcome.unwrap_or_else(|_| panic!("this script breaks the interpreter:\n{text}")) {
            Ok(()) => outcomes[0] += 1,
            Err(Fault::Differs { .. }) => outcomes[1] += 1,
            Err(Fault::Unreadable(_)) => outcomes[2] += 1,
        }
    }
    assert!(outcomes.iter().all(|&count| count > 100), "{outcomes:?}");
}
