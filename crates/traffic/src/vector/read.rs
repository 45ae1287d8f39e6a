//! Reads connection vectors, in either text format, one at a time.

use std::io::{self, BufRead, Read, Seek};

use aqmlab_net::{Role, Time};

use super::types::{
    Adu, Body, CLOSE_AFTER, ConnectionVector, MAX_ADUS, MAX_BYTES, MAX_LINE, MAX_TIME, VectorError,
};

/// The shortest pause: what a stated time of 0 is read as.
const SHORTEST: Time = Time::from_micros(1);

/// Why a line is refused.
type Refusal = String;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Format {
    Original,
    Alternate,
}

/// Reads connection vectors in order of their start times, in memory that does not depend on how
/// many there are. Knows both formats by their first head line. Ends at the first error.
#[derive(Debug)]
pub struct VectorReader<R> {
    input: R,
    text: Vec<u8>,
    /// Number of the line in `text`.
    line: u64,
    format: Option<Format>,
    /// The vector whose lines are coming.
    draft: Option<Draft>,
    last_start: Time,
    /// The end of the file, or an error.
    ended: bool,
}

impl<R: BufRead> VectorReader<R> {
    /// Reads from the beginning of a file.
    pub const fn new(input: R) -> Self {
        Self {
            input,
            text: Vec::new(),
            line: 0,
            format: None,
            draft: None,
            last_start: Time::ZERO,
            ended: false,
        }
    }

    /// Number of the line that was read last, counted from 1.
    pub const fn line(&self) -> u64 {
        self.line
    }

    /// The next vector; `None` at the end of the file.
    fn read(&mut self) -> Result<Option<ConnectionVector>, VectorError> {
        while self.read_line()? {
            let number = self.line;
            let refuse = |message| VectorError {
                line: number,
                message,
            };
            let line = std::str::from_utf8(&self.text)
                .map_err(|_| refuse("found bytes that are not text".to_owned()))?;
            let fields: Vec<&str> = line.split_ascii_whitespace().collect();
            if fields.is_empty() || line.starts_with('#') {
                continue;
            }
            if let Some((format, concurrent)) = head(fields[0]) {
                if *self.format.get_or_insert(format) != format {
                    let message = format!(
                        "found {:?}, a head line of the other format than those before",
                        fields[0]
                    );
                    return Err(refuse(message));
                }
                let next = Draft::new(number, concurrent, &fields, self.last_start);
                let next = next.map_err(refuse)?;
                self.last_start = next.vector.start;
                if let Some(complete) = self.draft.replace(next) {
                    return complete.finish(format).map(Some);
                }
                continue;
            }
            let (Some(draft), Some(format)) = (&mut self.draft, self.format) else {
                let message = format!(
                    "found {:?}; a vector begins with SEQ or CONC, or with S or C",
                    shortened(line)
                );
                return Err(refuse(message));
            };
            draft.add(format, &fields).map_err(refuse)?;
        }
        match (self.draft.take(), self.format) {
            (Some(complete), Some(format)) => complete.finish(format).map(Some),
            _ if self.format.is_none() => Err(VectorError {
                line: self.line.max(1),
                message: "the file ends without a connection vector".to_owned(),
            }),
            _ => Ok(None),
        }
    }

    /// Reads a line into `text`, without its end; false at the end of the file.
    fn read_line(&mut self) -> Result<bool, VectorError> {
        self.text.clear();
        self.line += 1;
        let refuse = |message| VectorError {
            line: self.line,
            message,
        };
        let limit = MAX_LINE as u64 + 1;
        let length = (&mut self.input)
            .take(limit)
            .read_until(b'\n', &mut self.text)
            .map_err(|error| refuse(format!("cannot be read: {error}")))?;
        if length == 0 {
            self.line -= 1;
            return Ok(false);
        }
        if self.text.last() != Some(&b'\n') {
            return Err(refuse(if length as u64 == limit {
                format!("found more than {MAX_LINE} bytes; no line may be longer")
            } else {
                "the file ends in the middle of a line; it may have been cut off".to_owned()
            }));
        }
        self.text.pop();
        Ok(true)
    }
}

impl<R: BufRead + Seek> VectorReader<R> {
    /// Goes back to the beginning of the file.
    pub fn rewind(&mut self) -> io::Result<()> {
        self.input.rewind()?;
        (self.line, self.last_start, self.ended) = (0, Time::ZERO, false);
        (self.format, self.draft) = (None, None);
        Ok(())
    }
}

impl<R: BufRead> Iterator for VectorReader<R> {
    type Item = Result<ConnectionVector, VectorError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let vector = self.read();
        self.ended = !matches!(vector, Ok(Some(_)));
        vector.transpose()
    }
}

/// Whether a line with this first word begins a vector: its format, and whether it is concurrent.
fn head(word: &str) -> Option<(Format, bool)> {
    match word {
        "SEQ" => Some((Format::Original, false)),
        "CONC" => Some((Format::Original, true)),
        "S" => Some((Format::Alternate, false)),
        "C" => Some((Format::Alternate, true)),
        _ => None,
    }
}

/// A vector whose lines are being read. A concurrent one has a list of ADUs per side; a sequential
/// one has all in the first list.
#[derive(Debug)]
struct Draft {
    line: u64,
    concurrent: bool,
    vector: ConnectionVector,
    adus: [Vec<(Role, Adu)>; 2],
    /// The last ADU of this list has been given its pause (original format).
    paused: [bool; 2],
    /// The attributes that have been seen.
    attributes: Vec<char>,
}

impl Draft {
    fn new(line: u64, concurrent: bool, fields: &[&str], earliest: Time) -> Result<Self, Refusal> {
        let counts = if concurrent { 2 } else { 1 };
        expect_fields(fields, 3 + counts)?;
        for count in &fields[2..2 + counts] {
            whole(count, "a number of ADUs", u64::MAX)?;
        }
        let start = time(fields[1])?;
        if start < earliest {
            return Err(format!(
                "found a start time of {} after one of {}; vectors are in order of start time",
                fields[1],
                earliest.as_nanos() / 1000
            ));
        }
        let id = whole(fields[3 + counts], "an identity", u64::MAX)?;
        Ok(Self {
            line,
            concurrent,
            vector: ConnectionVector {
                start,
                id,
                body: Body::Sequential(Vec::new()),
                windows: [None; 2],
                segments: [None; 2],
                rtt: None,
                loss: None,
            },
            adus: [Vec::new(), Vec::new()],
            paused: [false; 2],
            attributes: Vec::new(),
        })
    }

    /// Takes a line that is not a head line.
    fn add(&mut self, format: Format, fields: &[&str]) -> Result<(), Refusal> {
        match (format, self.concurrent, fields[0]) {
            (_, _, word @ ("w" | "m" | "r" | "l")) => self.attribute(word, fields),
            (Format::Original, false, ">") => self.original_adu(Role::Client, fields),
            (Format::Original, false, "<") => self.original_adu(Role::Server, fields),
            (Format::Original, false, "t") => self.original_pause(0, fields),
            (Format::Original, true, "c>") => self.original_adu(Role::Client, fields),
            (Format::Original, true, "c<") => self.original_adu(Role::Server, fields),
            (Format::Original, true, "t>") => self.original_pause(0, fields),
            (Format::Original, true, "t<") => self.original_pause(1, fields),
            (Format::Alternate, _, "I") => self.alternate_adu(Role::Client, fields),
            (Format::Alternate, _, "A") => self.alternate_adu(Role::Server, fields),
            _ => {
                let right = match (format, self.concurrent) {
                    (Format::Original, false) => ">, < or t",
                    (Format::Original, true) => "c>, c<, t> or t<",
                    (Format::Alternate, _) => "I or A",
                };
                Err(format!(
                    "found {:?}; a line of this vector begins with {right}, or with w, m, r or l",
                    shortened(fields[0])
                ))
            }
        }
    }

    fn attribute(&mut self, word: &str, fields: &[&str]) -> Result<(), Refusal> {
        if self.adus.iter().any(|list| !list.is_empty()) {
            return Err(format!("found {word:?} behind an ADU; attributes go first"));
        }
        let name = word.chars().next().unwrap_or_default();
        if self.attributes.contains(&name) {
            return Err(format!("found a second {word:?} line in one vector"));
        }
        self.attributes.push(name);
        expect_fields(fields, if name == 'r' { 1 } else { 2 })?;
        let vector = &mut self.vector;
        match name {
            'w' => vector.windows = [known(fields[1])?, known(fields[2])?],
            'm' => vector.segments = [known(fields[1])?, known(fields[2])?],
            'r' => vector.rtt = Some(time(fields[1])?).filter(|&rtt| rtt > Time::ZERO),
            _ => vector.loss = Some([probability(fields[1])?, probability(fields[2])?]),
        }
        Ok(())
    }

    /// The list that an ADU of this side belongs to.
    const fn list(&self, party: Role) -> usize {
        if self.concurrent { party as usize } else { 0 }
    }

    /// Puts an ADU behind those of its list, to be followed by the close if nothing else comes.
    fn push(&mut self, party: Role, bytes: &str) -> Result<(), Refusal> {
        let list = self.list(party);
        let bytes = whole(bytes, "a size in bytes", MAX_BYTES)?;
        if self.adus.iter().map(Vec::len).sum::<usize>() == MAX_ADUS {
            return Err(format!(
                "found more than {MAX_ADUS} ADUs in the vector of line {}; no vector may have more",
                self.line
            ));
        }
        let pause = CLOSE_AFTER;
        self.adus[list].push((party, Adu { bytes, pause }));
        self.paused[list] = false;
        Ok(())
    }

    fn original_adu(&mut self, party: Role, fields: &[&str]) -> Result<(), Refusal> {
        expect_fields(fields, 1)?;
        let list = self.list(party);
        if !self.adus[list].is_empty() && !self.paused[list] {
            return Err("found an ADU right behind another; a time stands between two".to_owned());
        }
        self.push(party, fields[1])
    }

    fn original_pause(&mut self, list: usize, fields: &[&str]) -> Result<(), Refusal> {
        expect_fields(fields, 1)?;
        if self.paused[list] {
            return Err("found a time right behind another; an ADU stands between two".to_owned());
        }
        let Some((_, last)) = self.adus[list].last_mut() else {
            return Err("found a time before the first ADU; it stands behind one".to_owned());
        };
        last.pause = time(fields[1])?.max(SHORTEST);
        self.paused[list] = true;
        Ok(())
    }

    fn alternate_adu(&mut self, party: Role, fields: &[&str]) -> Result<(), Refusal> {
        expect_fields(fields, 3)?;
        let after_sending = time(fields[1])?;
        let after_receiving = time(fields[2])?;
        let list = self.list(party);
        let (used, unused) = match self.adus[list].last() {
            Some((previous, _)) if *previous != party => (after_receiving, after_sending),
            Some(_) => (after_sending, after_receiving),
            None => (Time::ZERO, after_sending.max(after_receiving)),
        };
        if unused > Time::ZERO {
            return Err(if self.adus[list].is_empty() {
                "found a first ADU that waits; both its times are 0".to_owned()
            } else {
                format!(
                    "found times {} and {}; an ADU waits after sending (the first) if its side \
                     sent the one before, else after receiving (the second)",
                    fields[1], fields[2]
                )
            });
        }
        if let Some((_, previous)) = self.adus[list].last_mut() {
            previous.pause = used.max(SHORTEST);
        }
        self.push(party, fields[3])
    }

    /// No line of this vector is left.
    fn finish(mut self, format: Format) -> Result<ConnectionVector, VectorError> {
        if self.adus.iter().all(Vec::is_empty) {
            return Err(VectorError {
                line: self.line,
                message: "found a vector without an ADU; it must have at least one".to_owned(),
            });
        }
        if format == Format::Alternate {
            self.adus.iter_mut().for_each(close_at_zero_bytes);
        }
        let [first, second] = self.adus;
        self.vector.body = if self.concurrent {
            let bare = |list: Vec<(Role, Adu)>| list.into_iter().map(|(_, adu)| adu).collect();
            Body::Concurrent([bare(first), bare(second)])
        } else {
            Body::Sequential(first)
        };
        Ok(self.vector)
    }
}

/// In the alternate format a last ADU of 0 bytes is the close: the pause before it, which the ADU
/// before it has got, is all that it says.
fn close_at_zero_bytes(adus: &mut Vec<(Role, Adu)>) {
    let before = adus.len().checked_sub(2).map(|index| adus[index].0);
    match adus.last_mut() {
        Some((party, Adu { bytes: 0, .. })) if before == Some(*party) => {
            adus.pop();
        }
        Some((_, Adu { bytes: 0, pause })) => *pause = SHORTEST,
        _ => {}
    }
}

fn expect_fields(fields: &[&str], number: usize) -> Result<(), Refusal> {
    if fields.len() == number + 1 {
        return Ok(());
    }
    Err(format!(
        "found {} fields behind {:?}; there must be {number}",
        fields.len() - 1,
        fields[0]
    ))
}

/// A whole number in decimal digits, at most `most`.
fn whole(field: &str, what: &str, most: u64) -> Result<u64, Refusal> {
    match field.parse() {
        Ok(number) if number <= most => Ok(number),
        Ok(_) => Err(format!(
            "found {what} of {field}; it must not exceed {most}"
        )),
        Err(_) => Err(format!(
            "found {:?}, which is not {what}: a whole number",
            shortened(field)
        )),
    }
}

fn time(field: &str) -> Result<Time, Refusal> {
    let most = MAX_TIME.as_nanos() / 1000;
    whole(field, "a time in microseconds", most).map(Time::from_micros)
}

/// A number of bytes, or 0 if it is not known.
fn known(field: &str) -> Result<Option<u32>, Refusal> {
    let bytes = whole(field, "a number of bytes", u64::from(u32::MAX))?;
    Ok(u32::try_from(bytes).ok().filter(|&bytes| bytes > 0))
}

fn probability(field: &str) -> Result<f64, Refusal> {
    match field.parse() {
        Ok(share) if (0.0..=1.0).contains(&share) => Ok(share),
        _ => Err(format!(
            "found a probability of {:?}; it must be a number from 0 to 1",
            shortened(field)
        )),
    }
}

/// The beginning of what was found, if it is long.
fn shortened(text: &str) -> &str {
    const LONGEST: usize = 40;
    let cut = text.char_indices().nth(LONGEST);
    cut.map_or(text, |(index, _)| &text[..index])
}
