//! Reliable connections: a queue pair, and posts to it.

use std::io;

use super::{
    Access, CompletionQueue, MemoryRegion, ProtectionDomain, QueuePairLimits, QueuePairState,
    Route, SendList, SendTimes, completion, memory, send_list,
};
use crate::devices::DataInOrder;
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

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
    /// Creates a queue pair in the reset state. Both of its queues report to one completion queue.
    pub(crate) fn new(
        domain: &ProtectionDomain,
        completions: &CompletionQueue,
        limits: QueuePairLimits,
    ) -> io::Result<Self> {
        let inner = match (domain.inner(), completions.inner()) {
            (
                memory::AnyProtectionDomain::Library(domain),
                completion::Inner::Library(completions),
            ) => Inner::Library(ffi::QueuePair::new(domain, completions, limits)?),
            #[cfg(feature = "fake")]
            (memory::AnyProtectionDomain::Fake(domain), completion::Inner::Fake(completions)) => {
                Inner::Fake(fake::QueuePair::new(domain, completions, limits)?)
            }
            #[cfg(feature = "fake")]
            _ => return Err(io::ErrorKind::InvalidInput.into()),
        };
        Ok(Self { inner })
    }

    /// Returns the queue pair's number, which peers need; 24 bits.
    pub(crate) fn number(&self) -> u32 {
        either!(&self.inner, pair => pair.number())
    }

    /// Returns the maximum number of bytes that can be sent inline. The device may grant more or
    /// fewer than requested.
    pub(crate) fn inline_bytes_max(&self) -> u32 {
        either!(&self.inner, pair => pair.inline_bytes_max())
    }

    /// Discards the connection and all posts, without completions for them. After this returns, the
    /// device reads and writes nothing more here.
    pub(crate) fn reset(&mut self) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.reset())
    }

    /// Brings the queue pair from reset to a state in which both ends may send, without posting
    /// receives.
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

    /// Moves the queue pair from reset to initialised: binds it to a port and a partition, given by
    /// its index in the port's table, and sets the remote end's rights.
    pub(crate) fn initialise(
        &mut self,
        port: u8,
        partition_index: u16,
        access: Access,
    ) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.initialise(port, partition_index, access))
    }

    /// Moves the queue pair from initialised to connected: sets the remote end's address. Its
    /// packets are accepted from then on. Some InfiniBand ports require a GID in the route without
    /// reporting that. If the call fails, it is retried with a GID.
    pub(crate) fn connect(&mut self, route: &Route) -> io::Result<()> {
        let mut connect = |route: &Route| either!(&mut self.inner, pair => pair.connect(route));
        connect(route).or_else(|error| match route.is_global {
            true => Err(error),
            false => connect(&Route { is_global: true, ..*route }).map_err(|_| error),
        })
    }

    /// Enables sending on a connected queue pair.
    pub(crate) fn start(&mut self, times: &SendTimes) -> io::Result<()> {
        either!(&mut self.inner, pair => pair.start(times))
    }

    /// Queries the state from the device.
    pub(crate) fn state(&self) -> QueuePairState {
        either!(&self.inner, pair => pair.state())
    }

    /// Returns whether the bytes of each incoming write are placed in order, according to the
    /// device. Drivers confirm this only for a queue pair that is ready to send.
    pub(crate) fn data_in_order(&self) -> DataInOrder {
        either!(&self.inner, pair => pair.data_in_order())
    }

    /// Posts a list with one doorbell.
    ///
    /// # Errors
    /// After an error, a part of the list may be in flight, and the queue pair can no longer be
    /// trusted.
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

    /// Posts a receive: for immediate values without bytes, or into a range of registered memory.
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
