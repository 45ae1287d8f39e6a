//! Modern users: what the summary says of their applications, against sums by hand.

use aqmlab_net::Time;
use aqmlab_record::{Discard, QualitySummary, Summary};
use aqmlab_scenario::Scenario;
use aqmlab_sim::{Memory, Simulation};

fn run(text: &str) -> Summary {
    let scenario = Scenario::parse(text, &[], &mut |name| panic!("it asks for {name}"))
        .unwrap_or_else(|error| panic!("{error}"));
    aqmlab_sim::run(&scenario, Box::new(Discard), &mut |_| true).expect("the run succeeds")
}

/// A run of one class over a dumbbell with this rate each way.
fn quality(rate: &str, discipline: &str, class: &str) -> (QualitySummary, Summary) {
    let summary = run(&format!(
        "[measure]\nwarm_up = '10 s'\nduration = '60 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '{rate}'\nframing = 'none'\ndiscipline = {discipline}\n\
         [[traffic]]\nname = 'one'\n{class}"
    ));
    (summary.quality["one"].clone(), summary)
}

const DEEP: &str = "{ kind = 'droptail', limit = '1000 packets' }";

fn near(found: Option<f64>, expected: f64, tolerance: f64) {
    let found = found.expect("a number");
    assert!(
        (found - expected).abs() <= tolerance,
        "{found}, not {expected}"
    );
}

#[test]
fn a_page_takes_its_round_trips_and_its_bytes() {
    // Handshakes of TCP and TLS, HTML, two waves: five round trips; 20 ms to parse twice. Objects fit
    // into the initial window.
    let (quality, summary) = quality(
        "1 Gbit/s",
        DEEP,
        "kind = 'http2-web'\nusers = 3\nobjects = 11\nobjects_sigma = 0\nobject = '200 bytes'\n\
         object_sigma = 0\nhtml = '2000 bytes'\nparse_min = '20 ms'\nparse_max = '20 ms'\n\
         think = '2 s'\nrtt = { kind = 'constant', rtt = '40 ms' }",
    );
    near(quality.page_load_p50_s, 0.240, 0.003);
    near(quality.page_load_p95_s, 0.240, 0.003);
    assert!(quality.mos_mean.is_none());
    // A page is an exchange, too.
    assert!(summary.responses["one"].count > 20);
}

#[test]
fn video_on_an_idle_link_has_the_highest_rate_and_no_stall() {
    for adaptation in ["bba", "throughput", "bola"] {
        let class = format!(
            "kind = 'abr-video'\nviewers = 2\nadaptation = '{adaptation}'\ntcp = 'linux'\n\
             start_within = '1 s'\nrtt = {{ kind = 'constant', rtt = '40 ms' }}"
        );
        let (quality, summary) = quality("100 Mbit/s", DEEP, &class);
        assert_eq!((quality.stall_ratio, quality.stalls), (Some(0.0), Some(0)));
        near(quality.bitrate_mean_bps, 4.3e6, 0.0);
        // The buffer is full after the warm-up: a segment each 4 s, over one connection.
        assert_eq!(summary.flows["one"].still_open, 2);
        assert_eq!(summary.flows["one"].count, 0);
        near(Some(summary.responses["one"].count as f64), 30.0, 2.0);
    }
}

#[test]
fn video_at_half_its_lowest_rate_stands_still_half_of_the_time() {
    let summary = run(
        "[measure]\nwarm_up = '10 s'\nduration = '1000 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '200 kbit/s'\nframing = 'none'\n\
         discipline = { kind = 'droptail', limit = '1000 packets' }\n\
         [[traffic]]\nname = 'one'\nkind = 'abr-video'\nviewers = 1\n\
         ladder = ['380 kbit/s']\nvariation = 0\n\
         rtt = { kind = 'constant', rtt = '40 ms' }",
    );
    let quality = &summary.quality["one"];
    // A cycle: a request of 390 bytes, a round trip, and 190,000 bytes in 131 packets; 4 s of it play.
    // The server has been idle, so that it begins with one segment, whose ACK is delayed by 200 ms.
    let transmission = |bytes: f64| bytes * 8.0 / 200e3;
    let asked = 0.040 + transmission(390.0);
    let first_ack = 0.200 + 0.040 + transmission(40.0);
    let cycle = asked + first_ack + transmission(190_000.0 + 131.0 * 40.0);
    let ratio = 1.0 - 4.0 / cycle;
    // The span is no whole number of cycles: the rest stands still a quarter of a cycle more, or less,
    // at most.
    near(quality.stall_ratio, ratio, 0.25 * cycle / 1000.0);
    let stalls = quality.stalls.map(|stalls| stalls as f64);
    near(stalls, 1000.0 / cycle, 1.0);
}

#[test]
fn a_call_over_an_idle_link_scores_what_the_formula_says() {
    let (quality, summary) = quality(
        "10 Mbit/s",
        DEEP,
        "kind = 'voip'\ncalls = 4\ndirection = 'both'\ncodec = 'g711'\n\
         rtt = { kind = 'constant', rtt = '100 ms' }",
    );
    // 50 ms, the codec's 20 ms and the playout's 1 ms: below 100 ms, R is 93.2.
    near(quality.mouth_to_ear_mean_s, 0.0712, 0.0015);
    near(quality.r_factor_mean, 93.2, 1e-3);
    near(quality.mos_mean, 4.409, 1e-3);
    assert_eq!(quality.playout_loss_rate, Some(0.0));
    // 38.7 % of the time at 50 packets a second.
    let expected = 4.0 * 60.0 * 50.0 * 0.387;
    near(
        Some(summary.flows["one"].datagrams_sent as f64),
        expected,
        0.2 * expected,
    );
}

#[test]
fn losses_cost_a_call_what_the_formula_says() {
    let text = "[measure]\nwarm_up = '10 s'\nduration = '60 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '10 Mbit/s'\nframing = 'none'\nloss = 0.02\n\
         discipline = { kind = 'droptail', limit = '100 packets' }\n\
         [[traffic]]\nname = 'one'\nkind = 'voip'\ncalls = 40\nsilence = '0 s'\n\
         rtt = { kind = 'constant', rtt = '100 ms' }";
    let quality = &run(text).quality["one"];
    near(quality.playout_loss_rate, 0.02, 0.002);
    // 93.2 - 95 x 2 / (2 + 25.1) = 86.2, on average over windows.
    near(quality.r_factor_mean, 86.2, 0.5);
}

#[test]
fn interactive_video_finds_the_rate_of_its_link() {
    let class =
        "kind = 'video-conference'\nstreams = 1\nrtt = { kind = 'constant', rtt = '40 ms' }";
    // From 300 kbit/s it takes 43 s at 5 % a second.
    let high = format!("{class}\nstart_rate = '2 Mbit/s'");
    let (fast, _) = quality("100 Mbit/s", DEEP, &high);
    near(fast.bitrate_mean_bps, 2.5e6, 0.1e6);
    assert_eq!(fast.freeze_ratio, Some(0.0));
    assert!(
        fast.frame_delay_p95_s.is_some_and(|delay| delay < 0.06),
        "{fast:?}"
    );
    let (slow, summary) = quality("1 Mbit/s", DEEP, class);
    let rate = slow.bitrate_mean_bps.expect("frames");
    assert!((0.5e6..1.0e6).contains(&rate), "{rate}");
    // The buffer holds 12 s.
    assert!(
        slow.frame_delay_p95_s.is_some_and(|delay| delay < 0.4),
        "{slow:?}"
    );
    assert!(summary.flows["one"].datagram_loss_rate < Some(0.01));
}

#[test]
fn an_input_is_shown_a_round_trip_and_half_a_frame_later() {
    let (quality, summary) = quality(
        "100 Mbit/s",
        DEEP,
        "kind = 'game'\nplayers = 1\nrate = '2 Mbit/s'\n\
         rtt = { kind = 'constant', rtt = '30 ms' }",
    );
    near(
        quality.input_delay_p50_s,
        0.030 + 0.5 / 60.0 + 0.0003,
        0.002,
    );
    near(
        quality.input_delay_p99_s,
        0.030 + 1.0 / 60.0 + 0.0003,
        0.002,
    );
    assert_eq!(quality.input_gt_60ms, Some(0.0));
    let expected = 60.0 * (60.0 * 4.0 + 125.0);
    near(
        Some(summary.flows["one"].datagrams_sent as f64),
        expected,
        3.0,
    );
}

#[test]
fn a_file_on_an_idle_link_has_its_size_over_its_time() {
    // Connect, request, and a window of 14,600 bytes: two round trips and the bytes. Those are SYN and
    // SYN-ACK with options, an ACK each way, the request, and the file in seven packets with stamps,
    // and its FIN.
    let (quality, summary) = quality(
        "100 Mbit/s",
        DEEP,
        "kind = 'ftp'\nrate = '5 /s'\nfile = { kind = 'constant', size = '10 kB' }\n\
         tcp = 'linux'\n\
         rtt = { kind = 'constant', rtt = '40 ms' }",
    );
    let bytes = 2.0 * 60.0 + 2.0 * 52.0 + 352.0 + 10_000.0 + 8.0 * 52.0;
    let time = 0.080 + bytes * 8.0 / 100e6;
    near(quality.throughput_p50_bps, 80_000.0 / time, 1.0);
    near(Some(summary.responses["one"].count as f64), 300.0, 60.0);
    let (quality, _) = self::quality(
        "100 Mbit/s",
        DEEP,
        "kind = 'ftp'\nusers = 10\nreading = '1 s'\nrtt = { kind = 'constant', rtt = '40 ms' }",
    );
    assert!(quality.throughput_p5_bps > Some(5e6), "{quality:?}");
}

#[test]
fn who_is_looked_at_goes_on_as_if_nobody_looked() {
    let text = "[measure]\nwarm_up = '0 s'\nduration = '60 s'\nrecord = []\n\
         [topology]\nkind = 'dumbbell'\n\
         [topology.bottleneck]\nrate = '2 Mbit/s'\n\
         discipline = { kind = 'droptail', limit = '100 packets' }\n\
         [[traffic]]\nname = 'video'\nkind = 'abr-video'\nviewers = 2\n\
         rtt = { kind = 'constant', rtt = '40 ms' }\n\
         [[traffic]]\nname = 'call'\nkind = 'voip'\ncalls = 1\n\
         rtt = { kind = 'constant', rtt = '40 ms' }\n\
         [[traffic]]\nname = 'files'\nkind = 'bulk'\nflows = 1\n\
         rtt = { kind = 'constant', rtt = '40 ms' }\n";
    let scenario = Scenario::parse(text, &[], &mut |_| unreachable!()).unwrap();
    let mut simulation =
        Simulation::start(&scenario, Box::new(Discard), Memory::UNLIMITED).unwrap();
    let (mut rated, mut watched) = (Vec::new(), 0.0);
    while simulation.now() < simulation.end_time() {
        let next = simulation.now() + Time::from_millis(700);
        simulation.run_until(next).unwrap();
        let quality = simulation.quality();
        let [Some(video), Some(call), None] = quality.as_slice() else {
            panic!("{quality:?}");
        };
        rated.push(call.voice.scores.count());
        let seconds = video.video.played_s + video.video.stalled_s;
        assert!(seconds >= watched, "time does not go back");
        watched = seconds;
    }
    // A window of 10 s is rated 13 s after its beginning; the last one when all is over.
    let windows = |second: usize| rated[second * 10 / 7];
    assert_eq!((windows(12), windows(14), windows(35)), (0, 1, 3));
    assert_eq!(rated.last(), Some(&6));
    assert!(watched > 100.0, "two viewers for a minute: {watched}");
    let stepped = simulation.end().unwrap();
    assert_eq!(stepped, run(text));
}
