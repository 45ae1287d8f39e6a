//! Streams and flow control (RFC 9000, sections 2 to 4).

use std::collections::VecDeque;

use aqmlab_net::{Ranges, Role};

use crate::error::Error;
use crate::send::{Blocked, Outgoing, Piece};
use crate::table::Table;
use crate::wire::{Frame, Writer, length, stream_head};

/// What an end lets the other do (its transport parameters).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Limits {
    /// Bytes on all streams.
    pub data: u64,
    /// Bytes on each stream.
    pub stream: u64,
    /// Streams in both directions, and in one, that the other may have open.
    pub streams: [u64; 2],
}

/// What an application has to know of its streams.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Event {
    /// The handshake is complete.
    Established,
    /// The stream has bytes that can be read.
    Readable(u64),
    /// Everything on the stream has been read.
    Finished(u64),
    /// The peer has everything of what was written to the stream, and its end.
    Delivered(u64),
    /// The peer has given the stream up.
    Reset(u64),
    /// The connection is over: closed by the peer without an error, or not.
    Closed {
        /// 0: no error (RFC 9000, section 20).
        error: u64,
    },
    /// Nothing came for too long.
    TimedOut,
}

/// What a packet carried that may have to go again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Content {
    Ack {
        largest: u64,
    },
    Crypto {
        offset: u64,
        len: u64,
    },
    Stream {
        stream: u64,
        offset: u64,
        len: u64,
        fin: bool,
    },
    Reset {
        stream: u64,
    },
    MaxData,
    MaxStreamData {
        stream: u64,
    },
    MaxStreams {
        uni: bool,
    },
    DataBlocked {
        limit: u64,
    },
    StreamDataBlocked {
        stream: u64,
    },
    ConnectionId {
        number: u64,
    },
    HandshakeDone,
}

/// All that a packet carried that may have to go again: mostly one thing.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Contents {
    first: Option<Content>,
    more: Vec<Content>,
}

impl Contents {
    #[inline]
    pub(crate) fn push(&mut self, content: Content) {
        match self.first {
            None => self.first = Some(content),
            Some(_) => self.more.push(content),
        }
    }

    #[inline]
    pub(crate) fn is_empty(&self) -> bool {
        self.first.is_none()
    }

    #[inline]
    pub(crate) fn len(&self) -> usize {
        usize::from(self.first.is_some()) + self.more.len()
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = Content> + '_ {
        self.first.iter().chain(&self.more).copied()
    }

    /// The first thing, and others if there are any. Nothing is left.
    #[inline]
    pub(crate) fn take(&mut self) -> (Option<Content>, Option<Vec<Content>>) {
        let has_more = !self.more.is_empty();
        let more = has_more.then(|| std::mem::take(&mut self.more));
        (self.first.take(), more)
    }
}

/// The receiving half of a stream.
#[derive(Clone, Debug, Default)]
struct Incoming {
    received: Ranges,
    /// What the application has read.
    read: u64,
    /// Behind the highest byte that is known to be sent.
    highest: u64,
    end: Option<u64>,
    /// What the peer may send.
    limit: u64,
    is_reset: bool,
}

impl Incoming {
    /// Bytes that can be read, in order.
    fn readable(&self) -> u64 {
        match self.received.first() {
            Some((0, to)) => to - self.read,
            _ => 0,
        }
    }

    fn is_done(&self) -> bool {
        self.is_reset || self.end == Some(self.read)
    }

    /// Bytes up to `to` are known to be sent, with `total` more allowed on all streams: how many are
    /// new.
    #[inline]
    fn count(&mut self, to: u64, total: u64) -> Result<u64, Error> {
        let more = to.saturating_sub(self.highest);
        if to > self.limit || more > total {
            return Err(Error::FlowControl);
        }
        self.highest += more;
        Ok(more)
    }
}

/// All streams of a connection.
#[derive(Clone, Debug)]
pub(crate) struct Streams {
    role: Role,
    local: Limits,
    /// What the peer lets us send on a new stream.
    peer_stream: u64,
    sending: Table<Outgoing>,
    receiving: Table<Incoming>,
    /// Streams with something to send, behind their ranks, in the order of these and in turns.
    ready: VecDeque<(u64, u64)>,
    /// Frames that are to be sent.
    pending: Vec<Content>,
    /// New bytes sent on all streams, and the peer's limit of them.
    sent: u64,
    max_data: u64,
    blocked_at: Option<u64>,
    /// Bytes known to be sent to us, those that were read, and our limit.
    received: u64,
    read: u64,
    limit: u64,
    /// By direction: streams that we have opened, and the peer lets us; that the peer has opened, and
    /// we let it.
    opened: [u64; 2],
    may_open: [u64; 2],
    peer_opened: [u64; 2],
    peer_may_open: [u64; 2],
    /// What the last MAX_STREAMS frames said of that.
    peer_knows: [u64; 2],
    pub(crate) events: VecDeque<Event>,
}

/// Bytes of the longest frame beside those of streams: a connection id and its token.
const LONGEST: usize = 32;

/// Bits of a rank that are below its urgency.
const RANK_BITS: u32 = 60;

/// Whether a stream goes one way only.
const fn is_uni(stream: u64) -> bool {
    stream & 2 > 0
}

impl Streams {
    pub(crate) fn new(role: Role, local: Limits) -> Self {
        Self {
            role,
            local,
            peer_stream: 0,
            sending: Table::new(),
            receiving: Table::new(),
            ready: VecDeque::new(),
            pending: Vec::new(),
            sent: 0,
            max_data: 0,
            blocked_at: None,
            received: 0,
            read: 0,
            limit: local.data,
            opened: [0; 2],
            may_open: [0; 2],
            peer_opened: [0; 2],
            peer_may_open: local.streams,
            peer_knows: local.streams,
            events: VecDeque::new(),
        }
    }

    /// The peer's limits are known, or remembered.
    pub(crate) fn set_peer(&mut self, peer: &Limits) {
        self.max_data = self.max_data.max(peer.data);
        self.peer_stream = self.peer_stream.max(peer.stream);
        for (may, limit) in self.may_open.iter_mut().zip(peer.streams) {
            *may = limit.max(*may);
        }
        let ids: Vec<u64> = self.sending.numbers();
        for id in ids {
            if let Some(stream) = self.sending.get_mut(id) {
                stream.limit = stream.limit.max(peer.stream);
            }
            self.queue(id);
        }
    }

    /// 0-RTT was rejected: all that was sent in it goes again, within limits that are new.
    pub(crate) fn start_over(&mut self) {
        (self.sent, self.max_data, self.peer_stream) = (0, 0, 0);
        for stream in self.sending.values_mut() {
            stream.start_over(0);
        }
    }

    /// So many further connection ids are the peer's to use (RFC 9000, section 5.1.1).
    pub(crate) fn issue_ids(&mut self, count: u64) {
        // The one that is pended last goes first.
        for number in (1..=count).rev() {
            self.pend(Content::ConnectionId { number });
        }
    }

    fn is_ours(&self, stream: u64) -> bool {
        stream & 1 == self.role as u64
    }

    // ---- the application ----

    /// Opens a stream, if the peer lets us.
    pub(crate) fn open(&mut self, uni: bool) -> Option<u64> {
        let way = usize::from(uni);
        if self.opened[way] >= self.may_open[way] {
            return None;
        }
        let id = self.opened[way] << 2 | u64::from(uni) << 1 | self.role as u64;
        self.opened[way] += 1;
        self.sending.insert(id, Outgoing::new(self.peer_stream));
        if !uni {
            self.receiving.insert(id, self.incoming());
        }
        Some(id)
    }

    fn incoming(&self) -> Incoming {
        Incoming {
            limit: self.local.stream,
            ..Incoming::default()
        }
    }

    pub(crate) fn write(&mut self, stream: u64, bytes: u64, close: bool) {
        if let Some(sending) = self.sending.get_mut(stream) {
            sending.written += bytes;
            sending.closed |= close;
            self.queue(stream);
        }
    }

    /// Gives a stream of ours, or the answer on one of the peer, its place among the others (RFC 9218): the
    /// lowest urgency goes first; within it, one stream after the other in the order of their numbers.
    pub(crate) fn rank(&mut self, stream: u64, urgency: u8) {
        if let Some(sending) = self.sending.get_mut(stream) {
            sending.rank = u64::from(urgency) << RANK_BITS | (stream + 1);
            if std::mem::take(&mut sending.is_queued) {
                self.ready.retain(|it| it.1 != stream);
                self.queue(stream);
            }
        }
    }

    /// Gives a stream up that is being sent.
    pub(crate) fn reset(&mut self, stream: u64) {
        if let Some(sending) = self.sending.get_mut(stream)
            && sending.reset.is_none()
        {
            sending.reset = Some(sending.sent);
            self.pend(Content::Reset { stream });
        }
    }

    /// Bytes that can be read of a stream.
    pub(crate) fn readable(&self, stream: u64) -> u64 {
        self.receiving.get(stream).map_or(0, Incoming::readable)
    }

    /// Reads at most so many bytes of a stream: that is what gives the peer credit for more.
    pub(crate) fn read(&mut self, stream: u64, most: u64) -> u64 {
        let Some(receiving) = self.receiving.get_mut(stream) else {
            return 0;
        };
        let bytes = receiving.readable().min(most);
        receiving.read += bytes;
        self.read += bytes;
        // The window opens by half of itself at a time.
        let window = self.local.stream;
        let opens = receiving.end.is_none() && receiving.limit < receiving.read + window / 2;
        if opens {
            receiving.limit = receiving.read + window;
        }
        let is_done = receiving.is_done();
        if opens {
            self.pend(Content::MaxStreamData { stream });
        }
        self.open_connection();
        if is_done {
            self.events.push_back(Event::Finished(stream));
            self.close_receiving(stream);
        }
        bytes
    }

    fn open_connection(&mut self) {
        if self.limit < self.read + self.local.data / 2 {
            self.limit = self.read + self.local.data;
            self.pend(Content::MaxData);
        }
    }

    fn close_receiving(&mut self, stream: u64) {
        self.receiving.remove(stream);
        self.close(stream);
    }

    /// A half of a stream is over: if both are, the peer may open a new stream.
    fn close(&mut self, stream: u64) {
        let is_open = self.receiving.contains(stream) || self.sending.contains(stream);
        if is_open || self.is_ours(stream) {
            return;
        }
        let way = usize::from(is_uni(stream));
        self.peer_may_open[way] += 1;
        // A frame says so when half of what it may open is left.
        if self.peer_knows[way].saturating_sub(self.peer_opened[way]) <= self.local.streams[way] / 2
        {
            self.peer_knows[way] = self.peer_may_open[way];
            self.pend(Content::MaxStreams { uni: way == 1 });
        }
    }

    // ---- frames that arrive ----

    /// The receiving half of a stream that a frame names; none: it is over.
    #[inline]
    fn receiving(&mut self, stream: u64) -> Result<Option<&mut Incoming>, Error> {
        self.meet(stream)?;
        if self.is_ours(stream) && is_uni(stream) {
            return Err(Error::StreamState);
        }
        Ok(self.receiving.get_mut(stream))
    }

    fn sending(&mut self, stream: u64) -> Result<Option<&mut Outgoing>, Error> {
        self.meet(stream)?;
        if !self.is_ours(stream) && is_uni(stream) {
            return Err(Error::StreamState);
        }
        Ok(self.sending.get_mut(stream))
    }

    /// A frame names a stream: those of the peer exist from then on, with all that are older.
    #[inline]
    fn meet(&mut self, stream: u64) -> Result<(), Error> {
        let way = usize::from(is_uni(stream));
        if !self.is_ours(stream) && stream >> 2 < self.peer_opened[way] {
            return Ok(());
        }
        self.meet_another(stream, way)
    }

    /// The same of all but the streams that the peer has opened.
    fn meet_another(&mut self, stream: u64, way: usize) -> Result<(), Error> {
        let number = stream >> 2;
        if self.is_ours(stream) {
            return match number < self.opened[way] {
                true => Ok(()),
                false => Err(Error::StreamState),
            };
        }
        if number >= self.peer_may_open[way] {
            return Err(Error::StreamLimit);
        }
        while self.peer_opened[way] <= number {
            let id = self.peer_opened[way] << 2 | (stream & 3);
            self.peer_opened[way] += 1;
            self.receiving.insert(id, self.incoming());
            if way == 0 {
                self.sending.insert(id, Outgoing::new(self.peer_stream));
            }
        }
        Ok(())
    }

    pub(crate) fn on_data(
        &mut self,
        stream: u64,
        (offset, len): (u64, u64),
        fin: bool,
    ) -> Result<(), Error> {
        let to = offset + len;
        let total = self.limit - self.received;
        let Some(receiving) = self.receiving(stream)? else {
            return Ok(());
        };
        let ends_elsewhere = match receiving.end {
            Some(end) => to > end || (fin && to != end),
            None => fin && to < receiving.highest,
        };
        if ends_elsewhere {
            return Err(Error::FinalSize);
        }
        let more = receiving.count(to, total)?;
        let mut is_news = false;
        if !receiving.is_reset {
            let before = receiving.readable();
            receiving.received.insert(offset, to);
            let ends = fin && receiving.end.is_none();
            if ends {
                receiving.end = Some(to);
            }
            is_news = receiving.readable() > before || (ends && receiving.is_done());
        }
        self.received += more;
        if is_news {
            self.events.push_back(Event::Readable(stream));
        }
        Ok(())
    }

    fn on_reset(&mut self, stream: u64, size: u64) -> Result<(), Error> {
        let total = self.limit - self.received;
        let Some(receiving) = self.receiving(stream)? else {
            return Ok(());
        };
        if receiving.end.is_some_and(|end| end != size) || size < receiving.highest {
            return Err(Error::FinalSize);
        }
        let more = receiving.count(size, total)?;
        // The rest counts as read: nobody will.
        let unread = size - receiving.read;
        self.received += more;
        self.read += unread;
        self.open_connection();
        self.events.push_back(Event::Reset(stream));
        self.close_receiving(stream);
        Ok(())
    }

    pub(crate) fn on_frame(&mut self, frame: &Frame) -> Result<(), Error> {
        match *frame {
            Frame::Stream {
                stream,
                offset,
                len,
                fin,
            } => {
                self.on_data(stream, (offset, len), fin)?;
            }
            Frame::Reset { stream, size, .. } => self.on_reset(stream, size)?,
            Frame::StopSending { stream, .. } => {
                self.sending(stream)?;
                self.reset(stream);
            }
            Frame::MaxData(limit) => {
                self.max_data = self.max_data.max(limit);
                let waiting: Vec<u64> = self.sending.numbers();
                for stream in waiting {
                    self.queue(stream);
                }
            }
            Frame::MaxStreamData { stream, limit } => {
                if let Some(sending) = self.sending(stream)? {
                    sending.limit = sending.limit.max(limit);
                    self.queue(stream);
                }
            }
            Frame::MaxStreams { uni, limit } => {
                let may = &mut self.may_open[usize::from(uni)];
                *may = limit.max(*may);
            }
            // The other end is blocked: limits rise as data is read, whether it says so or not.
            _ => {}
        }
        Ok(())
    }

    // ---- for records ----

    /// Whether the peer's limits hold data back.
    pub(crate) fn are_held(&self) -> bool {
        let has_credit = self.credit() > 0;
        let mut sending = self.sending.values();
        sending.any(|it| it.is_blocked() || (!has_credit && it.written > it.sent))
    }

    /// Up to which number a stream is acknowledged, or will never go again.
    pub(crate) fn acknowledged(&self, stream: u64) -> u64 {
        let sending = self.sending.get(stream);
        sending.map_or(u64::MAX, Outgoing::acknowledged)
    }

    // ---- what leaves ----

    fn credit(&self) -> u64 {
        self.max_data - self.sent
    }

    /// A stream may have something to send.
    fn queue(&mut self, stream: u64) {
        let limits = (self.credit(), self.max_data);
        let Some(sending) = self.sending.get_mut(stream) else {
            return;
        };
        let blocked = sending.report_blocked(limits, &mut self.blocked_at);
        if !sending.is_queued && sending.has_work(limits.0) {
            sending.is_queued = true;
            let turn = (sending.rank, stream);
            self.wait(turn);
        }
        if let Some(limit) = blocked {
            self.pend_blocked(stream, limit);
        }
    }

    /// A stream waits for its turn.
    #[inline]
    fn wait(&mut self, turn: (u64, u64)) {
        if self.ready.back().is_none_or(|last| last.0 <= turn.0) {
            self.ready.push_back(turn);
        } else {
            let place = self.ready.partition_point(|it| it.0 <= turn.0);
            self.ready.insert(place, turn);
        }
    }

    /// A frame is to say which limit holds a stream back.
    #[cold]
    fn pend_blocked(&mut self, stream: u64, limit: Blocked) {
        self.pend(match limit {
            Blocked::Stream => Content::StreamDataBlocked { stream },
            Blocked::Connection(limit) => Content::DataBlocked { limit },
        });
    }

    /// A frame is to be sent, once.
    fn pend(&mut self, content: Content) {
        if !self.pending.contains(&content) {
            self.pending.push(content);
        }
    }

    pub(crate) fn has_work(&self) -> bool {
        !self.pending.is_empty() || !self.ready.is_empty()
    }

    /// Writes what is to be sent, until the packet is full at `end` bytes on the wire.
    pub(crate) fn fill(&mut self, writer: &mut Writer<'_>, end: usize, sent: &mut Contents) {
        while let Some(content) = self.pending.last().copied() {
            if end.saturating_sub(writer.wire) < LONGEST {
                return;
            }
            self.pending.pop();
            if let Some(frame) = self.frame(content) {
                writer.frame(&frame);
                sent.push(content);
            }
        }
        while let Some(&(_, stream)) = self.ready.front() {
            if !self.fill_from(stream, writer, end, sent) {
                return;
            }
        }
    }

    /// Writes a piece of a stream, whose turn then is over; false if the packet is full.
    #[inline]
    fn fill_from(
        &mut self,
        stream: u64,
        writer: &mut Writer<'_>,
        end: usize,
        contents: &mut Contents,
    ) -> bool {
        let credit = self.credit();
        let Some(sending) = self.sending.get_mut(stream) else {
            self.ready.pop_front();
            return true;
        };
        // New data has the longest offset.
        let room = end.saturating_sub(writer.wire);
        let most = stream_head(stream, sending.sent);
        if room < most + 2 {
            return false;
        }
        let piece = sending.next((room - most) as u64, credit);
        let new = piece.map_or(0, |piece| piece.new);
        let limits = (credit - new, self.max_data);
        self.sent += new;
        let blocked = sending.report_blocked(limits, &mut self.blocked_at);
        // Its turn is over; alone, it stays where it is.
        sending.is_queued = sending.has_work(limits.0);
        let turn = (sending.rank, stream);
        if !sending.is_queued {
            self.ready.pop_front();
        } else if self.ready.len() > 1 {
            self.ready.pop_front();
            self.wait(turn);
        }
        if let Some(limit) = blocked {
            self.pend_blocked(stream, limit);
        }
        let Some(Piece {
            offset, len, fin, ..
        }) = piece
        else {
            return true;
        };
        // No length where the next frame would find no room behind it.
        let (head, of_length) = (stream_head(stream, offset), length(len));
        let is_full = room - head - (len as usize) < of_length;
        let head = if is_full { head } else { head + of_length };
        writer.stream(stream, (offset, len), fin, head);
        contents.push(Content::Stream {
            stream,
            offset,
            len,
            fin,
        });
        !is_full
    }

    /// The frame with its present values, or nothing if its stream has ended.
    fn frame(&self, content: Content) -> Option<Frame> {
        Some(match content {
            Content::Reset { stream } => Frame::Reset {
                stream,
                error: 0,
                size: self.sending.get(stream)?.reset?,
            },
            Content::MaxData => Frame::MaxData(self.limit),
            Content::MaxStreamData { stream } => Frame::MaxStreamData {
                stream,
                limit: self.receiving.get(stream)?.limit,
            },
            Content::MaxStreams { uni } => Frame::MaxStreams {
                uni,
                limit: self.peer_may_open[usize::from(uni)],
            },
            Content::ConnectionId { number } => Frame::NewConnectionId(number),
            Content::DataBlocked { limit } if limit == self.max_data => Frame::DataBlocked(limit),
            Content::StreamDataBlocked { stream } => {
                let sending = self.sending.get(stream).filter(|it| it.is_blocked())?;
                Frame::StreamDataBlocked {
                    stream,
                    limit: sending.limit,
                }
            }
            _ => return None,
        })
    }

    /// What a packet carried is to go again.
    pub(crate) fn lose(&mut self, content: Content) {
        match content {
            Content::Stream {
                stream,
                offset,
                len,
                fin,
            } => {
                if let Some(sending) = self.sending.get_mut(stream) {
                    sending.lose(offset, offset + len, fin);
                    self.queue(stream);
                }
            }
            other => self.pend(other),
        }
    }

    /// What a packet carried has arrived.
    #[inline]
    pub(crate) fn acknowledge(&mut self, content: Content) {
        let (Content::Stream { stream, .. } | Content::Reset { stream }) = content else {
            return;
        };
        let Some(sending) = self.sending.get_mut(stream) else {
            return;
        };
        match content {
            Content::Stream {
                offset, len, fin, ..
            } => sending.acknowledge(offset, offset + len, fin),
            _ => sending.reset_acked = true,
        }
        if sending.is_done() {
            self.sending.remove(stream);
            self.events.push_back(Event::Delivered(stream));
            self.close(stream);
        }
    }
}
