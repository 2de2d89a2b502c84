//! Groups whose members are all processes of this machine, started by one of them: where they meet.
//!
//! Over shared memory they meet by name. Over a network they meet over TCP on the loopback, at sockets that the
//! parent listens at and its workers inherit: no port can be taken by somebody else in between.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::sync::Arc;

use clap::ValueEnum;
use serde::{Deserialize, Serialize};

use crate::join::{Meeting, NetworkMeeting};
use crate::rdma::{DeviceOptions, NotBuilt};
use crate::shared_memory::{self, GroupName, Root};

/// What carries the writes of a group of real processes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum, Serialize, Deserialize)]
pub enum Carrier {
    /// Shared memory, on this machine
    #[default]
    #[value(name = "shm", alias = "shared-memory")]
    #[serde(rename = "shm")]
    SharedMemory,
    /// TCP, on this machine or between hosts
    #[serde(rename = "tcp")]
    Tcp,
    /// RDMA, if this program is built with it
    #[serde(rename = "verbs")]
    Verbs,
}

impl Carrier {
    /// What it is called, in options and in reports.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::SharedMemory => "shm",
            Self::Tcp => "tcp",
            Self::Verbs => "verbs",
        }
    }
}

/// Why the members have nowhere to meet.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LocalError {
    /// RDMA, and this program has none.
    #[error(transparent)]
    NotBuilt(#[from] NotBuilt),
    /// Options of a device, and no RDMA.
    #[error("{0} is about RDMA devices; leave it out, or give --fabric verbs")]
    NoDevice(&'static str),
    /// No device to meet over.
    #[cfg(feature = "verbs")]
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::JoinError),
    /// No name, or not the one that is known.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// No socket.
    #[error("cannot listen on the loopback: {0}")]
    Sockets(#[from] io::Error),
}

/// A group of this machine, as its parent holds it while it starts the members.
#[derive(Debug)]
pub struct LocalGroup {
    /// By rank; none over shared memory.
    listeners: Vec<TcpListener>,
    /// What all members are told alike.
    place: LocalPlace,
}

/// What a member is told of where the group meets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalPlace {
    /// Under a name that no other run has.
    SharedMemory(String),
    /// Over TCP.
    Network {
        /// Where each listens, by rank.
        addresses: Vec<SocketAddr>,
        /// The own socket, inherited, which listens.
        descriptor: RawFd,
        /// To go on over RDMA: which device.
        device: Option<DeviceOptions>,
    },
}

impl LocalGroup {
    /// Finds a place for so many members; `purpose` is part of its name.
    ///
    /// # Errors
    /// [`LocalError`]: that there is no device is found here already, once and not by each member.
    pub fn new(
        carrier: Carrier,
        nodes: usize,
        purpose: &str,
        device: &DeviceOptions,
    ) -> Result<Self, LocalError> {
        match (carrier, device.given()) {
            (Carrier::SharedMemory | Carrier::Tcp, Some(option)) => {
                return Err(LocalError::NoDevice(option));
            }
            (Carrier::SharedMemory, None) => {
                let name = GroupName::unique(purpose)?.to_string();
                return Ok(Self { listeners: Vec::new(), place: LocalPlace::SharedMemory(name) });
            }
            (Carrier::Tcp, None) => {}
            (Carrier::Verbs, _) => check_device(device)?,
        }
        let listen = |_| TcpListener::bind((Ipv4Addr::LOCALHOST, 0));
        let listeners = (0..nodes).map(listen).collect::<io::Result<Vec<_>>>()?;
        let addresses =
            listeners.iter().map(TcpListener::local_addr).collect::<io::Result<Vec<_>>>()?;
        let device = (carrier == Carrier::Verbs).then(|| device.clone());
        let place = LocalPlace::Network { addresses, descriptor: -1, device };
        Ok(Self { listeners, place })
    }

    /// What the member of that rank is told.
    #[must_use]
    pub fn place(&self, rank: usize) -> LocalPlace {
        let mut place = self.place.clone();
        if let (LocalPlace::Network { descriptor, .. }, Some(listener)) =
            (&mut place, self.listeners.get(rank))
        {
            *descriptor = listener.as_raw_fd();
        }
        place
    }

    /// Where the member of that rank meets the others, if it is this process itself.
    ///
    /// # Errors
    /// As [`LocalPlace::meeting`].
    pub fn meeting(&self, rank: usize) -> Result<Meeting, LocalError> {
        let listener = self.listeners.get(rank).map(TcpListener::try_clone).transpose()?;
        self.place.meeting_at(listener)
    }

    /// The descriptor that the member of that rank must inherit for it, if any.
    #[must_use]
    pub fn inherited(&self, rank: usize) -> Option<BorrowedFd<'_>> {
        self.listeners.get(rank).map(|listener| listener.as_fd())
    }
}

impl Default for LocalPlace {
    /// Nowhere yet.
    fn default() -> Self {
        Self::SharedMemory(String::new())
    }
}

impl LocalPlace {
    /// For the member: where it meets the others. Takes over the descriptor, so that a second call is wrong.
    ///
    /// # Errors
    /// If this program has no RDMA, or the name is none.
    pub fn meeting(&self) -> Result<Meeting, LocalError> {
        self.meeting_at(self.listener())
    }

    fn meeting_at(&self, listener: Option<TcpListener>) -> Result<Meeting, LocalError> {
        match self {
            Self::SharedMemory(name) => {
                Ok(Meeting::SharedMemory { root: Root::from_env(), name: GroupName::new(name)? })
            }
            Self::Network { addresses, device, .. } => {
                let network = NetworkMeeting {
                    addresses: addresses.clone(),
                    listener: listener.map(Arc::new),
                    ..NetworkMeeting::default()
                };
                match device {
                    None => Ok(Meeting::Tcp(network)),
                    Some(device) => Ok(crate::rdma::meeting(network, device)?),
                }
            }
        }
    }

    /// For the member: the socket at which it is met, if that is a network. Takes over the descriptor, so that a second call is
    /// wrong.
    #[must_use]
    pub fn listener(&self) -> Option<TcpListener> {
        match self {
            Self::SharedMemory(_) => None,
            // SAFETY: the parent passed this descriptor on for this process to own, and names it once.
            Self::Network { descriptor, .. } => {
                Some(unsafe { OwnedFd::from_raw_fd(*descriptor) }.into())
            }
        }
    }

    /// The name in shared memory, if the members meet there.
    ///
    /// # Errors
    /// If the name is none.
    pub fn name(&self) -> Result<Option<GroupName>, shared_memory::Error> {
        match self {
            Self::SharedMemory(name) => GroupName::new(name).map(Some),
            Self::Network { .. } => Ok(None),
        }
    }
}

#[cfg(feature = "verbs")]
fn check_device(device: &DeviceOptions) -> Result<(), LocalError> {
    crate::rdma::choose(device)?;
    Ok(())
}

#[cfg(not(feature = "verbs"))]
fn check_device(_: &DeviceOptions) -> Result<(), LocalError> {
    Err(NotBuilt.into())
}
