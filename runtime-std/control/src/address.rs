//! The addresses at which processes listen.

use std::fmt;
use std::io::{Error, ErrorKind, Result};
use std::net::{IpAddr, SocketAddr, ToSocketAddrs as _};
use std::path::PathBuf;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The maximum length of a host name.
const NAME_MAX: usize = 253;

/// The address at which a process listens, over TCP or only on this machine.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// A host and a port.
    Tcp(HostAddress),
    /// The file of a Unix socket, whose permissions decide which users may connect.
    Unix(PathBuf),
}

impl Address {
    /// Returns the IP address of a TCP address, or `None` if the host is given by name.
    #[must_use]
    pub fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => address.literal().map(|literal| literal.ip()),
            Self::Unix(_) => None,
        }
    }

    /// Returns the IP address; a host name is resolved to its first address. May wait for a name
    /// server.
    #[must_use]
    pub fn resolved_ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.resolve().ok()?.first()?.ip()),
            Self::Unix(_) => None,
        }
    }

    /// Returns whether no traffic with this address leaves the machine, that is, whether it is a
    /// Unix socket or a loopback address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.is_local(),
            Self::Unix(_) => true,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address.into())
    }
}

impl fmt::Display for Address {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Tcp(address) => address.fmt(out),
            Self::Unix(path) => write!(out, "unix:{}", path.display()),
        }
    }
}

/// A host, given by its address or its name, and a port. A name is resolved again for each
/// connection, because its address may have changed.
#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct HostAddress(Host);

#[derive(Clone, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
enum Host {
    Literal(SocketAddr),
    /// In lower case.
    Name(String, u16),
}

/// Text that is not a host and port.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "'{0}' is not an address; write HOST:PORT, such as 10.9.0.1:7000, [fd00::1]:7000 or alpha.example:7000"
)]
pub struct HostAddressError(String);

impl HostAddress {
    /// Returns the address and port, unless the host is given by name.
    #[must_use]
    pub const fn literal(&self) -> Option<SocketAddr> {
        match self.0 {
            Host::Literal(address) => Some(address),
            Host::Name(..) => None,
        }
    }

    /// Returns whether this is a loopback address, or `localhost`. Any other name may refer to
    /// another machine.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match &self.0 {
            Host::Literal(address) => address.ip().is_loopback(),
            Host::Name(name, _) => name == "localhost",
        }
    }

    /// Returns whether a process can connect to the address: it has a port, and is neither the
    /// wildcard address (`0.0.0.0`, `::`) nor a multicast or broadcast address.
    #[must_use]
    pub const fn is_destination(&self) -> bool {
        match &self.0 {
            Host::Literal(address) => {
                let ip = address.ip();
                let is_broadcast = matches!(ip, IpAddr::V4(ip) if ip.is_broadcast());
                let is_one = !ip.is_unspecified() && !ip.is_multicast() && !is_broadcast;
                is_one && address.port() != 0
            }
            Host::Name(_, port) => *port != 0,
        }
    }

    /// Returns the current socket addresses, of which there is at least one. May wait many seconds
    /// for a name server.
    ///
    /// # Errors
    /// Fails with the system's error for the name.
    pub fn resolve(&self) -> Result<Vec<SocketAddr>> {
        let (name, port) = match &self.0 {
            Host::Literal(address) => return Ok(vec![*address]),
            Host::Name(name, port) => (name.as_str(), *port),
        };
        let failed = |why: &dyn fmt::Display| {
            Error::other(format!("cannot resolve the host '{name}': {why}"))
        };
        let found: Vec<_> = (name, port).to_socket_addrs().map_err(|why| failed(&why))?.collect();
        if found.is_empty() { Err(failed(&ErrorKind::NotFound)) } else { Ok(found) }
    }
}

impl From<SocketAddr> for HostAddress {
    fn from(address: SocketAddr) -> Self {
        // An IPv4 address mapped to IPv6 equals the plain IPv4 address.
        let canonical = address.ip().to_canonical();
        let is_other = canonical != address.ip();
        let address = if is_other { SocketAddr::new(canonical, address.port()) } else { address };
        Self(Host::Literal(address))
    }
}

impl FromStr for HostAddress {
    type Err = HostAddressError;

    fn from_str(text: &str) -> std::result::Result<Self, HostAddressError> {
        if let Ok(address) = text.parse::<SocketAddr>() {
            return Ok(address.into());
        }
        let wrong = || HostAddressError(text.to_owned());
        let (name, port) = text.rsplit_once(':').ok_or_else(wrong)?;
        let is_label = |label: &str| {
            !label.is_empty()
                && !label.starts_with('-')
                && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte))
        };
        // Text that ends in a number is a mistyped address.
        let is_number = |label: &str| label.bytes().all(|byte| byte.is_ascii_digit());
        let labels = || name.strip_suffix('.').unwrap_or(name).split('.');
        let is_name = name.len() <= NAME_MAX
            && labels().all(is_label)
            && !labels().next_back().is_some_and(is_number);
        let is_port = port.bytes().all(|byte| byte.is_ascii_digit());
        let port = port.parse().ok().filter(|_| is_name && is_port).ok_or_else(wrong)?;
        Ok(Self(Host::Name(name.to_ascii_lowercase(), port)))
    }
}

impl TryFrom<String> for HostAddress {
    type Error = HostAddressError;

    fn try_from(text: String) -> std::result::Result<Self, HostAddressError> {
        text.parse()
    }
}

impl From<HostAddress> for String {
    fn from(address: HostAddress) -> Self {
        address.to_string()
    }
}

impl fmt::Display for HostAddress {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.0 {
            Host::Literal(address) => address.fmt(out),
            Host::Name(name, port) => write!(out, "{name}:{port}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn host(text: &str) -> HostAddress {
        text.parse().expect(text)
    }

    #[test]
    fn local_and_remote_addresses_are_distinguished() {
        let tcp = |ip: [u8; 4]| Address::from(SocketAddr::from((ip, 4000)));
        assert!(tcp([127, 0, 0, 1]).is_local() && !tcp([10, 9, 0, 1]).is_local());
        assert!(host("localhost:1").is_local() && !host("alpha:1").is_local());
        assert!(Address::Unix("/run/tramontane/3".into()).is_local());
        assert_eq!(tcp([127, 0, 0, 1]).to_string(), "127.0.0.1:4000");
        assert_eq!(Address::Unix("/run/tramontane/3".into()).to_string(), "unix:/run/tramontane/3");
    }

    #[test]
    fn hosts_are_names_or_addresses() {
        for text in ["10.9.0.1:7000", "[fd00::1]:7000", "alpha:1", "a-1.example.:65535", "x_y:0"] {
            assert_eq!(host(text).to_string(), text);
        }
        assert_eq!(host("Alpha.Example:7000"), host("alpha.example:7000"));
        assert_eq!(host("[::ffff:10.9.0.1]:7000"), host("10.9.0.1:7000"));
        for text in [
            "",
            ":",
            "alpha",
            "alpha:",
            ":7000",
            "alpha:70000",
            "alpha:+1",
            "10.9.0.256:7000",
            "10.9.0:7000",
            "a..b:1",
            "-a:1",
            "a b:1",
            "fd00::1:7000",
            "alpha:1:2",
        ] {
            let error = text.parse::<HostAddress>().expect_err(text).to_string();
            assert!(error.contains("; write HOST:PORT"), "{error}");
        }
        assert!(format!("{}:1", "x".repeat(254)).parse::<HostAddress>().is_err());
    }

    #[test]
    fn wildcard_address_or_zero_port_is_invalid_destination() {
        for text in ["10.9.0.1:7000", "[fd00::1]:7000", "alpha:7000", "127.0.0.1:1"] {
            assert!(host(text).is_destination(), "{text}");
        }
        for text in [
            "0.0.0.0:7000",
            "[::]:7000",
            "[::ffff:0.0.0.0]:7000",
            "10.9.0.1:0",
            "alpha:0",
            "224.0.0.1:7000",
            "255.255.255.255:7000",
            "[ff02::1]:7000",
        ] {
            assert!(!host(text).is_destination(), "{text}");
        }
    }

    #[test]
    fn error_names_unknown_host() {
        let found = host("localhost:7000").resolve().expect("every machine has it");
        assert!(found.iter().all(|address| address.ip().is_loopback() && address.port() == 7000));
        let error = host("no-such-host.invalid:7000").resolve().expect_err("no host");
        assert!(error.to_string().contains("the host 'no-such-host.invalid'"), "{error}");
    }
}
