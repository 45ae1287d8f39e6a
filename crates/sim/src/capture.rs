//! A capture of a link, as pcapng.
//!
//! Packets are taken as they arrive at the link's ports, before the queues: what a queue drops, or
//! the wire loses, is in the capture. Addresses and ports are made of the hosts' and the
//! connections' numbers. SYNs announce segment size and window scale even where a profile's SYN
//! has no room for options; then they are longer here than on the simulated link. All other lengths
//! are the link's: options that a profile has room for and does not carry are no-operations here.

use std::io::{self, Write};
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;

use aqmlab_capture::{CaptureWriter, Checksums, PacketImage, TcpImage, Transport};
use aqmlab_net::{Role, Time};
use aqmlab_record::{LinkDirection, RunError};
use aqmlab_scenario as scenario;
use aqmlab_tcp::{AccEcnOption, Flags, MAX_SACK_BLOCKS, Options, Profile};

use crate::event::Event;
use crate::route::Routes;

/// IP and TCP headers without options.
const BARE_HEADERS: u64 = 40;

/// Writes the packets of one link.
pub(crate) struct Capture {
    writer: CaptureWriter<Box<dyn Write + Send>>,
    /// The link's forward port; the reverse one follows.
    first_port: usize,
    after: Time,
    until: Time,
    /// By class and sender.
    stacks: Vec<[Stack; 2]>,
    failed: Option<io::Error>,
}

/// What segments show of their sender's profile.
#[derive(Clone, Copy, Debug)]
struct Stack {
    segment: u64,
    buffer: u64,
    /// Bytes of TCP options: of a SYN and of all other segments.
    options: [u8; 2],
}

impl Stack {
    fn of(profile: &Profile) -> Self {
        Self {
            segment: profile.mss.0,
            buffer: profile.receive_buffer.0,
            options: [profile.syn_header, profile.header].map(|header| {
                let options = header.0.saturating_sub(BARE_HEADERS) as u8;
                options - options % 4
            }),
        }
    }
}

impl Capture {
    /// Begins to write; `ports` are the names of all ports, `profiles` those of the classes.
    pub(crate) fn new<'a>(
        sink: Box<dyn Write + Send>,
        wanted: &scenario::Capture,
        ports: &[LinkDirection],
        profiles: impl Iterator<Item = &'a [Arc<Profile>; 2]>,
    ) -> Result<Self, RunError> {
        let first_port = ports
            .iter()
            .position(|port| port.link == wanted.link)
            .expect("the link has been checked");
        let names = [0, 1].map(|port| {
            let LinkDirection { link, direction } = &ports[first_port + port];
            format!("{link} {direction}")
        });
        let checksums = match wanted.checksums {
            scenario::Checksums::Valid => Checksums::Valid,
            scenario::Checksums::Zero => Checksums::Zero,
        };
        let snap = wanted.snap_length.0 as u32;
        let names = [names[0].as_str(), names[1].as_str()];
        let writer = CaptureWriter::new(sink, &names, snap, checksums)
            .map_err(|error| unwritable(&error))?;
        Ok(Self {
            writer,
            first_port,
            after: wanted.after,
            until: wanted.until.unwrap_or(Time::NEVER),
            stacks: profiles
                .map(|ends| ends.each_ref().map(|profile| Stack::of(profile)))
                .collect(),
            failed: None,
        })
    }

    /// Writes what is left, and tells the first error.
    pub(crate) fn finish(self) -> Result<(), RunError> {
        let written = match self.failed {
            Some(error) => Err(error),
            None => self.writer.into_inner().map(drop),
        };
        written.map_err(|error| unwritable(&error))
    }

    /// The interface of a packet at this port, if it is to be captured.
    fn interface(&self, time: Time, port: usize) -> Option<u32> {
        let number = port
            .checked_sub(self.first_port)
            .filter(|&number| number < 2)?;
        let is_wanted = (self.after..self.until).contains(&time) && self.failed.is_none();
        is_wanted.then_some(number as u32)
    }

    /// A packet arrives at a port.
    pub(crate) fn take(
        &mut self,
        time: Time,
        port: usize,
        event: &Event,
        routes: &Routes,
        options: &Options,
    ) {
        let Some(interface) = self.interface(time, port) else {
            return;
        };
        let sender = event.sender();
        let route = routes.of(sender);
        let addresses = [Role::Client, Role::Server]
            .map(|side| address(side, routes.of(side).node, routes.flow()));
        let blocks = options.sack_blocks();
        let count = blocks.len();
        let mut sack = [(0, 0); MAX_SACK_BLOCKS];
        for (kept, block) in sack.iter_mut().zip(blocks) {
            *kept = block;
        }
        let accecn = options.accecn();
        let kind = |option: &AccEcnOption| if option.is_ect1_first() { 174 } else { 172 };
        let transport = if route.are_datagrams {
            Transport::Udp
        } else {
            Transport::Tcp(TcpImage {
                sack_permitted: options.sack_permitted(),
                timestamps: options
                    .timestamps()
                    .map(|stamps| (stamps.value, stamps.echo)),
                sack: &sack[..count],
                accecn: accecn.as_ref().map(|it| (kind(it), it.fields())),
                ..header(
                    self.stacks[usize::from(route.class)][sender as usize],
                    event,
                )
            })
        };
        let written = self.writer.write(&PacketImage {
            time,
            interface,
            source: addresses[sender as usize],
            destination: addresses[sender.other() as usize],
            ecn: event.ecn(),
            dscp: route.dscp,
            transport,
            payload: event.len.into(),
        });
        self.failed = written.err();
    }
}

fn unwritable(error: &io::Error) -> RunError {
    RunError::Record(format!("capture.pcapng: {error}"))
}

/// Hosts are numbered in 10.0.0.0/8. Every connection has a pair of ports of its own: the server's
/// is a system port, the client's is none, and together they number 60 million connections.
fn address(side: Role, node: u32, flow: u64) -> SocketAddr {
    const CLIENT_PORTS: u64 = 65_536 - 1024;
    const SERVER_PORTS: u64 = 1024 - 80;
    let port = match side {
        Role::Client => 1024 + flow % CLIENT_PORTS,
        Role::Server => 80 + flow / CLIENT_PORTS % SERVER_PORTS,
    };
    let host = Ipv4Addr::from_bits(10 << 24 | (node + 1));
    SocketAddr::from((host, port as u16))
}

/// Numbers, flags and window of a segment, and what a SYN announces besides SACK.
fn header<'a>(stack: Stack, event: &Event) -> TcpImage<'a> {
    const BITS: [(Flags, u8); 6] = [
        (Flags::FIN, 0x01),
        (Flags::SYN, 0x02),
        (Flags::RST, 0x04),
        (Flags::ACK, 0x10),
        (Flags::ECE, 0x40),
        (Flags::CWR, 0x80),
    ];
    let flags = event.flags();
    let set = BITS.iter().filter(|(flag, _)| flags.has(*flag));
    let is_syn = flags.has(Flags::SYN);
    let buffer = stack.buffer;
    let scale = (0..14)
        .find(|scale| buffer >> scale <= u64::from(u16::MAX))
        .unwrap_or(14);
    // The window of a SYN itself is not scaled (RFC 7323, section 2.2).
    let window = if is_syn { buffer } else { buffer >> scale };
    TcpImage {
        seq: event.seq,
        ack: if flags.has(Flags::ACK) { event.ack } else { 0 },
        flags: set.fold(0, |bits, (_, bit)| bits | bit),
        ae: flags.has(Flags::AE),
        window: window.min(u16::MAX.into()) as u16,
        segment_size: is_syn.then_some(stack.segment as u16),
        window_scale: is_syn.then_some(scale as u8),
        room: stack.options[usize::from(!is_syn)],
        ..TcpImage::default()
    }
}
