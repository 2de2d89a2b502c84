//! The effects of faults.

use super::faults::Fault;
use super::hardware::{FakeEvent, Hardware};
use super::identity::DeviceName;
use super::registry;
use crate::adapter::AsyncEvent;

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

    /// Destroys one object of a killed process, or several objects if destruction takes no time.
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
