//! What an application does with its connections.
//!
//! Each end of a connection follows a program: [`Step`]s, one after the other. Whatever plays a
//! [`Script`], over simulated TCP or over real sockets, keeps for each end which step is next and
//! carries out four things: write, wait for bytes, let time pass, close. So a web transfer, a
//! recorded connection whose sides speak in turn and one whose sides speak at once are all played
//! by the same few lines.

use std::slice;

use aqmlab_net::{Ecn, Role, Time};

use crate::page::{Loading, Page};
use crate::vector::{Adu, Body};
use crate::written::Written;

/// What an application does next.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Step {
    /// Write so many bytes.
    Send(u64),
    /// Wait until so many more bytes have arrived: behind those that earlier steps waited for.
    Receive(u64),
    /// Wait until the other end has closed.
    ReceiveClose,
    /// Let so much time pass.
    Pause(Time),
    /// Only at the initiator, takes no time: an exchange begins here. The first one of a script
    /// needs no such step: it begins when the connection is asked for.
    Ask,
    /// Only at the initiator, takes no time: the exchange is over. Its response time is over too.
    Answered,
    /// Of a [`Script::Page`]: fetch it, or answer what it asks for.
    Load,
    /// Of a [`Script::Written`]: write what is due, until all is written.
    Produce,
    /// Close. Every program has one, and it is the last step.
    Close,
}

/// Request and response on a connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Exchange {
    /// Bytes that the client sends.
    pub request: u64,
    /// Time that the server takes, from the end of the request until it begins to answer.
    pub think: Time,
    /// Bytes that the server answers with.
    pub response: u64,
    /// Time between the end of the response and the next exchange; behind the last one, until the
    /// client closes, if it is the one that does.
    pub pause: Time,
}

impl Exchange {
    /// Request and response without a wait.
    pub const fn new(request: u64, response: u64) -> Self {
        Self {
            request,
            think: Time::ZERO,
            response,
            pause: Time::ZERO,
        }
    }
}

/// What happens on one connection: a program for each end. Those of request and response are not
/// written out, and the most common one needs no memory of its own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Script {
    /// One exchange; the acceptor, which is the server, closes right behind its last byte.
    Single(Exchange),
    /// Exchanges one after the other.
    Exchanges {
        /// In order; at least one.
        exchanges: Vec<Exchange>,
        /// Who closes: the acceptor right behind its last byte, or the initiator after the last
        /// pause.
        closer: Role,
    },
    /// Anything, step by step: what the initiator does, and what the acceptor does.
    Programs(Box<[Vec<Step>; 2]>),
    /// One exchange, whose response the acceptor writes little by little; it closes behind its last byte.
    Written(Box<Written>),
    /// Exchanges to which the source adds as it hears of answers ([`Action::Ask`]); at least one to
    /// begin with. Nobody closes.
    Open(Vec<Exchange>),
    /// A page of objects, which may come over streams of their own.
    Page(Box<Played>),
}

/// Steps of the client for each exchange: send, receive, answered, pause, ask.
const CLIENT_STEPS: usize = 5;

/// Steps of each end for the handshake of TLS: send and receive, or the other way round.
const TLS_STEPS: usize = 2;

/// Steps of the server for each exchange: receive, think, send.
const SERVER_STEPS: usize = 3;

impl Script {
    /// One exchange without a wait; the server closes.
    pub const fn single(request: u64, response: u64) -> Self {
        Self::Single(Exchange::new(request, response))
    }

    /// Exchanges one after the other, at least one.
    pub fn new(exchanges: Vec<Exchange>, closer: Role) -> Self {
        match (exchanges.as_slice(), closer) {
            (&[exchange], Role::Server) => Self::Single(exchange),
            _ => Self::Exchanges { exchanges, closer },
        }
    }

    /// The step number `index` of an end, counted from 0; `None` behind the last.
    #[inline]
    pub fn step(&self, party: Role, index: u32) -> Option<Step> {
        let index = index as usize;
        let (exchanges, closer) = match self {
            Self::Single(exchange) => return single_step(exchange, party, index),
            Self::Exchanges { exchanges, closer } => (exchanges.as_slice(), *closer),
            Self::Programs(programs) => return programs[party as usize].get(index).copied(),
            Self::Open(exchanges) => return open_step(exchanges, party, index),
            Self::Written(_) => return written_step(party, index),
            Self::Page(page) => return page.step(party, index),
        };
        match party {
            Role::Client => client_step(exchanges, closer, index),
            Role::Server => server_step(exchanges, closer, index),
        }
    }

    /// What an ideal path plays: there a response is written at once.
    pub(crate) fn at_once(&self) -> Option<Self> {
        match self {
            Self::Written(written) => Some(Self::single(REQUEST, written.total())),
            _ => None,
        }
    }

    /// The same without the handshake of TLS that it [begins with](Connect::begins_with_tls).
    pub fn without_tls(mut self) -> Self {
        if let Self::Programs(programs) = &mut self {
            for steps in programs.iter_mut() {
                steps.drain(..TLS_STEPS.min(steps.len()));
            }
        }
        self
    }

    /// The transport has streams: whether the script gives its objects streams of their own, as it does from
    /// then on.
    pub fn takes_streams(&mut self) -> bool {
        match self {
            Self::Page(played) => {
                played.page.has_streams = true;
                true
            }
            _ => false,
        }
    }

    /// All steps of an end.
    pub fn steps(&self, party: Role) -> impl Iterator<Item = Step> {
        (0..).map_while(move |index| self.step(party, index))
    }

    /// The exchanges of a script that has nothing else.
    pub fn exchanges(&self) -> &[Exchange] {
        match self {
            Self::Single(exchange) => slice::from_ref(exchange),
            Self::Exchanges { exchanges, .. } | Self::Open(exchanges) => exchanges,
            Self::Programs(_) | Self::Written(_) => &[],
            Self::Page(_) => &[],
        }
    }

    /// Bytes that initiator and acceptor send.
    pub fn bytes(&self) -> [u64; 2] {
        if let Self::Page(played) = self {
            return played.page.bytes();
        }
        if let Self::Written(written) = self {
            return [REQUEST, written.total()];
        }
        Role::BOTH.map(|party| {
            let sent = self.steps(party).map(|step| match step {
                Step::Send(bytes) => bytes,
                _ => 0,
            });
            sent.sum()
        })
    }

    /// Whether an exchange begins when the connection is asked for.
    pub fn asks_at_once(&self) -> bool {
        match self {
            Self::Single(_) | Self::Exchanges { .. } | Self::Open(_) | Self::Written(_) => true,
            Self::Programs(programs) => {
                let is_mark = |step: &&Step| matches!(step, Step::Ask | Step::Answered);
                programs[Role::Client as usize].iter().find(is_mark) == Some(&Step::Answered)
            }
            Self::Page(_) => true,
        }
    }
}

/// What [`client_step`] and [`server_step`] give for one exchange whose server closes: short,
/// because most connections of large runs have no other.
#[inline]
fn single_step(exchange: &Exchange, party: Role, index: usize) -> Option<Step> {
    match (party, index) {
        (Role::Client, 0) => Some(Step::Send(exchange.request)),
        (Role::Client, 1) => Some(Step::ReceiveClose),
        (Role::Client, 2) => Some(Step::Answered),
        (Role::Server, 0) => Some(Step::Receive(exchange.request)),
        (Role::Server, 1) => Some(Step::Pause(exchange.think)),
        (Role::Server, 2) => Some(Step::Send(exchange.response)),
        (_, 3) => Some(Step::Close),
        _ => None,
    }
}

/// The request of a response that is written little by little.
const REQUEST: u64 = 1;

/// A step of an exchange whose response is written little by little.
const fn written_step(party: Role, index: usize) -> Option<Step> {
    match (party, index) {
        (Role::Client, 0) => Some(Step::Send(REQUEST)),
        (Role::Client, 1) => Some(Step::ReceiveClose),
        (Role::Client, 2) => Some(Step::Answered),
        (Role::Server, 0) => Some(Step::Receive(REQUEST)),
        (Role::Server, 1) => Some(Step::Produce),
        (Role::Client, 3) | (Role::Server, 2) => Some(Step::Close),
        _ => None,
    }
}

/// A step of exchanges of which more may follow: behind the last one there is none, as yet.
fn open_step(exchanges: &[Exchange], party: Role, index: usize) -> Option<Step> {
    let per_exchange = match party {
        Role::Client => CLIENT_STEPS,
        Role::Server => SERVER_STEPS,
    };
    // The last of a client's steps asks for the next exchange.
    let asks = usize::from(party == Role::Client);
    if index + asks >= per_exchange * exchanges.len() {
        return None;
    }
    match party {
        Role::Client => client_step(exchanges, Role::Client, index),
        Role::Server => server_step(exchanges, Role::Client, index),
    }
}

/// A page, and how far it has come.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Played {
    pub(crate) page: Page,
    pub(crate) loading: Loading,
    /// What the server does where all objects share one stream.
    server: Vec<Step>,
}

impl Played {
    pub(crate) fn new(page: Page, server: Vec<Step>) -> Self {
        Self {
            loading: Loading::new(&page),
            page,
            server,
        }
    }

    fn step(&self, party: Role, index: usize) -> Option<Step> {
        let has_streams = self.page.has_streams;
        let tls = match self.page.tls.filter(|_| !has_streams) {
            Some([hello, certificate]) => &[Step::Send(hello), Step::Receive(certificate)][..],
            None => &[],
        };
        match party {
            Role::Client => {
                let steps = [Step::Load, Step::Answered, Step::Close];
                tls.iter().chain(&steps).nth(index).copied()
            }
            Role::Server if has_streams => (index == 0).then_some(Step::Load),
            Role::Server => self.server.get(index).copied(),
        }
    }
}

fn client_step(exchanges: &[Exchange], closer: Role, index: usize) -> Option<Step> {
    let exchange = exchanges.get(index / CLIENT_STEPS)?;
    let is_last = index / CLIENT_STEPS + 1 == exchanges.len();
    // Where the server closes behind its last byte, the response ends with that.
    let until_close = is_last && closer == Role::Server;
    match index % CLIENT_STEPS {
        0 => Some(Step::Send(exchange.request)),
        1 if until_close => Some(Step::ReceiveClose),
        1 => Some(Step::Receive(exchange.response)),
        2 => Some(Step::Answered),
        3 if until_close => Some(Step::Close),
        3 => Some(Step::Pause(exchange.pause)),
        _ if until_close => None,
        _ if is_last => Some(Step::Close),
        _ => Some(Step::Ask),
    }
}

fn server_step(exchanges: &[Exchange], closer: Role, index: usize) -> Option<Step> {
    if let Some(exchange) = exchanges.get(index / SERVER_STEPS) {
        return Some(match index % SERVER_STEPS {
            0 => Step::Receive(exchange.request),
            1 => Step::Pause(exchange.think),
            _ => Step::Send(exchange.response),
        });
    }
    match (index - SERVER_STEPS * exchanges.len(), closer) {
        (0, Role::Client) => Some(Step::ReceiveClose),
        (0, Role::Server) | (1, Role::Client) => Some(Step::Close),
        _ => None,
    }
}

impl From<&Body> for Script {
    fn from(body: &Body) -> Self {
        Self::Programs(Box::new(match body {
            Body::Sequential(adus) => sequential(adus),
            Body::Concurrent(sides) => sides.each_ref().map(|side| concurrent(side)),
        }))
    }
}

/// Both sides in turn.
fn sequential(adus: &[(Role, Adu)]) -> [Vec<Step>; 2] {
    let mut turns = Turns::default();
    // An ADU of 0 bytes is no more than its pause, added to the one before.
    let mut pause = Time::ZERO;
    for &(party, adu) in adus {
        if adu.bytes > 0 {
            turns.wait(party, pause);
            turns.send(party, adu.bytes);
            pause = Time::ZERO;
        }
        pause = pause.saturating_add(adu.pause);
    }
    let closer = adus.last().map_or(Role::Client, |&(party, _)| party);
    turns.wait(closer, pause);
    turns.push(closer, Step::Close);
    turns.wait(closer.other(), Time::ZERO);
    turns.push(closer.other(), Step::ReceiveClose);
    turns.push(closer.other(), Step::Close);
    turns.finish()
}

/// Writes the programs of two sides that speak in turn. What the acceptor sends between two ADUs
/// of the initiator answers what the initiator has sent before: together they are an exchange.
#[derive(Default)]
struct Turns {
    ends: [Vec<Step>; 2],
    /// Bytes that each side has sent and the other has not yet waited for.
    unread: [u64; 2],
    /// The exchange before is over, and no other has begun.
    answered: bool,
    /// Where the exchange under way begins in the initiator's program.
    asked: Option<usize>,
}

impl Turns {
    fn push(&mut self, party: Role, step: Step) {
        self.ends[party as usize].push(step);
    }

    /// A side waits for all that the other has sent, then for this time.
    fn wait(&mut self, party: Role, pause: Time) {
        let unread = std::mem::take(&mut self.unread[party.other() as usize]);
        if unread > 0 {
            self.push(party, Step::Receive(unread));
            if party == Role::Client {
                self.push(party, Step::Answered);
                self.answered = true;
                self.asked = None;
            }
        }
        if pause > Time::ZERO {
            self.push(party, Step::Pause(pause));
        }
    }

    fn send(&mut self, party: Role, bytes: u64) {
        if party == Role::Client && std::mem::take(&mut self.answered) {
            self.asked = Some(self.ends[0].len());
            self.push(party, Step::Ask);
        }
        self.push(party, Step::Send(bytes));
        self.unread[party as usize] += bytes;
    }

    /// What nobody has answered is no exchange.
    fn finish(mut self) -> [Vec<Step>; 2] {
        if let Some(unanswered) = self.asked {
            self.ends[0].remove(unanswered);
        }
        self.ends
    }
}

/// One side of two that do not wait for each other.
fn concurrent(adus: &[Adu]) -> Vec<Step> {
    let mut steps = Vec::with_capacity(2 * adus.len() + 2);
    for &Adu { bytes, pause } in adus {
        if bytes > 0 {
            steps.push(Step::Send(bytes));
        }
        steps.push(Step::Pause(pause));
    }
    if adus.is_empty() {
        steps.push(Step::ReceiveClose);
    }
    steps.push(Step::Close);
    steps
}

/// A connection to open now.
#[derive(Clone, Debug, PartialEq)]
pub struct Connect {
    /// Handed back to [`Source::on_finished`](crate::Source::on_finished). Several connections of
    /// a source may share one: it names the user, where there are users.
    pub token: u32,
    /// The client's host, numbered from 0 among the hosts of the side where clients sit.
    pub client: u32,
    /// The server's host, numbered from 0 among the hosts of the side where servers sit.
    pub server: u32,
    /// Minimum round-trip time.
    pub rtt: Time,
    /// Whether the sides are swapped: this connection's server is one of the dumbbell's client
    /// hosts, and its client one of the server hosts.
    pub flipped: bool,
    /// What happens on it.
    pub script: Script,
    /// What only few connections have.
    pub limits: Option<Box<Limits>>,
    /// The first message of each end in the script is its part of a TLS 1.3 handshake. A transport
    /// that has TLS in its own handshake plays the script [without it](Script::without_tls).
    pub begins_with_tls: bool,
}

/// What a connection has of its own, where others have what their class has.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Limits {
    /// Largest receive windows of client and server, in bytes.
    pub windows: [Option<u32>; 2],
    /// Largest segment, in bytes.
    pub segment: Option<u32>,
    /// Probability that a packet from the client, or from the server, is lost on its way.
    pub loss: [f64; 2],
}

/// A flow of datagrams, from a server to a client.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct OpenDatagrams {
    /// Names the flow: 0, 1, 2, ... in the order in which the source opens them.
    pub token: u32,
    /// The receiver's host, numbered from 0 among the hosts of the side where clients sit.
    pub client: u32,
    /// The sender's host, numbered from 0 among the hosts of the side where servers sit.
    pub server: u32,
    /// Minimum round-trip time.
    pub rtt: Time,
    /// Whether the sides are swapped, as in [`Connect`].
    pub flipped: bool,
    /// The ECN field of its datagrams.
    pub ecn: Ecn,
}

/// What a source wants done.
#[derive(Clone, Debug, PartialEq)]
pub enum Action {
    /// Open a connection.
    Connect(Connect),
    /// Get ready to send datagrams.
    OpenDatagrams(OpenDatagrams),
    /// Send a datagram now.
    Datagram {
        /// Which flow it belongs to.
        token: u32,
        /// IP bytes, headers included.
        size: u32,
    },
    /// A connection was not opened: the class has as many as it may.
    Refused,
    /// End all connections of the class now, at both ends. They have not failed.
    EndConnections,
    /// End the connection, or the transfer, with this token now, at both ends. It has not failed.
    EndConnection {
        /// Of [`Connect`].
        token: u32,
    },
    /// Add an exchange to the open script of the connection with this token, all of whose exchanges
    /// have been answered.
    Ask {
        /// Of [`Connect`].
        token: u32,
        /// What follows.
        exchange: Exchange,
    },
    /// Call [`Source::on_wake`](crate::Source::on_wake) with this token at that time.
    WakeAt {
        /// When.
        at: Time,
        /// Handed back.
        token: u32,
    },
}

impl Action {
    /// The token that it bears, if any.
    pub(crate) const fn token_mut(&mut self) -> Option<&mut u32> {
        match self {
            Self::Connect(connect) => Some(&mut connect.token),
            Self::OpenDatagrams(open) => Some(&mut open.token),
            Self::Datagram { token, .. }
            | Self::EndConnection { token }
            | Self::Ask { token, .. }
            | Self::WakeAt { token, .. } => Some(token),
            Self::Refused | Self::EndConnections => None,
        }
    }
}
