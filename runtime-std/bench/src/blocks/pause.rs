//! A delayed member: its polling thread sleeps for a while in each measured message.
//!
//! A node calls its recipients on the polling thread, so a recipient that sleeps stops the node. A
//! receiver's recipient sleeps when the first block of a message has arrived. The root has no
//! recipient that is called when its first blocks have left, so it sends a message to itself, in a
//! group of its own, right after the message. That message is complete at the next step, and its
//! recipient sleeps.

use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use tramontane_core::rdmc::Algorithm;
use tramontane_core::rdmc::transfer::Window;

use super::task::{LIMIT, Pause};
use crate::error::BenchError;
use tramontane_runtime::blocks::{BlockNode, Buffer, Group, GroupOptions, Recipient};

/// Pauses the calling thread, and records the durations.
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

    /// Returns the duration of each pause, in nanoseconds.
    pub(super) fn lasted_ns(&self) -> Vec<u32> {
        self.lasted_ns.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// Pauses a root.
pub(super) struct RootPauser {
    group: Group,
    free: Receiver<Buffer>,
}

impl RootPauser {
    /// Prepares the pauses, using the group numbered `number`.
    pub(super) fn new(node: &BlockNode, number: u64, pauser: Pauser) -> Result<Self, BenchError> {
        let (give, free) = mpsc::channel();
        let _ = give.send(node.buffer(1)?);
        let options = GroupOptions {
            // There is no other member to which blocks could be sent.
            algorithm: Algorithm::Sequential,
            block_bytes: 1,
            message_max: 1,
            window: Window::default(),
        };
        let group = node.create(number, &[node.node()], options, Sleeper { pauser, give })?;
        Ok(Self { group, free })
    }

    /// Sends the message that makes the node pause, once the node has accepted the earlier
    /// messages.
    pub(super) fn pause(&self) -> Result<(), BenchError> {
        let buffer = self.free.recv_timeout(LIMIT);
        let buffer = buffer
            .map_err(|_| BenchError::Setup(format!("a pause had not ended after {LIMIT:?}")))?;
        self.group.send(buffer, 1).map_err(|refused| BenchError::Setup(refused.to_string()))?;
        Ok(())
    }
}

/// A recipient that sleeps when a message is complete.
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
