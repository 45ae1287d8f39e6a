//! Keys and words of a profile that have another name: they are refused with the right one.

use aqmlab_declare::tagged::Located;
use toml::{Table, Value};

/// Keys, and what is to be written.
const KEYS: [(&str, &str); 24] = [
    (
        "aimd",
        "congestion_control = { kind = \"reno\", increase = ..., decrease = ... }",
    ),
    ("vegas", "congestion_control = { kind = \"vegas\", ... }"),
    ("fast", "congestion_control = { kind = \"fast\", ... }"),
    ("cubic", "congestion_control = { kind = \"cubic\", ... }"),
    (
        "sync_tcp",
        "congestion_control = { kind = \"sync-tcp\", ... }",
    ),
    (
        "santa_cruz",
        "congestion_control = { kind = \"santa-cruz\", ... }",
    ),
    (
        "slow_start_at_ssthresh",
        "at_ssthresh = \"slow-start\" or \"congestion-avoidance\"",
    ),
    (
        "byte_counting",
        "slow_start = \"byte-counting\" or \"per-ack\"",
    ),
    (
        "byte_counting_limit",
        "slow_start = { kind = \"byte-counting\", limit = ... }",
    ),
    (
        "avoidance_counts_bytes",
        "congestion_avoidance = \"byte-counting\" or \"per-ack\"",
    ),
    ("whole_bytes", "cwnd_arithmetic = \"integer\" or \"real\""),
    (
        "window_validation",
        "window_growth = \"cwnd-limited\" or \"always\"",
    ),
    (
        "window_growth_limited",
        "window_growth = \"header-prediction\" or \"always\"",
    ),
    (
        "sack_outlives_timeout",
        "sack_at_timeout = \"keep\" or \"forget\"",
    ),
    (
        "proportional_rate_reduction",
        "rate_reduction = \"proportional\" or \"at-once\"",
    ),
    (
        "partial_ack_restarts_timer",
        "newreno_variant = \"slow-but-steady\" or \"impatient\"",
    ),
    (
        "recovery_exit_limits_burst",
        "newreno_exit = \"flight-size\" or \"ssthresh\"",
    ),
    (
        "repeated_timeout_cuts",
        "ssthresh_at_repeated_timeout = \"reduced\" or \"held\"",
    ),
    (
        "ecn_on_retransmissions",
        "ect_on = \"all-data\" or \"new-data\"",
    ),
    (
        "ecn_least_ssthresh",
        "ecn_reaction = \"rfc3168\", \"no-wait\" or \"kame\"",
    ),
    (
        "ecn_at_one_segment",
        "ecn_reaction = \"rfc3168\", \"no-wait\", \"fractional\" or \"kame\"",
    ),
    (
        "ecn_echo_opens_window",
        "ecn_reaction = \"rfc3168\", \"no-wait\" or \"kame\"",
    ),
    (
        "rto_min_for_variance",
        "rto_min_bounds = \"variance\" or \"rto\"",
    ),
    (
        "new_ack_ends_backoff",
        "backoff_ends_with = \"new-ack\" or \"sample\"",
    ),
];

/// Keys with their words, and what is to be written.
const CUT_FROM: (&str, [(&str, &str); 3]) = (
    "cut_from",
    [
        ("flight", "flight-size"),
        ("window", "cwnd"),
        ("fractional-window", "fractional-cwnd"),
    ],
);

/// Refuses a key, or a word, that has another name.
pub(super) fn refuse(stack: &Table) -> Result<(), Located> {
    let renamed =
        |key: &str, right: &str| Err(Located::new(format!("renamed; write {right}")).under(key));
    if let Some((key, right)) = KEYS.iter().find(|(key, _)| stack.contains_key(*key)) {
        return renamed(key, right);
    }
    if let Some(delay) = stack.get("overhead") {
        return renamed("overhead", &format!("random_send_delay = {delay}"));
    }
    let (key, words) = CUT_FROM;
    if let Some(found) = stack.get(key) {
        let right = words.iter().find(|(word, _)| found.as_str() == Some(word));
        let right = right.map_or("...".to_owned(), |(_, right)| format!("\"{right}\""));
        return renamed(key, &format!("multiplicative_decrease_base = {right}"));
    }
    let clock = stack.get("clock").and_then(|clock| clock.get("kind"));
    if clock.and_then(Value::as_str) == Some("counted") {
        let error = Located::new("found \"counted\", which is called \"rtt-ticks\"");
        return Err(error.under("kind").under("clock"));
    }
    Ok(())
}
