//! Streams, flow control, idle time and closing.

use super::*;
use crate::error::Error;
use crate::streams::{Content, Contents, Streams};

/// Limits of that many bytes for a stream and for all, and of streams.
fn limited(stream: u64, data: u64, streams: u64) -> Config {
    Config {
        limits: Limits {
            data,
            stream,
            streams: [streams; 2],
        },
        ..config()
    }
}

/// The highest byte that the server has sent.
fn highest(pair: &Pair) -> u64 {
    let frames = pair.of(SERVER).into_iter().flat_map(Seen::frames);
    let ends = frames.map(|frame| match frame {
        Frame::Stream { offset, len, .. } => offset + len,
        _ => 0,
    });
    ends.max().unwrap_or(0)
}

fn blocked(pair: &Pair) -> Vec<Frame> {
    let frames = pair.of(SERVER).into_iter().flat_map(Seen::frames).copied();
    let is_blocked = |frame: &Frame| {
        matches!(
            frame,
            Frame::DataBlocked(_) | Frame::StreamDataBlocked { .. }
        )
    };
    frames.filter(is_blocked).collect()
}

#[test]
fn fc01_fc04_a_sender_keeps_to_the_limits_and_says_so_once() {
    for (config, said) in [
        (
            limited(10_000, 100_000, 3),
            Frame::StreamDataBlocked {
                stream: 3,
                limit: 10_000,
            },
        ),
        (limited(100_000, 10_000, 3), Frame::DataBlocked(10_000)),
    ] {
        let mut pair = Pair::connected(config);
        pair.reads[CLIENT] = false;
        pair.send(SERVER, 50_000);
        pair.run(ms(2_000));
        assert_eq!(highest(&pair), 10_000);
        assert_eq!(blocked(&pair), [said]);
        // The reader goes on.
        pair.reads[CLIENT] = true;
        pair.read[CLIENT] = pair.ends[CLIENT].read(3, u64::MAX);
        pair.settle(CLIENT);
        pair.run(ms(5_000));
        assert_eq!(pair.read[CLIENT], 50_000);
    }
}

#[test]
fn fc02_limits_do_not_fall_and_data_beyond_closes() {
    let mut pair = Pair::connected(limited(10_000, 10_000, 3));
    // What is injected is acknowledged: the client shall not get that.
    pair.set_rule(|seen| match seen.from == SERVER && seen.ack().is_some() {
        true => Wire::Drop,
        false => Wire::Pass,
    });
    pair.inject(
        SERVER,
        &datagram(500, |writer| writer.frame(&Frame::MaxData(10))),
    );
    pair.send(SERVER, 8_000);
    pair.run(ms(1_000));
    assert_eq!(pair.read[CLIENT], 8_000);
    let stream = Frame::Stream {
        stream: 7,
        offset: 0,
        len: 10_001,
        fin: false,
    };
    pair.inject(CLIENT, &datagram(500, |writer| writer.frame(&stream)));
    let error = Error::FlowControl as u64;
    assert!(
        pair.seen
            .last()
            .unwrap()
            .frames()
            .any(|it| *it == Frame::Close { error })
    );
}

#[test]
fn fc03_a_reader_at_full_speed_blocks_nobody() {
    // 16 Mbit/s with a round trip of 40 ms, and more where the sender catches up.
    let mut pair = Pair::connected(limited(600_000, 600_000, 3));
    pair.set_rule(|_| Wire::Pass);
    let stream = pair.ends[SERVER].open(true).unwrap();
    for step in 0..200 {
        pair.write(SERVER, stream, 10_000, false);
        pair.run(ms(300 + 5 * (step + 1)));
    }
    pair.run(ms(3_000));
    assert_eq!(pair.read[CLIENT], 2_000_000);
    assert_eq!(blocked(&pair), []);
}

#[test]
fn fc05_no_more_streams_are_open_than_the_limit() {
    let mut pair = Pair::connected(limited(100_000, 100_000, 3));
    let mut open = Vec::new();
    let mut opened = 0;
    while opened < 10 {
        while opened < 10
            && let Some(stream) = pair.ends[CLIENT].open(false)
        {
            pair.write(CLIENT, stream, 500, true);
            opened += 1;
            open.push(stream);
        }
        assert!(open.len() <= 3);
        pair.run(pair.now + ms(200));
        // The server answers what it has got.
        for stream in &open {
            pair.write(SERVER, *stream, 1_000, true);
        }
        pair.run(pair.now + ms(200));
        open.retain(|stream| !pair.has(CLIENT, Event::Finished(*stream)));
    }
    assert_eq!(opened, 10);
    assert_eq!(pair.read, [10 * 1_000, 10 * 500]);
    let beyond = Frame::Stream {
        stream: 4 * 100,
        offset: 0,
        len: 1,
        fin: false,
    };
    pair.inject(SERVER, &datagram(900, |writer| writer.frame(&beyond)));
    let error = Error::StreamLimit as u64;
    assert!(
        pair.seen
            .last()
            .unwrap()
            .frames()
            .any(|it| *it == Frame::Close { error })
    );
}

#[test]
fn fc06_a_gap_in_one_stream_does_not_delay_another() {
    let mut pair = Pair::connected(config());
    let mut lost = false;
    pair.set_rule(move |seen| {
        let first = seen
            .frames()
            .any(|it| matches!(it, Frame::Stream { stream: 3, .. }));
        if first && !lost {
            lost = true;
            return Wire::Drop;
        }
        Wire::Pass
    });
    let slow = pair.send(SERVER, 1_000);
    let fast = pair.send(SERVER, 4_000);
    pair.run(ms(1_000));
    assert_eq!(pair.at(CLIENT, Event::Finished(fast)), Some(ms(320)));
    let late = pair.at(CLIENT, Event::Finished(slow)).unwrap();
    // The packets behind it show the loss after a round trip: it arrives half of one later.
    assert_eq!(late, ms(360));
}

#[test]
fn fc07_the_final_size_counts_after_a_reset_and_does_not_change() {
    let mut pair = Pair::connected(limited(10_000, 10_000, 3));
    pair.reads[CLIENT] = false;
    let stream = pair.ends[SERVER].open(true).unwrap();
    pair.write(SERVER, stream, 1_000, false);
    pair.ends[SERVER].reset(stream);
    pair.settle(SERVER);
    pair.run(ms(1_000));
    assert!(pair.has(CLIENT, Event::Reset(stream)));
    // 1,000 bytes are used of the connection's limit, whatever was read; the rest is there.
    pair.reads[CLIENT] = true;
    pair.send(SERVER, 30_000);
    pair.run(ms(3_000));
    assert_eq!(pair.read[CLIENT], 30_000);
    let mut streams = Streams::new(Role::Client, config().limits);
    streams.on_data(3, (0, 500), true).unwrap();
    assert_eq!(streams.on_data(3, (400, 200), false), Err(Error::FinalSize));
    assert_eq!(streams.on_frame(&reset(3, 400)), Err(Error::FinalSize));
}

fn reset(stream: u64, size: u64) -> Frame {
    Frame::Reset {
        stream,
        error: 0,
        size,
    }
}

#[test]
fn fc07_a_stream_ends_nowhere_but_behind_all_that_came() {
    let mut streams = Streams::new(Role::Client, config().limits);
    for stream in [3, 7, 11] {
        streams.on_data(stream, (0, 500), false).unwrap();
    }
    // By a frame with its end: below what came, at it, and the same end again.
    assert_eq!(streams.on_data(3, (0, 499), true), Err(Error::FinalSize));
    assert_eq!(streams.on_data(3, (500, 0), true), Ok(()));
    assert_eq!(streams.on_data(3, (400, 100), true), Ok(()));
    assert_eq!(streams.on_data(3, (400, 99), true), Err(Error::FinalSize));
    // By a reset.
    assert_eq!(streams.on_frame(&reset(7, 499)), Err(Error::FinalSize));
    assert_eq!(streams.on_frame(&reset(7, 500)), Ok(()));
    assert_eq!(streams.on_frame(&reset(11, 600)), Ok(()));
}

#[test]
fn fc07_a_reset_gives_back_the_credit_of_what_nobody_reads() {
    let mut pair = Pair::connected(limited(10_000, 10_000, 100));
    pair.reads[CLIENT] = false;
    for _ in 0..30 {
        let stream = pair.ends[SERVER].open(true).unwrap();
        pair.write(SERVER, stream, 1_000, false);
        pair.run(pair.now + ms(50));
        pair.ends[SERVER].reset(stream);
        pair.settle(SERVER);
        pair.run(pair.now + ms(50));
        assert!(pair.has(CLIENT, Event::Reset(stream)));
    }
    pair.reads[CLIENT] = true;
    pair.send(SERVER, 30_000);
    pair.run(pair.now + ms(3_000));
    assert_eq!(pair.read[CLIENT], 30_000);
}

/// What was read counts once: a reset adds the rest alone.
#[test]
fn fc07_a_reset_gives_back_no_more_than_its_size() {
    let limits = Limits {
        data: 1_000,
        stream: 10_000,
        streams: [3, 3],
    };
    let mut streams = Streams::new(Role::Client, limits);
    streams.on_data(3, (0, 400), false).unwrap();
    streams.read(3, 400);
    streams.on_frame(&reset(3, 600)).unwrap();
    assert_eq!(frames(&mut streams).0, [Frame::MaxData(1_600)]);
}

/// What goes in the next packet.
fn frames(streams: &mut Streams) -> (Vec<Frame>, Contents) {
    let mut out = vec![0; PREFIX];
    let mut writer = Writer {
        out: &mut out,
        wire: 0,
    };
    writer.header(Kind::OneRtt, 0, 1);
    let mut contents = Contents::default();
    streams.fill(&mut writer, 1200, &mut contents);
    (parse(&out)[0].frames.clone(), contents)
}

#[test]
fn ld11_what_goes_again_is_what_holds_now() {
    let limits = Limits {
        data: 1_000,
        stream: 10_000,
        streams: [3, 3],
    };
    let mut streams = Streams::new(Role::Client, limits);
    streams.on_data(3, (0, 600), false).unwrap();
    streams.read(3, u64::MAX);
    let (sent, contents) = frames(&mut streams);
    assert!(sent.contains(&Frame::MaxData(1_600)));
    assert!(contents.iter().any(|it| it == Content::MaxData));
    streams.on_data(3, (600, 900), false).unwrap();
    streams.read(3, u64::MAX);
    streams.lose(Content::MaxData);
    let (sent, _) = frames(&mut streams);
    assert_eq!(sent, [Frame::MaxData(2_500)]);
}

#[test]
fn id01_a_silent_peer_is_given_up_after_the_idle_time() {
    for (idle, silent) in [(ms(30_000), ms(30_000)), (ms(10), Time::ZERO)] {
        let mut pair = Pair::connected(Config {
            idle_timeout: ms(30_000),
            ..config()
        });
        pair.set_rule(|_| Wire::Drop);
        if idle < ms(30_000) {
            continue;
        }
        // The first packet behind what came begins it anew, later ones do not.
        pair.send(SERVER, 100);
        pair.run(ms(1_000));
        pair.send(SERVER, 100);
        pair.run(ms(60_000));
        assert_eq!(pair.at(SERVER, Event::TimedOut), Some(ms(300) + silent));
    }
}

#[test]
fn id02_closing_ends_after_three_time_outs_and_draining_says_nothing() {
    let mut pair = Pair::connected(config());
    pair.ends[CLIENT].close(pair.now);
    pair.settle(CLIENT);
    let until = pair.ends[CLIENT].deadline();
    pair.run(ms(325));
    assert!(pair.has(SERVER, Event::Closed { error: 0 }));
    assert!(pair.ends[SERVER].is_silent() && !pair.ends[CLIENT].is_silent());
    // The client has closed, and answers what still comes; the server is silent.
    pair.inject(CLIENT, &datagram(500, |writer| writer.frame(&Frame::Ping)));
    pair.inject(SERVER, &datagram(500, |writer| writer.frame(&Frame::Ping)));
    let closes = |seen: &&Seen| seen.frames().any(|it| *it == Frame::Close { error: 0 });
    assert_eq!(pair.of(CLIENT).into_iter().filter(closes).count(), 2);
    assert_eq!(pair.of(SERVER).len(), 0);
    let timeout = Time::from_nanos((until - ms(300)).as_nanos() / 3);
    assert!(timeout > ms(40 + 25));
    pair.run(until);
    assert!(pair.ends[CLIENT].is_silent());
}
