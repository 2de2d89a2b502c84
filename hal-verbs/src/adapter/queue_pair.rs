//! Reliable connections: a queue pair, its states, and what is posted to it.

use std::io;
use std::net::Ipv6Addr;

use super::{
    Access, CompletionQueue, MemoryRegion, ProtectionDomain, SendList, completion, memory,
    send_list,
};
use crate::devices::{Choice, DataInOrder, LinkLayer, Service};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// How much a queue pair takes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct QueuePairLimits {
    pub(crate) sends_max: u32,
    pub(crate) receives_max: u32,
    pub(crate) inline_bytes_max: u32,
}

/// The states of a queue pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum State {
    Reset,
    Initialised,
    ReadyToReceive,
    ReadyToSend,
    Draining,
    SendError,
    Error,
    Unknown,
}

impl State {
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Reset => "reset",
            Self::Initialised => "initialised",
            Self::ReadyToReceive => "ready to receive",
            Self::ReadyToSend => "ready to send",
            Self::Draining => "draining",
            Self::SendError => "error in sending",
            Self::Error => "error",
            Self::Unknown => "unknown",
        }
    }
}

/// The way to the other end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Route {
    pub(crate) port: u8,
    /// The own partition, by its place in the port's table.
    pub(crate) partition_index: u16,
    pub(crate) gid_index: u8,
    /// `enum ibv_mtu`.
    pub(crate) mtu: u32,
    pub(crate) remote_gid: Ipv6Addr,
    pub(crate) remote_lid: u16,
    pub(crate) remote_number: u32,
    /// The first packet number of the other end; 24 bits.
    pub(crate) remote_packet: u32,
    /// Whether packets carry the GID: always on Ethernet.
    pub(crate) is_global: bool,
    /// How switches and routers are to treat the packets.
    pub(crate) service: Service,
    /// Reads of the other end that this end serves at once.
    pub(crate) reads_max: u8,
}

/// The `enum ibv_mtu` of a packet payload in bytes; the least of what is none.
pub(crate) const fn mtu_raw(bytes: u32) -> u32 {
    match bytes {
        512 => 2,
        1024 => 3,
        2048 => 4,
        4096 => 5,
        _ => 1,
    }
}

impl Route {
    /// From a port that was chosen to a queue pair on the same port.
    pub(crate) fn to_itself(choice: &Choice, number: u32, first_packet: u32) -> Self {
        Self {
            port: choice.port,
            partition_index: choice.partition.index,
            gid_index: choice.gid.index,
            mtu: mtu_raw(choice.mtu_bytes),
            remote_gid: choice.gid.address,
            remote_lid: choice.lid,
            remote_number: number,
            remote_packet: first_packet,
            is_global: choice.link_layer == LinkLayer::Ethernet || choice.service.has_global_route,
            service: choice.service,
            reads_max: 1,
        }
    }
}

/// When an unanswered packet is sent again and when it is given up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct SendTimes {
    pub(crate) timeout_exponent: u8,
    pub(crate) retries: u8,
    /// The own first packet number; 24 bits.
    pub(crate) first_packet: u32,
    /// Own reads under way at once.
    pub(crate) reads_max: u8,
}

/// A reliable connection to one peer.
#[derive(Debug)]
pub(crate) struct QueuePair {
    inner: Inner,
}

#[derive(Debug)]
enum Inner {
    Library(ffi::QueuePair),
    #[cfg(feature = "fake")]
    Fake(fake::QueuePair),
}

impl QueuePair {
    /// A new one, in reset. Both of its queues report to one completion queue.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        completions: &CompletionQueue,
        limits: QueuePairLimits,
    ) -> io::Result<Self> {
        let inner = match (domain.inner(), completions.inner()) {
            (memory::Inner::Library(domain), completion::Inner::Library(completions)) => {
                Inner::Library(ffi::QueuePair::new(domain, completions, limits)?)
            }
            #[cfg(feature = "fake")]
            (memory::Inner::Fake(domain), completion::Inner::Fake(completions)) => {
                Inner::Fake(fake::QueuePair::new(domain, completions, limits)?)
            }
            #[cfg(feature = "fake")]
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Self { inner })
    }

    /// Its number, which peers need; 24 bits.
    pub(crate) fn number(&self) -> u32 {
        either!(&self.inner, pair => pair.number())
    }

    /// How many bytes may go inline: what the device granted, which may be more or less than was
    /// asked for.
    pub(crate) fn inline_bytes_max(&self) -> u32 {
        either!(&self.inner, pair => pair.inline_bytes_max())
    }

    /// Forgets the connection and all that is posted; no completions come of it. When this returns,
    /// nothing more is read or written here.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.reset())
    }

    /// From reset to where both ends may send, with no receive in between.
    pub(crate) fn bring_up(
        &mut self,
        route: &Route,
        access: Access,
        times: &SendTimes,
    ) -> io::Result<()> {
        self.initialise(route.port, route.partition_index, access)?;
        self.connect(route)?;
        self.start(times)
    }

    /// From reset: binds it to a port and a partition, by its index in the port's table, and says
    /// what the other end may do.
    pub(crate) fn initialise(
        &mut self,
        port: u8,
        partition_index: u16,
        access: Access,
    ) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.initialise(port, partition_index, access))
    }

    /// From initialised: says where the other end is. From now on what it sends is taken. Some
    /// ports of InfiniBand take no way without the GID, and not all of them say so before: the same
    /// way is then tried with it.
    pub(crate) fn connect(&mut self, route: &Route) -> io::Result<()> {
        let mut connect = |route: &Route| either!(&mut self.inner, pair => pair.connect(route));
        connect(route).or_else(|error| match route.is_global {
            true => Err(error),
            false => connect(&Route { is_global: true, ..*route }).map_err(|_| error),
        })
    }

    /// From connected: from now on this end may send.
    pub(crate) fn start(&mut self, times: &SendTimes) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.start(times))
    }

    /// Changes what the other end may do, without a break in the connection.
    pub(crate) fn set_access(&mut self, access: Access) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.set_access(access))
    }

    /// Asks the device for the state.
    pub(crate) fn state(&self) -> State {
        either!(&self.inner, pair => pair.state())
    }

    /// Whether the bytes of each write that comes in are placed in order, as the device says.
    /// Drivers say yes only of one that is ready to send.
    pub(crate) fn data_in_order(&self) -> DataInOrder {
        either!(&self.inner, pair => pair.data_in_order())
    }

    /// Posts a list with one doorbell.
    ///
    /// # Errors
    /// Then a part of it may be under way, and the queue pair can no longer be trusted.
    #[inline]
    pub(crate) fn post(&mut self, list: SendList<'_>) -> io::Result<()> {
        match (&mut self.inner, list.into_inner()) {
            (Inner::Library(pair), send_list::ListInner::Library(list)) => pair.post(list),
            #[cfg(feature = "fake")]
            (Inner::Fake(pair), send_list::ListInner::Fake(list)) => pair.post(list),
            #[cfg(feature = "fake")]
            _ => Err(io::ErrorKind::InvalidInput.into()),
        }
    }

    /// Posts a receive: for values without bytes, or into a range of registered memory.
    pub(crate) fn post_receive(
        &mut self,
        name: u64,
        into: Option<(&MemoryRegion, usize, usize)>,
    ) -> io::Result<()> {
        let into = match into {
            None => None,
            Some((region, offset, length)) => {
                Some(region.range(offset, length).ok_or(io::ErrorKind::InvalidInput)?)
            }
        };
        either!(&mut self.inner, pair => pair.post_receive(name, into))
    }
}
