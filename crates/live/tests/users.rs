//! Users of a scenario beside a program, where this machine has network namespaces.

use std::ffi::CString;

use aqmlab_live::{Order, Program, Reach, ShellSettings, TcpSettings, missing, shell};
use aqmlab_net::Time;
use aqmlab_record::Discard;
use aqmlab_scenario::Scenario;

const SCENARIO: &str = r#"
[measure]
warm_up = "0 s"
duration = "20 s"
[topology]
kind = "dumbbell"
[topology.bottleneck]
rate = "10 Mbit/s"
delay = "5 ms"
framing = "none"
discipline = { kind = "fq-codel" }
[[traffic]]
name = "program"
kind = "bulk"
flows = 1
tcp = "linux"
rtt = { kind = "constant", rtt = "10 ms" }
[[traffic]]
name = "users"
kind = "bulk"
flows = 2
start_within = "0 s"
tcp = "linux"
rtt = { kind = "constant", rtt = "20 ms" }
[[traffic]]
name = "calls"
kind = "cbr"
flows = 1
rate = "80 kbit/s"
direction = "reverse"
tcp = "linux"
rtt = { kind = "constant", rtt = "10 ms" }
"#;

/// A program of the shell, with the built-in services.
fn settings(words: &str, reach: Reach) -> ShellSettings {
    ShellSettings {
        program: Program {
            path: c"/bin/sh".into(),
            arguments: ["sh", "-c", words]
                .map(|word| CString::new(word).unwrap())
                .into(),
            environment: Vec::new(),
        },
        jitter: Time::ZERO,
        services: true,
        reach,
        tcp: TcpSettings::default(),
    }
}

#[test]
fn users_begin_with_a_program_and_end_with_it() {
    if let Some(what) = missing() {
        eprintln!("NOT TESTED: {what}");
        return;
    }
    let scenario = Scenario::parse(SCENARIO, &[], &mut |_| unreachable!()).unwrap();
    // With a gateway, whose gate lets the users' packets through.
    let reach = Reach {
        host: true,
        ..Reach::default()
    };
    let settings = settings("sleep 2", reach);
    let shown = shell(&scenario, Box::new(Discard), &settings, &mut |_, _| {
        Order::Continue
    })
    .unwrap();
    assert_eq!(shown.status, Some(0));
    let seconds = shown.measured.as_secs_f64();
    assert!((2.0..4.0).contains(&seconds), "{seconds}");
    let flows = &shown.summary.summary.flows;
    assert_eq!(flows["program"].goodput_bps, 0.0);
    assert_eq!(flows["users"].still_open, 2);
    assert!(flows["users"].goodput_bps > 5e6, "{:?}", flows["users"]);
    let sent = flows["calls"].datagrams_sent as f64;
    assert!(
        (10.0 * seconds..25.0 * seconds).contains(&sent),
        "{sent} in {seconds} s"
    );
    assert_eq!(shown.summary.live.load.local_failures, 0);
}

#[test]
fn a_program_begins_after_the_warm_up_which_does_not_count() {
    if let Some(what) = missing() {
        eprintln!("NOT TESTED: {what}");
        return;
    }
    let warm = SCENARIO.replace("warm_up = \"0 s\"", "warm_up = \"2 s\"");
    let scenario = Scenario::parse(&warm, &[], &mut |_| unreachable!()).unwrap();
    let settings = settings("sleep 1", Reach::default());
    let (mut before, mut first) = (0, None);
    let shown = shell(
        &scenario,
        Box::new(Discard),
        &settings,
        &mut |now, [down, _]| {
            if now < Time::from_secs(2) {
                before = down.departed_bytes;
            } else {
                first.get_or_insert(now);
            }
            Order::Continue
        },
    )
    .unwrap();
    assert!(before > 500_000, "{before} bytes in the warm-up");
    let seconds = shown.measured.as_secs_f64();
    assert!((1.0..2.0).contains(&seconds), "{seconds}");
    let program = shown.summary.live.program.unwrap();
    assert!((1.0..=seconds).contains(&program.time_s), "{program:?}");
    assert_eq!(program.controls.len(), 2);
    assert_eq!(program.not_reached, []);
    // Only the measured second counts.
    let down = &shown.summary.summary.links["bottleneck"]["forward"];
    assert!(down.throughput_bps < 10.1e6, "{}", down.throughput_bps);
    let users = shown.summary.summary.flows["users"].goodput_bps;
    assert!((5e6..10.1e6).contains(&users), "{users}");
    let sent = shown.summary.summary.flows["calls"].datagrams_sent as f64;
    assert!(sent < 25.0 * seconds, "{sent} in {seconds} s");
}

#[test]
fn a_signal_ends_the_warm_up() {
    if let Some(what) = missing() {
        eprintln!("NOT TESTED: {what}");
        return;
    }
    let warm = SCENARIO.replace("warm_up = \"0 s\"", "warm_up = \"60 s\"");
    let scenario = Scenario::parse(&warm, &[], &mut |_| unreachable!()).unwrap();
    let settings = settings("sleep 1", Reach::default());
    let ended = shell(&scenario, Box::new(Discard), &settings, &mut |_, _| {
        Order::Signal(2)
    });
    let message = ended.unwrap_err().to_string();
    assert!(message.contains("in its warm-up"), "{message}");
}
