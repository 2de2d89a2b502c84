//! What the polling thread does: takes requests and events, and steps the groups that have
//! something to do.
//!
//! A group is *awake* while it has posts to make or a message under way, and when something came
//! for it. Groups that rest are looked at when nobody else has anything to do: what peers write of
//! themselves comes without an event. Awake groups are stepped in turn, each a bounded amount, so
//! that none waits until another is through.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender};
use std::time::Duration;

use tramontane_core::fabric::{BlockEvent, Blocks, Channel, ErrorKind, Event, HostFabric};
use tramontane_core::ids::Rank;
use tramontane_core::rdmc::transfer::OpenError;

use super::buffer::Buffer;
use super::desk::{Desk, Outgoing};
use super::group::{End, Ended};
use super::node::GroupOptions;
use super::part::{Part, Stepped};
use super::transfer::Table;
use crate::member::Stopped;
use crate::poll::{Clock, Done, Ending, Steps, guarded};

/// Events that are taken before groups are stepped again.
const EVENTS_MAX: usize = 64;

/// Between two looks whether peers live.
const CHECK_PEERS: Duration = Duration::from_millis(200);

/// What application threads ask.
pub(super) enum Request {
    /// A group to be opened.
    Open(Box<Opening>),
    /// A message to be sent.
    Send { channel: Channel, buffer: Buffer, bytes: usize },
    /// A group to be closed.
    Close { channel: Channel },
}

/// A group to be opened, and who waits for it.
pub(super) struct Opening {
    pub(super) channel: Channel,
    pub(super) members: Vec<Rank>,
    pub(super) options: GroupOptions,
    pub(super) desk: Desk,
    pub(super) end: Arc<End>,
    pub(super) answer: Sender<Result<(), OpenError>>,
}

/// All groups of a node, and the fabric below them.
pub(super) struct Engine<F> {
    fabric: F,
    table: Arc<Table>,
    requests: Receiver<Request>,
    ending: Arc<Ending>,
    /// By channel.
    parts: Vec<Option<Box<Part>>>,
    /// Who is stepped next, in turn.
    awake: Vec<Channel>,
    /// The list before, whose memory is used again.
    stepping: Vec<Channel>,
    clock: Clock,
    has_ended: bool,
    has_left: bool,
}

impl<F: HostFabric + Blocks<Error = ErrorKind>> Engine<F> {
    pub(super) fn new(
        fabric: F,
        table: Table,
        channels: u16,
        requests: Receiver<Request>,
        ending: &Arc<Ending>,
    ) -> Self {
        Self {
            fabric,
            table: Arc::new(table),
            requests,
            ending: Arc::clone(ending),
            parts: (0..channels).map(|_| None).collect(),
            awake: Vec::new(),
            stepping: Vec::new(),
            clock: Clock::new(),
            has_ended: false,
            has_left: false,
        }
    }

    fn take_asked(&mut self) -> bool {
        let mut is_busy = false;
        while let Ok(request) = self.requests.try_recv() {
            is_busy = true;
            let channel = match request {
                Request::Open(opening) => {
                    let channel = opening.channel;
                    self.open(*opening);
                    channel
                }
                Request::Send { channel, buffer, bytes } => {
                    if let Some(part) = part_at(&mut self.parts, channel) {
                        part.queue(Outgoing { buffer, bytes });
                    }
                    channel
                }
                Request::Close { channel } => {
                    if let Some(part) = part_at(&mut self.parts, channel) {
                        part.close();
                    }
                    channel
                }
            };
            self.wake(channel);
        }
        is_busy
    }

    fn open(&mut self, opening: Opening) {
        let (channel, answer) = (opening.channel, opening.answer.clone());
        let opened = Part::open(opening, &self.table, &self.fabric).map(|part| {
            if let Some(place) = self.parts.get_mut(usize::from(channel.0)) {
                *place = Some(Box::new(part));
            }
        });
        // Whoever asked may have given up.
        let _ = answer.send(opened);
    }

    /// Takes what the fabric has to say, up to a bound.
    fn hear(&mut self) -> bool {
        let mut is_busy = false;
        for _ in 0..EVENTS_MAX {
            let Some(event) = self.fabric.poll() else { break };
            is_busy = true;
            if let Event::PeerLost { view, peer, cause } = event {
                tracing::info!(%peer, %cause, "a peer is lost");
                for part in self.parts.iter_mut().flatten() {
                    part.lost(view, peer, cause);
                }
                self.wake_all();
            }
        }
        for _ in 0..EVENTS_MAX {
            let Some(event) = self.fabric.poll_block() else { break };
            is_busy = true;
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            if let Some(part) = part_at(&mut self.parts, way.channel) {
                part.take(&event);
                self.wake(way.channel);
            }
        }
        is_busy
    }

    fn wake(&mut self, channel: Channel) {
        if let Some(part) = part_at(&mut self.parts, channel)
            && !part.is_awake
        {
            part.is_awake = true;
            self.awake.push(channel);
        }
    }

    fn wake_all(&mut self) {
        for part in self.parts.iter_mut().flatten().filter(|part| !part.is_awake) {
            part.is_awake = true;
            self.awake.push(part.channel());
        }
    }

    /// Steps who is awake, once each; who still has something to do stays so.
    fn step_awake(&mut self) -> bool {
        let mut is_busy = false;
        let mut stepping = std::mem::replace(&mut self.awake, std::mem::take(&mut self.stepping));
        for channel in stepping.drain(..) {
            let Some(place) = self.parts.get_mut(usize::from(channel.0)) else { continue };
            let Some(part) = place else { continue };
            match part.step(&mut self.fabric) {
                Stepped::Idle => part.is_awake = false,
                Stepped::Busy => {
                    is_busy = true;
                    self.awake.push(channel);
                }
                Stepped::Over => {
                    is_busy = true;
                    *place = None;
                }
            }
        }
        self.stepping = stepping;
        is_busy
    }
}

fn part_at(parts: &mut [Option<Box<Part>>], channel: Channel) -> Option<&mut Part> {
    parts.get_mut(usize::from(channel.0))?.as_deref_mut()
}

/// Whether any group had something to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsBusy(bool);

impl Done for IsBusy {
    fn is_idle(&self) -> bool {
        !self.0
    }
}

impl<F: HostFabric + Blocks<Error = ErrorKind> + Send> Steps for Engine<F> {
    type Fabric = F;
    type Done = IsBusy;

    fn fabric(&mut self) -> &mut F {
        &mut self.fabric
    }

    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn ending(&self) -> &Ending {
        &self.ending
    }

    fn work(&mut self) -> Result<IsBusy, Stopped> {
        let mut is_busy = self.take_asked();
        is_busy |= self.hear();
        is_busy |= self.step_awake();
        if !is_busy {
            self.wake_all();
            is_busy = self.step_awake();
        }
        Ok(IsBusy(is_busy))
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        // Every step takes them.
        Ok(())
    }

    fn check_interval(&self) -> Duration {
        CHECK_PEERS
    }

    fn sleep_max(&self) -> Duration {
        CHECK_PEERS
    }

    fn idle_time(&self) -> Duration {
        self.fabric.idle_time()
    }

    fn is_settled(&self) -> bool {
        self.parts.iter().all(Option::is_none)
    }

    fn writes(&self) -> u64 {
        0
    }

    /// Every thread that waits for a group learns of it; an application that panicked is not called
    /// again.
    fn end(&mut self, why: Stopped) -> Stopped {
        let stopped = self.ending.stop(why);
        if !self.has_ended {
            self.has_ended = true;
            let ended = Ended::Stopped(stopped.clone());
            self.parts.iter().flatten().for_each(|part| part.tell_handle(&ended));
        }
        stopped
    }

    /// Groups that are not over end with the node.
    fn leave(&mut self) {
        if self.has_left {
            return;
        }
        self.has_left = true;
        let stopped = self.ending.stop(Stopped::Closed);
        let _ = self.take_asked();
        let ended = Ended::Stopped(stopped);
        for part in self.parts.iter_mut().flatten() {
            // An application that panics now has no caller to tell.
            let _ = guarded(|| {
                part.tell(&ended);
                Ok(())
            });
        }
        self.fabric.leave();
    }
}
