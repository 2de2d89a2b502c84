//! The fabric that carries a group's writes, as named in the configuration.

use std::str::FromStr;

use serde::{Deserialize, Serialize};

use crate::{shared_memory, tcp};

/// The fabric that carries the writes of a group of real processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum Carrier {
    /// Shared memory, on this machine.
    #[default]
    #[serde(rename = "shm")]
    SharedMemory,
    /// TCP, on this machine or between hosts.
    #[serde(rename = "tcp")]
    Tcp,
    /// RDMA, on this machine or between hosts.
    #[serde(rename = "verbs")]
    Verbs,
}

impl Carrier {
    /// All fabrics, in the order in which the documentation explains them.
    pub const ALL: [Self; 3] = [Self::SharedMemory, Self::Tcp, Self::Verbs];

    /// Returns whether all processes are on one host, where they meet in a folder, without
    /// addresses.
    pub(crate) const fn is_on_one_host(self) -> bool {
        matches!(self, Self::SharedMemory)
    }

    /// Returns whether this is RDMA, which has device options and is never encrypted.
    pub(crate) const fn is_rdma(self) -> bool {
        matches!(self, Self::Verbs)
    }

    /// Returns the maximum number of views that a process may have open at a time.
    pub(crate) const fn views_max(self) -> usize {
        match self {
            Self::SharedMemory => shared_memory::VIEWS_MAX,
            Self::Tcp => tcp::VIEWS_MAX,
            Self::Verbs => tramontane_verbs::VIEWS_MAX,
        }
    }

    /// Returns the maximum number of descriptors that a process uses for each view of two members.
    pub(crate) const fn descriptors_per_view(self) -> u64 {
        match self {
            Self::SharedMemory => 5,
            Self::Tcp => 1,
            Self::Verbs => 3,
        }
    }

    /// Returns the name used in options and reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shm",
            Self::Tcp => "tcp",
            Self::Verbs => "verbs",
        }
    }
}

impl std::fmt::Display for Carrier {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.write_str(self.name())
    }
}

/// The error for a name that belongs to no fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown fabric; use shm, tcp or verbs")]
pub struct NoSuchCarrier;

impl FromStr for Carrier {
    type Err = NoSuchCarrier;

    fn from_str(name: &str) -> Result<Self, NoSuchCarrier> {
        Self::ALL.into_iter().find(|carrier| carrier.name() == name).ok_or(NoSuchCarrier)
    }
}
