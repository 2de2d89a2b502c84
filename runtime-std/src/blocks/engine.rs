//! The work of the polling thread, which handles requests and events, and steps the groups that
//! have work to do.
//!
//! A group is *awake* while it has posts to make or a message in flight, and after an event for it
//! has arrived. Inactive groups are checked only when no group has work, because what peers write
//! to their own rows arrives without an event. Awake groups are stepped in turn, for a bounded
//! amount of work each, so that no group waits for another to finish.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tramontane_core::fabric::{BlockEvent, Blocks, ErrorKind, Event, HostFabric};

use super::create_error::CreateError;
use super::end::Ended;
use super::generations::{Generations, Reach};
use super::messages::Outgoing;
use super::part::{GroupTransfer, Stepped};
use super::request::{Opening, Request};
use crate::block_transfer::transfer::TransferView;
use crate::member::{Memory, Stopped};
use crate::poll::{Clock, Done, Ending, Steps, guarded};

/// The maximum number of events handled before groups are stepped again.
const EVENTS_MAX: usize = 64;

/// The interval between checks of whether peers are alive.
const CHECK_PEERS: Duration = Duration::from_millis(200);

/// All groups of a node, and the fabric that they use.
pub(super) struct Engine<F> {
    fabric: F,
    generations: Generations,
    /// Groups whose generation is not yet open.
    pending: Vec<Opening>,
    requests: Receiver<Request>,
    ending: Arc<Ending>,
    /// The groups to be stepped in the next round, in order.
    awake: Vec<u64>,
    /// The groups of the current round. The memory of this list is reused.
    stepping: Vec<u64>,
    clock: Clock,
    has_ended: bool,
    has_left: bool,
}

impl<F: HostFabric<Rows = Memory> + Blocks<Error = ErrorKind>> Engine<F> {
    pub(super) fn new(
        fabric: F,
        table: TransferView,
        requests: Receiver<Request>,
        ending: &Arc<Ending>,
    ) -> Self {
        Self {
            fabric,
            generations: Generations::new(table),
            pending: Vec::new(),
            requests,
            ending: Arc::clone(ending),
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
            let number = match request {
                Request::Open(opening) => {
                    let number = opening.number;
                    self.open(*opening);
                    number
                }
                Request::Send { number, buffer, bytes } => {
                    if let Some(part) = self.generations.part(number) {
                        part.queue(Outgoing { buffer, bytes });
                    }
                    number
                }
                Request::Close { number } => {
                    if let Some(part) = self.generations.part(number) {
                        part.close();
                    }
                    number
                }
            };
            self.wake(number);
        }
        is_busy
    }

    /// Opens a group, or keeps it pending until its generation is open.
    fn open(&mut self, opening: Opening) {
        let (number, answer) = (opening.number, opening.answer.clone());
        let opened = match self.generations.reach(number) {
            Reach::Open => self.open_here(opening),
            Reach::Next => {
                self.generations.want(number);
                self.pending.push(opening);
                return;
            }
            Reach::Passed => Err(CreateError::NumberPassed(number)),
            Reach::TooFar => Err(CreateError::NumberTooLarge(number)),
        };
        // The requesting thread may have given up.
        let _ = answer.send(opened);
    }

    fn open_here(&mut self, opening: Opening) -> Result<(), CreateError> {
        let number = opening.number;
        let Self { generations, fabric, .. } = self;
        let place = generations.place(number).ok_or(CreateError::NumberPassed(number))?;
        let (table, channel) = place;
        let mut part = Box::new(GroupTransfer::open(opening, table, channel, fabric)?);
        generations.tell_losses(&mut part);
        generations.keep(number, part);
        Ok(())
    }

    /// Moves to the next generation if that is wanted, and opens the groups that were waiting for
    /// it.
    fn advance(&mut self) -> Result<bool, Stopped> {
        let is_ahead = self.generations.advance(&mut self.fabric)?;
        if is_ahead {
            for opening in std::mem::take(&mut self.pending) {
                let number = opening.number;
                self.open(opening);
                self.wake(number);
            }
        }
        Ok(is_ahead)
    }

    /// Handles the fabric's events, up to a bound.
    fn hear(&mut self) -> bool {
        let mut is_busy = false;
        for _ in 0..EVENTS_MAX {
            let Some(event) = self.fabric.poll() else { break };
            is_busy = true;
            match event {
                Event::PeerLost { peer, cause, .. } => {
                    tracing::info!(%peer, %cause, "a peer is lost");
                    self.generations.lost(peer, cause);
                    self.wake_all();
                }
                Event::Completed(token) => self.generations.completed(token),
                _ => {}
            }
        }
        for _ in 0..EVENTS_MAX {
            let Some(event) = self.fabric.poll_block() else { break };
            is_busy = true;
            let (BlockEvent::Sent { way, .. } | BlockEvent::Received { way, .. }) = event;
            if let Some(part) = self.generations.part_at(way.view, way.channel) {
                part.take(&event);
                let number = part.number();
                self.wake(number);
            }
        }
        is_busy
    }

    fn wake(&mut self, number: u64) {
        if let Some(part) = self.generations.part(number)
            && !part.is_awake
        {
            part.is_awake = true;
            self.awake.push(number);
        }
    }

    fn wake_all(&mut self) {
        for part in self.generations.parts_mut().filter(|part| !part.is_awake) {
            part.is_awake = true;
            self.awake.push(part.number());
        }
    }

    /// Steps each awake group once. Groups that still have work stay awake.
    fn step_awake(&mut self) -> bool {
        let mut is_busy = false;
        let mut stepping = std::mem::replace(&mut self.awake, std::mem::take(&mut self.stepping));
        for number in stepping.drain(..) {
            let Some(part) = self.generations.part(number) else { continue };
            match part.step(&mut self.fabric) {
                Stepped::Idle => part.is_awake = false,
                Stepped::Busy => {
                    is_busy = true;
                    self.awake.push(number);
                }
                Stepped::Over => {
                    is_busy = true;
                    self.generations.remove(number);
                }
            }
        }
        self.stepping = stepping;
        is_busy
    }
}

/// The result of stepping the awake groups: whether any of them had work to do.
#[derive(Clone, Copy, Debug)]
pub(super) struct IsBusy(bool);

impl Done for IsBusy {
    fn is_idle(&self) -> bool {
        !self.0
    }
}

impl<F: HostFabric<Rows = Memory> + Blocks<Error = ErrorKind> + Send> Steps for Engine<F> {
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
        is_busy |= self.advance()?;
        is_busy |= self.step_awake();
        if !is_busy {
            self.wake_all();
            is_busy = self.step_awake();
        }
        Ok(IsBusy(is_busy))
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        // Requests are handled in every step anyway, so nothing is done for them here.
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
        self.generations.parts().next().is_none() && self.pending.is_empty()
    }

    fn writes(&self) -> u64 {
        0
    }

    /// Ends all groups and notifies every waiting thread. An application that has panicked is not
    /// called again.
    fn end(&mut self, why: Stopped) -> Stopped {
        let stopped = self.ending.stop(why);
        if !self.has_ended {
            self.has_ended = true;
            let ended = Ended::Stopped(stopped.clone());
            self.generations.parts().for_each(|part| part.tell_handle(&ended));
        }
        stopped
    }

    /// Groups that are still open end with the node.
    fn leave(&mut self) {
        if self.has_left {
            return;
        }
        self.has_left = true;
        let stopped = self.ending.stop(Stopped::Closed);
        let _ = self.take_asked();
        let ended = Ended::Stopped(stopped);
        for part in self.generations.parts_mut() {
            // There is no caller left to which a panic of the application could be reported.
            let _ = guarded(|| {
                part.tell(&ended);
                Ok(())
            });
        }
        self.fabric.leave();
    }
}
