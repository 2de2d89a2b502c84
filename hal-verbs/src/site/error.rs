//! The errors that keep a member from using a device, or from reaching its peers through it.

use std::io;
use std::net::Ipv6Addr;
use std::path::PathBuf;

use tramontane_core::ids::NodeId;

use crate::cgroup::{self, UsedUp};
use crate::devices::ChoiceError;
use crate::ffi::NoLibrary;
use crate::locked::{self, Limit};

/// The reason that a member cannot join over RDMA. Each text is one line that contains the remedy.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum JoinError {
    /// There is no usable device, port or address.
    #[error(transparent)]
    Choice(#[from] ChoiceError),
    /// libibverbs is not installed, or cannot be used.
    #[error(transparent)]
    NoLibrary(#[from] NoLibrary),
    /// This user may not open the devices.
    #[error(
        "this user may not use RDMA devices: {source}; give the user read and write access to \
         /dev/infiniband/uverbs*"
    )]
    NotPermitted {
        /// The system's error.
        source: io::Error,
    },
    /// Memory for registrations or for the rings of queues cannot be locked.
    #[error(
        "cannot {action}{}: this process may lock {}; raise the limit with `ulimit -l unlimited`, \
         or with `* - memlock unlimited` in /etc/security/limits.conf and a new login \
         (LimitMEMLOCK= for a service)",
        Needed(*needed),
        Limit(*limit)
    )]
    LockedMemory {
        /// The failed action.
        action: &'static str,
        /// Size in bytes of the registration that failed; `None` for memory that a driver registers
        /// by itself.
        needed: Option<usize>,
        /// Number of bytes that the process may lock; `None` if there is no limit.
        limit: Option<u64>,
    },
    /// A limit of the RDMA cgroup is exhausted.
    #[error(
        "cannot {action}: the RDMA cgroup of this process is limited to {most} {resource} on \
         {device}, and all are in use; raise the limit in {}, or in the container's settings",
        file.display()
    )]
    CgroupLimit {
        /// The failed action.
        action: &'static str,
        /// The device.
        device: String,
        /// The resource's name in the kernel.
        resource: String,
        /// The limit.
        most: u64,
        /// The file that sets the limit.
        file: PathBuf,
    },
    /// The RDMA cgroup refused a request, but its limits cannot be read.
    #[error(
        "cannot {action}: the RDMA cgroup of this process has reached its limit; raise its \
         rdma.max, or the container's limits"
    )]
    CgroupRefused {
        /// The failed action.
        action: &'static str,
    },
    /// The request exceeds a limit of the device.
    #[error(
        "{device} supports {most} {what}, but {needed} are needed; use a smaller group or fewer \
         regions"
    )]
    TooMany {
        /// The device.
        device: String,
        /// The kind of object.
        what: &'static str,
        /// The device's limit.
        most: u32,
        /// The number needed.
        needed: u32,
    },
    /// The device does not have the requested completion vector.
    #[error(
        "{device} has no completion vector {wanted}, only {vectors} vectors, counted from 0; \
         choose one of these, or set no completion vector to use all of them"
    )]
    NoSuchVector {
        /// The device.
        device: String,
        /// The requested vector.
        wanted: u32,
        /// The number of vectors.
        vectors: u32,
    },
    /// A peer is running, but no RDMA write to it is acknowledged.
    #[error("member {peer} cannot be reached over {device} from {own}: {why}")]
    NoAnswer {
        /// The device.
        device: String,
        /// The peer.
        peer: NodeId,
        /// The local address.
        own: Ipv6Addr,
        /// The peer's symptoms and the remedy.
        why: String,
    },
    /// The device failed while it was in use, and has not returned.
    #[error(
        "{device} failed and has not recovered: {why}; check the kernel's log (dmesg), restore the \
         device (`rdma link` lists devices), and start this member again"
    )]
    DeviceGone {
        /// The device.
        device: String,
        /// The state in which the device was found instead.
        why: String,
    },
    /// The device keeps no order between writes, but a requested feature needs it.
    #[error(
        "{device} promises no order between writes, which views need; set the RDMA order to \
         writes if switches and NICs are known to keep the order (no adaptive routing, no relaxed \
         ordering); otherwise set it to auto, or use fabric \"tcp\""
    )]
    NoWriteOrder {
        /// The device.
        device: String,
    },
    /// The device does not keep peers from writing to regions.
    #[error(
        "{device} carries out a write whose permission was revoked, so regions are not safe on it; \
         choose a different device, and report this to its vendor"
    )]
    NotDenied {
        /// The device.
        device: String,
    },
    /// The caller's options contradict each other.
    #[error("{0}")]
    BadOptions(&'static str),
    /// The device refused an operation.
    #[error("{device}: cannot {action}: {source}; check the device's limits")]
    Device {
        /// The device.
        device: String,
        /// The failed action.
        action: &'static str,
        /// The device's error.
        source: io::Error,
    },
}

impl JoinError {
    /// Converts an error of device discovery.
    #[must_use]
    pub fn from_discovery(source: io::Error) -> Self {
        match source.downcast::<NoLibrary>() {
            Ok(error) => error.into(),
            Err(source) => match source.downcast::<ChoiceError>() {
                Ok(error) => error.into(),
                Err(source) => Self::from_call(None, "list the devices", source),
            },
        }
    }

    /// Converts the error of a failed registration.
    pub(super) fn from_registration(device: &str, needed: usize, source: io::Error) -> Self {
        match Self::from_device(device, "register memory", source) {
            Self::LockedMemory { action, limit, .. } => {
                Self::LockedMemory { action, needed: Some(needed), limit }
            }
            other => other,
        }
    }

    /// Converts the error of any other failed call. Queue pairs and completion queues also have
    /// rings in locked memory, and a driver that may not lock them reports "out of memory". A
    /// refusal by the RDMA cgroup has nothing to do with locked memory, although some drivers
    /// report it that way.
    pub(super) fn from_device(device: &str, action: &'static str, source: io::Error) -> Self {
        Self::from_call(Some(device), action, source)
    }

    fn from_call(device: Option<&str>, action: &'static str, source: io::Error) -> Self {
        let is_out_of_memory = source.kind() == io::ErrorKind::OutOfMemory;
        if is_out_of_memory || cgroup::refuses(&source) {
            if let Some(UsedUp { device, resource, most, file }) = cgroup::used_up(device) {
                return Self::CgroupLimit { action, device, resource, most, file };
            }
            if !is_out_of_memory {
                return Self::CgroupRefused { action };
            }
        }
        if is_out_of_memory {
            return Self::LockedMemory { action, needed: None, limit: locked::limit() };
        }
        if source.kind() == io::ErrorKind::PermissionDenied {
            return Self::NotPermitted { source };
        }
        Self::Device { device: device.unwrap_or("libibverbs").to_owned(), action, source }
    }
}

/// Number of bytes that an action needed, if known.
struct Needed(Option<usize>);

impl std::fmt::Display for Needed {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.map_or(Ok(()), |bytes| write!(out, " of {bytes} B"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_join_error_is_one_line_with_remedy() {
        let io = || io::Error::from_raw_os_error(22);
        let errors = [
            NoLibrary::NotInstalled.into(),
            NoLibrary::CannotOpen { reason: "it is too short".into() }.into(),
            JoinError::NotPermitted { source: io() },
            JoinError::LockedMemory {
                action: "register memory",
                needed: Some(1 << 20),
                limit: Some(65_536),
            },
            JoinError::LockedMemory { action: "create a queue pair", needed: None, limit: None },
            JoinError::NoSuchVector { device: "rxe0".into(), wanted: 4, vectors: 4 },
            JoinError::TooMany { device: "rxe0".into(), what: "completions", most: 9, needed: 10 },
            JoinError::DeviceGone { device: "rxe0".into(), why: "no device".into() },
            JoinError::CgroupLimit {
                action: "create a queue pair",
                device: "rxe0".into(),
                resource: "hca_object".into(),
                most: 7,
                file: "/sys/fs/cgroup/rdma.max".into(),
            },
            JoinError::CgroupRefused { action: "create a queue pair" },
            JoinError::NotDenied { device: "rxe0".into() },
            JoinError::NoAnswer {
                device: "rxe0".into(),
                peer: NodeId(3),
                own: Ipv6Addr::LOCALHOST,
                why: "it cannot be reached".into(),
            },
            JoinError::NoWriteOrder { device: "mlx5_0".into() },
            JoinError::Device {
                device: "rxe0".into(),
                action: "create a queue pair",
                source: io(),
            },
        ];
        for error in errors {
            let text = error.to_string();
            assert!(!text.contains('\n') && text.len() > 40, "{text}");
        }
    }

    #[test]
    fn failed_calls_map_to_distinct_errors() {
        let out_of_memory = || io::Error::from_raw_os_error(12);
        let denied = || io::Error::from_raw_os_error(13);
        let found = JoinError::from_registration("rxe0", 5, out_of_memory());
        assert!(matches!(found, JoinError::LockedMemory { needed: Some(5), .. }));
        let text = found.to_string();
        assert!(text.starts_with("cannot register memory of 5 B: "), "{text}");
        let missing = JoinError::from_discovery(io::Error::other(NoLibrary::NotInstalled));
        assert!(matches!(missing, JoinError::NoLibrary(NoLibrary::NotInstalled)));
        assert!(matches!(JoinError::from_discovery(denied()), JoinError::NotPermitted { .. }));
        assert!(matches!(
            JoinError::from_device("rxe0", "x", denied()),
            JoinError::NotPermitted { .. }
        ));
        // The kernel's error when a cgroup limit has been reached.
        let refused = JoinError::from_device("rxe0", "x", io::Error::from_raw_os_error(11));
        assert!(matches!(refused, JoinError::CgroupRefused { .. }));
        let other = io::Error::from_raw_os_error(22);
        assert!(matches!(JoinError::from_device("rxe0", "x", other), JoinError::Device { .. }));
    }

    #[test]
    fn queue_allocation_failure_names_the_memlock_limit() {
        let out_of_memory = io::Error::from_raw_os_error(12);
        let found = JoinError::from_device("rxe0", "create a queue pair", out_of_memory);
        assert!(matches!(found, JoinError::LockedMemory { needed: None, .. }));
        let text = found.to_string();
        assert!(text.starts_with("cannot create a queue pair: this process may lock"), "{text}");
        assert!(text.contains("ulimit -l"), "{text}");
    }
}
