//! Parameters that contradict each other.

use crate::stabilizing::read;

#[test]
fn contradictions_are_refused_with_the_field_and_the_remedy() {
    let cases = [
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\nmax_th = \"9 packets\"",
            "min_th",
            "state both",
        ),
        (
            "kind = \"ared\"\nlimit = \"30 packets\"",
            "limit",
            "must exceed twice max_th, 15 packets",
        ),
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\nmark_region = \"below-twice-max-th\"",
            "mark_region",
            "set ecn = true",
        ),
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\nmax_p = 0.6",
            "max_p",
            "at least 0.01 and at most 0.5",
        ),
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\nmax_p_bottom = 0.6",
            "max_p_bottom",
            "not exceed max_p_top, 0.5",
        ),
        (
            "kind = \"ared-feng\"\nlimit = \"100 packets\"\nmin_th = \"5 packets\"\n\
             max_th = \"5 packets\"",
            "max_th",
            "must exceed min_th",
        ),
        (
            "kind = \"pi\"\nlimit = \"50 packets\"",
            "q_ref",
            "less than limit, 50 packets",
        ),
        (
            "kind = \"pi\"\nlimit = \"100 packets\"\na = 0.1",
            "a",
            "state both, or neither",
        ),
        (
            "kind = \"pi\"\nlimit = \"100 packets\"\na = 0.1\nb = 0.2",
            "a",
            "above 0.2",
        ),
        (
            "kind = \"pi\"\nlimit = \"100 packets\"\na = 0.1\nb = 0.05\n\
             design = { flows = 5, rtt = \"1 s\" }",
            "design",
            "either a and b or design",
        ),
        (
            "kind = \"pi\"\nlimit = \"100 packets\"\ndesign = { flows = 0, rtt = \"1 s\" }",
            "design.flows",
            "above 0",
        ),
        (
            "kind = \"rem\"\nlimit = \"100 packets\"\nq_ref = \"50 kB\"",
            "q_ref",
            "found 50000 bytes; it must be less than limit, 100 packets",
        ),
    ];
    for (table, field, words) in cases {
        let (found, message) = read(table).check().expect_err(table);
        assert_eq!(found, field, "{table}: {message}");
        assert!(message.contains(words), "{table}: {message}");
    }
}
