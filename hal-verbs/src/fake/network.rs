//! The face of a network of fake devices.

use std::fmt;
use std::io;
use std::net::Ipv6Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::ThreadId;

use super::clock::{Clock, Core};
use super::faults::Fault;
use super::hardware::{Device, FakeEvent, OpenContext};
use super::profile::{GidEntry, Profile};
use super::registry;
use crate::devices::{Devices, GidKind, LinkLayer, Wanted};

/// The name of a fake device, unique in the process.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct DeviceName(String);

impl DeviceName {
    /// The name.
    #[must_use]
    pub fn as_str(&self) -> &str {
        &self.0
    }

    /// What a member wants that is to use this device.
    #[must_use]
    pub fn wanted(&self) -> Wanted {
        Wanted { device: Some(self.0.clone()), ..Wanted::default() }
    }
}

impl fmt::Display for DeviceName {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}

/// Names one opening of a device: what a process holds.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ContextId(pub(super) u64);

/// A kind of command to the kernel.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CommandKind {
    /// Attributes of the device, of a port, of an address.
    Query,
    /// A protection domain is allocated.
    AllocateDomain,
    /// A protection domain ends.
    FreeDomain,
    /// Memory is registered.
    Register,
    /// A registration ends.
    Deregister,
    /// A memory window is allocated.
    AllocateWindow,
    /// A memory window ends.
    FreeWindow,
    /// A completion queue is made.
    CreateCompletionQueue,
    /// A completion queue ends.
    DestroyCompletionQueue,
    /// A queue pair is made.
    CreateQueuePair,
    /// A queue pair ends.
    DestroyQueuePair,
    /// A queue pair goes to RESET.
    Reset,
    /// A queue pair goes to INIT.
    Initialise,
    /// A queue pair goes to RTR.
    ReadyToReceive,
    /// A queue pair goes to RTS.
    ReadyToSend,
    /// A queue pair's rights change.
    SetAccess,
    /// A queue pair is asked for its state.
    QueryQueuePair,
    /// A queue pair is asked whether data is placed in order.
    QueryDataInOrder,
}

/// How often a thread gave a command, on one context.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CommandCount {
    /// The command.
    pub kind: CommandKind,
    /// The thread.
    pub thread: ThreadId,
    /// How often.
    pub count: u64,
}

/// How often what happened: what a run reached.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Pieces that were placed later than they arrived.
    pub placed_late: u64,
    /// Pieces that were placed before older ones.
    pub placed_out_of_order: u64,
    /// Requests whose content was read when they executed, and not at the post.
    pub read_late: u64,
    /// Requests that the queue pair's access flags forbid, and that were done.
    pub flags_ignored: u64,
    /// Moves to RESET that led to ERROR.
    pub resets_to_error: u64,
    /// Requests and receives that were flushed.
    pub flushed: u64,
    /// Requests that were refused.
    pub refused: u64,
    /// Requests that found no receive.
    pub not_ready: u64,
    /// How often requests were sent again.
    pub sent_again: u64,
    /// Requests that came twice.
    pub seen_twice: u64,
    /// Messages that were lost by chance.
    pub lost: u64,
    /// Messages that led nowhere: no such address or queue pair, a port that is down, a link that
    /// is cut.
    pub nowhere: u64,
    /// Messages that were lost because their packets were too long.
    pub too_long: u64,
    /// Completion queues that ran over.
    pub overruns: u64,
    /// Faults that happened.
    pub faults: u64,
    /// Objects that were destroyed because their process was killed.
    pub killed_objects: u64,
}

/// A network of fake devices. A clone is the same one; when the last is dropped, the devices can no
/// longer be opened, and what is open goes on.
#[derive(Clone, Debug)]
pub struct Network {
    core: Arc<Core>,
    names: Arc<Names>,
}

/// Takes the names back at the end.
#[derive(Debug, Default)]
struct Names(Mutex<Vec<String>>);

impl Drop for Names {
    fn drop(&mut self) {
        registry::remove(self.0.get_mut().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Network {
    /// A network without devices. All that is left to chance follows from the seed.
    #[must_use]
    pub fn new(seed: u64, clock: Clock) -> Self {
        Self { core: Core::new(seed, clock), names: Arc::default() }
    }

    /// Adds a device, which can be opened by its name from now on.
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

    /// What a device says of itself, as [`Devices::discover`] would list it. Opens it for a moment.
    ///
    /// # Errors
    /// If the device has failed.
    pub fn describe(&self, device: &DeviceName) -> io::Result<Devices> {
        Devices::within_reach(Some(device.as_str()))
    }

    /// The present, in nanoseconds since the network began.
    #[must_use]
    pub fn now_ns(&self) -> u64 {
        self.core.with(|hardware| hardware.now)
    }

    /// The moment at which something happens next, if nothing is posted until then.
    #[must_use]
    pub fn next_at(&self) -> Option<u64> {
        self.core.with(|hardware| hardware.agenda.next_at())
    }

    /// Lets happen what is due by a moment, which then is the present. Only for
    /// [`Clock::Virtual`]; a moment in the past changes nothing.
    pub fn run_until(&self, ns: u64) {
        if self.core.is_virtual() {
            self.core.with(|hardware| hardware.run_until(ns));
        }
    }

    /// The contexts of a device that are open, in the order in which they were opened.
    #[must_use]
    pub fn contexts(&self, device: &DeviceName) -> Vec<ContextId> {
        let Some(device) = self.index(device) else { return Vec::new() };
        self.core.with(|hardware| {
            let of_device = |(_, context): &(&u64, &OpenContext)| context.device == device;
            let found = hardware.contexts.iter().filter(of_device);
            found.map(|(id, _)| ContextId(*id)).collect()
        })
    }

    /// What commands on a context cost since this was asked last, in nanoseconds. In virtual time
    /// nothing else comes of them. The commands of workers are not among it: their outcomes are
    /// late by their cost.
    #[must_use]
    pub fn take_command_ns(&self, context: ContextId) -> u64 {
        self.core.with(|hardware| {
            let found = hardware.contexts.get_mut(&context.0);
            found.map_or(0, |context| std::mem::take(&mut context.command_ns))
        })
    }

    /// How often which thread gave which command on a context.
    #[must_use]
    pub fn commands(&self, context: ContextId) -> Vec<CommandCount> {
        self.core.with(|hardware| {
            hardware.contexts.get(&context.0).map_or_else(Vec::new, |it| it.commands.clone())
        })
    }

    /// How often what happened so far.
    #[must_use]
    pub fn counts(&self) -> Counts {
        self.core.with(|hardware| hardware.counts)
    }

    /// How many objects there are on all devices: contexts, registrations, windows, completion
    /// queues and queue pairs.
    #[must_use]
    pub fn objects(&self) -> usize {
        self.core.with(|hardware| {
            let (contexts, regions) = (hardware.contexts.len(), hardware.regions.len());
            contexts
                + regions
                + hardware.windows.len()
                + hardware.queues.len()
                + hardware.pairs.len()
        })
    }

    /// Lets a fault happen now.
    pub fn inject(&self, fault: Fault) {
        self.core.with(|hardware| hardware.strike(fault));
    }

    /// Lets a fault happen at a moment; at once, if that is past.
    pub fn inject_at(&self, ns: u64, fault: Fault) {
        self.core.with(|hardware| {
            let at = ns.max(hardware.now);
            hardware.agenda.enter(at, FakeEvent::Fault(fault));
        });
    }

    /// All that there is, for other files of this face.
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

/// A profile whose ports have addresses that no other device of the network has.
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
