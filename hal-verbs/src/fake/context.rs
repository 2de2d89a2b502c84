//! Opened devices and their properties.

use std::io;
use std::net::Ipv6Addr;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use rustix::io::Errno;

use super::clock::Core;
use super::counts::CommandKind;
use super::hardware::{OpenContext, count_down, new_channel};
use super::profile::PortProfile;
use super::registry;
use crate::adapter::{AsyncEvent, DeviceAttributes, PortAttributes};
use crate::devices::{Gid, GidKind, Interface, LinkLayer};

/// An opened device. A clone refers to the same device.
#[derive(Clone, Debug)]
pub(crate) struct Context(pub(super) Arc<Opened>);

/// The context itself, which is closed when the last clone is dropped.
#[derive(Debug)]
pub(super) struct Opened {
    pub(super) core: Arc<Core>,
    pub(super) id: u64,
    device: usize,
    channel: Arc<OwnedFd>,
}

/// Opens the fake device with this name; returns `None` if there is none.
pub(crate) fn open(name: &str) -> io::Result<Option<Context>> {
    let Some(registered) = registry::find(name) else { return Ok(None) };
    let Some(core) = registered.core() else { return Ok(None) };
    let device = registered.device;
    let channel = new_channel()?;
    let id = core.with(|hardware| {
        if hardware.devices.get(device).is_none_or(|device| device.is_fatal) {
            return Err(io::Error::from(Errno::IO));
        }
        let id = hardware.new_id();
        let context = OpenContext {
            device,
            events: std::collections::VecDeque::new(),
            channel: Arc::clone(&channel),
            is_killed: false,
            command_ns: 0,
            worker_ns: None,
            commands: Vec::new(),
        };
        hardware.contexts.insert(id, context);
        Ok(id)
    })?;
    Ok(Some(Context(Arc::new(Opened { core, id, device, channel }))))
}

impl Context {
    /// Queries the device.
    pub(crate) fn attributes(&self) -> io::Result<DeviceAttributes> {
        self.0.core.command(self.0.id, CommandKind::Query, |hardware| {
            let profile = &hardware.check(self.0.id)?.profile;
            let limits = profile.limits;
            Ok(DeviceAttributes {
                firmware: profile.firmware.clone(),
                node_guid: 0x5054_00ff_fe00_0001 + u64::try_from(self.0.device).unwrap_or(0),
                vendor_id: profile.vendor_id,
                vendor_part_id: profile.vendor_part_id,
                ports: u8::try_from(profile.ports.len()).unwrap_or(u8::MAX),
                queue_pairs_max: limits.queue_pairs_max,
                work_requests_max: limits.work_requests_max,
                scatter_max: limits.ranges_max,
                completion_entries_max: limits.completion_entries_max,
                memory_regions_max: limits.memory_regions_max,
                region_bytes_max: limits.region_bytes_max,
                reads_max: limits.reads_max,
            })
        })
    }

    pub(super) fn ask_port<R>(
        &self,
        number: u8,
        ask: impl FnOnce(&PortProfile) -> R,
    ) -> io::Result<R> {
        self.0.core.command(self.0.id, CommandKind::Query, |hardware| {
            let port = hardware.check(self.0.id)?.port(number);
            Ok(ask(port.ok_or(Errno::INVAL)?))
        })
    }

    /// Queries a port; ports are numbered from 1.
    pub(crate) fn port(&self, number: u8) -> io::Result<PortAttributes> {
        self.ask_port(number, |port| PortAttributes {
            // `IBV_PORT_ACTIVE` and `IBV_PORT_DOWN`.
            state: if port.is_up { 4 } else { 1 },
            mtu_max: raw_mtu(port.mtu_bytes_max),
            mtu_active: raw_mtu(port.mtu_bytes),
            message_bytes_max: port.message_bytes_max,
            gids: port.gids.len(),
            lid: port.lid,
            // `IBV_LINK_LAYER_INFINIBAND` and `IBV_LINK_LAYER_ETHERNET`.
            link_layer: if port.link_layer == LinkLayer::InfiniBand { 1 } else { 2 },
            needs_global_route: port.needs_global_route && port.tells_of_global_route,
        })
    }

    /// Returns an entry of a port's address table, which is all zero if unused.
    pub(crate) fn gid(&self, port: u8, index: u8) -> io::Result<Ipv6Addr> {
        self.ask_port(port, |port| {
            port.gids.get(usize::from(index)).map_or(Ipv6Addr::UNSPECIFIED, |gid| gid.address)
        })
    }

    /// Returns the packet format of an entry of a port's table.
    pub(crate) fn gid_kind(&self, port: u8, index: u8, is_ethernet: bool) -> GidKind {
        let kind =
            self.ask_port(port, |port| port.gids.get(usize::from(index)).map(|gid| gid.kind));
        match kind {
            Ok(Some(kind)) if is_ethernet => kind,
            _ if is_ethernet => GidKind::RoceV1,
            _ => GidKind::InfiniBand,
        }
    }

    /// Returns the network interfaces on a port: one with all of its addresses, or none.
    pub(crate) fn interfaces(&self, port: u8, gids: &[Gid]) -> Vec<Interface> {
        let name = self.ask_port(port, |port| port.interface.clone()).ok().flatten();
        let gids = gids.iter().map(|gid| gid.index).collect();
        name.map(|name| Interface { name, gids }).into_iter().collect()
    }

    /// Takes the next asynchronous event, if there is one, without blocking.
    pub(crate) fn take_event(&self) -> Option<AsyncEvent> {
        self.0.core.with(|hardware| {
            let event = hardware.contexts.get_mut(&self.0.id)?.events.pop_front()?;
            count_down(&self.0.channel);
            Some(event)
        })
    }
}

fn raw_mtu(bytes: u32) -> u32 {
    match bytes {
        0..512 => 1,
        512..1024 => 2,
        1024..2048 => 3,
        2048..4096 => 4,
        _ => 5,
    }
}

impl AsFd for Context {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.channel.as_fd()
    }
}

impl Drop for Opened {
    fn drop(&mut self) {
        self.core.with(|hardware| hardware.contexts.remove(&self.id));
    }
}
