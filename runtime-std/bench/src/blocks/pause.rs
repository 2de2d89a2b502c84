//! A delayed member: its polling thread stands still for a while, in each message that is measured.
//!
//! A node calls its recipients from the thread that polls, so a recipient that sleeps stops the
//! node: a receiver's does when the first block of a message has come. The root has no recipient to
//! call when its first blocks have gone; so it sends to itself, in a group of its own, right behind
//! the message: that is complete at the next step, and its recipient sleeps.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use super::task::{LIMIT, Pause};
use crate::error::BenchError;
use tramontane_runtime::blocks::{BlockNode, Buffer, Group, GroupOptions, Recipient};

/// Makes the thread that calls it pause, and keeps how long that was.
#[derive(Clone, Debug)]
pub(super) struct Pauser {
    lasting: Duration,
    lasted_ns: Arc<Mutex<Vec<u32>>>,
}

impl Pauser {
    pub(super) fn new(pause: Pause) -> Self {
        Self { lasting: Duration::from_nanos(pause.lasting_ns), lasted_ns: Arc::default() }
    }

    pub(super) fn pause(&self) {
        let start = Instant::now();
        std::thread::sleep(self.lasting);
        let lasted_ns = start.elapsed().as_nanos().try_into().unwrap_or(u32::MAX);
        self.lasted_ns.lock().unwrap_or_else(PoisonError::into_inner).push(lasted_ns);
    }

    /// How long each pause was, in nanoseconds.
    pub(super) fn lasted_ns(&self) -> Vec<u32> {
        self.lasted_ns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Makes a root pause.
pub(super) struct RootPauser {
    group: Group,
    free: Receiver<Buffer>,
}

impl RootPauser {
    /// Prepares that, by a group of that number.
    pub(super) fn new(node: &BlockNode, number: u64, pauser: Pauser) -> Result<Self, BenchError> {
        let (give, free) = mpsc::channel();
        let _ = give.send(node.buffer(1)?);
        let options = GroupOptions {
            // There is no other member to send to.
            algorithm: Algorithm::Sequential,
            block_bytes: 1,
            message_max: 1,
            window: Window::default(),
        };
        let group = node.create(number, &[node.node()], options, Sleeper { pauser, give })?;
        Ok(Self { group, free })
    }

    /// The node pauses once it has taken up what was sent before.
    pub(super) fn pause(&self) -> Result<(), BenchError> {
        let buffer = self.free.recv_timeout(LIMIT);
        let buffer = buffer
            .map_err(|_| BenchError::Setup(format!("a pause was not over after {LIMIT:?}")))?;
        self.group.send(buffer, 1).map_err(|refused| BenchError::Setup(refused.to_string()))?;
        Ok(())
    }
}

/// Sleeps where it should take what is complete.
struct Sleeper {
    pauser: Pauser,
    give: Sender<Buffer>,
}

impl Recipient for Sleeper {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, buffer: Buffer, _: usize) {
        self.pauser.pause();
        let _ = self.give.send(buffer);
    }
}
