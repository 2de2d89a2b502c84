//! A network of fake devices, as tests use it.

use std::io;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};

use super::clock::{Clock, Core};
use super::counts::{CommandCount, Counts};
use super::faults::Fault;
use super::hardware::{Device, FakeEvent, OpenContext};
use super::identity::{ContextId, DeviceName};
use super::profile::{GidEntry, Profile};
use super::registry;
use crate::devices::{Devices, GidKind, LinkLayer};

/// A network of fake devices. A clone refers to the same network. After the last clone has been
/// dropped, the devices can no longer be opened, but opened devices continue to work.
#[derive(Clone, Debug)]
pub struct Network {
    core: Arc<Core>,
    names: Arc<RegisteredNames>,
}

/// The registered names, which are released at the end.
#[derive(Debug, Default)]
struct RegisteredNames(Mutex<Vec<String>>);

impl Drop for RegisteredNames {
    fn drop(&mut self) {
        registry::remove(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Network {
    /// Creates a network without devices. The seed determines everything that is random.
    #[must_use]
    pub fn new(seed: u64, clock: Clock) -> Self {
        Self { core: Core::new(seed, clock), names: Arc::default() }
    }

    /// Adds a device, which can then be opened by its name.
    #[must_use]
    pub fn add_device(&self, profile: Profile) -> DeviceName {
        let device = self.core.with(|hardware| {
            let index = hardware.devices.len();
            hardware.devices.push(Device {
                profile: addressed(profile, index),
                is_fatal: false,
                next_number: 16,
                next_key: 1,
                free_keys: Vec::new(),
            });
            index
        });
        let name = registry::register(&self.core, device);
        self.names.0.lock().unwrap_or_else(PoisonError::into_inner).push(name.clone());
        DeviceName(name)
    }

    /// Describes a device as [`Devices::discover`] would list it, by opening it briefly.
    ///
    /// # Errors
    /// Fails if the device has failed.
    pub fn describe(&self, device: &DeviceName) -> io::Result<Devices> {
        Devices::within_reach(Some(device.as_str()))
    }

    /// Returns the current time, in nanoseconds since the network began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.core.with(|hardware| hardware.now)
    }

    /// Returns the time of the next event, if nothing is posted until then.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        self.core.with(|hardware| hardware.agenda.next_at())
    }

    /// Carries out what is due by the given time, which then becomes the current time. Only for
    /// [`Clock::Virtual`]. A time in the past changes nothing.
    pub fn run_until(&self, ns: u64) {
        if self.core.is_virtual() {
            self.core.with(|hardware| hardware.run_until(ns));
        }
    }

    /// Returns the open contexts of a device, in the order in which they were opened.
    #[must_use]
    pub fn contexts(&self, device: &DeviceName) -> Vec<ContextId> {
        let Some(device) = self.index(device) else { return Vec::new() };
        self.core.with(|hardware| {
            let of_device = |(_, context): &(&u64, &OpenContext)| context.device == device;
            let found = hardware.contexts.iter().filter(of_device);
            found.map(|(id, _)| ContextId(*id)).collect()
        })
    }

    /// Returns the cost in nanoseconds of the commands on a context since the last call. In virtual
    /// time, the cost has no other effect. Workers' commands are not included, because their
    /// outcomes are delayed by their cost.
    #[must_use]
    pub fn take_command_ns(&self, context: ContextId) -> u64 {
        self.core.with(|hardware| {
            let found = hardware.contexts.get_mut(&context.0);
            found.map_or(0, |context| std::mem::take(&mut context.command_ns))
        })
    }

    /// Returns the number of commands on a context, by thread and kind.
    #[must_use]
    pub fn commands(&self, context: ContextId) -> Vec<CommandCount> {
        self.core.with(|hardware| {
            hardware.contexts.get(&context.0).map_or_else(Vec::new, |it| it.commands.clone())
        })
    }

    /// Returns the event counts so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.with(|hardware| hardware.counts)
    }

    /// Returns the number of objects on all devices: contexts, registrations, completion
    /// queues and queue pairs.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.core.with(|hardware| {
            let (contexts, regions) = (hardware.contexts.len(), hardware.regions.len());
            contexts + regions + hardware.queues.len() + hardware.pairs.len()
        })
    }

    /// Injects a fault now.
    pub fn inject(&self, fault: Fault) {
        self.core.with(|hardware| hardware.strike(fault));
    }

    /// Injects a fault at the given time, or at once if that time is in the past.
    pub fn inject_at(&self, ns: u64, fault: Fault) {
        self.core.with(|hardware| {
            let at = ns.max(hardware.now);
            hardware.agenda.enter(at, FakeEvent::Fault(fault));
        });
    }

    /// Calls `ask` with the hardware, for the other files of this interface.
    pub(super) fn with_hardware<R>(&self, ask: impl FnOnce(&super::hardware::Hardware) -> R) -> R {
        self.core.with(|hardware| ask(hardware))
    }

    pub(super) fn core(&self) -> &Core {
        &self.core
    }

    pub(super) fn index(&self, device: &DeviceName) -> Option<usize> {
        registry::find(device.as_str()).map(|registered| registered.device)
    }
}

/// Returns a profile whose ports have addresses that no other device in the network has.
fn addressed(mut profile: Profile, device: usize) -> Profile {
    let number = u16::try_from(device + 1).unwrap_or(u16::MAX);
    for (index, port) in (0_u16..).zip(&mut profile.ports) {
        let [high, low] = number.to_be_bytes();
        let is_ethernet = port.link_layer == LinkLayer::Ethernet;
        if !is_ethernet && port.lid == 0 {
            port.lid = number.wrapping_mul(16).wrapping_add(index);
        }
        if !port.gids.is_empty() {
            continue;
        }
        let local = Ipv6Addr::new(0xfe80, 0, 0, 0, 0x5054, 0xff, 0xfe00 + index, number);
        port.gids = if is_ethernet {
            let [_, part] = index.to_be_bytes();
            let address = std::net::Ipv4Addr::new(10, 64 + part, high, low).to_ipv6_mapped();
            let kind = GidKind::RoceV2;
            vec![
                GidEntry { address: local, kind, is_routed: false },
                GidEntry { address, kind, is_routed: true },
            ]
        } else {
            vec![GidEntry { address: local, kind: GidKind::InfiniBand, is_routed: true }]
        };
    }
    profile
}
