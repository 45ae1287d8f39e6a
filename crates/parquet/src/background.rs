//! Records that another thread encodes.
//!
//! The thread of a run only appends rows to a batch. A full batch goes to the other thread through
//! a queue of bounded length and comes back empty, so memory does not grow: where the other thread
//! falls behind, the run waits for it. Rows of a table stay in their order, so the files are the
//! same, byte for byte, as those of a run that encodes its records itself.

use std::cell::Cell;
use std::fs;
use std::io::Write;
use std::panic;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Receiver, Sender, SyncSender, channel, sync_channel};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use aqmlab_record::{
    ClassMetrics, Exchange, Flow, LinkStats, QueueSamples, Records, RunError, TraceRow,
};

/// Rows of a kind that fill a batch.
const ROWS: usize = 1024;

/// Batches that may wait for the other thread.
const WAITING: usize = 4;

thread_local! {
    static ENCODING: Cell<Duration> = const { Cell::new(Duration::ZERO) };
}

/// Threads of this process that simulate and record, or encode.
static AT_WORK: AtomicUsize = AtomicUsize::new(0);

/// One of the threads at work, as long as this lives.
pub(crate) struct AtWork;

impl AtWork {
    pub(crate) fn begin() -> Self {
        AT_WORK.fetch_add(1, Ordering::Relaxed);
        Self
    }

    pub(crate) fn count() -> usize {
        AT_WORK.load(Ordering::Relaxed)
    }
}

impl Drop for AtWork {
    fn drop(&mut self) {
        AT_WORK.fetch_sub(1, Ordering::Relaxed);
    }
}

/// CPU time of the threads that have encoded the records of this thread's runs, which have ended.
pub fn encoding_time() -> Duration {
    ENCODING.get()
}

/// Rows that go to the other thread together.
#[derive(Default)]
struct Batch {
    responses: Vec<Exchange>,
    flows: Vec<Flow>,
    traces: Vec<TraceRow>,
    samples: Vec<QueueSamples>,
    /// Rows in `samples`.
    sampled: usize,
}

impl Batch {
    /// Hands its rows on; none are left.
    fn write_to(&mut self, records: &mut dyn Records) {
        self.responses.iter().for_each(|row| records.response(row));
        self.flows.iter().for_each(|row| records.flow(row));
        self.traces.iter().for_each(|row| records.trace(row));
        self.samples.iter().for_each(|it| records.queue(it));
        self.responses.clear();
        self.flows.clear();
        self.traces.clear();
        self.samples.clear();
        self.sampled = 0;
    }
}

type Inner = Box<dyn Records>;

/// The thread that encodes, while it does.
struct Encoder {
    /// Batches for it; no longer there when it is to end.
    full: Option<SyncSender<Batch>>,
    /// Batches that it has written.
    empty: Receiver<Batch>,
    thread: Option<JoinHandle<(Result<Inner, RunError>, Duration)>>,
}

impl Encoder {
    /// Starts it; gives the records back where the system has no thread for it.
    fn start(records: Inner) -> Result<Self, Inner> {
        let (full, batches) = sync_channel(WAITING);
        let (written, empty) = channel();
        let (hand_over, handed) = channel();
        let thread = thread::Builder::new()
            .name("aqmlab-records".to_owned())
            .spawn(move || {
                let records: Inner = handed.recv().expect("the run hands its records over");
                (encode(records, batches, &written), cpu_time())
            });
        let Ok(thread) = thread else {
            return Err(records);
        };
        hand_over
            .send(records)
            .unwrap_or_else(|_| unreachable!("the thread waits for them"));
        Ok(Self {
            full: Some(full),
            empty,
            thread: Some(thread),
        })
    }

    /// Hands over a full batch, for an empty one. One that nobody takes is lost: the thread has
    /// ended with an error, which [`end`](Self::end) tells.
    fn hand_over(&mut self, batch: &mut Batch) {
        let empty = self.empty.try_recv().unwrap_or_default();
        let full = std::mem::replace(batch, empty);
        if let Some(queue) = &self.full {
            let _ = queue.send(full);
        }
    }

    /// Whether an error has ended it.
    fn has_failed(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits until all is written and takes the records back.
    fn end(mut self) -> Result<Inner, RunError> {
        self.full = None;
        let thread = self.thread.take().expect("it ends once");
        let (ended, time) = thread
            .join()
            .unwrap_or_else(|panicked| panic::resume_unwind(panicked));
        ENCODING.set(ENCODING.get() + time);
        ended
    }
}

impl Drop for Encoder {
    /// A run that ends early leaves nobody behind who writes into its directory.
    fn drop(&mut self) {
        self.full = None;
        if let Some(thread) = self.thread.take() {
            let _ = thread.join();
        }
    }
}

/// What the thread does: writes batches until there are no more, or until one cannot be written.
fn encode(
    mut records: Inner,
    batches: Receiver<Batch>,
    written: &Sender<Batch>,
) -> Result<Inner, RunError> {
    for mut batch in batches {
        batch.write_to(&mut *records);
        records.check()?;
        let _ = written.send(batch);
    }
    Ok(records)
}

/// CPU time of the present thread, as Linux tells it; nothing where it does not.
fn cpu_time() -> Duration {
    let told = fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = told.split_ascii_whitespace().next();
    nanos
        .and_then(|it| it.parse().ok())
        .map_or(Duration::ZERO, Duration::from_nanos)
}

/// Who encodes.
enum Where {
    /// The run's own thread: before the first full batch, and where the system has no other.
    Here(Inner),
    There(Encoder),
    /// Nobody: it could not be written.
    Nowhere,
}

/// Records that another thread encodes, from the first full batch on.
pub(crate) struct BackgroundRecords {
    batch: Batch,
    encoder: Where,
    _at_work: AtWork,
}

impl BackgroundRecords {
    pub(crate) fn new(records: Inner) -> Self {
        Self {
            batch: Batch::default(),
            encoder: Where::Here(records),
            _at_work: AtWork::begin(),
        }
    }

    #[cold]
    fn hand_over(&mut self) {
        self.encoder = match std::mem::replace(&mut self.encoder, Where::Nowhere) {
            Where::Here(records) => Encoder::start(records).map_or_else(Where::Here, Where::There),
            other => other,
        };
        match &mut self.encoder {
            Where::There(encoder) => encoder.hand_over(&mut self.batch),
            Where::Here(records) => self.batch.write_to(&mut **records),
            Where::Nowhere => self.batch = Batch::default(),
        }
    }

    /// The records, in this thread again.
    fn take_back(&mut self) -> Result<Inner, RunError> {
        match std::mem::replace(&mut self.encoder, Where::Nowhere) {
            Where::Here(records) => Ok(records),
            Where::There(encoder) => encoder.end(),
            Where::Nowhere => Err(RunError::Record("its records: an error came before".into())),
        }
    }
}

impl Records for BackgroundRecords {
    fn begin(&mut self, classes: &[String], probes: &[&'static str]) -> Result<(), RunError> {
        let mut records = self.take_back()?;
        let begun = records.begin(classes, probes);
        self.encoder = Where::Here(records);
        begun
    }

    fn capture(&mut self) -> Result<Option<Box<dyn Write + Send>>, RunError> {
        let mut records = self.take_back()?;
        let capture = records.capture();
        self.encoder = Where::Here(records);
        capture
    }

    fn response(&mut self, row: &Exchange) {
        self.batch.responses.push(*row);
        if self.batch.responses.len() >= ROWS {
            self.hand_over();
        }
    }

    fn flow(&mut self, row: &Flow) {
        self.batch.flows.push(*row);
        if self.batch.flows.len() >= ROWS {
            self.hand_over();
        }
    }

    fn trace(&mut self, row: &TraceRow) {
        self.batch.traces.push(*row);
        if self.batch.traces.len() >= ROWS {
            self.hand_over();
        }
    }

    fn queue(&mut self, samples: &QueueSamples) {
        if samples.rows().len() == 0 {
            return;
        }
        self.batch.sampled += samples.rows().len();
        self.batch.samples.push(samples.clone());
        if self.batch.sampled >= ROWS {
            self.hand_over();
        }
    }

    fn check(&mut self) -> Result<(), RunError> {
        match &mut self.encoder {
            Where::Here(records) => records.check(),
            Where::There(encoder) if !encoder.has_failed() => Ok(()),
            Where::There(_) | Where::Nowhere => self.take_back().map(drop),
        }
    }

    fn finish(
        mut self: Box<Self>,
        classes: &[ClassMetrics],
        links: &[&LinkStats],
    ) -> Result<(), RunError> {
        let mut records = self.take_back()?;
        self.batch.write_to(&mut *records);
        records.finish(classes, links)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;
    use std::sync::atomic::Ordering::SeqCst;

    use aqmlab_net::Time;

    use super::*;

    /// What happened to the rows.
    #[derive(Default)]
    struct Seen {
        recorded: AtomicUsize,
        written: AtomicUsize,
        most_waiting: AtomicUsize,
        finished: AtomicUsize,
    }

    /// Takes rows in their order, slowly, until one is not there any more.
    struct Slow {
        seen: Arc<Seen>,
        fails_at: u64,
        next: u64,
    }

    impl Records for Slow {
        fn begin(&mut self, _: &[String], _: &[&'static str]) -> Result<(), RunError> {
            Ok(())
        }

        fn response(&mut self, row: &Exchange) {
            assert_eq!(row.flow, self.next, "rows keep their order");
            self.next += 1;
            let written = self.seen.written.fetch_add(1, SeqCst);
            let waiting = self.seen.recorded.load(SeqCst) - written;
            self.seen.most_waiting.fetch_max(waiting, SeqCst);
            if written.is_multiple_of(ROWS) {
                thread::sleep(Duration::from_millis(1));
            }
        }

        fn flow(&mut self, _: &Flow) {}
        fn trace(&mut self, _: &TraceRow) {}
        fn queue(&mut self, _: &QueueSamples) {}

        fn check(&mut self) -> Result<(), RunError> {
            if self.next < self.fails_at {
                return Ok(());
            }
            Err(RunError::Record("this: the disk is full".to_owned()))
        }

        fn finish(
            mut self: Box<Self>,
            _: &[ClassMetrics],
            _: &[&LinkStats],
        ) -> Result<(), RunError> {
            self.check()?;
            self.seen.finished.fetch_add(1, SeqCst);
            Ok(())
        }
    }

    fn exchange(flow: u64) -> Exchange {
        Exchange {
            flow,
            class: 0,
            start: Time::ZERO,
            end: Time::ZERO,
            request_bytes: 0,
            response_bytes: 0,
            client: 0,
            server: 0,
        }
    }

    fn slow(fails_at: u64) -> (Box<BackgroundRecords>, Arc<Seen>) {
        let seen = Arc::new(Seen::default());
        let records = Box::new(Slow {
            seen: seen.clone(),
            fails_at,
            next: 0,
        });
        (Box::new(BackgroundRecords::new(records)), seen)
    }

    fn record(records: &mut BackgroundRecords, seen: &Seen, flow: u64) {
        seen.recorded.fetch_add(1, SeqCst);
        records.response(&exchange(flow));
    }

    #[test]
    fn all_rows_arrive_in_order_and_few_wait() {
        let (mut records, seen) = slow(u64::MAX);
        let rows = 40 * ROWS as u64 + 7;
        for flow in 0..rows {
            record(&mut records, &seen, flow);
        }
        records.check().unwrap();
        records.finish(&[], &[]).unwrap();
        assert_eq!(seen.written.load(SeqCst) as u64, rows);
        assert_eq!(seen.finished.load(SeqCst), 1);
        // Those in the queue, those that are being written, and those that wait for a place.
        let most = seen.most_waiting.load(SeqCst);
        assert!(most <= (WAITING + 2) * ROWS, "{most} rows wait");
    }

    #[test]
    fn an_error_there_is_told_once_and_ends_the_writing() {
        let fails_at = 3 * ROWS as u64;
        let (mut records, seen) = slow(fails_at);
        let mut flow = 0;
        let error = loop {
            record(&mut records, &seen, flow);
            flow += 1;
            if let Err(error) = records.check() {
                break error;
            }
        };
        assert_eq!(error.to_string(), "cannot write this: the disk is full");
        for flow in flow..flow + 3 * ROWS as u64 {
            record(&mut records, &seen, flow);
        }
        assert_eq!(seen.written.load(SeqCst) as u64, fails_at);
        assert!(records.finish(&[], &[]).is_err());
        assert_eq!(seen.finished.load(SeqCst), 0);
    }

    #[test]
    fn an_error_that_nobody_asked_for_is_told_at_the_end() {
        let (mut records, seen) = slow(2 * ROWS as u64);
        for flow in 0..20 * ROWS as u64 {
            record(&mut records, &seen, flow);
        }
        let error = records.finish(&[], &[]).unwrap_err();
        assert_eq!(error.to_string(), "cannot write this: the disk is full");
    }

    #[test]
    fn a_run_that_ends_early_waits_for_the_thread() {
        let (mut records, seen) = slow(u64::MAX);
        for flow in 0..5 * ROWS as u64 {
            record(&mut records, &seen, flow);
        }
        drop(records);
        assert_eq!(seen.written.load(SeqCst), 5 * ROWS);
        assert_eq!(seen.finished.load(SeqCst), 0);
    }

    #[test]
    fn the_threads_cpu_time_is_counted() {
        let before = encoding_time();
        let (mut records, seen) = slow(u64::MAX);
        for flow in 0..4 * ROWS as u64 {
            record(&mut records, &seen, flow);
        }
        records.finish(&[], &[]).unwrap();
        assert!(encoding_time() > before);
    }
}
