//! What users of applications got, as the summary says it.

use aqmlab_net::Time;
use aqmlab_traffic::Quality;

use crate::declaration::results;

results! {
    null fields left out;

    /// Quality for the users of a class in the measured span. A class has only its application's
    /// metrics.
    pub struct QualitySummary {
        /// Median page load time, from the first SYN to the last byte of the last object.
        page_load_p50_s: Option<f64> = "median page load time", SECONDS,
            digits 2, head "page load p50 s", name "page_load_p50";
        percentiles page_load_p(75, 95 [head "page load p95 s"])_s = (N " page load time"), SECONDS,
            of " of the page load times", names "page_load_p", each (digits 2);
        /// ObjectIndex (Bocchi et al. 2016): mean time from the start of a page to the arrival of
        /// each object, over completed pages.
        object_index_mean_s: Option<f64> = "mean object index", SECONDS,
            digits 3, head "object index s", name "object_index";
        percentiles throughput_p(
            5 "5th percentile of the user-perceived throughput (3GPP TR 36.814): file size / time \
               from the first SYN to the last byte." [head "user p5 Mbit/s"], 50 [head "user p50 Mbit/s"], 95
        )_bps = (N " user throughput"), BIT_RATE, of " of the user-perceived throughput",
            names "user_throughput_p", each (digits 2, better "more");
        /// Share of the viewing time, from the first picture on, in which the video stalled.
        stall_ratio: Option<f64> = "stalled", SHARE, digits 2, head "stalled %", name "stall_ratio";
        /// Stalls of all viewers.
        stalls: Option<u64> = "stalls", NUMBER, digits 0;
        /// Mean time from the first request to the first picture.
        startup_delay_mean_s: Option<f64> = "mean start-up delay", SECONDS,
            digits 2, head "start-up s";
        /// Mean bit rate: of arrived segments' encodings, or of complete frames of an interactive
        /// stream.
        bitrate_mean_bps: Option<f64> = "mean bit rate", BIT_RATE,
            digits 2, head "video Mbit/s", name "bitrate", after "freeze_ratio", better "more";
        /// Changes of the bit rate between consecutive segments, per viewer and minute.
        switches_per_min: Option<f64> = "switches per minute", NUMBER,
            digits 2, head "switches/min", after "bitrate_mean_bps";
        /// Mean opinion score by the E-model (ITU-T G.107), 1 to 4.5, over calls and windows of 10
        /// s.
        mos_mean: Option<f64> = "mean MOS", NUMBER,
            digits 2, head "MOS", name "mos", within (1.0, 4.5), better "more";
        /// Minimum opinion score of any call in any window of 10 s.
        mos_min: Option<f64> = "lowest MOS", NUMBER,
            digits 2, head "lowest MOS", name "mos_min", within (1.0, 4.5), better "more";
        /// Mean transmission rating R from which the scores follow. 93.2 without delay and loss.
        r_factor_mean: Option<f64> = "mean R", NUMBER, digits 1, within (0.0, 100.0), better "more";
        /// Mean mouth-to-ear delay: codec, network and playout buffer.
        mouth_to_ear_mean_s: Option<f64> = "mean mouth-to-ear delay", MILLISECONDS,
            digits 1, head "mouth to ear ms";
        /// Share of voice packets that were lost or too late to be played.
        playout_loss_rate: Option<f64> = "lost or late", SHARE, digits 2, head "lost or late %";
        percentiles frame_delay_p(
            50 "Median delay of video frames, from capture to the arrival of the last packet." [head "frame p50 ms"],
            95, 99 [head "frame p99 ms"]
        )_s = (N " frame delay"), MILLISECONDS, of " of the frame delays",
            names "frame_delay_p", each (digits 1);
        /// Share of frames that took longer than 150 ms or were never complete.
        late_frame_share: Option<f64> = "late frames", SHARE, digits 2, head "late frames %";
        /// Share of time with a frozen picture: gaps between complete frames beyond three frame
        /// times and one frame time + 150 ms.
        freeze_ratio: Option<f64> = "frozen", SHARE, digits 2, head "frozen %", name "freeze_ratio";
        percentiles input_delay_p(
            50 "Median input delay: from a player's input to the arrival of the frame that shows \
                it." [head "input p50 ms"], 95, 99 [head "input p99 ms"]
        )_s = (N " input delay"), MILLISECONDS, of " of the input delay",
            names "input_delay_p", each (digits 1);
        /// Share of inputs with a delay above 60 ms.
        input_gt_60ms: Option<f64> = "input delay > 60 ms", SHARE, digits 2;
        /// Share of inputs with a delay above 100 ms.
        input_gt_100ms: Option<f64> = "input delay > 100 ms", SHARE, digits 2, head "> 100 ms %";
    }
}

impl QualitySummary {
    pub(crate) fn of(quality: &Quality, measured: Time) -> Self {
        let (video, voice) = (&quality.video, &quality.voice);
        let watched_s = video.played_s + video.stalled_s;
        let has_video = watched_s > 0.0;
        let share = |part: f64, whole: f64| (whole > 0.0).then(|| part / whole);
        let in_time = quality.frame_delays.share_above(LATE_FRAME_S);
        let in_time = (1.0 - in_time.unwrap_or(0.0)) * quality.frame_delays.count() as f64;
        let frames = quality.frames as f64;
        let of_frames = share(
            quality.frame_bits,
            measured.as_secs_f64() * quality.streams as f64,
        );
        let [page_load_p50_s] = quality.page_loads.quantiles([0.50]);
        let values = QualitySummaryValues {
            page_load_p50_s,
            page_load_p: quality.page_loads.quantiles(Self::PAGE_LOAD_P),
            object_index_mean_s: quality.object_index.mean(),
            throughput_p: quality.throughputs.quantiles(Self::THROUGHPUT_P),
            stall_ratio: share(video.stalled_s, watched_s),
            stalls: has_video.then_some(video.stalls),
            startup_delay_mean_s: video.startup_delays.mean(),
            bitrate_mean_bps: video.bitrates.mean().or(of_frames),
            switches_per_min: share(video.switches as f64, watched_s / 60.0),
            mos_mean: voice.scores.mean(),
            mos_min: voice.scores.min(),
            r_factor_mean: voice.ratings.mean(),
            mouth_to_ear_mean_s: voice.mouth_to_ear.mean(),
            playout_loss_rate: share(voice.lost as f64, voice.packets as f64),
            frame_delay_p: quality.frame_delays.quantiles(Self::FRAME_DELAY_P),
            // Those on their way when the span ends may still come.
            late_frame_share: share((frames - in_time).max(0.0), frames),
            freeze_ratio: share(quality.frozen_s, quality.watched_s),
            input_delay_p: quality.round_trips.quantiles(Self::INPUT_DELAY_P),
            input_gt_60ms: quality.round_trips.share_above(0.060),
            input_gt_100ms: quality.round_trips.share_above(0.100),
        };
        values.into()
    }
}

/// A frame that takes longer is late.
const LATE_FRAME_S: f64 = 0.150;
