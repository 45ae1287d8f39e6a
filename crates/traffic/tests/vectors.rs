//! Connection vectors: both text formats, and files that are broken.

use aqmlab_net::{Role, Time};
use aqmlab_traffic::GeneralTcp;
use aqmlab_traffic::general_tcp::Generator;
use aqmlab_traffic::vector::{
    Adu, Body, ConnectionVector, MAX_ADUS, MAX_BYTES, MAX_LINE, MAX_TIME, VectorReader,
    write_alternate, write_original,
};
use proptest::prelude::*;

const ORIGINAL: &str = include_str!("../data/tmix/synthetic-orig.cvec");
const ALTERNATE: &str = include_str!("../data/tmix/synthetic-alt.cvec");

fn read(text: &str) -> Vec<ConnectionVector> {
    VectorReader::new(text.as_bytes())
        .collect::<Result<_, _>>()
        .unwrap()
}

fn error(text: impl AsRef<[u8]>) -> String {
    let mut reader = VectorReader::new(text.as_ref());
    let error = reader
        .by_ref()
        .find_map(Result::err)
        .expect("it must be refused");
    assert!(reader.next().is_none(), "it ends at the first error");
    error.to_string()
}

const fn adu(bytes: u64, micros: u64) -> Adu {
    Adu {
        bytes,
        pause: Time::from_micros(micros),
    }
}

#[test]
fn the_two_formats_of_a_file_read_the_same() {
    let vectors = read(ORIGINAL);
    assert_eq!(vectors, read(ALTERNATE));
    assert_eq!(vectors.len(), 160);
    let concurrent = |v: &&ConnectionVector| matches!(v.body, Body::Concurrent(_));
    assert_eq!(vectors.iter().filter(concurrent).count(), 8);
    let acceptor_first = |v: &&ConnectionVector| matches!(&v.body, Body::Sequential(adus) if adus[0].0 == Role::Server);
    assert_eq!(vectors.iter().filter(acceptor_first).count(), 9);
    assert!(vectors.iter().all(|v| v.segments[0].is_some()));
    assert!(vectors.iter().any(|v| v.segments == [Some(496); 2]));
}

#[test]
fn a_vector_is_read_field_by_field() {
    let vectors = read(
        "# a comment\n\nSEQ 12424 2 100 5000\nw 17520 0\nm 1460 536\nr 21828\nl 0.014358 0\n\
         > 1342\nt 4941\n< 428\nt 0\n< 429\nt 130700\n> 0\n\
         CONC 12424 1 2 7 8\nc< 5\nc> 6\nt> 9\nt< 10\nc< 7\n",
    );
    assert_eq!(
        vectors[0],
        ConnectionVector {
            start: Time::from_micros(12_424),
            id: 5000,
            body: Body::Sequential(vec![
                (Role::Client, adu(1342, 4941)),
                (Role::Server, adu(428, 1)),
                (Role::Server, adu(429, 130_700)),
                (Role::Client, adu(0, 1_000_000)),
            ]),
            windows: [Some(17_520), None],
            segments: [Some(1460), Some(536)],
            rtt: Some(Time::from_micros(21_828)),
            loss: Some([0.014358, 0.0]),
        }
    );
    assert_eq!(vectors[0].bytes(), [1342, 857]);
    assert_eq!(vectors[1].id, 8);
    assert_eq!(
        vectors[1].body,
        Body::Concurrent([vec![adu(6, 9)], vec![adu(5, 10), adu(7, 1_000_000)]])
    );
    assert_eq!(vectors[1].bytes(), [6, 12]);
}

#[test]
fn the_last_line_of_the_alternate_format_is_the_close() {
    let body = |lines: &str| read(&format!("S 0 1 1 1\n{lines}")).remove(0).body;
    let expected = |adus: &[(Role, Adu)]| Body::Sequential(adus.to_vec());
    let request = (Role::Client, adu(5, 7));
    assert_eq!(
        body("I 0 0 5\nA 0 7 6\nA 40 0 0\n"),
        expected(&[request, (Role::Server, adu(6, 40))])
    );
    assert_eq!(
        body("I 0 0 5\nA 0 7 6\n"),
        expected(&[request, (Role::Server, adu(6, 1_000_000))])
    );
    // The other side closes, as soon as it has waited.
    assert_eq!(
        body("I 0 0 5\nA 0 7 0\n"),
        expected(&[request, (Role::Server, adu(0, 1))])
    );
    // Inside a vector 0 bytes are an ADU without data.
    assert_eq!(
        body("I 0 0 5\nI 7 0 0\nI 8 0 9\n"),
        expected(&[
            request,
            (Role::Client, adu(0, 8)),
            (Role::Client, adu(9, 1_000_000))
        ])
    );
}

#[test]
fn what_is_broken_is_refused_with_its_line() {
    let cases: &[(&str, &str)] = &[
        ("", "line 1: the file ends without a connection vector"),
        (
            "# only\n\n",
            "line 2: the file ends without a connection vector",
        ),
        (
            "> 5\n",
            "line 1: found \"> 5\"; a vector begins with SEQ or CONC, or with S or C",
        ),
        (
            "SEQ 5 1 1 1\n> 1\nSEQ 4 1 1 1\n> 1\n",
            "line 3: found a start time of 4 after one of 5; vectors are in order of start time",
        ),
        (
            "SEQ 5 1 1\n",
            "line 1: found 3 fields behind \"SEQ\"; there must be 4",
        ),
        (
            "CONC 5 1 1 1\n",
            "line 1: found 4 fields behind \"CONC\"; there must be 5",
        ),
        (
            "SEQ -5 1 1 1\n",
            "line 1: found \"-5\", which is not a time in microseconds: a whole number",
        ),
        (
            "SEQ 5 1 1 1\nSEQ 6 1 1 1\n> 1\n",
            "line 1: found a vector without an ADU; it must have at least one",
        ),
        (
            "SEQ 5 1 1 1\n> 1\n\nCONC 5 1 1 1 1\n",
            "line 4: found a vector without an ADU; it must have at least one",
        ),
        (
            "SEQ 5 1 1 1\n> 1\n< 1\n",
            "line 3: found an ADU right behind another; a time stands between two",
        ),
        (
            "SEQ 5 1 1 1\n> 1\nt 1\nt 2\n",
            "line 4: found a time right behind another; an ADU stands between two",
        ),
        (
            "SEQ 5 1 1 1\nt 1\n",
            "line 2: found a time before the first ADU; it stands behind one",
        ),
        (
            "SEQ 5 1 1 1\n> 1\nw 1 1\n",
            "line 3: found \"w\" behind an ADU; attributes go first",
        ),
        (
            "SEQ 5 1 1 1\nr 1\nr 1\n",
            "line 3: found a second \"r\" line in one vector",
        ),
        (
            "SEQ 5 1 1 1\nl 0 1.5\n",
            "line 2: found a probability of \"1.5\"; it must be a number from 0 to 1",
        ),
        (
            "SEQ 5 1 1 1\nc> 1\n",
            "line 2: found \"c>\"; a line of this vector begins with >, < or t, or with w, m, r or l",
        ),
        (
            "CONC 5 1 1 1 1\n> 1\n",
            "line 2: found \">\"; a line of this vector begins with c>, c<, t> or t<, or with w, m, r or l",
        ),
        (
            "SEQ 5 1 1 1\n> 1\nS 6 1 1 1\n",
            "line 3: found \"S\", a head line of the other format than those before",
        ),
        (
            "S 5 1 1 1\nI 0 1 4\n",
            "line 2: found a first ADU that waits; both its times are 0",
        ),
        (
            "S 5 1 1 1\nI 0 0 4\nA 3 0 4\n",
            "line 3: found times 3 and 0; an ADU waits after sending (the first) if its side sent \
             the one before, else after receiving (the second)",
        ),
        (
            "S 5 1 1 1\nI 0 0 4\nA 0 1 1",
            "line 3: the file ends in the middle of a line; it may have been cut off",
        ),
    ];
    for (text, message) in cases {
        assert_eq!(&error(text), message, "{text:?}");
    }
    assert_eq!(
        error(b"SEQ 5 1 1 1\n> \xff\n"),
        "line 2: found bytes that are not text"
    );
}

#[test]
fn nothing_grows_beyond_its_limit() {
    let line = format!("SEQ 5 1 1 1\n> 1\n{}\n", "9".repeat(MAX_LINE));
    assert_eq!(
        error(line),
        "line 3: found \"9999999999999999999999999999999999999999\"; a line of this vector begins \
         with >, < or t, or with w, m, r or l"
    );
    let line = format!("SEQ 5 1 1 1\n> 1\n{}\n", "9".repeat(MAX_LINE + 1));
    assert_eq!(
        error(line),
        "line 3: found more than 65536 bytes; no line may be longer"
    );
    // Not a byte more than the longest line is read of an endless one.
    let endless = std::io::Read::chain(&b"S 5 1 1 1\n"[..], std::io::repeat(b' '));
    let mut reader = VectorReader::new(std::io::BufReader::new(endless));
    assert_eq!(reader.next().unwrap().unwrap_err().line, 2);

    let time = MAX_TIME.as_nanos() / 1000;
    assert_eq!(
        read(&format!("SEQ {time} 1 1 1\n> {MAX_BYTES}\n"))[0].start,
        MAX_TIME
    );
    assert_eq!(
        error(format!("SEQ {} 1 1 1\n", time + 1)),
        format!(
            "line 1: found a time in microseconds of {}; it must not exceed {time}",
            time + 1
        )
    );
    assert_eq!(
        error(format!("SEQ 0 1 1 1\n> {}\n", MAX_BYTES + 1)),
        format!(
            "line 2: found a size in bytes of {}; it must not exceed {MAX_BYTES}",
            MAX_BYTES + 1
        )
    );
    let many = |adus| format!("S 0 1 1 1\nI 0 0 1\n{}", "I 1 0 1\n".repeat(adus - 1));
    assert_eq!(read(&many(MAX_ADUS)).len(), 1);
    assert!(error(many(MAX_ADUS + 1)).starts_with("line 1048578: found more than 1048576 ADUs"));
}

fn any_adu() -> impl Strategy<Value = Adu> {
    let bytes = prop_oneof![0..3u64, 0..=MAX_BYTES];
    let micros = prop_oneof![1..3u64, 1..=MAX_TIME.as_nanos() / 1000];
    (bytes, micros).prop_map(|(bytes, micros)| adu(bytes, micros))
}

fn any_body() -> impl Strategy<Value = Body> {
    let party = prop_oneof![Just(Role::Client), Just(Role::Server)];
    let side = || prop::collection::vec(any_adu(), 0..5);
    prop_oneof![
        prop::collection::vec((party, any_adu()), 1..9).prop_map(Body::Sequential),
        [side(), side()]
            .prop_filter("some ADU", |[initiator, acceptor]| {
                !initiator.is_empty() || !acceptor.is_empty()
            })
            .prop_map(Body::Concurrent),
    ]
}

fn any_vector() -> impl Strategy<Value = ConnectionVector> {
    let known = || prop::option::of(1..=u32::MAX);
    (
        (0..=MAX_TIME.as_nanos() / 1000, any::<u64>(), any_body()),
        ([known(), known()], [known(), known()]),
        prop::option::of(1..1_000_000u64),
        prop::option::of([0.0..=1.0, 0.0..=1.0f64]),
    )
        .prop_map(
            |((start, id, body), (windows, segments), rtt, loss)| ConnectionVector {
                start: Time::from_micros(start),
                id,
                body,
                windows,
                segments,
                rtt: rtt.map(Time::from_micros),
                loss,
            },
        )
}

proptest! {
    #[test]
    fn what_is_written_is_read_again(
        mut vectors in prop::collection::vec(any_vector(), 1..6),
    ) {
        vectors.sort_by_key(|vector| vector.start);
        let (mut original, mut alternate) = (Vec::new(), Vec::new());
        for vector in &vectors {
            write_original(&mut original, vector).unwrap();
            write_alternate(&mut alternate, vector).unwrap();
        }
        prop_assert_eq!(&read(std::str::from_utf8(&original).unwrap()), &vectors);
        prop_assert_eq!(&read(std::str::from_utf8(&alternate).unwrap()), &vectors);
    }

    #[test]
    fn no_input_panics(lines in prop::collection::vec(
        "(SEQ|CONC|S|C|w|m|r|l|t|>|<|c>|c<|t>|t<|I|A|#)( [0-9]{1,20}){0,5}( -1| x)?", 0..30,
    )) {
        let text = lines.join("\n");
        for vector in VectorReader::new(text.as_bytes()) {
            prop_assert!(vector.is_err() || vector.unwrap().bytes()[0] < u64::MAX / 2);
        }
    }

    #[test]
    fn a_file_that_is_cut_off_is_refused_or_ends_with_a_line(at in 0..ALTERNATE.len()) {
        let outcome: Result<Vec<_>, _> = VectorReader::new(&ALTERNATE.as_bytes()[..at]).collect();
        prop_assert!(outcome.is_err() || ALTERNATE.as_bytes()[at - 1] == b'\n');
    }
}

/// Vectors of the general mix, with these parameters.
fn general(parameters: &str, number: usize) -> Vec<ConnectionVector> {
    let params: GeneralTcp = toml::from_str(parameters).unwrap();
    let mut generator = Generator::new(&params, 100.0, 1, "mix");
    (0..number).map(|_| generator.generate()).collect()
}

/// The share of vectors with a property must be `expected`, within five standard errors.
fn assert_share(
    vectors: &[ConnectionVector],
    expected: f64,
    has: impl Fn(&ConnectionVector) -> bool,
) {
    let n = vectors.len() as f64;
    let share = vectors.iter().filter(|vector| has(vector)).count() as f64 / n;
    let bound = 5.0 * (expected * (1.0 - expected) / n).sqrt();
    assert!(
        (share - expected).abs() < bound,
        "found {share}, expected {expected}"
    );
}

#[test]
fn the_general_mix_has_its_shares_arrivals_and_tails() {
    let vectors = general("", 20_000);
    let last = vectors.last().unwrap().start.as_secs_f64();
    // Poisson: the time of arrival n has a standard deviation of sqrt(n) mean gaps.
    assert!((last - 200.0).abs() < 5.0 * 1.42, "{last}");
    assert_share(&vectors, 0.16 * 0.4, |vector| {
        matches!(vector.body, Body::Concurrent(_))
    });
    // Mail, news and half of the files.
    assert_share(
        &vectors,
        0.1 + 0.04 + 0.03,
        |vector| matches!(&vector.body, Body::Sequential(adus) if adus[0].0 == Role::Server),
    );
    let median = Time::from_millis(50);
    assert_share(&vectors, 0.5, |vector| vector.rtt < Some(median));

    let only = "web = 0.0\nmail = 0.0\nnews = 0.0\nchat = 0.0\npeer_to_peer = 0.0";
    let files = general(only, 5_000);
    let tail = |x: f64| x.powf(-1.2);
    let expected = (tail(1e6) - tail(1e8)) / (tail(250e3) - tail(1e8));
    assert_share(&files, expected, |vector| {
        vector.bytes().iter().sum::<u64>() > 1_000_000
    });
    assert!(
        files
            .iter()
            .all(|v| v.bytes().contains(&0) && v.bytes() != [0, 0])
    );
    assert_eq!(
        files,
        general(only, 5_000),
        "the same seed, the same vectors"
    );
}
