//! A thread that writes what the router's threads say of packets, so that no disk holds them up.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use aqmlab_net::Time;

use crate::due::EventQueue;

/// Packets that wait for the writer: what comes faster is missing.
const MOST_WAITING: usize = 1 << 16;

/// A packet whose fate is known so much later than that of others is written behind them.
const PATIENCE: Time = Time::from_secs(10);

/// Packets that are put into order, at most.
const MOST_SORTED: usize = 1 << 20;

/// Where packets are written, in the order in which they reached the queue.
pub(crate) trait Sink<T>: Send + 'static {
    type Error: Send + 'static;

    fn put(&mut self, at: Time, what: T) -> Result<(), Self::Error>;

    /// There is no more.
    fn end(self) -> Result<(), Self::Error>;
}

/// A way to the writer.
#[derive(Debug)]
pub(crate) struct Feed<T> {
    sender: SyncSender<(Time, T)>,
    missing: Arc<AtomicU64>,
}

impl<T> Feed<T> {
    /// Hands over a packet that reached the queue then, without ever waiting.
    pub(crate) fn put(&self, at: Time, what: T) {
        if self.sender.try_send((at, what)).is_err() {
            self.missing.fetch_add(1, Relaxed);
        }
    }
}

/// The thread that writes.
#[derive(Debug)]
pub(crate) struct Writing<E> {
    thread: JoinHandle<Result<(), E>>,
    missing: Arc<AtomicU64>,
}

impl<E: Send + 'static> Writing<E> {
    /// Starts it; a feed for each direction.
    pub(crate) fn start<T: Send + 'static>(sink: impl Sink<T, Error = E>) -> ([Feed<T>; 2], Self) {
        let (sender, receiver) = sync_channel(MOST_WAITING);
        let missing = Arc::new(AtomicU64::new(0));
        let feeds = [sender.clone(), sender].map(|sender| Feed {
            sender,
            missing: missing.clone(),
        });
        let thread = thread::spawn(move || write(sink, &receiver));
        (feeds, Self { thread, missing })
    }

    /// Whether it is done. While there are feeds, it has failed.
    pub(crate) fn is_over(&self) -> bool {
        self.thread.is_finished()
    }

    /// Waits until all is written, once both feeds are gone. What is missing in `file`, if
    /// something is.
    pub(crate) fn finish(self, file: &str) -> Result<Option<String>, E> {
        self.thread.join().expect("writers do not panic")?;
        let missing = self.missing.load(Relaxed);
        let sentence = format!("{file}: {missing} packets are missing: the disk is slow");
        Ok((missing > 0).then_some(sentence))
    }
}

fn write<T, S: Sink<T>>(mut sink: S, fed: &Receiver<(Time, T)>) -> Result<(), S::Error> {
    let mut sorted = EventQueue::new();
    let mut latest = Time::ZERO;
    while let Ok((at, what)) = fed.recv() {
        latest = latest.max(at);
        sorted.push(at, what);
        let old = latest.saturating_sub(PATIENCE);
        let due = |sorted: &EventQueue<T>| match sorted.len() {
            MOST_SORTED.. => latest,
            _ => old,
        };
        while let Some((at, what)) = sorted.pop(due(&sorted)) {
            sink.put(at, what)?;
        }
    }
    while let Some((at, what)) = sorted.pop(latest) {
        sink.put(at, what)?;
    }
    sink.end()
}

#[cfg(test)]
mod tests {
    use std::convert::Infallible;
    use std::sync::Mutex;

    use super::*;

    type Written = Arc<Mutex<Vec<u64>>>;

    struct Keep(Written);

    impl Sink<u64> for Keep {
        type Error = Infallible;

        fn put(&mut self, at: Time, what: u64) -> Result<(), Infallible> {
            assert_eq!(at, Time::from_millis(what));
            self.0.lock().unwrap().push(what);
            Ok(())
        }

        fn end(self) -> Result<(), Infallible> {
            Ok(())
        }
    }

    #[test]
    fn what_is_handed_over_late_has_its_place() {
        let written = Written::default();
        let ([one, other], writing) = Writing::start(Keep(written.clone()));
        for (feed, at) in [
            (&one, 500),
            (&other, 100),
            (&one, 11_000),
            (&other, 600),
            (&one, 700),
        ] {
            feed.put(Time::from_millis(at), at);
        }
        drop((one, other));
        assert_eq!(writing.finish("x"), Ok(None));
        // The third is 10 s and more later than the first two.
        assert_eq!(*written.lock().unwrap(), [100, 500, 600, 700, 11_000]);
    }

    /// A disk that takes nothing before all is there, and then fails.
    struct Stuck(Receiver<()>);

    impl Sink<u64> for Stuck {
        type Error = &'static str;

        fn put(&mut self, _at: Time, _what: u64) -> Result<(), &'static str> {
            let _ = self.0.recv();
            Err("full")
        }

        fn end(self) -> Result<(), &'static str> {
            unreachable!("it fails before")
        }
    }

    #[test]
    fn a_disk_that_is_stuck_holds_nobody_up() {
        let (release, held) = sync_channel(0);
        let ([one, other], writing) = Writing::start(Stuck(held));
        // The first is put aside at once, the last makes it due.
        one.put(Time::ZERO, 0);
        one.put(Time::from_secs(11), 1);
        let fed = 2 * MOST_WAITING as u64;
        for _ in 0..fed {
            other.put(Time::from_secs(11), 2);
        }
        let missing = writing.missing.load(Relaxed);
        assert!(missing >= fed - MOST_WAITING as u64, "{missing}");
        assert!(!writing.is_over());
        drop(release);
        assert_eq!(writing.finish("x"), Err("full"));
    }
}
