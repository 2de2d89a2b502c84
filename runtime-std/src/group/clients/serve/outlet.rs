//! Sends clients' messages to a subgroup, in the slots of their member, between the member's own
//! messages.

use std::collections::VecDeque;

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::smc::ReserveError;

use crate::fabric::AnyBell;
use crate::group::clients::origin::Origin;
use crate::group::send::sender::Sender;

/// The outlet into one subgroup. Its methods never block.
pub(crate) struct Outlet {
    sender: Sender,
    bell: AnyBell,
    /// Client control messages that are waiting for a slot.
    words: VecDeque<Origin>,
    has_sent: bool,
}

impl Outlet {
    pub(crate) const fn new(sender: Sender, bell: AnyBell) -> Self {
        Self { sender, bell, words: VecDeque::new(), has_sent: false }
    }

    /// Returns the maximum length of a line, in bytes.
    pub(crate) fn line_max(&self) -> usize {
        self.sender.message_max()
    }

    /// Sends a client's line, if a slot is free now.
    pub(crate) fn try_line(&mut self, origin: &Origin, line: &[u8]) -> bool {
        self.words.is_empty() && self.try_send(origin, line)
    }

    /// Sends a client control message now, or in a later [`flush`](Self::flush).
    pub(crate) fn put_word(&mut self, word: Origin) {
        self.words.push_back(word);
        self.flush();
    }

    /// Discards the waiting messages.
    pub(crate) fn discard(&mut self) {
        self.words.clear();
    }

    /// Sends waiting control messages, as far as slots are free. Returns true if none is left.
    pub(crate) fn flush(&mut self) -> bool {
        while let Some(word) = self.words.front().copied() {
            if !self.try_send(&word, b"") {
                return false;
            }
            self.words.pop_front();
        }
        true
    }

    fn try_send(&mut self, origin: &Origin, payload: &[u8]) -> bool {
        match self.sender.try_send_of(origin, payload) {
            Ok(()) => self.has_sent = true,
            Err(ReserveError::Full | ReserveError::Contended) => return false,
            // The length of the line has already been checked.
            Err(error @ ReserveError::TooLarge { .. }) => tracing::error!(%error, "left out"),
        }
        true
    }

    /// Wakes the thread that drives the member if there is something new for it.
    pub(crate) fn ring(&mut self) {
        if std::mem::take(&mut self.has_sent) {
            self.bell.ring_if_asleep();
        }
    }
}
