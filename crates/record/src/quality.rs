//! What users of applications got, as the summary says it.

use aqmlab_net::Time;
use aqmlab_traffic::Quality;

use crate::unit::results;

results! {
    /// What the users of a class got in the measured span: the figures by which its application is
    /// judged. A class has those of its application alone.
    pub struct QualitySummary {
        /// Median page load time, from the first SYN to the last byte of the last object, of the
        /// pages that were complete in the measured span.
        #[serde(skip_serializing_if = "Option::is_none")]
        page_load_p50_s: Option<f64> = "median page load time", SECONDS;
        /// 75th percentile of the page load times.
        #[serde(skip_serializing_if = "Option::is_none")]
        page_load_p75_s: Option<f64> = "75 % page load time", SECONDS;
        /// 95th percentile of the page load times.
        #[serde(skip_serializing_if = "Option::is_none")]
        page_load_p95_s: Option<f64> = "95 % page load time", SECONDS;
        /// 5th percentile of the user-perceived throughput (3GPP TR 36.814): size of a file over
        /// the time from its first SYN to its last byte, of files that were complete in the
        /// measured span.
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput_p5_bps: Option<f64> = "5 % user throughput", BIT_RATE;
        /// Median of the user-perceived throughput.
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput_p50_bps: Option<f64> = "median user throughput", BIT_RATE;
        /// 95th percentile of the user-perceived throughput.
        #[serde(skip_serializing_if = "Option::is_none")]
        throughput_p95_bps: Option<f64> = "95 % user throughput", BIT_RATE;
        /// Share of the time of viewers, from their first picture on, in which playing stood still.
        #[serde(skip_serializing_if = "Option::is_none")]
        stall_ratio: Option<f64> = "stalled", SHARE;
        /// Stalls that began in the measured span, of all viewers.
        #[serde(skip_serializing_if = "Option::is_none")]
        stalls: Option<u64> = "stalls", NUMBER;
        /// Mean time from asking for the first segment to the first picture, of viewers who began
        /// to see one in the measured span.
        #[serde(skip_serializing_if = "Option::is_none")]
        startup_delay_mean_s: Option<f64> = "mean start-up delay", SECONDS;
        /// Mean bit rate: of the encodings of the segments that arrived in the measured span; of an
        /// interactive stream, of complete frames.
        #[serde(skip_serializing_if = "Option::is_none")]
        bitrate_mean_bps: Option<f64> = "mean bit rate", BIT_RATE;
        /// Changes of the bit rate from one segment to the next, per viewer and minute.
        #[serde(skip_serializing_if = "Option::is_none")]
        switches_per_min: Option<f64> = "switches per minute", NUMBER;
        /// Mean opinion score by the E-model (ITU-T G.107), from 1 to 4.5: mean over calls and
        /// windows of 10 s. What is sent in the last second of the measured span is not rated.
        #[serde(skip_serializing_if = "Option::is_none")]
        mos_mean: Option<f64> = "mean MOS", NUMBER;
        /// Lowest opinion score of a window of 10 s of a call.
        #[serde(skip_serializing_if = "Option::is_none")]
        mos_min: Option<f64> = "lowest MOS", NUMBER;
        /// Mean transmission rating R behind the scores; 93.2 without delay and loss.
        #[serde(skip_serializing_if = "Option::is_none")]
        r_factor_mean: Option<f64> = "mean R", NUMBER;
        /// Mean delay from mouth to ear: codec, network and playout buffer.
        #[serde(skip_serializing_if = "Option::is_none")]
        mouth_to_ear_mean_s: Option<f64> = "mean mouth-to-ear delay", MILLISECONDS;
        /// Share of the voice packets that came too late to be played, or never.
        #[serde(skip_serializing_if = "Option::is_none")]
        playout_loss_rate: Option<f64> = "lost or late", SHARE;
        /// Median delay of video frames that were complete in the measured span: from their capture
        /// to the arrival of their last packet.
        #[serde(skip_serializing_if = "Option::is_none")]
        frame_delay_p50_s: Option<f64> = "median frame delay", MILLISECONDS;
        /// 95th percentile of the frame delays.
        #[serde(skip_serializing_if = "Option::is_none")]
        frame_delay_p95_s: Option<f64> = "95 % frame delay", MILLISECONDS;
        /// 99th percentile of the frame delays.
        #[serde(skip_serializing_if = "Option::is_none")]
        frame_delay_p99_s: Option<f64> = "99 % frame delay", MILLISECONDS;
        /// Share of the frames that took longer than 150 ms, or never were complete.
        #[serde(skip_serializing_if = "Option::is_none")]
        late_frame_share: Option<f64> = "late frames", SHARE;
        /// Share of the time in which the picture was frozen: between complete frames further apart
        /// than three frame times, and than a frame time and 150 ms.
        #[serde(skip_serializing_if = "Option::is_none")]
        freeze_ratio: Option<f64> = "frozen", SHARE;
        /// Median time from an input of a player to the arrival of the frame that shows it.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_delay_p50_s: Option<f64> = "median input delay", MILLISECONDS;
        /// 95th percentile of these times.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_delay_p95_s: Option<f64> = "95 % input delay", MILLISECONDS;
        /// 99th percentile of these times.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_delay_p99_s: Option<f64> = "99 % input delay", MILLISECONDS;
        /// Share of the inputs that took longer than 60 ms.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_gt_60ms: Option<f64> = "input delay > 60 ms", SHARE;
        /// Share of the inputs that took longer than 100 ms.
        #[serde(skip_serializing_if = "Option::is_none")]
        input_gt_100ms: Option<f64> = "input delay > 100 ms", SHARE;
    }
}

impl QualitySummary {
    pub(crate) fn of(quality: &Quality, measured: Time) -> Self {
        let [page_load_p50_s, page_load_p75_s, page_load_p95_s] =
            quality.page_loads.quantiles([0.50, 0.75, 0.95]);
        let [throughput_p5_bps, throughput_p50_bps, throughput_p95_bps] =
            quality.throughputs.quantiles([0.05, 0.50, 0.95]);
        let [frame_delay_p50_s, frame_delay_p95_s, frame_delay_p99_s] =
            quality.frame_delays.quantiles([0.50, 0.95, 0.99]);
        let [input_delay_p50_s, input_delay_p95_s, input_delay_p99_s] =
            quality.round_trips.quantiles([0.50, 0.95, 0.99]);
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
        Self {
            page_load_p50_s,
            page_load_p75_s,
            page_load_p95_s,
            throughput_p5_bps,
            throughput_p50_bps,
            throughput_p95_bps,
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
            frame_delay_p50_s,
            frame_delay_p95_s,
            frame_delay_p99_s,
            // Those on their way when the span ends may still come.
            late_frame_share: share((frames - in_time).max(0.0), frames),
            freeze_ratio: share(quality.frozen_s, quality.watched_s),
            input_delay_p50_s,
            input_delay_p95_s,
            input_delay_p99_s,
            input_gt_60ms: quality.round_trips.share_above(0.060),
            input_gt_100ms: quality.round_trips.share_above(0.100),
        }
    }
}

/// A frame that takes longer is late.
const LATE_FRAME_S: f64 = 0.150;
