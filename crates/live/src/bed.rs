//! The bed: two network namespaces, a TUN device in each, nothing else. A namespace has no other
//! device and no way out: its addresses exist for nobody but the two of them.
//!
//! No namespace has a name: files of this process hold them, so that the kernel removes them with
//! their devices when the process ends, however it ends.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::os::fd::AsFd;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::thread;

use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::LiveError;
use crate::kernel::{leave_network, open_tun};
use crate::routes::Side;
use crate::stack::{OPTIONAL, Stack};

/// The device in each namespace.
pub(crate) const DEVICE: &str = "aqmlab0";
/// Packets that a TUN device holds until the router reads them: more than a router that keeps its
/// bounds ever leaves there.
const DEVICE_QUEUE: u32 = 20_000;

/// Two namespaces, servers' first. They go when this is dropped.
#[derive(Debug)]
pub(crate) struct Bed([Namespace; 2]);

/// A namespace and its kernel's tables.
#[derive(Debug)]
struct Namespace {
    itself: File,
    /// `/proc/net/dev`: all devices.
    devices: File,
    /// `/proc/net/route`: what goes through them, as long as they are up.
    routes: File,
}

/// How a namespace is set up.
#[derive(Debug)]
pub(crate) struct Place {
    /// Files below `/proc/sys/net`, and what is written into them.
    pub(crate) settings: Vec<(&'static str, String)>,
    /// Largest packet.
    pub(crate) mtu: u64,
    /// What `ip` is asked once the devices are up, by line.
    pub(crate) commands: String,
}

impl Place {
    /// The side of a scenario's hosts: all addresses of its prefix are here, those of the other
    /// behind the device.
    fn of_hosts(side: Side, stack: &Stack) -> Self {
        let (here, there) = (side.prefix(), side.other().prefix());
        let window = stack.initial_window;
        Self {
            settings: stack.settings.clone(),
            mtu: stack.mtu,
            commands: format!(
                "route add local {here} dev lo\n\
                 route add {there} dev {DEVICE} initcwnd {window}\n"
            ),
        }
    }
}

impl Bed {
    /// Makes the namespaces of a scenario's hosts and their devices; also what the router reads and
    /// writes, servers' side first.
    pub(crate) fn new(stack: &Stack) -> Result<(Self, [File; 2]), LiveError> {
        Self::of(&Side::BOTH.map(|side| Place::of_hosts(side, stack)))
    }

    /// Makes two namespaces and their devices, servers' side first.
    pub(crate) fn of([servers, clients]: &[Place; 2]) -> Result<(Self, [File; 2]), LiveError> {
        let (servers, servers_device) = make(servers)?;
        let (clients, clients_device) = make(clients)?;
        Ok((Self([servers, clients]), [servers_device, clients_device]))
    }

    /// Does something in the namespace of a side, on a thread of its own.
    pub(crate) fn inside<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LiveError> {
        on_a_thread(|| self.enter(side).map(|()| work()))
    }

    /// Moves this thread into the namespace of a side, for good.
    pub(crate) fn enter(&self, side: Side) -> Result<(), LiveError> {
        let namespace = self.0[side as usize].itself.as_fd();
        move_into_link_name_space(namespace, Some(LinkNameSpaceType::Network))
            .map_err(|error| failed("entering a network namespace", &error))
    }

    /// Packets that the device of a side dropped because the router did not read them in time.
    pub(crate) fn device_drops(&self, side: Side) -> u64 {
        let table = read_again(&self.0[side as usize].devices).unwrap_or_default();
        transmit_drops(&table, DEVICE).unwrap_or(0)
    }

    /// What somebody has done to the device of a side, as the rest of a sentence.
    pub(crate) fn harm(&self, side: Side) -> Option<&'static str> {
        let Namespace {
            devices, routes, ..
        } = &self.0[side as usize];
        let lists = |table| read_again(table).is_ok_and(|text| has_line_of(&text, DEVICE));
        if !lists(devices) {
            Some("was removed")
        } else if !lists(routes) {
            Some("was taken down")
        } else {
            None
        }
    }
}

fn make(place: &Place) -> Result<(Namespace, File), LiveError> {
    on_a_thread(|| {
        leave_network().map_err(|error| failed("making a network namespace", &error))?;
        for (key, value) in &place.settings {
            let path = Path::new("/proc/sys/net").join(key);
            match fs::write(&path, value) {
                Err(_) if OPTIONAL.contains(key) => {}
                Err(error) => return Err(failed(&path.display().to_string(), &error)),
                Ok(()) => {}
            }
        }
        let device = open_tun(DEVICE).map_err(|error| failed("/dev/net/tun", &error))?;
        let Place { mtu, commands, .. } = place;
        ip(&format!(
            "link set lo up\n\
             link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE} up\n\
             {commands}"
        ))?;
        let open = |name: &str| {
            let path = Path::new("/proc/thread-self").join(name);
            File::open(&path).map_err(|error| failed(&path.display().to_string(), &error))
        };
        let namespace = Namespace {
            itself: open("ns/net")?,
            devices: open("net/dev")?,
            routes: open("net/route")?,
        };
        Ok((namespace, device))
    })
}

/// Does something on a thread of its own, which may change where it is.
fn on_a_thread<T: Send>(work: impl FnOnce() -> T + Send) -> T {
    thread::scope(|scope| scope.spawn(work).join().expect("the work does not panic"))
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> LiveError {
    LiveError::Bed(format!("{what}: {error}"))
}

/// Has the `ip` command of iproute2 do several things in the namespace of this thread.
fn ip(batch: &str) -> Result<(), LiveError> {
    let error_of = |error: &dyn std::fmt::Display| failed("ip -batch", error);
    let mut child = Command::new("ip")
        .args(["-batch", "-"])
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| error_of(&error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that ends early says why on its own.
        let _ = stdin.write_all(batch.as_bytes());
    }
    let output = child.wait_with_output().map_err(|error| error_of(&error))?;
    if output.status.success() {
        return Ok(());
    }
    Err(error_of(&String::from_utf8_lossy(&output.stderr).trim()))
}

/// The whole of a file of the kernel as it is now, whatever was read of it before.
fn read_again(file: &File) -> io::Result<String> {
    let (mut text, mut chunk) = (Vec::new(), [0; 4096]);
    loop {
        match file.read_at(&mut chunk, text.len() as u64)? {
            0 => return Ok(String::from_utf8_lossy(&text).into_owned()),
            size => text.extend_from_slice(&chunk[..size]),
        }
    }
}

/// Whether a line of a table is about a device.
fn has_line_of(table: &str, device: &str) -> bool {
    table.lines().any(|line| {
        let name = line.split_whitespace().next().unwrap_or_default();
        name.trim_end_matches(':') == device
    })
}

/// The transmit drops of a device in `/proc/net/dev`.
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let (_, numbers) = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == device)?;
    numbers.split_whitespace().nth(11)?.parse().ok()
}

/// The limit of open files, raised as far as this process may, until this is dropped: a connection
/// takes two files, one at each end.
#[derive(Debug)]
pub(crate) struct FileLimit(Rlimit);

impl FileLimit {
    pub(crate) fn raise() -> Self {
        let limit = getrlimit(Resource::Nofile);
        let raised = Rlimit {
            current: limit.maximum,
            maximum: limit.maximum,
        };
        // Without it connections fail sooner, and the run says so.
        let _ = setrlimit(Resource::Nofile, raised);
        Self(limit)
    }

    /// The limit that the caller of this process has set: that of its programs.
    pub(crate) const fn of_caller(&self) -> &Rlimit {
        &self.0
    }
}

impl Drop for FileLimit {
    fn drop(&mut self) {
        let Rlimit { current, maximum } = self.0;
        let _ = setrlimit(Resource::Nofile, Rlimit { current, maximum });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn drops_of_a_device() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n    \
                     lo:  1  2  3  4  5  6  7  8  9  10  11  12  13  14  15  16\n\
                     aqmlab0: 1  2  3  4  5  6  7  8  9  10  11  77  13  14  15  16\n";
        assert_eq!(transmit_drops(table, "aqmlab0"), Some(77));
        assert_eq!(transmit_drops(table, "eth0"), None);
        assert!(has_line_of(table, "aqmlab0"));
        assert!(!has_line_of(table, "aqmlab"));
        let routes = "Iface\tDestination\tGateway\naqmlab0\t0000800A\t00000000\n";
        assert!(has_line_of(routes, "aqmlab0"));
        assert!(!has_line_of("Iface\tDestination\tGateway\n", "aqmlab0"));
    }
}
