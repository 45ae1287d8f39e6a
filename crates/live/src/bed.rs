//! The bed: two network namespaces, a TUN device in each, nothing else. A namespace has no other
//! device and no way out: its addresses exist for nobody but the two of them.
//!
//! Names tell whose a namespace is: `aqmlab-PID-START-NUMBER-SIDE`, with the process that made it
//! and the moment at which that process started (in clock ticks since boot), so that a process of
//! the same number is not taken for it. What a killed process leaves behind is found by its name.

use std::fs::{self, File};
use std::io::Write as _;
use std::os::fd::AsFd;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio, id};
use std::sync::atomic::{AtomicU32, Ordering::Relaxed};
use std::thread;

use rustix::thread::{LinkNameSpaceType, move_into_link_name_space};

use crate::error::LiveError;
use crate::kernel::open_tun;
use crate::routes::Side;
use crate::stack::{OPTIONAL, Stack};

const PREFIX: &str = "aqmlab";
/// Where `ip netns` keeps the names of namespaces.
const NAMES: &str = "/run/netns";
/// The device in each namespace.
const DEVICE: &str = "aqmlab0";
/// Packets that a TUN device holds until the router reads them: more than a router that keeps its
/// bounds ever leaves there.
const DEVICE_QUEUE: u32 = 20_000;

/// Counts the beds of this process.
static BEDS: AtomicU32 = AtomicU32::new(0);

/// Two namespaces. They go when this is dropped.
#[derive(Debug)]
pub(crate) struct Bed {
    names: [String; 2],
}

impl Bed {
    /// Makes the namespaces and their devices; also what the router reads and writes, servers'
    /// side first.
    pub(crate) fn new(stack: &Stack) -> Result<(Self, [File; 2]), LiveError> {
        let start = started(id()).unwrap_or_default();
        let number = BEDS.fetch_add(1, Relaxed);
        let base = format!("{PREFIX}-{}-{start}-{number}", id());
        let bed = Self {
            names: Side::BOTH.map(|side| format!("{base}-{}", side.name())),
        };
        // The bed exists before its parts: whatever fails from here on, its end removes them.
        let servers = bed.make(Side::Servers, stack)?;
        let clients = bed.make(Side::Clients, stack)?;
        Ok((bed, [servers, clients]))
    }

    fn make(&self, side: Side, stack: &Stack) -> Result<File, LiveError> {
        let name = &self.names[side as usize];
        ip(&["netns", "add", name], "")?;
        let device = self.inside(side, || -> Result<File, LiveError> {
            for (key, value) in &stack.settings {
                let path = Path::new("/proc/sys/net").join(key);
                match fs::write(&path, value) {
                    Err(_) if OPTIONAL.contains(key) => {}
                    Err(error) => return Err(failed(&path.display().to_string(), &error)),
                    Ok(()) => {}
                }
            }
            open_tun(DEVICE).map_err(|error| failed("/dev/net/tun", &error))
        })??;
        let (here, there) = (side.prefix(), side.other().prefix());
        let (mtu, window) = (stack.mtu, stack.initial_window);
        let batch = format!(
            "link set lo up\n\
             link set {DEVICE} mtu {mtu} txqueuelen {DEVICE_QUEUE} up\n\
             route add local {here} dev lo\n\
             route add {there} dev {DEVICE} initcwnd {window}\n"
        );
        ip(&["-n", name, "-batch", "-"], &batch)?;
        Ok(device)
    }

    /// Does something in the namespace of a side, on a thread of its own.
    pub(crate) fn inside<T: Send>(
        &self,
        side: Side,
        work: impl FnOnce() -> T + Send,
    ) -> Result<T, LiveError> {
        thread::scope(|scope| {
            let inside = scope.spawn(|| self.enter(side).map(|()| work()));
            inside.join().expect("the work does not panic")
        })
    }

    /// Moves this thread into the namespace of a side, for good.
    pub(crate) fn enter(&self, side: Side) -> Result<(), LiveError> {
        enter(&self.names[side as usize])
    }

    /// Packets that the device of a side dropped because the router did not read them in time.
    pub(crate) fn device_drops(&self, side: Side) -> u64 {
        let table = self.inside(side, || fs::read_to_string("/proc/thread-self/net/dev"));
        table
            .ok()
            .and_then(Result::ok)
            .and_then(|table| transmit_drops(&table, DEVICE))
            .unwrap_or(0)
    }
}

impl Drop for Bed {
    fn drop(&mut self) {
        for name in &self.names {
            if name_file(name).exists() {
                // Nothing can be done about a failure here; `live clean` tries again.
                let _ = ip(&["netns", "delete", name], "");
            }
        }
    }
}

fn name_file(name: &str) -> PathBuf {
    Path::new(NAMES).join(name)
}

fn failed(what: &str, error: &dyn std::fmt::Display) -> LiveError {
    LiveError::Bed(format!("{what}: {error}"))
}

fn enter(name: &str) -> Result<(), LiveError> {
    let path = name_file(name);
    let told = |error: &dyn std::fmt::Display| failed(&path.display().to_string(), error);
    let file = File::open(&path).map_err(|error| told(&error))?;
    move_into_link_name_space(file.as_fd(), Some(LinkNameSpaceType::Network))
        .map_err(|error| told(&error))
}

/// Calls the `ip` command of iproute2.
fn ip(arguments: &[&str], input: &str) -> Result<(), LiveError> {
    let command = format!("ip {}", arguments.join(" "));
    let mut child = Command::new("ip")
        .args(arguments)
        .stdin(Stdio::piped())
        .stdout(Stdio::null())
        .stderr(Stdio::piped())
        .spawn()
        .map_err(|error| failed(&command, &error))?;
    if let Some(mut stdin) = child.stdin.take() {
        // A child that ends early says why on its own.
        let _ = stdin.write_all(input.as_bytes());
    }
    let output = child
        .wait_with_output()
        .map_err(|error| failed(&command, &error))?;
    if output.status.success() {
        return Ok(());
    }
    let why = String::from_utf8_lossy(&output.stderr);
    Err(failed(&command, &why.trim()))
}

/// When a process started, in clock ticks since boot; nothing if there is none.
fn started(process: u32) -> Option<u64> {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
    // The command stands in parentheses and may hold anything.
    let (_, rest) = stat.rsplit_once(')')?;
    rest.split_whitespace().nth(19)?.parse().ok()
}

/// The process that made a namespace, and when that process started; nothing if the name is none
/// of ours.
fn maker(name: &str) -> Option<(u32, u64)> {
    let parts: Vec<&str> = name.split('-').collect();
    let [PREFIX, process, start, number, side] = parts[..] else {
        return None;
    };
    let _: u32 = number.parse().ok()?;
    Side::BOTH.iter().find(|known| known.name() == side)?;
    Some((process.parse().ok()?, start.parse().ok()?))
}

/// Removes the namespaces whose makers are gone; their names.
pub(crate) fn clean() -> Result<Vec<String>, LiveError> {
    let Ok(folder) = fs::read_dir(NAMES) else {
        return Ok(Vec::new());
    };
    let mut names: Vec<String> = folder
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| maker(name).is_some_and(|(process, start)| started(process) != Some(start)))
        .collect();
    names.sort();
    for name in &names {
        ip(&["netns", "delete", name], "")?;
    }
    Ok(names)
}

/// The transmit drops of a device in `/proc/net/dev`.
fn transmit_drops(table: &str, device: &str) -> Option<u64> {
    let (_, numbers) = table
        .lines()
        .filter_map(|line| line.split_once(':'))
        .find(|(name, _)| name.trim() == device)?;
    numbers.split_whitespace().nth(11)?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_tell_whose_a_namespace_is() {
        assert_eq!(maker("aqmlab-17-4711-0-servers"), Some((17, 4711)));
        for other in [
            "aqmlab",
            "aqmlab-17-4711-0",
            "aqmlab-17-4711-0-router",
            "aqmlab-x-4711-0-servers",
            "xaqmlab-17-4711-0-servers",
            "aqmlab-17-4711-0-servers-2",
            "blue",
        ] {
            assert_eq!(maker(other), None, "{other}");
        }
    }

    #[test]
    fn a_process_has_its_time() {
        assert!(started(id()).is_some_and(|start| start > 0));
        assert_eq!(started(u32::MAX), None);
    }

    #[test]
    fn drops_of_a_device() {
        let table = "Inter-|   Receive                                                |  Transmit\n \
                     face |bytes packets errs drop fifo frame compressed multicast|bytes packets\n    \
                     lo:  1  2  3  4  5  6  7  8  9  10  11  12  13  14  15  16\n\
                     aqmlab0: 1  2  3  4  5  6  7  8  9  10  11  77  13  14  15  16\n";
        assert_eq!(transmit_drops(table, "aqmlab0"), Some(77));
        assert_eq!(transmit_drops(table, "eth0"), None);
    }
}
