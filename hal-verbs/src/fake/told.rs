//! The settings that connections and queues have passed to a device, for tests of options, and the
//! device properties that are not among the attributes.

use std::io;

use rustix::io::Errno;

use super::hardware::Hardware;
use super::identity::DeviceName;
use super::network::Network;
use super::registry;
use super::{CompletionQueue, Context};
use crate::adapter::DeviceFeatures;
use crate::devices::{PartitionKey, Service};

/// The settings of a connection on one device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ConnectionSettings {
    /// The treatment of the packets by switches and routers.
    pub service: Service,
    /// The index of the partition in the port's table.
    pub partition_index: u16,
    /// Whether packets carry a GID header.
    pub is_global: bool,
    /// The exponent of the retransmission time.
    pub timeout_exponent: u8,
    /// The number of retries.
    pub retries: u8,
    /// Maximum number of requests in the send queue.
    pub sends_max: u32,
    /// Maximum number of bytes sent inline.
    pub inline_bytes_max: u32,
}

impl Network {
    /// Returns the connections of a device that are ready to send, oldest first.
    #[must_use]
    pub fn connections(&self, device: &DeviceName) -> Vec<ConnectionSettings> {
        let Some(found) = registry::find(device.as_str()) else { return Vec::new() };
        self.with_hardware(|hardware| hardware.connections(found.device))
    }

    /// Returns the vectors of a device's completion queues, oldest first.
    #[must_use]
    pub fn completion_vectors(&self, device: &DeviceName) -> Vec<u32> {
        let Some(found) = registry::find(device.as_str()) else { return Vec::new() };
        self.with_hardware(|hardware| {
            let is_of = |context| {
                let context = hardware.contexts.get(context);
                context.is_some_and(|context| context.device == found.device)
            };
            let queues = hardware.queues.values().filter(|queue| is_of(&queue.context));
            queues.map(|queue| queue.vector).collect()
        })
    }
}

impl Hardware {
    fn connections(&self, device: usize) -> Vec<ConnectionSettings> {
        let of_device = self.pairs.values().filter(|pair| pair.device == device);
        let told = of_device.filter_map(|pair| {
            let (route, times) = pair.requester.way()?;
            Some(ConnectionSettings {
                service: route.service,
                partition_index: pair.partition_index,
                is_global: route.is_global,
                timeout_exponent: times.timeout_exponent,
                retries: times.retries,
                sends_max: pair.limits.sends_max,
                inline_bytes_max: pair.limits.inline_bytes_max,
            })
        });
        told.collect()
    }
}

impl Context {
    /// Returns the properties that are not among the attributes.
    pub(crate) fn features(&self) -> DeviceFeatures {
        self.0.core.with(|hardware| {
            let profile = hardware.check(self.0.id).map(|device| &device.profile);
            DeviceFeatures {
                transport: profile.as_ref().map_or(-1, |profile| profile.transport),
                completion_vectors: profile.map_or(1, |profile| profile.completion_vectors),
            }
        })
    }

    /// Returns a port's table of partition keys.
    pub(crate) fn partition_keys(&self, port: u8) -> io::Result<Vec<u16>> {
        self.ask_port(port, |port| port.partitions.iter().map(|key: &PartitionKey| key.0).collect())
    }
}

impl CompletionQueue {
    /// Creates a queue on a vector, which must exist.
    pub(crate) fn on_vector(context: &Context, entries: u32, vector: u32) -> io::Result<Self> {
        if vector >= context.features().completion_vectors {
            return Err(Errno::INVAL.into());
        }
        let queue = Self::new(context, entries)?;
        context.0.core.with(|hardware| {
            if let Some(made) = hardware.queues.get_mut(&queue.id()) {
                made.vector = vector;
            }
        });
        Ok(queue)
    }
}
