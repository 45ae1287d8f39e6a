//! Whether this machine and this scenario can have a live run: one sentence if not.

use std::env;
use std::fs::{self, OpenOptions};
use std::io;

use aqmlab_scenario::{Dumbbell, Link, ResponseTime, Scenario, Topology};
use aqmlab_traffic::Model;
use aqmlab_traffic::cbr::Ect;

use crate::error::LiveError;

/// Bits of capabilities (capabilities(7)) and what they are for.
const CAPABILITIES: [(u32, &str, &str); 2] = [
    (12, "CAP_NET_ADMIN", "to make TUN devices"),
    (21, "CAP_SYS_ADMIN", "to make network namespaces"),
];

/// Most hosts on a side: their addresses are 23 bits.
const MOST_HOSTS: u32 = 1 << 22;

/// What this machine lacks, as one sentence.
pub(crate) fn missing() -> Option<String> {
    let lacks = |what: &str| format!("the live bed needs {what}");
    if let Some((name, purpose)) = missing_capability() {
        return Some(lacks(&format!(
            "the capability {name} {purpose} (sudo, or unshare --user --map-root-user)"
        )));
    }
    let device = OpenOptions::new()
        .read(true)
        .write(true)
        .open("/dev/net/tun");
    if let Err(error) = device {
        let hint = match error.kind() {
            io::ErrorKind::NotFound => "; modprobe tun",
            io::ErrorKind::PermissionDenied => {
                "; most systems let everybody open it: chmod 666 /dev/net/tun"
            }
            _ => "",
        };
        return Some(lacks(&format!("/dev/net/tun: {error}{hint}")));
    }
    let has_ip = |path: env::SplitPaths<'_>| {
        let mut folders = path;
        folders.any(|folder| folder.join("ip").is_file())
    };
    if !env::var_os("PATH").is_some_and(|path| has_ip(env::split_paths(&path))) {
        return Some(lacks("the command ip, of the package iproute2"));
    }
    None
}

/// Whether this process may make namespaces and devices.
pub(crate) fn is_privileged() -> bool {
    missing_capability().is_none()
}

/// The first capability that this process lacks, and what it is for.
fn missing_capability() -> Option<(&'static str, &'static str)> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let held = effective_capabilities(&status);
    let mut lacking = CAPABILITIES
        .into_iter()
        .filter(|(bit, ..)| held >> bit & 1 == 0);
    lacking.next().map(|(_, name, purpose)| (name, purpose))
}

fn effective_capabilities(status: &str) -> u64 {
    status
        .lines()
        .find_map(|line| line.strip_prefix("CapEff:"))
        .and_then(|hex| u64::from_str_radix(hex.trim(), 16).ok())
        .unwrap_or(0)
}

/// What varies on a link beside its rate.
const fn varying(link: &Link) -> Option<&'static str> {
    if link.trace.is_some() {
        Some("trace")
    } else if !link.outages.is_empty() {
        Some("outages")
    } else if !link.delay_changes.is_empty() {
        Some("delay_changes")
    } else if !link.loss_changes.is_empty() {
        Some("loss_changes")
    } else {
        None
    }
}

fn refuse<T>(message: String) -> Result<T, LiveError> {
    Err(LiveError::Refused(message))
}

/// Refuses what a bed cannot hold.
pub(crate) fn check(scenario: &Scenario) -> Result<&Dumbbell, LiveError> {
    let dumbbell = check_link(scenario)?;
    if dumbbell.wifi.is_some() {
        return refuse(
            "topology.wifi: found one, but the live bed has no Wi-Fi; leave it out, run the scenario \
             in simulated time, or put a program behind it: aqmlab shell --scenario"
                .to_owned(),
        );
    }
    let link = &dumbbell.bottleneck;
    if let Some(key) = [&link.forward, &link.reverse]
        .iter()
        .find_map(|link| varying(link))
    {
        return refuse(format!(
            "topology.bottleneck.{key}: found one, but of the live bed's link only the rate varies, by \
             rate_changes; leave it out"
        ));
    }
    if scenario.measure.capture.is_some() {
        return refuse(
            "measure.capture: found one, but a live run writes none; leave it out, or use \
             `aqmlab shell --pcap`"
                .to_owned(),
        );
    }
    check_hosts(scenario, dumbbell)?;
    Ok(dumbbell)
}

/// Refuses a network that is no single link, and what changes it beside the link itself.
pub(crate) fn check_link(scenario: &Scenario) -> Result<&Dumbbell, LiveError> {
    let Topology::Dumbbell(dumbbell) = &scenario.topology else {
        return refuse(
            "topology.kind: the live bed has one link; expected \"dumbbell\"".to_owned(),
        );
    };
    let link = &dumbbell.bottleneck;
    if link.forward.policer.is_some() || link.reverse.policer.is_some() {
        return refuse(
            "topology.bottleneck.policer: found one, but the live bed has one queue and nothing before \
             it; make it the discipline, or leave it out"
                .to_owned(),
        );
    }
    if link.forward.waits_for_phases() || link.reverse.waits_for_phases() {
        return refuse(
            "topology.bottleneck: found a change with when, but only a simulation sees the phases of a \
             congestion control; expected at with a time"
                .to_owned(),
        );
    }
    if !scenario.changes.is_empty() {
        return refuse(
            "changes: found some, but nothing changes in the live bed but the rate of links, by \
             their rate_changes; leave them out"
                .to_owned(),
        );
    }
    if dumbbell.wifi.is_some() && scenario.measure.capture.is_some() {
        return refuse(
            "measure.capture: found one beside topology.wifi, whose queues no capture of a link \
             sees; leave out one of them"
                .to_owned(),
        );
    }
    Ok(dumbbell)
}

/// Refuses users and hosts that a kernel cannot stand for.
pub(crate) fn check_hosts(scenario: &Scenario, dumbbell: &Dumbbell) -> Result<(), LiveError> {
    if scenario.measure.breakdown {
        return refuse(
            "measure.breakdown: found true, but nobody sees what a kernel's connections wait for; \
             leave it out"
                .to_owned(),
        );
    }
    if let Some(class) = scenario
        .traffic
        .iter()
        .find(|class| !class.plans.is_empty())
    {
        return refuse(format!(
            "traffic.{}.plans: found some, but only a simulated run chooses hosts by plan; leave it out",
            class.name
        ));
    }
    if scenario.measure.response_time != ResponseTime::Connect {
        return refuse(
            "measure.response_time: found another than connect, but the live bed sees a client \
             connect, not what its kernel sends; leave it out"
                .to_owned(),
        );
    }
    if scenario.measure.flow_trace.is_some() {
        return refuse(
            "measure.flow_trace: found one, but nobody sees the inner state of a kernel's end \
             points; leave it out"
                .to_owned(),
        );
    }
    let hosts = &dumbbell.hosts;
    for (key, count) in [("clients", hosts.clients), ("servers", hosts.servers)] {
        if count > MOST_HOSTS {
            return refuse(format!(
                "topology.hosts.{key}: found {count}; the live bed has at most {MOST_HOSTS}"
            ));
        }
    }
    if let Some(found) = hosts.sockets {
        return refuse(format!(
            "topology.hosts.sockets: found {found}; the live bed does not limit sockets; leave it \
             out"
        ));
    }
    if hosts.clock_offset.as_nanos() > 0 || hosts.clock_drift > 0 {
        return refuse(
            "topology.hosts: found clock_offset or clock_drift; hosts of the live bed share the \
             machine's clock"
                .to_owned(),
        );
    }
    let most = usize::from(crate::load::MOST_CLASSES);
    if scenario.traffic.len() > most {
        return refuse(format!(
            "traffic: found {} classes; the live bed has at most {most}",
            scenario.traffic.len()
        ));
    }
    for class in &scenario.traffic {
        if class.model.parameters().is_adaptive() {
            return refuse(format!(
                "traffic.{}.kind: found a model that goes by what it hears of the network, which \
                 only a simulation tells; expected one without adaptation, such as \"http2-web\" or \
                 \"cbr\"",
                class.name
            ));
        }
        if let Model::Bulk(bulk) = &class.model
            && bulk.withdraws()
        {
            return refuse(format!(
                "traffic.{}.pauses: found some without a limit, but a kernel sends all that an \
                 application has written; give a limit, or leave them out",
                class.name
            ));
        }
        if let Model::Bulk(bulk) = &class.model
            && let Some(place) = bulk.pauses.iter().position(|it| it.when.is_some())
        {
            return refuse(format!(
                "traffic.{}.pauses.{place}.when: found a pause at a phase, but only a simulation sees the \
                 phases of a congestion control; expected at with a time",
                class.name
            ));
        }
        if let Model::Cbr(cbr) = &class.model
            && cbr.ect != Ect::NotEct
        {
            return refuse(format!(
                "traffic.{}.ect: found one, but the live bed sends datagrams without ECN; leave it out",
                class.name
            ));
        }
        if let Some(size) = class.write_size {
            return refuse(format!(
                "traffic.{}.write_size: found {size}, but the live bed hands a message to the \
                 kernel in one write; leave it out",
                class.name
            ));
        }
        if class.model.parameters().is_endless() && class.stop.is_some() {
            return refuse(format!(
                "traffic.{}.stop: found one, but a kernel cannot be made to forget connections \
                 that never end; leave it out, or give them a size",
                class.name
            ));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn capabilities_are_read() {
        let status = "Name:\tx\nCapPrm:\t0\nCapEff:\t0000000000201000\nCapBnd:\t1\n";
        let held = effective_capabilities(status);
        assert!(CAPABILITIES.iter().all(|(bit, ..)| held >> bit & 1 == 1));
        assert_eq!(effective_capabilities("CapPrm:\t1\n"), 0);
    }

    /// What a run would not write is refused, not left out.
    #[test]
    fn what_a_live_run_cannot_measure_is_refused() {
        for key in ["capture", "flow_trace"] {
            let text = format!(
                "[measure]\n{key} = {{}}\n[topology]\nkind = \"dumbbell\"\n[topology.bottleneck]\n\
                 rate = \"10 Mbit/s\"\ndiscipline = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
                 [[traffic]]\nname = \"a\"\nkind = \"bulk\"\nflows = 1\ntcp = \"linux\"\n\
                 rtt = {{ kind = \"constant\", rtt = \"10 ms\" }}\n"
            );
            let scenario = Scenario::parse(&text, &[], &mut |_| unreachable!()).unwrap();
            let error = check(&scenario).unwrap_err().to_string();
            assert!(
                error.contains(&format!("measure.{key}: found one")),
                "{error}"
            );
        }
    }

    /// A kernel does not show the phases of its congestion control.
    #[test]
    fn what_waits_for_a_phase_is_refused() {
        let when = "when = { flow = 1, phase = \"slow-start\" }";
        let rates = format!("rate_changes = [{{ {when}, rate = \"5 Mbit/s\" }}]");
        let pauses = format!("limit = \"1 Mbit/s\"\npauses = [{{ {when}, for = \"1 s\" }}]");
        for (link, class, expected) in [
            (
                &rates[..],
                "",
                "topology.bottleneck: found a change with when",
            ),
            (
                "",
                &pauses[..],
                "traffic.a.pauses.0.when: found a pause at a phase",
            ),
        ] {
            let text = format!(
                "[topology]\nkind = \"dumbbell\"\n[topology.bottleneck]\nrate = \"10 Mbit/s\"\n{link}\n\
                 discipline = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
                 [[traffic]]\nname = \"a\"\nkind = \"bulk\"\nflows = 1\nsize = \"1 MB\"\n\
                 tcp = \"linux\"\n{class}\nrtt = {{ kind = \"constant\", rtt = \"10 ms\" }}\n"
            );
            let scenario = Scenario::parse(&text, &[], &mut |_| unreachable!()).unwrap();
            let error = check(&scenario).unwrap_err().to_string();
            assert!(error.starts_with(expected), "{error}");
        }
    }
}
