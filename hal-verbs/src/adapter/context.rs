//! Devices by name, and opened devices.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use super::{AsyncEvent, DeviceAttributes, DeviceFeatures, PortAttributes};
use crate::devices::{Gid, GidKind, Interface, on_port};
#[cfg(feature = "fake")]
use crate::fake;
use crate::ffi;

/// Returns the names of the machine's devices, excluding fake ones.
pub(crate) fn device_names() -> io::Result<Vec<String>> {
    let list = ffi::DeviceList::new()?;
    Ok((0..list.count()).filter_map(|index| list.name(index)).collect())
}

/// Returns whether this is the name of a fake device of this process.
pub(crate) fn is_fake(name: &str) -> bool {
    #[cfg(feature = "fake")]
    return fake::is_registered(name);
    #[cfg(not(feature = "fake"))]
    return {
        let _ = name;
        false
    };
}

/// Opens the device with this name: a fake device, if this process has one with this name.
pub(crate) fn open(name: &str) -> io::Result<Context> {
    #[cfg(feature = "fake")]
    if let Some(context) = fake::open(name)? {
        return Ok(Context { inner: Inner::Fake(context) });
    }
    let list = ffi::DeviceList::new()?;
    let index = (0..list.count()).find(|index| list.name(*index).as_deref() == Some(name));
    let context = list.open(index.ok_or(io::ErrorKind::NotFound)?)?;
    Ok(Context { inner: Inner::Library(Arc::new(context)) })
}

/// An opened device. A clone refers to the same device.
#[derive(Clone, Debug)]
pub(crate) struct Context {
    inner: Inner,
}

#[derive(Clone, Debug)]
pub(super) enum Inner {
    Library(Arc<ffi::Context>),
    #[cfg(feature = "fake")]
    Fake(fake::Context),
}

impl Context {
    pub(super) const fn inner(&self) -> &Inner {
        &self.inner
    }

    /// Queries the device.
    pub(crate) fn attributes(&self) -> io::Result<DeviceAttributes> {
        either!(&self.inner, context => context.attributes())
    }

    /// Queries a port; ports are numbered from 1.
    pub(crate) fn port(&self, number: u8) -> io::Result<PortAttributes> {
        either!(&self.inner, context => context.port(number))
    }

    /// Returns the properties that are not among the attributes.
    pub(crate) fn features(&self) -> DeviceFeatures {
        either!(&self.inner, context => context.features())
    }

    /// Returns a port's table of partition keys, by index; unused entries are zero.
    pub(crate) fn partition_keys(&self, port: u8) -> io::Result<Vec<u16>> {
        either!(&self.inner, context => context.partition_keys(port))
    }

    /// Returns an entry of a port's address table; it is all zero if unused.
    pub(crate) fn gid(&self, port: u8, index: u8) -> io::Result<Ipv6Addr> {
        either!(&self.inner, context => context.gid(port, index))
    }

    /// Returns the packet format of an entry of a port's table. `device` is the device's name.
    pub(crate) fn gid_kind(&self, device: &str, port: u8, index: u8, is_ethernet: bool) -> GidKind {
        let _ = device;
        match &self.inner {
            Inner::Library(_) => ffi::gid_kind(device, port, index, is_ethernet),
            #[cfg(feature = "fake")]
            Inner::Fake(context) => context.gid_kind(port, index, is_ethernet),
        }
    }

    /// Returns the network interfaces on a port. `device` is the device's name.
    pub(crate) fn interfaces(&self, device: &str, port: u8, gids: &[Gid]) -> Vec<Interface> {
        match &self.inner {
            Inner::Library(_) => on_port(device, port, gids),
            #[cfg(feature = "fake")]
            Inner::Fake(context) => context.interfaces(port, gids),
        }
    }

    /// Returns the workers' time, if the device is a fake one in virtual time.
    #[cfg(feature = "fake")]
    pub(crate) fn virtual_time(&self) -> Option<fake::WorkTime> {
        match &self.inner {
            Inner::Library(_) => None,
            Inner::Fake(context) => context.work_time(),
        }
    }

    /// Takes the next asynchronous event, if there is one, without blocking. The events of a
    /// context go to the first reader, so only one function may call this.
    pub(crate) fn take_event(&self) -> Option<AsyncEvent> {
        either!(&self.inner, context => context.take_event())
    }
}

/// The descriptor becomes readable when there is an asynchronous event.
impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        either!(&self.inner, context => context.as_fd())
    }
}
