//! PIE.

use aqmlab_aqm::Discipline;
use aqmlab_aqm::pie::{Delay, Params, Rules};
use aqmlab_net::{Bytes, QueueSize, Time};

use crate::trace::{follow, link};

fn example() -> Params {
    Params {
        qdelay_ref: Time::from_millis(15),
        t_update: Time::from_millis(15),
        alpha: Some(0.125),
        beta: Some(1.25),
        max_burst: Time::from_millis(30),
        mean_packet: Bytes(1500),
        limit: QueueSize::Packets(100.0),
        delay: Delay::Sojourn,
        scale_by_size: false,
        derandomize: None,
        ecn: true,
        mark_ecnth: 0.1,
        rules: Rules::Rfc,
        p_max: None,
    }
}

fn follow_pie(csv: &str, params: Params) {
    let variables = ["qdelay_s", "qdelay_old_s", "p", "burst_allowance_s"].map(|name| (name, name));
    follow(
        csv,
        &Discipline::Pie(params),
        link(1000, 1500),
        &variables,
        &[],
    );
}

/// A header, ten packets of 1500 bytes that come at time 0, and the rest of an example.
fn after_ten_packets(csv: &str, burst: &str) -> String {
    let row = |n: u32| {
        format!(
            "0,0,arrive,a,false,1500,{n},{},,0,0,0,{burst},enqueue",
            1500 * n
        )
    };
    let (header, rest) = csv.split_once('\n').unwrap();
    let ten: Vec<_> = (0..10).map(row).collect();
    format!("{header}\n{}\n{rest}", ten.join("\n"))
}

#[test]
fn pie() {
    let csv = after_ten_packets(include_str!("../data/pie.csv"), "0.03");
    follow_pie(&csv, example());
}

#[test]
fn pie_at_a_probability_of_one_with_its_decay_and_a_new_burst() {
    // An update every second, alpha = 10, beta = 0, a burst of 2 s.
    // Row 4: p = 10 (2.015 - 0.015) / 2048. Row 5: p was below 0.01: + 20 / 8, clamped.
    // Row 6: forced, though capable, since p is above 0.1; it is 1, so nothing is drawn.
    // Rows 7 to 9: two stay of nine; then one; the one that empties the queue sets qdelay to 0.
    // Row 10: p = 1 - 0.15; the old delay was not 0. Row 11: (0.85 - 0.15) 0.98.
    // Row 12: no more than two packets' bytes wait. Rows 13 to 16 go on like row 11.
    // Row 17: p was below 0.1: less 0.15 / 2 is below 0. Row 18: all is quiet, a new burst.
    let csv = "\
step,time_s,event,flow,ect,size_bytes,queue_packets_before,queue_bytes_before,random_draw,qdelay_s,qdelay_old_s,p,burst_allowance_s,decision
1,1,timer,,,,10,15000,,0,0,0,1,
2,2,timer,,,,10,15000,,0,0,0,0,
3,2.015,depart,a,false,1500,10,15000,,2.015,0,0,0,sent
4,3,timer,,,,9,13500,,2.015,2.015,0.009765625,0,
5,4,timer,,,,9,13500,,2.015,2.015,1,0,
6,4.5,arrive,a,true,1500,9,13500,,2.015,2.015,1,0,drop_early
7,4.6,depart,a,false,1500,9,13500,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,8,12000,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,7,10500,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,6,9000,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,5,7500,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,4,6000,,4.6,2.015,1,0,sent
7,4.6,depart,a,false,1500,3,4500,,4.6,2.015,1,0,sent
8,4.7,depart,a,false,1500,2,3000,,4.7,2.015,1,0,sent
9,4.8,depart,a,false,1500,1,1500,,0,2.015,1,0,sent
10,5,timer,,,,0,0,,0,0,0.85,0,
11,6,timer,,,,0,0,,0,0,0.686,0,
12,6.5,arrive,a,false,1500,0,0,,0,0,0.686,0,enqueue
13,7,timer,,,,1,1500,,0,0,0.52528,0,
14,8,timer,,,,1,1500,,0,0,0.3677744,0,
15,9,timer,,,,1,1500,,0,0,0.213418912,0,
16,10,timer,,,,1,1500,,0,0,0.06215053376,0,
17,11,timer,,,,1,1500,,0,0,0,0,
18,11.5,arrive,a,false,1500,1,1500,,0,0,0,2,enqueue
";
    let params = Params {
        t_update: Time::from_secs(1),
        max_burst: Time::from_secs(2),
        alpha: Some(10.0),
        beta: Some(0.0),
        ..example()
    };
    follow_pie(&after_ten_packets(csv, "2"), params);
}
