//! Parameters that are refused.

use crate::read;

#[test]
fn impossible_parameters_are_refused_with_the_field_and_the_remedy() {
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
            "kind = \"ared\"\nlimit = \"100 packets\"\nbeta = 1.0",
            "beta",
            "below 1",
        ),
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\nmax_p_bottom = 0.6",
            "max_p_bottom",
            "not exceed max_p_top, 0.5",
        ),
        (
            "kind = \"ared\"\nlimit = \"100 packets\"\ninterval = \"0 s\"",
            "interval",
            "longer than 0 s",
        ),
        (
            "kind = \"ared-feng\"\nlimit = \"100 packets\"\nmin_th = \"5 packets\"\n\
             max_th = \"5 packets\"",
            "max_th",
            "must exceed min_th",
        ),
        (
            "kind = \"ared-feng\"\nlimit = \"100 packets\"\nmin_th = \"5 packets\"\n\
             max_th = \"9 packets\"\nalpha = 1.0",
            "alpha",
            "above 1",
        ),
        (
            "kind = \"ared-feng\"\nlimit = \"100 packets\"\nmin_th = \"5 packets\"\n\
             max_th = \"9 packets\"\nbeta = 0.5",
            "beta",
            "above 1",
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
            "kind = \"pi\"\nlimit = \"100 packets\"\ninterval = \"1 us\"",
            "interval",
            "at least 10 us",
        ),
        (
            "kind = \"pi\"\nlimit = \"100 packets\"\nmean_packet = \"0 bytes\"",
            "mean_packet",
            "a packet has 1 to 65535 bytes",
        ),
        (
            "kind = \"rem\"\nlimit = \"100 packets\"\nphi = 1.0",
            "phi",
            "above 1",
        ),
        (
            "kind = \"rem\"\nlimit = \"100 packets\"\ngamma = 0",
            "gamma",
            "above 0",
        ),
        (
            "kind = \"rem\"\nlimit = \"100 packets\"\nalpha = -1",
            "alpha",
            "above 0",
        ),
        (
            "kind = \"rem\"\nlimit = \"100 packets\"\nq_ref = \"50 kB\"",
            "q_ref",
            "found 50000 bytes; it must be less than limit, 100 packets",
        ),
        (
            "kind = \"avq\"\nlimit = \"100 packets\"\nvirtual_buffer = \"0 packets\"",
            "virtual_buffer",
            "at least 1 packet",
        ),
        (
            "kind = \"avq\"\nlimit = \"100 packets\"\ngamma = 1.1",
            "gamma",
            "above 0 and at most 1",
        ),
        (
            "kind = \"avq\"\nlimit = \"100 packets\"\nalpha = 0",
            "alpha",
            "above 0",
        ),
        (
            "kind = \"lqd\"\nlimit = \"100 packets\"\nq_ref = \"24 packets\"\np_ref = 1.5",
            "p_ref",
            "at most 1",
        ),
        (
            "kind = \"lqd\"\nlimit = \"100 packets\"\nq_ref = \"24 packets\"\na = 0",
            "a",
            "above 0",
        ),
        (
            "kind = \"lqd\"\nlimit = \"100 packets\"\nq_ref = \"24 packets\"\nb = -0.1",
            "b",
            "at least 0",
        ),
        (
            "kind = \"sred\"\nlimit = \"100 packets\"\nzombies = 0",
            "zombies",
            "from 1 to 100000",
        ),
        (
            "kind = \"sred\"\nlimit = \"100 packets\"\nzombies = 100001",
            "zombies",
            "found 100001",
        ),
        (
            "kind = \"sred\"\nlimit = \"100 packets\"\noverwrite = 0",
            "overwrite",
            "above 0",
        ),
        (
            "kind = \"sred\"\nlimit = \"100 packets\"\nalpha = 2",
            "alpha",
            "at most 1",
        ),
        (
            "kind = \"sred\"\nlimit = \"100 packets\"\np_max = 0",
            "p_max",
            "above 0",
        ),
        (
            "kind = \"blue\"\nlimit = \"100 packets\"\nd1 = 0",
            "d1",
            "above 0",
        ),
        (
            "kind = \"blue\"\nlimit = \"100 packets\"\nd2 = 1.01",
            "d2",
            "at most 1",
        ),
        (
            "kind = \"blue\"\nlimit = \"100 packets\"\nfreeze_time = \"0 s\"",
            "freeze_time",
            "longer than 0 s",
        ),
    ];
    for (table, field, words) in cases {
        let (found, message) = read(table).check().expect_err(table);
        assert_eq!(found, field, "{table}: {message}");
        assert!(message.contains(words), "{table}: {message}");
    }
}
