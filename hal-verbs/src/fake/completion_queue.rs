//! Completion queues: the handles of their owners.

use std::io;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;

use super::Context;
use super::clock::Core;
use super::counts::CommandKind;
use super::hardware::count_down;
use crate::adapter::{BATCH, Completion};

/// A completion queue, and a descriptor that wakes a sleeping thread when a completion arrives. A
/// clone refers to the same queue.
#[derive(Clone, Debug)]
pub(crate) struct CompletionQueue(pub(super) Arc<Made>);

/// The queue itself, which is destroyed when the last clone is dropped.
#[derive(Debug)]
pub(super) struct Made {
    context: Context,
    pub(super) id: u64,
    channel: Arc<OwnedFd>,
}

impl CompletionQueue {
    /// Creates a queue for `entries` entries.
    pub(crate) fn new(context: &Context, entries: u32) -> io::Result<Self> {
        let opened = &context.0;
        let kind = CommandKind::CreateCompletionQueue;
        let (id, channel) = opened
            .core
            .command(opened.id, kind, |hardware| hardware.create_queue(opened.id, entries))?;
        Ok(Self(Arc::new(Made { context: context.clone(), id, channel })))
    }

    /// Returns the queue's id in asynchronous events.
    pub(crate) fn id(&self) -> u64 {
        self.0.id
    }

    pub(super) fn core(&self) -> &Core {
        &self.0.context.0.core
    }

    /// Takes the waiting completions, at most [`BATCH`], and returns their number.
    pub(crate) fn take(&self, into: &mut [Completion; BATCH]) -> io::Result<usize> {
        self.0.context.0.core.with(|hardware| hardware.take(self.0.id, into))
    }

    /// Makes the next completion turn the descriptor readable.
    pub(crate) fn notify(&self) -> io::Result<()> {
        self.0.context.0.core.with(|hardware| hardware.notify(self.0.id))
    }

    /// Takes an event from the descriptor without blocking. Returns whether there was one.
    pub(crate) fn take_event(&self) -> bool {
        self.0.context.0.core.with(|_| count_down(&self.0.channel))
    }
}

impl AsFd for CompletionQueue {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.0.channel.as_fd()
    }
}

impl Drop for Made {
    fn drop(&mut self) {
        let opened = &self.context.0;
        opened.core.command(opened.id, CommandKind::DestroyCompletionQueue, |hardware| {
            hardware.queues.remove(&self.id);
        });
    }
}
