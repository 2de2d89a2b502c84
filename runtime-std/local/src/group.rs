//! Groups whose members are all processes of this machine, started by one of them, and the place
//! where those members meet.
//!
//! Over shared memory, they meet by name. Over a network, they meet over TCP on the loopback
//! interface. The parent opens the listening sockets and its workers inherit them, so no other
//! process can take a port in between.

use std::io;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::os::fd::{
    AsFd as _, AsRawFd as _, BorrowedFd, FromRawFd as _, IntoRawFd as _, OwnedFd, RawFd,
};

use serde::{Deserialize, Serialize};
use tramontane_control::Listener;

use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::group::{Description, DescriptionError, StartOptions};
use tramontane_runtime::rdma::DeviceOptions;
use tramontane_runtime::shared_memory::{self, GroupName};

/// The reason that the members have nowhere to meet.
#[derive(Debug, thiserror::Error)]
pub enum LocalError {
    /// Device options were given, but the fabric is not RDMA.
    #[error("{0} applies only to RDMA devices; omit it, or give --fabric verbs")]
    NoDevice(&'static str),
    /// There is no usable device.
    #[error(transparent)]
    Verbs(#[from] tramontane_verbs::JoinError),
    /// The group's name in shared memory is not valid.
    #[error(transparent)]
    SharedMemory(#[from] shared_memory::Error),
    /// The description is wrong.
    #[error(transparent)]
    Description(#[from] DescriptionError),
    /// No socket.
    #[error("cannot listen on the loopback: {0}")]
    Sockets(#[from] io::Error),
}

/// A group on this machine, which the parent keeps while it starts the members.
#[derive(Debug)]
pub struct LocalGroup {
    /// Indexed by rank; empty over shared memory.
    listeners: Vec<TcpListener>,
    /// The place that is given to every member.
    place: LocalPlace,
}

/// A member's information about where the group meets.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum LocalPlace {
    /// A shared-memory name that no other run has.
    SharedMemory(String),
    /// Over TCP.
    Network {
        /// Addresses at which the members listen, by rank.
        addresses: Vec<SocketAddr>,
        /// The member's own listening socket, inherited.
        descriptor: RawFd,
        /// The device to use, if the group switches to RDMA after meeting.
        device: Option<DeviceOptions>,
    },
}

impl LocalGroup {
    /// Finds a place for `members` members. `purpose` is part of its name.
    ///
    /// # Errors
    /// [`LocalError`]: that there is no device is found here already, once and not by each member.
    pub fn new(
        carrier: Carrier,
        nodes: usize,
        purpose: &str,
        device: &DeviceOptions,
    ) -> Result<Self, LocalError> {
        match (carrier, crate::options::given(device)) {
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

    /// Returns the place for the member with rank `rank`.
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

    /// Returns the place for a member that is this process itself. It has a descriptor of its own,
    /// which stays open until the member is [started](LocalPlace::start).
    ///
    /// # Errors
    /// Fails with the operating system's error.
    pub fn own_place(&self, rank: usize) -> io::Result<LocalPlace> {
        let mut place = self.place(rank);
        if let (LocalPlace::Network { descriptor, .. }, Some(listener)) =
            (&mut place, self.listeners.get(rank))
        {
            *descriptor = listener.try_clone()?.into_raw_fd();
        }
        Ok(place)
    }

    /// Returns the descriptor that the member with rank `rank` must inherit, if any.
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
    /// Returns the socket at which others meet this member, if the place is on a network. Called by
    /// the member, and only once, because the call takes ownership of the descriptor.
    #[must_use]
    pub fn listener(&self) -> Option<TcpListener> {
        match self {
            Self::SharedMemory(_) => None,
            Self::Network { descriptor, .. } => {
                // SAFETY: the parent passed this descriptor on for this process to own, and names
                // it only once.
                let socket = unsafe { OwnedFd::from_raw_fd(*descriptor) };
                Some(socket.into())
            }
        }
    }

    /// Returns the group's description, with the name or the addresses of this place, and the start
    /// options of the member's node. Called by the member, and only once, because the call takes
    /// ownership of the descriptor.
    ///
    /// # Errors
    /// Fails if the description or the descriptor is invalid.
    pub fn start(
        &self,
        mut description: Description,
        node: u32,
    ) -> Result<(Description, StartOptions<'static>), LocalError> {
        let mut options = StartOptions::new(node);
        match self {
            Self::SharedMemory(name) => description.name.clone_from(name),
            Self::Network { addresses, device, .. } => {
                description.fabric = if device.is_some() { Carrier::Verbs } else { Carrier::Tcp };
                for (node, address) in description.nodes.iter_mut().zip(addresses) {
                    node.address = Some((*address).into());
                }
                options.device = device.clone().unwrap_or_default();
                options.listener = self.listener().map(Listener::try_from).transpose()?;
            }
        }
        description.complete()?;
        Ok((description, options))
    }
}

fn check_device(device: &DeviceOptions) -> Result<(), LocalError> {
    tramontane_runtime::rdma::choose(device)?;
    Ok(())
}
