//! Requests from other threads to the thread that drives a member or a replica.

use std::sync::mpsc::{Receiver, Sender, channel};

use tramontane_core::fabric::LocalBell as _;

use crate::fabric::AnyBell;

/// The sending side of a request queue. Each request wakes the thread that handles it.
pub(crate) struct Requests<R> {
    sender: Sender<R>,
    bell: AnyBell,
}

impl<R> Clone for Requests<R> {
    fn clone(&self) -> Self {
        Self { sender: self.sender.clone(), bell: self.bell.clone() }
    }
}

impl<R> Requests<R> {
    /// Creates both sides of a queue.
    pub(crate) fn new(bell: AnyBell) -> (Self, Receiver<R>) {
        let (sender, receiver) = channel();
        (Self { sender, bell }, receiver)
    }

    /// Sends a request. Returns false if no thread handles requests any longer.
    pub(crate) fn ask(&self, request: R) -> bool {
        let is_asked = self.sender.send(request).is_ok();
        self.bell.ring_if_asleep();
        is_asked
    }
}
