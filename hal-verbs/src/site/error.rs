//! Everything that can keep a member from using a device, or from reaching its peers by it.

use std::io;
use std::net::Ipv6Addr;

use tramontane_core::ids::NodeId;

use crate::devices::ChoiceError;
use crate::locked::{self, Limit};

/// Why a member cannot join over RDMA. Each text is one line that says what to do.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// No device, port or address to use.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// The kernel's door to the devices is shut.
    #[error(
        "may not use RDMA devices: {source}; this user must be able to read and write /dev/infiniband/uverbs*"
    )]
    NotPermitted {
        /// What the system said.
        source: io::Error,
    },
    /// Memory may not be held in place.
    #[error(
        "cannot register {needed} B: this process may lock {}; raise it with `ulimit -l unlimited`, or with \
         `* - memlock unlimited` in /etc/security/limits.conf and a new login (LimitMEMLOCK= for a service)",
        Limit(*limit)
    )]
    LockedMemory {
        /// Bytes of the registration that failed.
        needed: usize,
        /// Bytes that the process may lock; none if there is no limit.
        limit: Option<u64>,
    },
    /// More than the device holds.
    #[error(
        "{device} holds {most} {what}, and {needed} are needed; take a smaller group or fewer regions"
    )]
    TooMany {
        /// The device.
        device: String,
        /// Of what.
        what: &'static str,
        /// How many it holds.
        most: u32,
        /// How many are needed.
        needed: u32,
    },
    /// A peer is there, and nothing that is written to it over RDMA is acknowledged.
    #[error(
        "member {peer} cannot be reached over {device} from {own}: {why}; choose addresses (GIDs) of one network \
         (`tramontane verbs devices` lists them), and let UDP port 4791 pass"
    )]
    NoAnswer {
        /// The device.
        device: String,
        /// The peer.
        peer: NodeId,
        /// The own address.
        own: Ipv6Addr,
        /// What was seen of the peer.
        why: String,
    },
    /// What the caller gave does not fit together.
    #[error("{0}")]
    BadOptions(&'static str),
    /// The device refused.
    #[error("{device}: cannot {action}: {source}; `tramontane verbs devices` shows what it takes")]
    Device {
        /// Which.
        device: String,
        /// What was tried.
        action: &'static str,
        /// What it said.
        source: io::Error,
    },
}

impl JoinError {
    /// For a registration that failed.
    pub(super) fn from_registration(device: &str, needed: usize, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::OutOfMemory {
            return Self::LockedMemory { needed, limit: locked::limit() };
        }
        Self::from_device(device, "register memory", source)
    }

    /// For any other call that failed.
    pub(super) fn from_device(device: &str, action: &'static str, source: io::Error) -> Self {
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted { source };
        }
        Self::Device { device: device.to_owned(), action, source }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_one_line_and_says_what_to_do() {
        let io = || io::Error::from_raw_os_error(22);
        let errors = [
            JoinError::NotPermitted { source: io() },
            JoinError::LockedMemory { needed: 1 << 20, limit: Some(65_536) },
            JoinError::LockedMemory { needed: 1 << 20, limit: None },
            JoinError::TooMany { device: "rxe0".into(), what: "completions", most: 9, needed: 10 },
            JoinError::NoAnswer {
                device: "rxe0".into(),
                peer: NodeId(3),
                own: Ipv6Addr::LOCALHOST,
                why: "it cannot be reached".into(),
            },
            JoinError::Device { device: "rxe0".into(), action: "make a queue pair", source: io() },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() > 40, "{text}");
        }
    }

    #[test]
    fn failed_calls_are_told_apart() {
        let out_of_memory = || io::Error::from_raw_os_error(12);
        let denied = || io::Error::from_raw_os_error(13);
        let found = JoinError::from_registration("rxe0", 5, out_of_memory());
        assert!(matches!(found, JoinError::LockedMemory { needed: 5, .. }));
        assert!(matches!(
            JoinError::from_device("rxe0", "x", denied()),
            JoinError::NotPermitted { .. }
        ));
        assert!(matches!(
            JoinError::from_device("rxe0", "x", out_of_memory()),
            JoinError::Device { .. }
        ));
    }
}
