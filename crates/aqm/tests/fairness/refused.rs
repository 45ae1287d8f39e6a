//! Parameters that contradict each other.

use crate::fairness::read;

#[test]
fn contradictions_are_refused_with_the_field_and_the_remedy() {
    let dcn = "kind = 'dcn'\nq_ref = '24 packets'\nlimit = '240 packets'\n";
    let afd = "kind = 'afd'\nq_ref = '24 packets'\nlimit = '240 packets'\n";
    let rio = "kind = 'rio'\nlimit = '100 packets'\n";
    let rio_ps = "kind = 'rio-ps'\nlimit = '2400 packets'\n";
    let fred = "kind = 'fred'\nlimit = '100 packets'\n";
    let sfb = "kind = 'sfb'\nlimit = '100 packets'\n";
    let red_pd = "kind = 'red-pd'\nmin_th = '5 packets'\nmax_th = '15 packets'\n\
                  limit = '100 packets'\n";
    let cases = [
        (dcn, "a = 1.8", "b", "found 1.8; it must exceed a, 1.8"),
        (
            afd,
            "beta = 1.0",
            "beta",
            "found 1; it must exceed alpha, 1.7",
        ),
        (
            rio,
            "max_in = '40 packets'",
            "max_in",
            "it must exceed min_in, 40 packets",
        ),
        (
            rio,
            "min_out = '20 kB'",
            "max_out",
            "it must exceed min_out, 20000 bytes",
        ),
        (
            rio,
            "gentle_in = true",
            "limit",
            "with gentle_in = true it must exceed twice max_in",
        ),
        (
            rio,
            "in_codepoints = [46, 64]",
            "in_codepoints",
            "found 64; code points are from 0",
        ),
        (
            rio_ps,
            "long_max_th = '80 packets'",
            "long_max_th",
            "must exceed long_min_th",
        ),
        (
            fred,
            "max_th = '20 packets'",
            "min_th",
            "state both, or neither",
        ),
        (
            fred,
            "min_th = '0.5 packets'",
            "min_th",
            "found 0.5 packets; it must be at least 1",
        ),
        (
            fred,
            "min_th = '100 packets'",
            "limit",
            "must exceed min_th, 100 packets",
        ),
        (
            sfb,
            "d1 = 0.001",
            "d1",
            "found 0.001; it must exceed d2, 0.001",
        ),
        (sfb, "rehash = '1 us'", "rehash", "at least 10 us"),
        (
            red_pd,
            "gentle = true\nmax_th = '50 packets'",
            "limit",
            "twice max_th, 50 packets",
        ),
        (
            red_pd,
            "lists_needed = 6",
            "lists_needed",
            "found 6; it must be from 1 to 5",
        ),
    ];
    for (base, change, field, words) in cases {
        assert_eq!(read(base).check(), Ok(()), "{base}");
        let keys: Vec<_> = change
            .lines()
            .filter_map(|line| line.split(' ').next())
            .collect();
        let kept = base
            .lines()
            .filter(|line| !keys.iter().any(|key| line.starts_with(key)));
        let table = format!("{}\n{change}", kept.collect::<Vec<_>>().join("\n"));
        let (found, message) = read(&table).check().unwrap_err();
        assert_eq!(found, field, "{table}: {message}");
        assert!(message.contains(words), "{table}: {message}");
    }
}
