//! The summary by its definitions: sorted lists, sums over everything.

use std::collections::BTreeMap;

use aqmlab_net::Time;
use aqmlab_record::{Part, PathCount, RetransmittedKinds, View};
use aqmlab_tcp::SegmentKind;
use aqmlab_traffic::{Quality, Samples};
use serde_json::{Map, Value, json};

use crate::run::{self, CLASSES, Crossing, LINKS, Run, is_measured};

/// Length of the measured span in seconds.
const MEASURED_S: f64 = 20.0;

/// Which classes are meant.
pub(crate) type Chosen<'a> = &'a dyn Fn(usize) -> bool;

/// The largest number that begins with the same binary digits, so many of them.
fn rounded_up(number: u64, digits: u32) -> u64 {
    let beyond = (64 - number.leading_zeros()).saturating_sub(digits);
    number | ((1 << beyond) - 1)
}

/// How much of a time is measured, in nanoseconds.
fn measured_part(from: Time, to: Time) -> u64 {
    let (from, to) = (from.max(run::START), to.min(run::END));
    to.as_nanos().saturating_sub(from.as_nanos())
}

fn mean(values: &[f64]) -> Option<f64> {
    (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
}

fn mean_s(nanos: &[u64]) -> Option<f64> {
    mean(&nanos.iter().map(|it| *it as f64 / 1e9).collect::<Vec<_>>())
}

fn max_s(nanos: &[u64]) -> Option<f64> {
    nanos.iter().max().map(|it| *it as f64 / 1e9)
}

fn ratio(part: f64, whole: f64) -> Option<f64> {
    (whole > 0.0).then(|| part / whole)
}

/// The smallest of them that a share of all do not exceed.
fn quantile<T: Ord + Copy>(values: &[T], share: f64) -> Option<T> {
    let mut sorted = values.to_vec();
    sorted.sort_unstable();
    let rank = (share * sorted.len() as f64).ceil().max(1.0) as usize;
    sorted.get(rank - 1).copied()
}

/// Adds `STEM_pNN_s` for each rank: to within 1/128, and none above the longest.
fn add_delays(to: &mut Map<String, Value>, stem: &str, ranks: &[u32], nanos: &[u64]) {
    let longest = nanos.iter().max().copied();
    for rank in ranks {
        let share = f64::from(*rank) / if *rank < 100 { 100.0 } else { 1000.0 };
        let found = quantile(nanos, share).map(|it| rounded_up(it, 8).min(longest.unwrap()));
        to.insert(
            format!("{stem}p{rank}_s"),
            json!(found.map(|it| it as f64 / 1e9)),
        );
    }
}

/// Adds `STEM_pNN_s` for each rank in microseconds, to within 1/1024.
fn add_times(to: &mut Map<String, Value>, stem: &str, ranks: &[u32], nanos: &[u64]) {
    for rank in ranks {
        let found = quantile(nanos, f64::from(*rank) / 100.0);
        let found = found.map(|it| rounded_up(it / 1000, 11) as f64 / 1e6);
        to.insert(format!("{stem}p{rank}_s"), json!(found));
    }
}

fn bins(values: impl Iterator<Item = u64>, digits: u32, unit: f64) -> Vec<(f64, u64)> {
    let mut bins = BTreeMap::<u64, u64>::new();
    for value in values {
        *bins.entry(rounded_up(value, digits) + 1).or_default() += 1;
    }
    bins.into_iter()
        .map(|(end, count)| (end as f64 / unit, count))
        .collect()
}

/// How many are in each bin that holds some, at most 1/1024 wide, and its end in seconds.
pub(crate) fn microsecond_bins(nanos: &[u64]) -> Vec<(f64, u64)> {
    bins(nanos.iter().map(|it| it / 1000), 11, 1e6)
}

/// How many are in each bin in nanoseconds, at most 1/128 wide.
pub(crate) fn nanosecond_bins(nanos: &[u64]) -> Vec<(f64, u64)> {
    bins(nanos.iter().copied(), 8, 1e9)
}

pub(crate) fn summary(run: &Run, view: View) -> Value {
    let mut by_class = [Map::new(), Map::new(), Map::new()];
    let mut add = |name: &str, chosen: Chosen<'_>| {
        let parts = [
            responses(run, chosen),
            flows(run, view, chosen),
            bands(run, chosen),
        ];
        for (all, part) in by_class.iter_mut().zip(parts) {
            all.insert(name.to_owned(), part);
        }
    };
    for (class, name) in CLASSES.iter().enumerate() {
        add(name, &|it| it == class);
    }
    add("all", &|_| true);
    let [responses, flows, breakdown] = by_class;
    let quality = CLASSES
        .iter()
        .zip(&run.qualities)
        .filter_map(|(name, quality)| Some(((*name).to_owned(), quality_of(quality.as_ref()?))));
    json!({
        "scenario": "Made up",
        "seed": 7,
        "simulated_s": 30.0,
        "measured_s": MEASURED_S,
        "events": 12_345,
        "version": aqmlab_record::version(),
        "links": {
            "bottleneck": { "forward": link(run, 0), "reverse": link(run, 1) },
            "uplink": { "forward": link(run, 2) },
        },
        "responses": responses,
        "flows": flows,
        "quality": quality.collect::<Map<_, _>>(),
        "breakdown": breakdown,
    })
}

fn sojourn(crossings: &[&Crossing]) -> (Vec<u64>, Map<String, Value>) {
    let left = crossings.iter().filter(|it| is_measured(it.leaves));
    let nanos: Vec<u64> = left.map(|it| (it.leaves - it.arrives).as_nanos()).collect();
    let mut fields = Map::new();
    fields.insert("sojourn_mean_s".to_owned(), json!(mean_s(&nanos)));
    fields.insert("sojourn_max_s".to_owned(), json!(max_s(&nanos)));
    add_delays(&mut fields, "sojourn_", &[50, 90, 95, 99, 999], &nanos);
    (nanos, fields)
}

fn link(run: &Run, number: usize) -> Value {
    // Behind the end of the span nothing is said.
    let crossings = run.links[number].iter().filter(|it| it.arrives < run::END);
    let crossings: Vec<&Crossing> = crossings.collect();
    let sum = |of: &dyn Fn(&Crossing) -> u64| crossings.iter().map(|it| of(it)).sum::<u64>() as f64;
    let departed = crossings.iter().filter(|it| is_measured(it.end));
    let bytes: u64 = departed.clone().map(|it| u64::from(it.size)).sum();
    let [before, after] = run::counters(number);
    let drops = [0, 1, 2].map(|reason| after.dropped[reason] - before.dropped[reason]);
    let (dropped, marked) = (
        drops.iter().sum::<u64>(),
        after.marked[0] - before.marked[0],
    );
    let arrived = after.arrived_packets - before.arrived_packets;
    let lengths: Vec<u32> = run::sample_times()
        .map(|at| run::backlog(&run.links[number], at).packets)
        .collect();
    // Of those that found the wire busy, with themselves.
    let longest = crossings.iter().enumerate().filter_map(|(number, it)| {
        let waiting = crossings[..=number]
            .iter()
            .filter(|other| other.leaves > it.arrives);
        (it.leaves > it.arrives && is_measured(it.arrives)).then(|| waiting.count())
    });
    let mut classes = Map::new();
    for (class, name) in CLASSES.iter().enumerate() {
        let mine = crossings.iter().filter(|it| usize::from(it.class) == class);
        let (nanos, mut fields) = sojourn(&mine.copied().collect::<Vec<_>>());
        if !nanos.is_empty() {
            let left = crossings.iter().filter(|it| is_measured(it.leaves));
            let own = left.filter(|it| usize::from(it.class) == class);
            let bytes: u64 = own.map(|it| u64::from(it.size)).sum();
            fields.insert("left_packets".to_owned(), json!(nanos.len()));
            fields.insert(
                "throughput_bps".to_owned(),
                json!(8.0 * bytes as f64 / MEASURED_S),
            );
            classes.insert((*name).to_owned(), fields.into());
        }
    }
    let mut fields = sojourn(&crossings).1;
    let others = json!({
        "arrived_packets": arrived,
        "dropped_packets": dropped,
        "marked_packets": marked,
        "departed_packets": departed.clone().count(),
        "wire_lost_packets": departed.filter(|it| it.is_lost).count(),
        "loss_rate": ratio(dropped as f64, arrived as f64).unwrap_or(0.0),
        "mark_rate": ratio(marked as f64, arrived as f64).unwrap_or(0.0),
        "throughput_bps": 8.0 * bytes as f64 / MEASURED_S,
        "utilization": sum(&|it| measured_part(it.begin, it.end)) / 1e9 / MEASURED_S,
        "queue_mean_packets": sum(&|it| measured_part(it.arrives, it.leaves)) / 1e9 / MEASURED_S,
        "queue_max_packets": longest.max().unwrap_or(0),
        "queue_p50_packets": quantile(&lengths, 0.5),
        "queue_p95_packets": quantile(&lengths, 0.95),
        "queue_p99_packets": quantile(&lengths, 0.99),
        "drops": { "early": drops[0], "forced": drops[1], "overflow": drops[2] },
        "marks": { "early": marked },
        "classes": classes,
    });
    fields.extend(others.as_object().unwrap().clone());
    fields.into()
}

/// Nanoseconds of the exchanges that ended in the span.
pub(crate) fn response_nanos(run: &Run, chosen: Chosen<'_>) -> Vec<u64> {
    let exchanges = run.exchanges.iter().map(|(exchange, _)| exchange);
    let ended = exchanges.filter(|it| chosen(it.class) && is_measured(it.end));
    ended.map(|it| (it.end - it.start).as_nanos()).collect()
}

fn responses(run: &Run, chosen: Chosen<'_>) -> Value {
    let nanos = response_nanos(run, chosen);
    let started = run
        .starts
        .iter()
        .filter(|it| chosen(it.0) && is_measured(it.1));
    let within = |seconds: u64| {
        let count = nanos
            .iter()
            .filter(|it| **it <= seconds * 1_000_000_000)
            .count();
        ratio(count as f64, nanos.len() as f64)
    };
    let beyond = nanos.iter().filter(|it| **it > 3_000_000_000).count();
    let mut fields = Map::new();
    add_times(&mut fields, "", &[10, 25, 50, 75, 90, 95, 99], &nanos);
    let others = json!({
        "started": started.count(),
        "count": nanos.len(),
        "mean_s": mean_s(&nanos),
        "max_s": max_s(&nanos),
        "le_1s": within(1),
        "le_2s": within(2),
        "le_3s": within(3),
        "gt_3s": ratio(beyond as f64, nanos.len() as f64),
    });
    fields.extend(others.as_object().unwrap().clone());
    fields.into()
}

/// Nanoseconds of the connections that ended in the span and were not aborted.
pub(crate) fn duration_nanos(run: &Run, chosen: Chosen<'_>) -> Vec<u64> {
    let ended = run
        .closed
        .iter()
        .filter(|it| chosen(it.class) && is_measured(it.end));
    let ended = ended.filter(|it| !it.failed);
    ended.map(|it| (it.end - it.start).as_nanos()).collect()
}

/// Nanoseconds of the samples, and of what is beyond an idle path.
pub(crate) fn round_trip_nanos(run: &Run, chosen: Chosen<'_>) -> (Vec<u64>, Vec<u64>) {
    let mine = run.round_trips.iter().filter(|it| chosen(it.0));
    mine.map(|(_, sample, idle)| {
        let nanos = sample.time.as_nanos();
        (nanos, nanos.saturating_sub(idle.as_nanos()))
    })
    .unzip()
}

/// Application bytes that clients received in the span.
pub(crate) fn response_bytes(run: &Run, chosen: Chosen<'_>) -> u64 {
    let flows = run
        .closed
        .iter()
        .chain(run.open.iter().map(|(flow, _)| flow));
    let flows = flows.chain(run.calls.iter().map(|call| &call.flow));
    let known = flows
        .filter(|it| chosen(it.class))
        .map(|it| it.measured_bytes);
    let others = run
        .downloaded
        .iter()
        .filter(|it| chosen(it.0))
        .map(|it| it.1);
    known.chain(others).sum()
}

/// What the datagrams of some classes met.
#[derive(Debug, Default)]
pub(crate) struct Datagrams {
    pub(crate) delays: Vec<u64>,
    pub(crate) variations: Vec<u64>,
    jitters: Vec<f64>,
    gaps: Vec<u64>,
    sent: usize,
    lost: usize,
    longest_loss: usize,
    flows: usize,
    lossy: usize,
}

pub(crate) fn datagrams(run: &Run, chosen: Chosen<'_>) -> Datagrams {
    let mut all = Datagrams::default();
    for call in run.calls.iter().filter(|it| chosen(it.flow.class)) {
        // 100 µs are hidden from the clocks.
        let delay = |n: usize| {
            let it = &call.datagrams[n];
            (!it.is_lost).then(|| (it.at - it.sent).as_nanos() + 100_000)
        };
        let (mut jitter, mut last, mut in_row) = (0.0, None::<(Time, u64)>, 0);
        let (mut sent, mut lost) = (0, 0);
        for (n, it) in call.datagrams.iter().enumerate() {
            sent += usize::from(is_measured(it.sent));
            let Some(nanos) = delay(n) else {
                lost += usize::from(is_measured(it.at));
                in_row += usize::from(is_measured(it.at));
                all.longest_loss = all.longest_loss.max(in_row);
                continue;
            };
            in_row = 0;
            if let Some((at, before)) = last {
                jitter += (nanos.abs_diff(before) as f64 - jitter) / 16.0;
                if is_measured(it.at) {
                    all.gaps.push(measured_part(at, it.at));
                }
            }
            last = Some((it.at, nanos));
            if is_measured(it.at) {
                all.delays.push(nanos);
                all.jitters.push(jitter / 1e9);
                let before = n.checked_sub(1).and_then(delay);
                all.variations
                    .extend(before.map(|before| nanos.abs_diff(before)));
            }
        }
        (all.sent, all.lost) = (all.sent + sent, all.lost + lost);
        all.flows += usize::from(sent > 0);
        all.lossy += usize::from(lost as f64 > 0.1 * sent as f64);
    }
    all
}

/// Jain's index of shares.
fn jain(shares: &[f64]) -> Option<f64> {
    let (sum, squares): (f64, f64) = (
        shares.iter().sum(),
        shares.iter().map(|share| share * share).sum(),
    );
    ratio(sum * sum, shares.len() as f64 * squares)
}

/// Goodput in bytes per second of flows some of whose life was measured, and the same times the
/// shortest round trip.
fn goodputs(run: &Run, chosen: Chosen<'_>) -> (Vec<f64>, Vec<f64>) {
    let closed = run.closed.iter().map(|flow| (flow, flow.end));
    let open = run.open.iter().map(|(flow, _)| (flow, run::END));
    let calls = run.calls.iter().map(|call| (&call.flow, run::END));
    let all = closed
        .chain(open)
        .chain(calls)
        .filter(|it| chosen(it.0.class));
    all.filter_map(|(flow, end)| {
        let seconds = measured_part(flow.start, end) as f64 / 1e9;
        let goodput = ratio(flow.measured_bytes as f64, seconds)?;
        Some((goodput, goodput * flow.rtt.as_secs_f64()))
    })
    .unzip()
}

fn flows(run: &Run, view: View, chosen: Chosen<'_>) -> Value {
    let sees = |value: Value| {
        if view == View::Everything {
            value
        } else {
            Value::Null
        }
    };
    let closed = run
        .closed
        .iter()
        .filter(|it| chosen(it.class) && is_measured(it.end));
    let total = |of: &dyn Fn(&aqmlab_record::Flow) -> u32| -> u32 { closed.clone().map(of).sum() };
    let open: Vec<_> = run.open.iter().filter(|it| chosen(it.0.class)).collect();
    let datagrams = datagrams(run, chosen);
    let calls = run.calls.iter().filter(|it| chosen(it.flow.class)).count();
    let count = closed.clone().count() + calls;
    let again = |kind: SegmentKind| {
        let mine = run.again.iter().filter(|it| chosen(it.0) && it.1 == kind);
        sees(json!(mine.count()))
    };
    let (samples, increases) = round_trip_nanos(run, chosen);
    let trips = run.round_trips.iter().filter(|it| chosen(it.0));
    let of_trips = |of: &dyn Fn(&(usize, aqmlab_tcp::RoundTrip, Time)) -> f64| {
        mean(&trips.clone().map(of).collect::<Vec<_>>())
    };
    let only = |kinds: [bool; 3]| {
        let mine = closed.clone().filter(|flow| {
            let RetransmittedKinds { syn, fin, data } = flow.delayed_by;
            [syn, fin, data] == kinds
        });
        mine.count() as f64 / count as f64
    };
    let [none, syn, fin, data] = [
        // Flows of datagrams have nothing to send again, and no place among these.
        only([false; 3]),
        only([true, false, false]),
        only([false, true, false]),
        only([false, false, true]),
    ];
    let several = closed.clone().count() as f64 / count as f64 - none - syn - fin - data;
    let (goodput, normalized) = goodputs(run, chosen);
    let durations = duration_nanos(run, chosen);
    let uploads: Vec<u64> = run
        .uploaded
        .iter()
        .filter(|it| chosen(it.0))
        .map(|it| it.1)
        .collect();
    let mut fields = Map::new();
    add_times(&mut fields, "duration_", &[50, 75, 90, 95, 99], &durations);
    add_delays(&mut fields, "rtt_", &[50, 95, 99], &samples);
    add_delays(&mut fields, "rtt_increase_", &[50, 95], &increases);
    add_delays(
        &mut fields,
        "datagram_delay_",
        &[50, 95, 99],
        &datagrams.delays,
    );
    add_delays(
        &mut fields,
        "datagram_ipdv_",
        &[50, 95, 99],
        &datagrams.variations,
    );
    if !uploads.is_empty() {
        let rate = 8.0 * uploads.iter().sum::<u64>() as f64 / MEASURED_S;
        fields.insert("upload_goodput_bps".to_owned(), json!(rate));
    }
    let in_span = |times: &[(usize, Time)]| {
        times
            .iter()
            .filter(|it| chosen(it.0) && is_measured(it.1))
            .count()
    };
    let timeouts = run
        .timeouts
        .iter()
        .filter(|it| chosen(it.0) && is_measured(it.1));
    let cwnds = open.iter().map(|it| it.1.unwrap_or(0) as f64);
    let with_fast = closed.clone().filter(|it| it.has_fast_retransmit).count();
    let one_by_one = json!({
        "count": count,
        "still_open": open.len(),
        "failed": closed.clone().filter(|it| it.failed).count(),
        "refused": in_span(&run.refused),
        "duration_mean_s": mean_s(&durations),
        "goodput_bps": 8.0 * response_bytes(run, chosen) as f64 / MEASURED_S,
        "fairness_jain": jain(&goodput),
        "fairness_normalized": jain(&normalized),
        "retransmitted_syn": total(&|it| it.retransmissions.syn),
        "retransmitted_fin": total(&|it| it.retransmissions.fin),
        "retransmitted_data": total(&|it| it.retransmissions.data),
        "closed_timeouts": total(&|it| it.retransmissions.timeouts),
        "fast_retransmit_share": sees(json!(ratio(with_fast as f64, count as f64))),
        "lost_segments": sees(json!(in_span(&run.lost))),
        "span_timeouts": sees(json!(timeouts.map(|it| it.2).sum::<u32>())),
        "span_retransmitted_syn": again(SegmentKind::Syn),
        "span_retransmitted_fin": again(SegmentKind::Fin),
        "span_retransmitted_data": again(SegmentKind::Data),
        "rtt_min_s": samples.iter().min().map(|it| *it as f64 / 1e9),
        "rtt_mean_s": mean_s(&samples),
        "srtt_mean_s": of_trips(&|it| it.1.smoothed.as_secs_f64()),
        "rtt_idle_s": of_trips(&|it| it.2.as_secs_f64()),
        "cwnd_mean_bytes": of_trips(&|it| it.1.cwnd as f64),
        "cwnd_end_bytes": sees(json!(mean(&cwnds.collect::<Vec<_>>()))),
    });
    let of_datagrams = json!({
        "datagrams_sent": datagrams.sent,
        "datagrams_lost": datagrams.lost,
        "lossy_datagram_flow_share": ratio(datagrams.lossy as f64, datagrams.flows as f64),
        "datagram_loss_rate": ratio(datagrams.lost as f64, datagrams.sent as f64),
        "datagram_delay_mean_s": mean_s(&datagrams.delays),
        "datagram_delay_max_s": max_s(&datagrams.delays),
        "datagram_jitter_s": mean(&datagrams.jitters),
        "datagram_gap_max_s": max_s(&datagrams.gaps),
        "datagram_loss_run_max": sees(json!(
            (datagrams.flows > 0).then_some(datagrams.longest_loss)
        )),
        "retransmission_shares": (count > 0).then(|| json!({
            "none": none, "syn": syn, "fin": fin, "data": data, "several": several,
        })),
    });
    for part in [one_by_one, of_datagrams] {
        fields.extend(part.as_object().unwrap().clone());
    }
    fields.into()
}

/// Numbers in ascending order.
fn sorted(samples: &Samples) -> Vec<f64> {
    let ranks = (1..=samples.count()).map(|rank| rank as f64 / samples.count() as f64);
    ranks
        .map(|share| samples.quantiles([share])[0].unwrap())
        .collect()
}

fn quality_of(quality: &Quality) -> Value {
    let mut fields = Map::new();
    let mut add = |key: &str, value: Option<f64>| {
        if let Some(value) = value {
            fields.insert(key.to_owned(), json!(value));
        }
    };
    let mut add_each = |stem: &str, end: &str, ranks: &[u32], samples: &Samples| {
        let values = sorted(samples);
        for rank in ranks {
            let place = (f64::from(*rank) / 100.0 * values.len() as f64).ceil() as usize;
            let value = values.get(place.saturating_sub(1)).copied();
            add(&format!("{stem}_p{rank}_{end}"), value);
        }
    };
    add_each("page_load", "s", &[50, 75, 95], &quality.page_loads);
    add_each("throughput", "bps", &[5, 50, 95], &quality.throughputs);
    add_each("frame_delay", "s", &[50, 95, 99], &quality.frame_delays);
    add_each("input_delay", "s", &[50, 95, 99], &quality.round_trips);
    let above = |samples: &Samples, limit: f64| {
        let values = sorted(samples);
        let count = values.iter().filter(|value| **value > limit).count();
        ratio(count as f64, values.len() as f64)
    };
    let (video, voice) = (&quality.video, &quality.voice);
    let viewed_s = video.played_s + video.stalled_s;
    add("stall_ratio", ratio(video.stalled_s, viewed_s));
    add("startup_delay_mean_s", mean(&sorted(&video.startup_delays)));
    // Segments where there are some, else frames.
    let of_frames = ratio(quality.frame_bits / MEASURED_S, f64::from(quality.streams));
    add(
        "bitrate_mean_bps",
        mean(&sorted(&video.bitrates)).or(of_frames),
    );
    add(
        "switches_per_min",
        ratio(60.0 * video.switches as f64, viewed_s),
    );
    add("mos_mean", mean(&sorted(&voice.scores)));
    add("mos_min", sorted(&voice.scores).first().copied());
    add("r_factor_mean", mean(&sorted(&voice.ratings)));
    add("mouth_to_ear_mean_s", mean(&sorted(&voice.mouth_to_ear)));
    add(
        "playout_loss_rate",
        ratio(voice.lost as f64, voice.packets as f64),
    );
    let in_time = sorted(&quality.frame_delays)
        .into_iter()
        .filter(|delay| *delay <= 0.150);
    let late = quality.frames as f64 - in_time.count() as f64;
    add("late_frame_share", ratio(late, quality.frames as f64));
    add("freeze_ratio", ratio(quality.frozen_s, quality.watched_s));
    add("input_gt_60ms", above(&quality.round_trips, 0.060));
    add("input_gt_100ms", above(&quality.round_trips, 0.100));
    if viewed_s > 0.0 {
        fields.insert("stalls".to_owned(), json!(video.stalls));
    }
    fields.into()
}

/// The bands of the breakdown: those of the slowest responses. Where a band ends among responses
/// whose first eight binary digits are the same, each of them is in it in part.
fn bands(run: &Run, chosen: Chosen<'_>) -> Value {
    let ended = run
        .exchanges
        .iter()
        .filter(|(it, _)| chosen(it.class) && is_measured(it.end));
    let mut slowest: Vec<_> = ended
        .map(|(it, parts)| ((it.end - it.start).as_nanos(), parts))
        .collect();
    slowest.sort_by_key(|(nanos, _)| std::cmp::Reverse(*nanos));
    let mut bands = Map::new();
    let shares = [
        ("all", 1.0),
        ("slowest_50", 0.5),
        ("slowest_10", 0.1),
        ("slowest_1", 0.01),
    ];
    for (name, share) in shares.into_iter().filter(|_| !slowest.is_empty()) {
        let wanted = (share * slowest.len() as f64).ceil() as usize;
        let edge = rounded_up(slowest[wanted - 1].0, 8);
        let inside = slowest
            .iter()
            .filter(|(nanos, _)| rounded_up(*nanos, 8) > edge)
            .count();
        let at_edge = slowest
            .iter()
            .filter(|(nanos, _)| rounded_up(*nanos, 8) == edge)
            .count();
        let weighted = slowest[..inside + at_edge]
            .iter()
            .enumerate()
            .map(|(place, it)| {
                let part = (wanted - inside) as f64 / at_edge as f64;
                (if place < inside { 1.0 } else { part }, it)
            });
        let mean = |of: &dyn Fn(&(u64, &run::Parts)) -> f64| {
            let sum: f64 = weighted.clone().map(|(weight, it)| weight * of(it)).sum();
            sum / wanted as f64
        };
        let mean_of = |part: usize| mean(&|it| it.1.parts[part] as f64 / 1e9);
        let mut band = Map::new();
        for (number, part) in Part::ALL.iter().enumerate() {
            let column = part.column().replace("_ns", "_s");
            band.insert(column, json!(mean_of(number)));
        }
        let trips = PathCount::ALL.iter().enumerate().filter(|(_, count)| {
            let name = count.column();
            name.starts_with("trips_") && name != "trips_handshake"
        });
        let trips: Vec<usize> = trips.map(|(number, _)| number).collect();
        let mut links = Map::new();
        for (number, run::Name(link, direction)) in LINKS.into_iter().enumerate() {
            let first = Part::ALL.len() + 3 * number;
            let mut lost = Map::new();
            for reason in ["early", "overflow"] {
                let lost_here = mean(&|it| {
                    let is_here = |loss: &aqmlab_record::LossOnPath| {
                        loss.port == Some(number as u16) && loss.reason == reason
                    };
                    f64::from(it.1.loss.as_ref().is_some_and(is_here))
                });
                if lost_here > 0.0 {
                    lost.insert(reason.to_owned(), json!(lost_here));
                }
            }
            let here = json!({
                "wait_s": mean_of(first),
                "ring_s": mean_of(first + 1),
                "transmission_s": mean_of(first + 2),
                "lost_share": lost,
            });
            let entry = links.entry(link).or_insert_with(|| json!({}));
            entry[direction] = here;
        }
        let others = json!({
            "count": wanted,
            "response_s": mean(&|it| it.0 as f64 / 1e9),
            "trips": mean(&|it| trips.iter().map(|trip| it.1.counts[*trip] as f64).sum()),
            "lost_share": mean(&|it| f64::from(it.1.loss.is_some())),
            "links": links,
        });
        band.extend(others.as_object().unwrap().clone());
        bands.insert(name.to_owned(), band.into());
    }
    bands.into()
}
