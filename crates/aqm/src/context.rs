//! What a scheduler may ask for while it takes a packet in.

/// Random numbers, and what most disciplines never ask of a packet. A closure that draws is a
/// context without details.
pub trait Context {
    /// A random number, uniform on [0, 1).
    fn draw(&mut self) -> f64;

    /// What else is known of the packet, if anything is. It may cost time to find out.
    fn details(&self) -> Option<Details> {
        None
    }

    /// The client host of the details: it takes less time than all of them.
    fn client(&self) -> Option<u32> {
        self.details()?.client
    }
}

impl<F: FnMut() -> f64> Context for F {
    #[inline]
    fn draw(&mut self) -> f64 {
        self()
    }
}

/// What can be found out of a packet. A closure finds out everything at once.
pub trait Known {
    /// All of it.
    fn details(&self) -> Details;

    /// The client host of the details.
    fn client(&self) -> Option<u32> {
        self.details().client
    }
}

impl<F: Fn() -> Details> Known for F {
    fn details(&self) -> Details {
        self()
    }
}

/// What a discipline that looks deeper into packets may know of one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Details {
    /// Numbers of the hosts that send and receive it.
    pub hosts: [u64; 2],
    /// The number of the client host at one of its ends, counted from 0 on that side.
    pub client: Option<u32>,
    /// What it acknowledges, of a TCP segment with ACK and without SYN.
    pub ack: Option<Ack>,
}

/// What a TCP segment acknowledges.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Ack {
    /// The acknowledgement number.
    pub number: u32,
    /// Whether it does nothing else: no data, and no control bits but ACK and those of ECN.
    pub is_pure: bool,
    /// ECE, CWR and AE as they stand in the header: what ECN or the counter of Accurate ECN says.
    pub ecn: u8,
    /// SACK blocks: first sequence number and the one behind the last.
    pub sack: Vec<(u32, u32)>,
}
