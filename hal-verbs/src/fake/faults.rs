//! Faults of devices, ports, links and processes.

use std::net::Ipv6Addr;

use super::hardware::{FakeEvent, Hardware};
use super::network::{ContextId, DeviceName};
use super::path::Link;
use super::registry;
use crate::adapter::AsyncEvent;

/// A fault, a change or a repair.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A process is killed: the kernel destroys its objects one by one. Its calls fail from now on.
    Kill {
        /// The context that the process had opened.
        context: ContextId,
        /// Whether the oldest object is destroyed first. Linux begins with the newest: then
        /// registered memory may disappear before queue pairs that still answer.
        oldest_first: bool,
        /// The time from one object to the next, in nanoseconds.
        step_ns: u64,
    },
    /// A device fails for good: it reports so, all its queue pairs are flushed, and calls fail.
    DeviceFatal(DeviceName),
    /// A port loses its link: packets are lost, and contexts receive an event.
    PortDown(DeviceName, u8),
    /// A port has its link again, and contexts receive an event.
    PortUp(DeviceName, u8),
    /// A port gets another local identifier. Packets to the old one are lost.
    Lid(DeviceName, u8, u16),
    /// An entry of a port's table gets another address. Packets to the old one are lost. Nothing
    /// happens if there is no such entry.
    Gid {
        /// The device.
        device: DeviceName,
        /// The port.
        port: u8,
        /// The entry.
        index: u8,
        /// The entry's new address.
        address: Ipv6Addr,
    },
    /// A port's largest packet payload in use changes, in bytes. Longer packets are lost. Contexts
    /// receive the event of a changed subnet manager, because verbs have none for this.
    Mtu(DeviceName, u8, u32),
    /// A port's table of partition keys changes: contexts receive an event, and nothing else
    /// happens.
    Pkey(DeviceName, u8),
    /// The path from one device to another changes, in that direction only.
    Link {
        /// The sending device.
        from: DeviceName,
        /// The receiving device.
        to: DeviceName,
        /// The new properties of the path.
        link: Link,
    },
}

fn index(device: &DeviceName) -> Option<usize> {
    registry::find(device.as_str()).map(|registered| registered.device)
}

impl Hardware {
    /// Carries out a fault.
    pub(super) fn strike(&mut self, fault: Fault) {
        self.counts.faults += 1;
        match fault {
            Fault::Kill { context, oldest_first, step_ns } => {
                self.kill(context.0, oldest_first, step_ns);
            }
            Fault::DeviceFatal(device) => self.fail_device(&device),
            Fault::PortDown(device, port) => self.set_port(&device, port, false),
            Fault::PortUp(device, port) => self.set_port(&device, port, true),
            Fault::Lid(device, port, lid) => {
                self.change(&device, port, AsyncEvent::LidChange(port), |port| port.lid = lid);
            }
            Fault::Gid { device, port, index, address } => {
                self.change(&device, port, AsyncEvent::GidChange(port), |port| {
                    if let Some(entry) = port.gids.get_mut(usize::from(index)) {
                        entry.address = address;
                    }
                });
            }
            Fault::Mtu(device, port, bytes) => {
                let event = AsyncEvent::SubnetManager(port);
                self.change(&device, port, event, |port| port.mtu_bytes = bytes);
            }
            Fault::Pkey(device, port) => {
                self.change(&device, port, AsyncEvent::PkeyChange(port), |_| {});
            }
            Fault::Link { from, to, link } => {
                if let (Some(from), Some(to)) = (index(&from), index(&to)) {
                    self.links.insert((from, to), link);
                }
            }
        }
    }

    fn set_port(&mut self, device: &DeviceName, port: u8, is_up: bool) {
        let event = if is_up { AsyncEvent::PortActive(port) } else { AsyncEvent::PortError(port) };
        self.change(device, port, event, |port| port.is_up = is_up);
    }

    fn change(
        &mut self,
        device: &DeviceName,
        port: u8,
        event: AsyncEvent,
        change: impl FnOnce(&mut super::profile::PortProfile),
    ) {
        let Some(device) = index(device) else { return };
        if let Some(port) = self.devices.get_mut(device).and_then(|it| it.port_mut(port)) {
            change(port);
            self.tell_all(device, event);
        }
    }

    fn fail_device(&mut self, device: &DeviceName) {
        let Some(device) = index(device) else { return };
        self.tell_all(device, AsyncEvent::DeviceFatal);
        let of_device = self.pairs.iter().filter(|(_, pair)| pair.device == device);
        let pairs: Vec<u64> = of_device.map(|(id, _)| *id).collect();
        pairs.into_iter().for_each(|pair| self.enter_error(pair));
        if let Some(device) = self.devices.get_mut(device) {
            device.is_fatal = true;
        }
    }

    fn kill(&mut self, context: u64, oldest_first: bool, step_ns: u64) {
        if let Some(killed) = self.contexts.get_mut(&context) {
            killed.is_killed = true;
            self.destroy_next(context, oldest_first, step_ns);
        }
    }

    /// Destroys one object of a killed process, or several if that takes no time.
    pub(super) fn destroy_next(&mut self, context: u64, oldest_first: bool, step_ns: u64) {
        loop {
            let regions = self.regions.iter().filter(|(_, it)| it.context == context);
            let pairs = self.pairs.iter().filter(|(_, it)| it.context == context);
            let queues = self.queues.iter().filter(|(_, it)| it.context == context);
            let objects = regions
                .map(|(id, _)| *id)
                .chain(pairs.map(|(id, _)| *id))
                .chain(queues.map(|(id, _)| *id));
            let next = if oldest_first { objects.min() } else { objects.max() };
            let Some(object) = next else { return };
            self.counts.killed_objects += 1;
            self.destroy_pair(object);
            self.destroy_region(object);
            self.queues.remove(&object);
            if step_ns > 0 {
                let event = FakeEvent::DestroyNext { context, oldest_first, step_ns };
                self.after(step_ns, event);
                return;
            }
        }
    }
}
