//! All devices of a network with their objects, and all that is under way between them.
//!
//! # Invariants
//! - One lock holds all of it, and time moves only where that is asked for.
//! - Objects are found by numbers that never come again, so what speaks of one that is gone is
//!   dropped.
//! - Nothing is gone through in an order that a run does not repeat.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::os::fd::OwnedFd;
use std::sync::Arc;

use rustix::io::Errno;

use super::agenda::Agenda;
use super::faults::Fault;
use super::network::{CommandCount, CommandKind, Counts};
use super::pair::Pair;
use super::path::Link;
use super::placement::Piece;
use super::profile::{PortProfile, Profile};
use super::random::Random;
use super::requester::FakeAnswer;
use super::responder::FakeMessage;
use super::window::Window;
use crate::adapter::{Access, AsyncEvent, Completion, Pages};

/// What is to happen.
#[derive(Debug)]
pub(super) enum FakeEvent {
    /// A queue pair may send its next request.
    Depart { pair: u64, epoch: u64 },
    /// A request arrives.
    Arrive(FakeMessage),
    /// An answer arrives.
    Answer(FakeAnswer),
    /// A piece is placed.
    Place(u64),
    /// Nothing was answered for too long.
    TimedOut { pair: u64, epoch: u64 },
    /// A peer that had no receive posted may have one.
    TryAgain { pair: u64, epoch: u64 },
    /// A fault that was ordered.
    Fault(Fault),
    /// A descriptor becomes readable.
    Ring(Arc<OwnedFd>),
    /// The next object of a context that is killed.
    DestroyNext { context: u64, oldest_first: bool, step_ns: u64 },
}

/// One device.
#[derive(Debug)]
pub(super) struct Device {
    pub(super) profile: Profile,
    pub(super) is_fatal: bool,
    pub(super) next_number: u32,
    pub(super) next_key: u32,
    /// Keys of registrations that ended.
    pub(super) free_keys: Vec<u32>,
}

impl Device {
    /// A port by its number.
    pub(super) fn port(&self, number: u8) -> Option<&PortProfile> {
        self.profile.ports.get(usize::from(number).checked_sub(1)?)
    }

    pub(super) fn port_mut(&mut self, number: u8) -> Option<&mut PortProfile> {
        self.profile.ports.get_mut(usize::from(number).checked_sub(1)?)
    }
}

/// What is known of an opened device.
#[derive(Debug)]
pub(super) struct OpenContext {
    pub(super) device: usize,
    pub(super) events: VecDeque<AsyncEvent>,
    /// Counts the events that wait.
    pub(super) channel: Arc<OwnedFd>,
    pub(super) is_killed: bool,
    /// What commands cost since somebody took it.
    pub(super) command_ns: u64,
    /// What the commands of workers cost, while a worker carries some out.
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
    /// Counts the events that wait.
    pub(super) channel: Arc<OwnedFd>,
}

/// A completion that nobody took.
#[derive(Debug)]
pub(super) struct CompletionEntry {
    pub(super) completion: Completion,
    pub(super) pair: u64,
    pub(super) epoch: u64,
    /// How many requests' places in the send queue it frees, counted from the first.
    pub(super) frees: u64,
}

/// All of it.
#[derive(Debug)]
pub(super) struct Hardware {
    pub(super) now: u64,
    pub(super) random: Random,
    pub(super) agenda: Agenda<FakeEvent>,
    pub(super) devices: Vec<Device>,
    pub(super) contexts: BTreeMap<u64, OpenContext>,
    pub(super) regions: BTreeMap<u64, Region>,
    /// Regions and windows by device and key.
    pub(super) keys: BTreeMap<(usize, u32), u64>,
    pub(super) windows: BTreeMap<u64, Window>,
    pub(super) queues: BTreeMap<u64, Queue>,
    pub(super) pairs: BTreeMap<u64, Pair>,
    /// By device and number.
    pub(super) numbers: BTreeMap<(usize, u32), u64>,
    pub(super) pieces: BTreeMap<u64, Piece>,
    /// From one device to another, where it is not as usual.
    pub(super) links: BTreeMap<(usize, usize), Link>,
    pub(super) counts: Counts,
    last_id: u64,
}

impl Hardware {
    pub(super) fn new(seed: u64) -> Self {
        Self {
            now: 0,
            random: Random::new(seed),
            agenda: Agenda::new(),
            devices: Vec::new(),
            contexts: BTreeMap::new(),
            regions: BTreeMap::new(),
            keys: BTreeMap::new(),
            windows: BTreeMap::new(),
            queues: BTreeMap::new(),
            pairs: BTreeMap::new(),
            numbers: BTreeMap::new(),
            pieces: BTreeMap::new(),
            links: BTreeMap::new(),
            counts: Counts::default(),
            last_id: 0,
        }
    }

    /// A number that names an object, later ones being greater.
    pub(super) fn new_id(&mut self) -> u64 {
        self.last_id += 1;
        self.last_id
    }

    /// Lets happen what is due by a moment, which is then the present.
    pub(super) fn run_until(&mut self, ns: u64) {
        while let Some((at, event)) = self.agenda.take_due(ns) {
            self.now = self.now.max(at);
            self.happen(event);
        }
        self.now = self.now.max(ns);
    }

    /// Enters an event so long after the present.
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

    /// Refuses calls on what is dead.
    pub(super) fn check(&self, context: u64) -> io::Result<&Device> {
        let context = self.contexts.get(&context).ok_or(Errno::BADF)?;
        let device = self.devices.get(context.device).ok_or(Errno::NODEV)?;
        if context.is_killed || device.is_fatal {
            return Err(Errno::IO.into());
        }
        Ok(device)
    }

    /// What a command costs, in nanoseconds, which is counted too.
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

    /// Tells a context of something.
    pub(super) fn tell(&mut self, context: u64, event: AsyncEvent) {
        if let Some(context) = self.contexts.get_mut(&context).filter(|context| !context.is_killed)
        {
            context.events.push_back(event);
            count_up(&context.channel);
        }
    }

    /// Tells all contexts of a device.
    pub(super) fn tell_all(&mut self, device: usize, event: AsyncEvent) {
        let of_device = |(_, context): &(&u64, &OpenContext)| context.device == device;
        let contexts: Vec<u64> =
            self.contexts.iter().filter(of_device).map(|(id, _)| *id).collect();
        for context in contexts {
            self.tell(context, event);
        }
    }
}

/// One more event waits at a descriptor.
pub(super) fn count_up(channel: &OwnedFd) {
    // It fails only at 2^64 - 1 of them.
    let _ = rustix::io::write(channel, &1_u64.to_ne_bytes());
}

/// One event less waits; false if none did.
pub(super) fn count_down(channel: &OwnedFd) -> bool {
    rustix::io::read(channel, &mut [0; 8]).is_ok()
}

/// A descriptor that is readable while events wait.
pub(super) fn new_channel() -> io::Result<Arc<OwnedFd>> {
    use rustix::event::{EventfdFlags, eventfd};
    let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK | EventfdFlags::SEMAPHORE;
    Ok(Arc::new(eventfd(0, flags)?))
}
