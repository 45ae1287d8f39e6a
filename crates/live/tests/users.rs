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

#[test]
fn users_begin_with_a_program_and_end_with_it() {
    if let Some(what) = missing() {
        eprintln!("NOT TESTED: {what}");
        return;
    }
    let scenario = Scenario::parse(SCENARIO, &[], &mut |_| unreachable!()).unwrap();
    let settings = ShellSettings {
        program: Program {
            path: c"/bin/sh".into(),
            arguments: ["sh", "-c", "sleep 2"]
                .map(|word| CString::new(word).unwrap())
                .into(),
            environment: Vec::new(),
        },
        jitter: Time::ZERO,
        services: true,
        // With a gateway, whose gate lets the users' packets through.
        reach: Reach {
            host: true,
            ..Reach::default()
        },
        tcp: TcpSettings::default(),
    };
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
