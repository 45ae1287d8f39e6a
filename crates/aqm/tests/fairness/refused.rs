//! Parameters that are refused.

use crate::read;

#[test]
fn impossible_parameters_are_refused_with_the_field_and_the_remedy() {
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
        (dcn, "a = -1.0", "a", "found -1; it must be at least 0"),
        (dcn, "interval = '0 s'", "interval", "at least 10 us"),
        (
            dcn,
            "aging_interval = '0 s'",
            "aging_interval",
            "at least 10 us",
        ),
        (
            dcn,
            "clearing_interval = '0 s'",
            "clearing_interval",
            "longer than 0 s",
        ),
        (
            dcn,
            "sb_threshold = 0",
            "sb_threshold",
            "found 0; it must be from 1 to 1000000",
        ),
        (dcn, "sb_slots = 0", "sb_slots", "from 1 to 1048576"),
        (
            dcn,
            "hb_entries = 2000000",
            "hb_entries",
            "from 1 to 1048576",
        ),
        (
            dcn,
            "p_max = 0.5",
            "p_max",
            "found 0.5; it must be at least 1",
        ),
        (
            dcn,
            "mean_packet = '0 bytes'",
            "mean_packet",
            "a packet has 1 to 65535 bytes",
        ),
        (
            afd,
            "beta = 1.0",
            "beta",
            "found 1; it must exceed alpha, 1.7",
        ),
        (afd, "alpha = -0.1", "alpha", "at least 0"),
        (afd, "shadow = 0", "shadow", "from 1 to 1048576"),
        (afd, "s = 0.5", "s", "found 0.5; it must be at least 1"),
        (afd, "interval = '1 us'", "interval", "at least 10 us"),
        (rio, "w_q = 0.0", "w_q", "above 0 and at most 1"),
        (
            rio,
            "p_in = 1.5",
            "p_in",
            "found 1.5; it must be above 0 and at most 1",
        ),
        (rio, "p_out = 0.0", "p_out", "above 0 and at most 1"),
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
            "short_max_p = 2.0",
            "short_max_p",
            "above 0 and at most 1",
        ),
        (
            rio_ps,
            "long_max_th = '80 packets'",
            "long_max_th",
            "must exceed long_min_th",
        ),
        (
            rio_ps,
            "slr = 0.0",
            "slr",
            "found 0; it must be a number above 0",
        ),
        (rio_ps, "l_t = 0", "l_t", "found 0; it must be at least 1"),
        (rio_ps, "t_u = '0 s'", "t_u", "at least 10 us"),
        (rio_ps, "t_c = '0 s'", "t_c", "at least 10 us"),
        (rio_ps, "max_flows = 0", "max_flows", "from 1 to 16777216"),
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
        (fred, "max_p = 0.0", "max_p", "above 0 and at most 1"),
        (fred, "rtt = '0 s'", "rtt", "longer than 0 s"),
        (
            sfb,
            "levels = 17",
            "levels",
            "found 17; it must be from 1 to 16",
        ),
        (sfb, "bins = 0", "bins", "from 1 to 4096"),
        (
            sfb,
            "bin_size = 0",
            "bin_size",
            "found 0; it must be at least 1",
        ),
        (
            sfb,
            "d1 = 0.001",
            "d1",
            "found 0.001; it must exceed d2, 0.001",
        ),
        (sfb, "d2 = 0.0", "d2", "above 0 and at most 1"),
        (sfb, "rehash = '1 us'", "rehash", "at least 10 us"),
        (
            red_pd,
            "gentle = true\nmax_th = '50 packets'",
            "limit",
            "twice max_th, 50 packets",
        ),
        (red_pd, "target_rtt = '0 s'", "target_rtt", "at least 10 us"),
        (
            red_pd,
            "lists = 101",
            "lists",
            "found 101; it must be from 1 to 100",
        ),
        (
            red_pd,
            "lists_needed = 6",
            "lists_needed",
            "found 6; it must be from 1 to 5",
        ),
        (red_pd, "list_flows = 0", "list_flows", "from 1 to 1000"),
        (
            red_pd,
            "identify_above = -0.1",
            "identify_above",
            "at least 0 and at most 1",
        ),
        (
            red_pd,
            "max_decrease = 0.0",
            "max_decrease",
            "above 0 and at most 1",
        ),
        (
            red_pd,
            "p_min_thresh = 2.0",
            "p_min_thresh",
            "above 0 and at most 1",
        ),
        (red_pd, "test_periods = 1", "test_periods", "from 2 to 20"),
        (
            red_pd,
            "test_rise = 0.5",
            "test_rise",
            "at least 1 and at most 10",
        ),
        (red_pd, "test_pairs = 0", "test_pairs", "from 1 to 190"),
        (red_pd, "test_majority = 0.5", "test_majority", "at least 1"),
        (
            red_pd,
            "unresponsive_step = 0.9",
            "unresponsive_step",
            "at least 1",
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
