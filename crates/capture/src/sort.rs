//! Puts vectors into the order of their starts.
//!
//! Connections end in another order than they began, and one may last as long as the capture. So
//! finished vectors are collected as text, and what exceeds the memory set aside for them is
//! written to scratch space in sorted runs, which are merged in the end (Knuth, The Art of Computer
//! Programming 3, section 5.4).

use std::cmp::Reverse;
use std::collections::BinaryHeap;
use std::io::{self, BufRead, BufReader, BufWriter, Read, Seek, Write};

use aqmlab_net::Time;

/// Where a vector stands in the order: its start, then the order in which they ended.
type Rank = (u64, u64);

/// Bytes of text that are held in memory.
const MEMORY: usize = 32 << 20;

/// Sorts texts; `F` gives an empty file whenever one is needed.
pub(crate) struct Sorter<F, S> {
    scratch: F,
    memory: usize,
    text: Vec<u8>,
    entries: Vec<Entry>,
    count: u64,
    runs: Vec<S>,
}

struct Entry {
    rank: Rank,
    from: usize,
    to: usize,
}

impl<F, S> Sorter<F, S>
where
    F: FnMut() -> io::Result<S>,
    S: Read + Write + Seek,
{
    pub(crate) const fn new(scratch: F) -> Self {
        Self::with_memory(scratch, MEMORY)
    }

    const fn with_memory(scratch: F, memory: usize) -> Self {
        Self {
            scratch,
            memory,
            text: Vec::new(),
            entries: Vec::new(),
            count: 0,
            runs: Vec::new(),
        }
    }

    /// Adds what `write` writes.
    pub(crate) fn push(
        &mut self,
        start: Time,
        write: impl FnOnce(&mut Vec<u8>) -> io::Result<()>,
    ) -> io::Result<()> {
        let from = self.text.len();
        write(&mut self.text)?;
        self.entries.push(Entry {
            rank: (start.as_nanos(), self.count),
            from,
            to: self.text.len(),
        });
        self.count += 1;
        if self.text.len() + self.entries.len() * size_of::<Entry>() > self.memory {
            self.spill()?;
        }
        Ok(())
    }

    /// Writes everything in order.
    pub(crate) fn finish(mut self, out: &mut impl Write) -> io::Result<()> {
        if self.runs.is_empty() {
            self.entries.sort_unstable_by_key(|entry| entry.rank);
            for entry in &self.entries {
                out.write_all(&self.text[entry.from..entry.to])?;
            }
            return Ok(());
        }
        self.spill()?;
        merge(self.runs, out)
    }

    /// Writes what is in memory as a sorted run.
    fn spill(&mut self) -> io::Result<()> {
        let mut writer = BufWriter::new((self.scratch)()?);
        self.entries.sort_unstable_by_key(|entry| entry.rank);
        for entry in &self.entries {
            let text = &self.text[entry.from..entry.to];
            for number in [entry.rank.0, entry.rank.1, text.len() as u64] {
                writer.write_all(&number.to_le_bytes())?;
            }
            writer.write_all(text)?;
        }
        self.runs.push(writer.into_inner()?);
        self.entries.clear();
        self.text.clear();
        Ok(())
    }
}

/// Merges sorted runs.
fn merge<S: Read + Seek>(runs: Vec<S>, out: &mut impl Write) -> io::Result<()> {
    let mut heads = BinaryHeap::new();
    let mut readers = Vec::with_capacity(runs.len());
    for (index, mut run) in runs.into_iter().enumerate() {
        run.rewind()?;
        let mut reader = BufReader::with_capacity(MERGE_BUFFER, run);
        heads.extend(head(&mut reader)?.map(|(rank, len)| Reverse((rank, index, len))));
        readers.push(reader);
    }
    while let Some(Reverse((_, index, len))) = heads.pop() {
        let reader = &mut readers[index];
        io::copy(&mut reader.by_ref().take(len), out)?;
        heads.extend(head(reader)?.map(|(rank, len)| Reverse((rank, index, len))));
    }
    Ok(())
}

/// Rank and length of a run's next text, `None` at its end.
fn head<S: Read>(run: &mut BufReader<S>) -> io::Result<Option<(Rank, u64)>> {
    if run.fill_buf()?.is_empty() {
        return Ok(None);
    }
    let mut number = || {
        let mut bytes = [0; 8];
        run.read_exact(&mut bytes)?;
        io::Result::Ok(u64::from_le_bytes(bytes))
    };
    Ok(Some(((number()?, number()?), number()?)))
}

/// Bytes of each run that are held while they are merged.
const MERGE_BUFFER: usize = 1 << 16;

#[cfg(test)]
mod tests {
    use std::io::Cursor;

    use super::*;

    /// Sorts numbers, as texts, by themselves; returns the result and the number of runs.
    fn sorted(memory: usize, numbers: &[u64]) -> (Vec<u64>, usize) {
        let mut files = 0;
        let scratch = || {
            files += 1;
            Ok(Cursor::new(Vec::new()))
        };
        let mut sorter = Sorter::with_memory(scratch, memory);
        for &number in numbers {
            let write = |text: &mut Vec<u8>| writeln!(text, "{number}");
            sorter.push(Time::from_nanos(number / 10), write).unwrap();
        }
        let mut out = Vec::new();
        sorter.finish(&mut out).unwrap();
        let lines = String::from_utf8(out).unwrap();
        (
            lines.lines().map(|line| line.parse().unwrap()).collect(),
            files,
        )
    }

    /// Equal starts stay in the order in which they came.
    #[test]
    fn runs_in_scratch_files_give_the_order_that_memory_gives() {
        let numbers: Vec<u64> = (0..5000).map(|n| n * 7919 % 3001).collect();
        let mut expected = numbers.clone();
        expected.sort_by_key(|number| number / 10);
        assert_eq!(sorted(1 << 20, &numbers), (expected.clone(), 0));
        let (merged, files) = sorted(4096, &numbers);
        assert_eq!(merged, expected);
        assert!(files > 10, "{files}");
    }

    #[test]
    fn nothing_is_sorted_into_nothing() {
        assert_eq!(sorted(0, &[]), (vec![], 0));
    }
}
