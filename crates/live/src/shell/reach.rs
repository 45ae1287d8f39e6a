//! What a program may reach outside.

use std::fs;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, SocketAddrV4};

use super::addresses::{FAR, TEST};

/// Port of name servers.
const DNS: u16 = 53;

/// What a program reaches beside the built-in services.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Reach {
    /// The host's loopback, as the far end, and private networks (RFC 1918).
    pub host: bool,
    /// Public addresses, and the host's name server, as the far end's.
    pub internet: bool,
    /// That name server.
    pub resolver: Option<SocketAddr>,
}

impl Reach {
    /// The rules, with the name server of this machine.
    pub fn new(host: bool, internet: bool) -> Self {
        let text = fs::read_to_string("/etc/resolv.conf").unwrap_or_default();
        Self {
            host,
            internet,
            resolver: first_resolver(&text),
        }
    }

    /// Whether nothing outside is reached.
    pub(super) const fn is_closed(&self) -> bool {
        !self.host && !self.internet
    }

    /// The place outside for which an address inside stands; nothing if it may not be reached.
    pub(super) fn target(&self, to: SocketAddrV4) -> Option<SocketAddr> {
        let ip = *to.ip();
        if ip == FAR {
            return match self.resolver.filter(|_| self.internet && to.port() == DNS) {
                Some(resolver) => Some(resolver),
                None => self
                    .host
                    .then(|| SocketAddr::from((Ipv4Addr::LOCALHOST, to.port()))),
            };
        }
        let is_allowed = !is_special(ip)
            && match ip.is_private() {
                true => self.host,
                false => self.internet,
            };
        is_allowed.then(|| to.into())
    }

    /// The kind of network that would let a program reach an address that it does not reach now.
    pub(super) fn needed(&self, to: SocketAddrV4) -> Option<&'static str> {
        let ip = *to.ip();
        let is_inside = ip == FAR;
        if ip == TEST || (!is_inside && is_special(ip)) {
            return None;
        }
        let (name, has_it) = match is_inside && to.port() != DNS || ip.is_private() {
            true => ("host", self.host),
            false => ("all", self.internet),
        };
        (!has_it).then_some(name)
    }
}

/// Addresses that no program reaches through the gateway: of this machine, of its link (cloud
/// providers keep secrets there), of several receivers, of providers' inner networks, reserved.
fn is_special(ip: Ipv4Addr) -> bool {
    let [first, second, ..] = ip.octets();
    first == 0
        || first >= 224
        || ip.is_loopback()
        || ip.is_link_local()
        || (first == 100 && second & 0xc0 == 64)
}

/// The first name server of a `resolv.conf`.
fn first_resolver(text: &str) -> Option<SocketAddr> {
    text.lines().find_map(|line| {
        let mut words = line.split_whitespace();
        let address: IpAddr = match words.next() {
            Some("nameserver") => words.next()?.parse().ok()?,
            _ => return None,
        };
        Some((address, DNS).into())
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn target(reach: Reach, to: &str) -> Option<String> {
        let target = reach.target(to.parse().unwrap());
        target.map(|address| address.to_string())
    }

    #[test]
    fn each_level_reaches_its_own() {
        let resolver = first_resolver("search x\nnameserver 127.0.0.53\nnameserver 9.9.9.9\n");
        let host = Reach {
            host: true,
            internet: false,
            resolver,
        };
        let internet = Reach {
            host: false,
            internet: true,
            resolver,
        };
        let both = Reach {
            host: true,
            internet: true,
            resolver,
        };
        // Inside; what stands for it with the host's network, with the internet, with both.
        for (to, expected) in [
            (
                "100.64.0.1:80",
                [Some("127.0.0.1:80"), None, Some("127.0.0.1:80")],
            ),
            (
                "100.64.0.1:53",
                [
                    Some("127.0.0.1:53"),
                    Some("127.0.0.53:53"),
                    Some("127.0.0.53:53"),
                ],
            ),
            (
                "192.168.1.1:22",
                [Some("192.168.1.1:22"), None, Some("192.168.1.1:22")],
            ),
            (
                "8.8.8.8:443",
                [None, Some("8.8.8.8:443"), Some("8.8.8.8:443")],
            ),
        ] {
            let found = [host, internet, both].map(|reach| target(reach, to));
            assert_eq!(found, expected.map(|text| text.map(str::to_owned)), "{to}");
        }
        for never in [
            "127.0.0.1:80",
            "169.254.169.254:80",
            "224.0.0.1:80",
            "255.255.255.255:67",
            "0.0.0.0:80",
            "100.64.0.3:80",
            "100.127.0.1:80",
            "240.0.0.1:80",
        ] {
            assert_eq!(target(both, never), None, "{never}");
        }
        assert!(Reach::default().is_closed());
        assert_eq!(target(Reach::default(), "8.8.8.8:443"), None);
    }

    #[test]
    fn what_is_out_of_reach_has_a_way_out() {
        let host = Reach {
            host: true,
            ..Reach::default()
        };
        for (to, closed, open) in [
            ("100.64.0.1:9999", Some("host"), None),
            ("100.64.0.1:53", Some("all"), Some("all")),
            ("192.168.1.1:22", Some("host"), None),
            ("8.8.8.8:443", Some("all"), Some("all")),
            ("169.254.169.254:80", None, None),
            ("100.64.0.3:9999", None, None),
        ] {
            let needed = [Reach::default(), host].map(|reach| reach.needed(to.parse().unwrap()));
            assert_eq!(needed, [closed, open], "{to}");
        }
    }

    #[test]
    fn a_resolver_may_be_missing() {
        assert_eq!(first_resolver("# nameserver 9.9.9.9\n"), None);
        let six = first_resolver("nameserver ::1\n").unwrap();
        assert_eq!(six.to_string(), "[::1]:53");
    }
}
