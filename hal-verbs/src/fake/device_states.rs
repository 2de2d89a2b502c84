//! Devices that fail with few symptoms, or that return.
//!
//! A [`Fault`](super::Fault) shows all symptoms at once. Here, each method produces only one
//! symptom, because NICs differ in which symptoms occur together.

use std::net::Ipv6Addr;

use super::hardware::Hardware;
use super::identity::{ContextId, DeviceName};
use super::network::Network;
use crate::adapter::{AsyncEvent, Completion, QueuePairState};

impl Network {
    /// Brings a failed device back, so that it can be opened. Objects opened before stay unusable.
    pub fn bring_back(&self, device: &DeviceName) {
        self.on_device(device, |hardware, device| {
            for context in hardware.contexts.values_mut().filter(|it| it.device == device) {
                context.is_killed = true;
            }
            if let Some(device) = hardware.devices.get_mut(device) {
                device.is_fatal = false;
            }
        });
    }

    /// Makes a device report its failure without any other symptom: no requests are flushed, and no
    /// calls fail.
    pub fn announce_failure(&self, device: &DeviceName) {
        self.on_device(device, |hardware, device| {
            hardware.tell_all(device, AsyncEvent::DeviceFatal);
        });
    }

    /// Lowers a port's packet size, in bytes, without an event, as happens when the underlying
    /// network interface changes.
    pub fn shrink_packets_silently(&self, device: &DeviceName, port: u8, bytes: u32) {
        self.on_device(device, |hardware, device| {
            let port = hardware.devices.get_mut(device).and_then(|it| it.port_mut(port));
            if let Some(port) = port {
                port.mtu_bytes = bytes;
            }
        });
    }

    /// Changes the address of an entry of a port's table without an event.
    pub fn set_address_silently(
        &self,
        device: &DeviceName,
        (port, index): (u8, u8),
        address: Ipv6Addr,
    ) {
        self.on_device(device, |hardware, device| {
            let port = hardware.devices.get_mut(device).and_then(|it| it.port_mut(port));
            if let Some(entry) = port.and_then(|port| port.gids.get_mut(usize::from(index))) {
                entry.address = address;
            }
        });
    }

    /// Makes a completion queue of a context overflow. `index` counts queues from the first that
    /// was created.
    pub fn overrun(&self, context: ContextId, index: usize) {
        self.core().with(|hardware| {
            let Some(id) = queue_of(hardware, context, index) else { return };
            if let Some(queue) = hardware.queues.get_mut(&id) {
                queue.entries_max = queue.entries.len();
            }
            hardware.complete(id, 0, 0, 0, Completion::default());
        });
    }

    /// Reports to a context that a completion queue has failed, without any other symptom. `index`
    /// counts as for [`Network::overrun`].
    pub fn announce_queue_failure(&self, context: ContextId, index: usize) {
        self.core().with(|hardware| {
            let Some(id) = queue_of(hardware, context, index) else { return };
            hardware.tell(context.0, AsyncEvent::CompletionQueueError(id));
        });
    }

    /// Makes a queue pair of a context fail, without flushing anything. `index` counts queue pairs
    /// from the first that was created.
    pub fn fail_queue_pair_silently(&self, context: ContextId, index: usize) {
        self.core().with(|hardware| {
            let mut pairs = hardware.pairs.values_mut().filter(|it| it.context == context.0);
            if let Some(pair) = pairs.nth(index) {
                (pair.state, pair.responder) = (QueuePairState::Error, None);
            }
        });
    }

    /// Reports to a context that a queue pair has failed, whether it has or not. `index` counts
    /// queue pairs from the first that was created.
    pub fn announce_queue_pair_failure(&self, context: ContextId, index: usize) {
        self.core().with(|hardware| {
            let mut pairs = hardware.pairs.values().filter(|it| it.context == context.0);
            let Some(number) = pairs.nth(index).map(|pair| pair.number) else { return };
            hardware.tell(context.0, AsyncEvent::QueuePairError(number));
        });
    }

    fn on_device(&self, device: &DeviceName, action: impl FnOnce(&mut Hardware, usize)) {
        if let Some(device) = self.index(device) {
            self.core().with(|hardware| action(hardware, device));
        }
    }
}

fn queue_of(hardware: &Hardware, context: ContextId, index: usize) -> Option<u64> {
    let of_context = hardware.queues.iter().filter(|(_, it)| it.context == context.0);
    of_context.map(|(id, _)| *id).nth(index)
}
