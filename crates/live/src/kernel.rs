//! Requests to the kernel for which there is no safe wrapper.
#![expect(
    unsafe_code,
    reason = "TUNSETIFF, TCP_INFO, sched_setscheduler, recvmsg: each is one system call on a buffer that \
              lives longer; unshare of the network has no effect on memory or files"
)]

use std::fs::{File, OpenOptions};
use std::io;
use std::mem::{size_of_val, zeroed};
use std::os::fd::{AsFd, AsRawFd};
use std::os::unix::fs::OpenOptionsExt;

use rustix::thread::{UnshareFlags, unshare_unsafe};

/// Moves this thread into a network namespace of its own, for good.
pub(crate) fn leave_network() -> io::Result<()> {
    // SAFETY: nothing of this process but the network that this thread sees depends on it; files
    // and memory stay shared.
    unsafe { unshare_unsafe(UnshareFlags::NEWNET) }.map_err(io::Error::from)
}

/// Opens a TUN device in the network namespace of this thread: bare IP packets, no offloading,
/// gone when the file is closed. Reads and writes do not block.
pub(crate) fn open_tun(name: &str) -> io::Result<File> {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(libc::O_NONBLOCK | libc::O_CLOEXEC)
        .open("/dev/net/tun")?;
    // SAFETY: an ifreq is plain integers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { zeroed() };
    if name.len() >= request.ifr_name.len() {
        return Err(io::ErrorKind::InvalidInput.into());
    }
    for (to, from) in request.ifr_name.iter_mut().zip(name.bytes()) {
        *to = from as libc::c_char;
    }
    request.ifr_ifru.ifru_flags = (libc::IFF_TUN | libc::IFF_NO_PI) as libc::c_short;
    // SAFETY: the kernel reads and writes one ifreq, which is ours.
    let done = unsafe { libc::ioctl(file.as_raw_fd(), libc::TUNSETIFF, &raw mut request) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(file)
}

/// Lets this thread run as soon as it can, before all that has no such priority or a lower one
/// (`SCHED_FIFO`, 1 to 99).
pub(crate) fn run_first(priority: i32) -> io::Result<()> {
    // SAFETY: a sched_param is plain integers, for which zero is a value.
    let mut parameters: libc::sched_param = unsafe { zeroed() };
    parameters.sched_priority = priority;
    // SAFETY: the kernel reads one sched_param, which is ours; 0 is this thread.
    let done = unsafe { libc::sched_setscheduler(0, libc::SCHED_FIFO, &raw const parameters) };
    if done < 0 {
        return Err(io::Error::last_os_error());
    }
    Ok(())
}

/// Where the kernel's `struct tcp_info` counts expiries of the retransmission timer: 16 bits,
/// `tcpi_total_rto`, since Linux 6.7. The order of its fields never changes.
const TOTAL_RTO: usize = 240;

/// Where it has the smoothed round trip: 32 bits, `tcpi_rtt`, in microseconds.
const ROUND_TRIP: usize = 68;

/// How often the retransmission timer of a TCP socket has expired; nothing if the kernel is too
/// old to count it.
pub(crate) fn timeouts(socket: impl AsFd) -> Option<u32> {
    tcp_info(socket, TOTAL_RTO).map(|field| u32::from(u16::from_ne_bytes(field)))
}

/// The smoothed round trip of what a TCP socket sends, in microseconds.
pub(crate) fn round_trip(socket: impl AsFd) -> Option<u32> {
    tcp_info(socket, ROUND_TRIP).map(u32::from_ne_bytes)
}

/// A field of the kernel's `struct tcp_info`; nothing if the kernel has none there.
fn tcp_info<const SIZE: usize>(socket: impl AsFd, place: usize) -> Option<[u8; SIZE]> {
    let mut info = [0_u8; 512];
    let mut len = info.len() as libc::socklen_t;
    // SAFETY: the kernel writes at most `len` bytes, the size of the buffer, and sets `len` to how
    // many it wrote.
    let done = unsafe {
        libc::getsockopt(
            socket.as_fd().as_raw_fd(),
            libc::IPPROTO_TCP,
            libc::TCP_INFO,
            info.as_mut_ptr().cast(),
            &raw mut len,
        )
    };
    let field = info.get(place..place + SIZE)?;
    let is_there = done == 0 && len as usize >= place + SIZE;
    is_there.then(|| field.try_into().expect("it is as long"))
}

/// Receives a datagram and the byte of type of service (DSCP and ECN) that it came with. The socket
/// has `IP_RECVTOS`; without it, and over IPv6, the byte is 0.
pub(crate) fn receive_with_tos(socket: impl AsFd, buffer: &mut [u8]) -> io::Result<(usize, u8)> {
    // Aligned as a cmsghdr has to be.
    let mut control = [0_u64; 8];
    let mut part = libc::iovec {
        iov_base: buffer.as_mut_ptr().cast(),
        iov_len: buffer.len(),
    };
    // SAFETY: a msghdr is plain integers and pointers, for which zero is a value.
    let mut message: libc::msghdr = unsafe { zeroed() };
    message.msg_iov = &raw mut part;
    message.msg_iovlen = 1;
    message.msg_control = control.as_mut_ptr().cast();
    message.msg_controllen = size_of_val(&control) as _;
    // SAFETY: the kernel writes at most as much as the buffers are said to hold.
    let size = unsafe { libc::recvmsg(socket.as_fd().as_raw_fd(), &raw mut message, 0) };
    if size < 0 {
        return Err(io::Error::last_os_error());
    }
    let mut tos = 0;
    // SAFETY: the kernel has set how much of the control buffer is there; the macros go through it,
    // and the data of IP_TOS is one byte.
    unsafe {
        let mut header = libc::CMSG_FIRSTHDR(&raw const message);
        while let Some(found) = header.as_ref() {
            if found.cmsg_level == libc::IPPROTO_IP && found.cmsg_type == libc::IP_TOS {
                tos = *libc::CMSG_DATA(header);
            }
            header = libc::CMSG_NXTHDR(&raw const message, header);
        }
    }
    Ok((size as usize, tos))
}
