//! All devices of a network with their objects, and everything in flight between them.
//!
//! # Invariants
//! - One lock protects everything, and time moves only on request.
//! - Objects have numbers that are never reused, so references to a destroyed object are dropped.
//! - Nothing is iterated in an order that a run does not repeat.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::agenda::Agenda;
use super::counts::{CommandCount, CommandKind, Counts};
use super::faults::Fault;
use super::link::Link;
use super::messages::{FakeAnswer, FakeMessage};
use super::pair::Pair;
use super::profile::{PortProfile, Profile};
use super::random::DeviceRandom;
use crate::adapter::{Access, AsyncEvent, Completion, Pages};

/// A future event.
#[derive(Debug)]
pub(super) enum FakeEvent {
    /// A queue pair may send its next request.
    Depart { pair: u64, epoch: u64 },
    /// A request arrives.
    Arrive(FakeMessage),
    /// An acknowledgement or other answer arrives.
    Answer(FakeAnswer),
    /// A piece is placed.
    Place(u64),
    /// An answer has been outstanding for too long.
    TimedOut { pair: u64, epoch: u64 },
    /// A peer that had no receive posted may have one now.
    TryAgain { pair: u64, epoch: u64 },
    /// A scheduled fault.
    Fault(Fault),
    /// A descriptor becomes readable.
    Ring(Arc<OwnedFd>),
    /// The next object of a killed context is destroyed.
    DestroyNext { context: u64, oldest_first: bool, step_ns: u64 },
}

/// A fake device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) profile: Profile,
    pub(super) is_fatal: bool,
    pub(super) next_number: u32,
    pub(super) next_key: u32,
    /// Keys of registrations that have ended, which may be reused.
    pub(super) free_keys: Vec<u32>,
}

impl Device {
    /// Returns a port by its number.
    pub(super) fn port(&self, number: u8) -> Option<&PortProfile> {
        self.profile.ports.get(usize::from(number).checked_sub(1)?)
    }

    pub(super) fn port_mut(&mut self, number: u8) -> Option<&mut PortProfile> {
        self.profile.ports.get_mut(usize::from(number).checked_sub(1)?)
    }
}

/// The state of an opened device.
#[derive(Debug)]
pub(super) struct OpenContext {
    pub(super) device: usize,
    pub(super) events: VecDeque<AsyncEvent>,
    /// Descriptor that counts the waiting events.
    pub(super) channel: Arc<OwnedFd>,
    pub(super) is_killed: bool,
    /// The cost of commands since the last call that took it.
    pub(super) command_ns: u64,
    /// The cost of a worker's commands, while a worker is running some.
    pub(super) worker_ns: Option<u64>,
    pub(super) commands: Vec<CommandCount>,
}

/// Registered memory.
#[derive(Debug)]
pub(super) struct Region {
    pub(super) context: u64,
    pub(super) device: usize,
    pub(super) domain: u64,
    pub(super) key: u32,
    pub(super) address: u64,
    /// Offset of the range in its pages.
    pub(super) start: usize,
    pub(super) bytes: u64,
    pub(super) access: Access,
    pub(super) pages: Arc<Pages>,
}

/// A completion queue.
#[derive(Debug)]
pub(super) struct Queue {
    pub(super) context: u64,
    pub(super) entries: VecDeque<CompletionEntry>,
    pub(super) entries_max: usize,
    pub(super) vector: u32,
    pub(super) is_armed: bool,
    pub(super) has_overrun: bool,
    /// Descriptor that counts the waiting events.
    pub(super) channel: Arc<OwnedFd>,
}

/// A completion that has not been taken.
#[derive(Debug)]
pub(super) struct CompletionEntry {
    pub(super) completion: Completion,
    pub(super) pair: u64,
    pub(super) epoch: u64,
    /// Number of send queue slots that this completion frees, counted from the first request.
    pub(super) frees: u64,
}

/// An address in a region.
#[derive(Clone, Copy, Debug)]
pub(super) struct Spot {
    pub(super) region: u64,
    pub(super) offset: usize,
}

/// Bytes that have arrived but are not in memory yet.
#[derive(Debug)]
pub(super) struct Piece {
    /// The queue pair that accepted the bytes.
    pub(super) pair: u64,
    pub(super) region: u64,
    pub(super) offset: usize,
    pub(super) bytes: Vec<u8>,
}

/// The hardware of a network as a whole.
#[derive(Debug)]
pub(super) struct Hardware {
    pub(super) now: u64,
    pub(super) random: DeviceRandom,
    pub(super) agenda: Agenda<FakeEvent>,
    pub(super) devices: Vec<Device>,
    pub(super) contexts: BTreeMap<u64, OpenContext>,
    pub(super) regions: BTreeMap<u64, Region>,
    /// Regions by device and key.
    pub(super) keys: BTreeMap<(usize, u32), u64>,
    pub(super) queues: BTreeMap<u64, Queue>,
    pub(super) pairs: BTreeMap<u64, Pair>,
    /// Queue pairs by device and number.
    pub(super) numbers: BTreeMap<(usize, u32), u64>,
    pub(super) pieces: BTreeMap<u64, Piece>,
    /// Paths from one device to another that differ from the default.
    pub(super) links: BTreeMap<(usize, usize), Link>,
    pub(super) counts: Counts,
    last_id: u64,
}

impl Hardware {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: 0,
            random: DeviceRandom::new(seed),
            agenda: Agenda::new(),
            devices: Vec::new(),
            contexts: BTreeMap::new(),
            regions: BTreeMap::new(),
            keys: BTreeMap::new(),
            queues: BTreeMap::new(),
            pairs: BTreeMap::new(),
            numbers: BTreeMap::new(),
            pieces: BTreeMap::new(),
            links: BTreeMap::new(),
            counts: Counts::default(),
            last_id: 0,
        }
    }

    /// Returns a new object id; later ids are greater.
    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Carries out what is due by the given time, which then becomes the current time.
    pub(super) fn run_until(&mut self, ns: u64) {
        while let Some((at, event)) = self.agenda.take_due(ns) {
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(ns);
    }

    /// Schedules an event `ns` nanoseconds from now.
    pub(super) fn after(&mut self, ns: u64, event: FakeEvent) -> super::agenda::CompletionEntry {
        self.agenda.enter(self.now.saturating_add(ns), event)
    }

    fn happen(&mut self, event: FakeEvent) {
        match event {
            FakeEvent::Depart { pair, epoch } => self.depart_due(pair, epoch),
            FakeEvent::Arrive(message) => self.arrive(message),
            FakeEvent::Answer(answer) => self.answered(answer),
            FakeEvent::Place(piece) => self.place(piece),
            FakeEvent::TimedOut { pair, epoch } => self.timed_out(pair, epoch),
            FakeEvent::TryAgain { pair, epoch } => self.try_again(pair, epoch),
            FakeEvent::Fault(fault) => self.strike(fault),
            FakeEvent::Ring(channel) => count_up(&channel),
            FakeEvent::DestroyNext { context, oldest_first, step_ns } => {
                self.destroy_next(context, oldest_first, step_ns);
            }
        }
    }

    /// Refuses calls on a dead context.
    pub(super) fn check(&self, context: u64) -> io::Result<&Device> {
        let context = self.contexts.get(&context).ok_or(Errno::BADF)?;
        let device = self.devices.get(context.device).ok_or(Errno::NODEV)?;
        if context.is_killed || device.is_fatal {
            return Err(Errno::IO.into());
        }
        Ok(device)
    }

    /// Counts a command and returns its cost in nanoseconds.
    pub(super) fn command(&mut self, context: u64, kind: CommandKind) -> u64 {
        let Some(opened) = self.contexts.get_mut(&context) else { return 0 };
        let Some(device) = self.devices.get(opened.device) else { return 0 };
        let more = match kind {
            CommandKind::ReadyToReceive => device.profile.ready_to_receive_ns,
            _ => 0,
        };
        let cost = device.profile.command_ns.saturating_add(more);
        match &mut opened.worker_ns {
            Some(worker_ns) => *worker_ns = worker_ns.saturating_add(cost),
            None => opened.command_ns = opened.command_ns.saturating_add(cost),
        }
        let thread = std::thread::current().id();
        let is_same = |count: &&mut CommandCount| count.kind == kind && count.thread == thread;
        match opened.commands.iter_mut().find(is_same) {
            Some(found) => found.count += 1,
            None => opened.commands.push(CommandCount { kind, thread, count: 1 }),
        }
        cost
    }

    /// Sends an event to a context.
    pub(super) fn tell(&mut self, context: u64, event: AsyncEvent) {
        if let Some(context) = self.contexts.get_mut(&context).filter(|context| !context.is_killed)
        {
            context.events.push_back(event);
            count_up(&context.channel);
        }
    }

    /// Sends an event to all contexts of a device.
    pub(super) fn tell_all(&mut self, device: usize, event: AsyncEvent) {
        let of_device = |(_, context): &(&u64, &OpenContext)| context.device == device;
        let contexts: Vec<u64> =
            self.contexts.iter().filter(of_device).map(|(id, _)| *id).collect();
        for context in contexts {
            self.tell(context, event);
        }
    }
}

/// Adds an event to a descriptor.
pub(super) fn count_up(channel: &OwnedFd) {
    // This fails only if 2^64 - 1 events are waiting.
    let _ = rustix::io::write(channel, &1_u64.to_ne_bytes());
}

/// Removes an event from a descriptor; returns false if there was none.
pub(super) fn count_down(channel: &OwnedFd) -> bool {
    rustix::io::read(channel, &mut [0; 8]).is_ok()
}

/// Creates a descriptor that is readable while events are waiting.
pub(super) fn new_channel() -> io::Result<Arc<OwnedFd>> {
    use rustix::event::{EventfdFlags, eventfd};
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
    Ok(Arc::new(eventfd(0, flags)?))
}
