//! A bound on memory: what a run needs at least, before anything is allocated, and what it takes
//! while it is under way.

use std::fs;
use std::path::{Path, PathBuf};

use aqmlab_net::Time;
use aqmlab_record::RunError;
use aqmlab_scenario::{Scenario, Traffic};
use aqmlab_traffic::{Action, Opening};

use crate::connections;
use crate::datagrams;
use crate::event::Event;

/// The part of what is free that a run may take if nothing else is said: others need some, too.
const SHARE_OF_FREE: f64 = 0.9;

/// Memory of a run with hardly any traffic, about.
const OWN: f64 = 800.0 * 1024.0;

/// Where a run that needs less is refused, the bound is what is wrong, not the scenario.
const MODEST: f64 = 256.0 * 1024.0 * 1024.0;

/// Memory of a flow, session or user in its source, about: its random streams, its hosts, what it
/// does next.
const MEMBER: f64 = 220.0;

/// Memory of a connection by quinn, about: both ends, with what they keep of what is not acknowledged.
const QUINN: f64 = 60_000.0;

/// Memory of a connection by our QUIC, about: measured with ten datagrams in flight, from 1,000 to 8,000
/// connections. With a few in flight it takes 7 kB.
const QUIC: f64 = 19_000.0;

/// How much more memory than before a run may take.
#[derive(Clone, Copy, Debug)]
pub struct Memory {
    /// Bytes that the run may take.
    most: u64,
    /// Bytes that its process has when it begins.
    before: u64,
}

impl Memory {
    /// No bound.
    pub const UNLIMITED: Self = Self {
        most: u64::MAX,
        before: 0,
    };

    /// So many bytes more than the process has now.
    pub fn bytes(most: u64) -> Self {
        Self {
            most,
            before: resident().unwrap_or(0),
        }
    }

    /// Most of what the machine has free, within the limits of the process and of its control
    /// groups. No bound where nothing says what is free.
    pub fn free() -> Self {
        match free_bytes() {
            Some(free) => Self::bytes((free as f64 * SHARE_OF_FREE) as u64),
            None => Self::UNLIMITED,
        }
    }

    /// Bytes that a run may take; `None`: there is no bound.
    pub fn most(&self) -> Option<u64> {
        (self.most < u64::MAX).then_some(self.most)
    }

    /// Refuses a scenario that cannot fit, with the field that asks for most.
    pub fn check(&self, scenario: &Scenario) -> Result<(), RunError> {
        let needs: Vec<Need> = scenario
            .traffic
            .iter()
            .map(|it| need(it, scenario))
            .collect();
        let all: f64 = OWN + needs.iter().map(|need| need.bytes).sum::<f64>();
        let largest = needs.iter().max_by(|a, b| a.bytes.total_cmp(&b.bytes));
        let Need { field, found, .. } = largest.expect("no classes need no memory");
        self.check_bytes(all, field, found)
    }

    /// Refuses what takes more bytes, because of what was found in a field.
    pub fn check_bytes(&self, bytes: f64, field: &str, found: &str) -> Result<(), RunError> {
        if bytes <= self.most as f64 {
            return Ok(());
        }
        let (least, most) = (shown(bytes), shown(self.most as f64));
        Err(RunError::TooLarge(if bytes < MODEST {
            format!(
                "memory: {most} is too little; this run needs about {least} or more, most of it \
                 for {field}: found {found}"
            )
        } else {
            format!(
                "{field}: found {found}; such a run takes {least} of memory or more, and may take \
                 {most}"
            )
        }))
    }

    /// Refuses to go on where the process has grown by more than the bound.
    #[cold]
    pub(crate) fn look(&self) -> Result<(), RunError> {
        let taken = resident().unwrap_or(0).saturating_sub(self.before);
        if taken <= self.most {
            return Ok(());
        }
        let (taken, most) = (shown(taken as f64), shown(self.most as f64));
        Err(RunError::Memory(format!(
            "it takes {taken} of memory, and may take {most}: its connections or its queues grow; \
             give it more memory, or less traffic"
        )))
    }
}

/// What a class needs, and the field that says so.
struct Need {
    field: String,
    found: String,
    bytes: f64,
}

/// At least what a class needs: its flows, sessions and users, the connections that are open at a
/// time (their number is their rate times how long they last, which is two round trips or more),
/// and the packets on their way to the first queue.
fn need(class: &Traffic, scenario: &Scenario) -> Need {
    let model = class.model.parameters();
    let key = model.population_key();
    let population = model.population().unwrap_or(0.0);
    let end = (scenario.measure.warm_up + scenario.measure.duration).as_secs_f64();
    let rtt = class.rtt.mean().as_secs_f64().min(end);
    let (opening, packets) = (model.opening(), model.packets_per_s());
    let sends_datagrams = packets > 0.0;
    let members = match opening {
        Opening::OpenLoop => 0.0,
        Opening::ClosedLoop | Opening::Fixed => population,
    };
    let most = class.max_connections.map_or(f64::MAX, f64::from);
    let connections = match opening {
        Opening::OpenLoop if key.counts_per_second() => (population * 2.0 * rtt).min(most),
        Opening::Fixed if !sends_datagrams => population.min(most),
        Opening::ClosedLoop if model.is_endless() => population.min(most),
        _ => 0.0,
    };
    let per_member = MEMBER + size_of::<Action>() as f64 + size_of::<Event>() as f64;
    let per_datagram_flow = datagrams::FLOW_BYTES as f64;
    let mut bytes = members * per_member;
    let shares = class.transport;
    let of_stacks = shares.quinn * QUINN + shares.quic * QUIC;
    bytes += connections * (connections::SLOT_BYTES as f64 + of_stacks);
    if sends_datagrams {
        bytes += members * per_datagram_flow;
        // A quarter of the round trip lies before the bottleneck.
        bytes += packets * rtt / 4.0 * size_of::<(Time, Event)>() as f64;
    }
    let by_packets = sends_datagrams && packets > members;
    let path = format!("traffic.{}", class.name);
    match by_packets {
        true => Need {
            field: format!("{path}.rate"),
            found: format!("{packets:.3e} packets/s in all"),
            bytes,
        },
        false => Need {
            field: format!("{path}.{}", key.name),
            found: format!("{population}"),
            bytes,
        },
    }
}

/// Bytes, for people.
fn shown(bytes: f64) -> String {
    const UNITS: [&str; 6] = ["KiB", "MiB", "GiB", "TiB", "PiB", "EiB"];
    let mut value = bytes / 1024.0;
    let mut unit = 0;
    while value >= 1000.0 && unit + 1 < UNITS.len() {
        value /= 1024.0;
        unit += 1;
    }
    let decimals = usize::from(value < 100.0 && value.fract() != 0.0);
    format!("{value:.decimals$} {}", UNITS[unit])
}

/// Bytes of memory that this process has.
fn resident() -> Option<u64> {
    let text = fs::read_to_string("/proc/self/status").ok()?;
    kilobytes(&text, "VmRSS:")
}

/// Bytes that this process can still get, as far as the system says.
fn free_bytes() -> Option<u64> {
    let of_machine = fs::read_to_string("/proc/meminfo")
        .ok()
        .and_then(|text| kilobytes(&text, "MemAvailable:"));
    let of_process = fs::read_to_string("/proc/self/limits")
        .ok()
        .and_then(|limits| address_space_left(&limits));
    let groups = fs::read_to_string("/proc/self/cgroup").unwrap_or_default();
    let of_groups = free_of_groups(&groups, Path::new("/sys/fs/cgroup"));
    [of_machine, of_process, of_groups]
        .into_iter()
        .flatten()
        .min()
}

/// The value of a line such as `VmRSS:    1234 kB`, in bytes.
fn kilobytes(text: &str, key: &str) -> Option<u64> {
    let line = text.lines().find_map(|line| line.strip_prefix(key))?;
    let number = line.trim().strip_suffix("kB")?.trim();
    number.parse::<u64>().ok()?.checked_mul(1024)
}

/// What a limit of the process's addresses (`ulimit -v`) leaves.
fn address_space_left(limits: &str) -> Option<u64> {
    let line = limits
        .lines()
        .find(|line| line.starts_with("Max address space"))?;
    let most: u64 = line.split_whitespace().nth(3)?.parse().ok()?;
    let status = fs::read_to_string("/proc/self/status").ok()?;
    Some(most.saturating_sub(kilobytes(&status, "VmSize:")?))
}

/// What the control groups of the process leave, version 1 and 2: the least on the way up. Memory
/// of files that can be had back counts as free.
fn free_of_groups(groups: &str, mount: &Path) -> Option<u64> {
    let free = groups.lines().filter_map(|line| {
        let mut parts = line.splitn(3, ':').skip(1);
        let (controllers, path) = (parts.next()?, parts.next()?);
        let path = path.trim_start_matches('/');
        if controllers.is_empty() {
            let names = ["memory.max", "memory.current", "inactive_file "];
            least_free(mount, path, names)
        } else if controllers.split(',').any(|name| name == "memory") {
            let names = [
                "memory.limit_in_bytes",
                "memory.usage_in_bytes",
                "total_inactive_file ",
            ];
            least_free(&mount.join("memory"), path, names)
        } else {
            None
        }
    });
    free.min()
}

/// The least that is free in a group and in those above it.
fn least_free(mount: &Path, group: &str, [most, used, reclaimed]: [&str; 3]) -> Option<u64> {
    let number = |folder: &Path, file: &str| -> Option<u64> {
        fs::read_to_string(folder.join(file))
            .ok()?
            .trim()
            .parse()
            .ok()
    };
    let free = |folder: PathBuf| {
        let (most, used) = (number(&folder, most)?, number(&folder, used)?);
        let statistics = fs::read_to_string(folder.join("memory.stat")).unwrap_or_default();
        let line = statistics
            .lines()
            .find_map(|line| line.strip_prefix(reclaimed));
        let back: u64 = line
            .and_then(|number| number.trim().parse().ok())
            .unwrap_or(0);
        Some(most.saturating_sub(used.saturating_sub(back)))
    };
    let ancestors = Path::new(group).ancestors();
    ancestors.filter_map(|group| free(mount.join(group))).min()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bytes_are_shown_for_people() {
        assert_eq!(shown(1024.0), "1 KiB");
        assert_eq!(shown(1.5 * 1048576.0), "1.5 MiB");
        assert_eq!(shown(512.0 * 1073741824.0), "512 GiB");
        assert_eq!(shown(1e18), "888 PiB");
    }

    #[test]
    fn free_memory_is_what_every_bound_leaves() {
        let text = "MemTotal: 99 kB\nMemAvailable:    2048 kB\n";
        assert_eq!(kilobytes(text, "MemAvailable:"), Some(2048 * 1024));
        let limits = "Max address space         unlimited            unlimited            bytes\n";
        assert_eq!(address_space_left(limits), None);
        let limits = "Max address space         1                    unlimited            bytes\n";
        assert_eq!(address_space_left(limits), Some(0));
        assert!(free_bytes().unwrap() > 0);
        assert!(resident().unwrap() > 0);
    }

    #[test]
    fn control_groups_of_both_versions_count_with_those_above_them() {
        let mount = std::env::temp_dir().join(format!("aqmlab-groups-{}", std::process::id()));
        let write = |file: &str, text: &str| {
            let file = mount.join(file);
            fs::create_dir_all(file.parent().unwrap()).unwrap();
            fs::write(file, text).unwrap();
        };
        write("a/memory.max", "1000\n");
        write("a/memory.current", "400\n");
        write("a/memory.stat", "anon 3\ninactive_file 100\n");
        write("a/b/memory.max", "max\n");
        write("a/b/memory.current", "10\n");
        write("memory/memory.limit_in_bytes", "500\n");
        write("memory/memory.usage_in_bytes", "600\n");
        write("memory/memory.stat", "total_inactive_file 150\n");
        let free = |groups| free_of_groups(groups, &mount);
        assert_eq!(free("0::/a/b\n"), Some(700));
        assert_eq!(free("4:cpu:/a\n3:memory:/x/y\n"), Some(50));
        assert_eq!(free("0::/\n1:cpu:/a\n"), None);
        fs::remove_dir_all(&mount).unwrap();
    }
}
