//! From a stack profile to the settings of a Linux kernel. The end points of the live bed are the
//! kernel's own: what a profile wants and no kernel can do is refused, not overlooked.

use std::fs;

use aqmlab_scenario::{LIVE_KEYS, Scenario, Traffic};
use aqmlab_tcp::{CongestionControlKind, Profile, Recovery};
use toml::{Table, Value};

use crate::error::LiveError;

/// The profile that describes a Linux kernel.
const LINUX: &str = "linux";

/// IP and TCP headers in bytes, without and with time stamps.
const HEADERS: [u64; 2] = [40, 52];

/// What is set in every namespace of a bed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Stack {
    /// Largest packet.
    pub(crate) mtu: u64,
    /// Congestion window of a new connection, in segments.
    pub(crate) initial_window: u32,
    /// Files below `/proc/sys/net`, and what is written into them.
    pub(crate) settings: Vec<(&'static str, String)>,
}

/// Settings that make a run repeatable whatever its profile.
const ALWAYS: [(&str, &str); 12] = [
    // A connection learns nothing from an earlier one.
    ("ipv4/tcp_no_metrics_save", "1"),
    ("ipv4/tcp_no_ssthresh_metrics_save", "1"),
    // Many connections at once are no attack.
    ("ipv4/tcp_syncookies", "0"),
    ("ipv4/tcp_max_syn_backlog", "65536"),
    ("core/somaxconn", "65535"),
    ("ipv4/tcp_max_tw_buckets", "262144"),
    // Hosts are addresses of one device.
    ("ipv4/conf/all/rp_filter", "0"),
    ("ipv4/conf/default/rp_filter", "0"),
    ("ipv4/ip_local_port_range", "1024 65535"),
    ("ipv4/tcp_mtu_probing", "0"),
    // No packets but those of the experiment.
    ("ipv6/conf/all/disable_ipv6", "1"),
    ("ipv6/conf/default/disable_ipv6", "1"),
];

/// Settings that not every kernel has.
pub(crate) const OPTIONAL: [&str; 5] = [
    "ipv4/tcp_no_ssthresh_metrics_save",
    "ipv4/tcp_reflect_tos",
    "ipv4/tcp_syn_linear_timeouts",
    "ipv6/conf/all/disable_ipv6",
    "ipv6/conf/default/disable_ipv6",
];

impl Stack {
    /// The stack of all classes of a scenario: a namespace has one.
    pub(crate) fn new(scenario: &Scenario) -> Result<Self, LiveError> {
        let available = fs::read_to_string("/proc/sys/net/ipv4/tcp_available_congestion_control")
            .unwrap_or_default();
        let mut found: Option<(&str, Self)> = None;
        for class in &scenario.traffic {
            let stack = Self::of_class(class, &available)?;
            match &found {
                Some((first, other)) if *other != stack => {
                    return Err(LiveError::Refused(format!(
                        "traffic.{}.tcp: differs from that of {first} in more than \
                         congestion_control; on the live bed all classes share the kernel's stack",
                        class.name
                    )));
                }
                Some(_) => {}
                None => found = Some((&class.name, stack)),
            }
        }
        found
            .map(|(_, stack)| stack)
            .ok_or_else(|| LiveError::Refused("traffic: found no class".to_owned()))
    }

    /// The stack of a class. Congestion control is a socket's own; all else is the kernel's.
    fn of_class(class: &Traffic, available: &str) -> Result<Self, LiveError> {
        if !class.transport.is_tcp() {
            return Err(LiveError::Refused(format!(
                "traffic.{}.transport: the live bed has the kernel's TCP; expected tcp",
                class.name
            )));
        }
        let path = format!("traffic.{}.tcp", class.name);
        if let Some(both) = class.tcp.same() {
            return Self::of(both, &path, available);
        }
        let [client, server] = class.tcp.ends();
        let stack = Self::of(client, &format!("{path}.client"), available)?;
        if Self::of(server, &format!("{path}.server"), available)? == stack {
            return Ok(stack);
        }
        Err(LiveError::Refused(format!(
            "{path}: client and server differ in more than congestion_control; on the live bed they \
             share the kernel's stack"
        )))
    }

    fn of(tcp: &Profile, path: &str, available: &str) -> Result<Self, LiveError> {
        let refuse = |field: &str, message: String| {
            let dot = if field.is_empty() { "" } else { "." };
            LiveError::Refused(format!("{path}{dot}{field}: {message}"))
        };
        let control = &tcp.congestion_control;
        let is_available = |name: &str| available.split_whitespace().any(|other| other == name);
        if !control.linux_name().is_some_and(is_available) {
            let kind = kind(control);
            let message = format!("found {kind}; this kernel has {}", available.trim());
            return Err(refuse("congestion_control", message));
        }
        if !CongestionControlKind::all().contains(control) {
            let message = "a kernel's parameters are its own; expected the kind alone".to_owned();
            return Err(refuse("congestion_control", message));
        }
        if let Some(field) = unheard(tcp) {
            let message = format!(
                "the live bed has the kernel's own stack, tcp = \"{LINUX}\", of which this cannot \
                 be changed; found the profile {}",
                tcp.profile
            );
            return Err(refuse(&field, message));
        }
        if !matches!(tcp.recovery, Recovery::RackTlp | Recovery::NewReno) {
            let message =
                "found a rule that no kernel has; expected rack-tlp or new-reno".to_owned();
            return Err(refuse("recovery", message));
        }
        let header = tcp.header.0;
        if !HEADERS.contains(&header) {
            let message = format!(
                "found {}; a kernel's segments have 40 bytes, or 52 with time stamps",
                tcp.header
            );
            return Err(refuse("header", message));
        }
        // The kernel counts the time-outs behind the first one.
        let gaps = tcp.syn_backoff.iter().take_while(|gap| **gap == 1).count();
        let linear = gaps.saturating_sub(1);
        let flag = |on: bool| u8::from(on).to_string();
        let largest = |default: u64, most: u64| format!("4096 {} {most}", default.min(most));
        let mut settings: Vec<_> = ALWAYS.map(|(key, value)| (key, value.to_owned())).to_vec();
        settings.extend([
            ("ipv4/tcp_ecn", flag(tcp.ecn)),
            ("ipv4/tcp_sack", flag(tcp.recovery == Recovery::RackTlp)),
            ("ipv4/tcp_timestamps", flag(header == HEADERS[1])),
            (
                "ipv4/tcp_slow_start_after_idle",
                flag(tcp.restart_after_idle),
            ),
            ("ipv4/tcp_syn_linear_timeouts", linear.to_string()),
            // The kernel's defaults, up to what the profile has.
            ("ipv4/tcp_wmem", largest(16_384, tcp.send_buffer.0)),
            ("ipv4/tcp_rmem", largest(131_072, tcp.receive_buffer.0)),
        ]);
        if let Some(longest) = tcp.sack_compression {
            settings.push((
                "ipv4/tcp_comp_sack_delay_ns",
                longest.as_nanos().to_string(),
            ));
        }
        Ok(Self {
            mtu: tcp.mss.0 + header,
            initial_window: tcp.initial_window,
            settings,
        })
    }
}

/// The kind of a congestion control, as a scenario writes it.
fn kind(control: &CongestionControlKind) -> Value {
    let table = Table::try_from(control).expect("a congestion control is a table");
    table["kind"].clone()
}

/// A field in which a profile differs from Linux, and which the bed cannot set. The name of a
/// profile of another system comes as no field.
fn unheard(tcp: &Profile) -> Option<String> {
    if tcp.profile != LINUX {
        return Some(String::new());
    }
    let table = |profile: &Profile| Table::try_from(profile).expect("a profile is a table");
    let own = table(&Profile::named(LINUX).expect("the profile ships"));
    table(tcp)
        .into_iter()
        .find(|(field, value)| {
            !LIVE_KEYS.contains(&field.as_str()) && own.get(field) != Some(value)
        })
        .map(|(field, _)| field)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn stack(tcp: &str) -> Result<Stack, String> {
        let text = format!(
            "[topology]\nkind = \"dumbbell\"\n[topology.bottleneck]\nrate = \"10 Mbit/s\"\n\
             discipline = {{ kind = \"droptail\", limit = \"50 packets\" }}\n\
             [[traffic]]\nname = \"a\"\nkind = \"bulk\"\nflows = 1\ntcp = {tcp}\n\
             rtt = {{ kind = \"constant\", rtt = \"10 ms\" }}\n"
        );
        let scenario = Scenario::parse(&text, &[], &mut |_| unreachable!()).unwrap();
        Stack::of_class(&scenario.traffic[0], "reno cubic\n").map_err(|error| error.to_string())
    }

    fn setting(stack: &Stack, key: &str) -> String {
        let found = stack.settings.iter().find(|(name, _)| *name == key);
        found.unwrap().1.clone()
    }

    #[test]
    fn a_profile_becomes_settings() {
        let linux = stack("\"linux\"").unwrap();
        assert_eq!((linux.mtu, linux.initial_window), (1500, 10));
        assert_eq!(setting(&linux, "ipv4/tcp_sack"), "1");
        assert_eq!(setting(&linux, "ipv4/tcp_ecn"), "0");
        assert_eq!(setting(&linux, "ipv4/tcp_timestamps"), "1");
        assert_eq!(setting(&linux, "ipv4/tcp_syn_linear_timeouts"), "4");
        assert_eq!(setting(&linux, "ipv4/tcp_rmem"), "4096 131072 6291456");
        let compression = "ipv4/tcp_comp_sack_delay_ns";
        assert!(linux.settings.iter().all(|(name, _)| *name != compression));
        let own = stack("{ profile = \"linux\", sack_compression = \"0 s\" }").unwrap();
        assert_eq!(setting(&own, compression), "0");
        let own = "{ profile = \"linux\", ecn = true, recovery = \"new-reno\", mss = \"960 bytes\", \
                   header = \"40 bytes\", receive_buffer = \"16384 bytes\", initial_window = 2, \
                   syn_backoff = [] }";
        let own = stack(own).unwrap();
        assert_eq!((own.mtu, own.initial_window), (1000, 2));
        assert_eq!(setting(&own, "ipv4/tcp_sack"), "0");
        assert_eq!(setting(&own, "ipv4/tcp_ecn"), "1");
        assert_eq!(setting(&own, "ipv4/tcp_timestamps"), "0");
        assert_eq!(setting(&own, "ipv4/tcp_syn_linear_timeouts"), "0");
        assert_eq!(setting(&own, "ipv4/tcp_rmem"), "4096 16384 16384");
    }

    #[test]
    fn congestion_control_may_differ_between_the_ends() {
        let own = "{ client = { profile = \"linux\", congestion_control = \"reno\" }, server = \"linux\" }";
        assert_eq!(stack(own), stack("\"linux\""));
    }

    #[test]
    fn what_no_kernel_can_do_is_refused() {
        for (tcp, message) in [
            (
                "\"freebsd-2.2.8\"",
                "traffic.a.tcp: the live bed has the kernel's own stack",
            ),
            (
                "{ profile = \"linux\", nagle = false }",
                "traffic.a.tcp.nagle: the live bed",
            ),
            (
                "{ profile = \"linux\", congestion_control = \"fast\" }",
                "traffic.a.tcp.congestion_control: found \"fast\"; this kernel has reno cubic",
            ),
            (
                "{ profile = \"linux\", congestion_control = \"vegas\" }",
                "traffic.a.tcp.congestion_control: found \"vegas\"; this kernel has reno cubic",
            ),
            (
                "{ profile = \"linux\", congestion_control = { kind = \"cubic\", c = 0.5 } }",
                "traffic.a.tcp.congestion_control: a kernel's parameters are its own",
            ),
            (
                "{ client = \"linux\", server = \"rfc\" }",
                "traffic.a.tcp.server: the live bed has the kernel's own stack",
            ),
            (
                "{ client = \"linux\", server = { profile = \"linux\", ecn = true } }",
                "traffic.a.tcp: client and server differ in more than congestion_control",
            ),
            (
                "{ profile = \"linux\", recovery = \"tahoe\" }",
                "traffic.a.tcp.recovery: found",
            ),
            (
                "{ profile = \"linux\", header = \"44 bytes\" }",
                "traffic.a.tcp.header: found",
            ),
        ] {
            let error = stack(tcp).unwrap_err();
            assert!(error.starts_with(message), "{tcp}: {error}");
        }
    }
}
