//! Where a process listens.

use std::fmt;
use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

/// Where a process listens, over TCP or on this machine alone.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub enum Address {
    /// An address and a port.
    Tcp(SocketAddr),
    /// The file of a Unix socket. The file's permissions say who may connect.
    Unix(PathBuf),
}

impl Address {
    /// The IP address, over TCP.
    #[must_use]
    pub const fn ip(&self) -> Option<IpAddr> {
        match self {
            Self::Tcp(address) => Some(address.ip()),
            Self::Unix(_) => None,
        }
    }

    /// Whether nothing that is said there leaves this machine: a Unix socket, or a loopback
    /// address.
    #[must_use]
    pub fn is_local(&self) -> bool {
        match self {
            Self::Tcp(address) => address.ip().is_loopback(),
            Self::Unix(_) => true,
        }
    }
}

impl From<SocketAddr> for Address {
    fn from(address: SocketAddr) -> Self {
        Self::Tcp(address)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_stays_on_this_machine_is_told_from_what_does_not() {
        let tcp = |ip: [u8; 4]| Address::from(SocketAddr::from((ip, 4000)));
        assert!(tcp([127, 0, 0, 1]).is_local() && !tcp([10, 9, 0, 1]).is_local());
        assert!(Address::Unix("/run/tramontane/3".into()).is_local());
        assert_eq!(tcp([127, 0, 0, 1]).to_string(), "127.0.0.1:4000");
        assert_eq!(Address::Unix("/run/tramontane/3".into()).to_string(), "unix:/run/tramontane/3");
    }
}
