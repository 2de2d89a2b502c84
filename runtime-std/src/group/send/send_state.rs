//! The state that the senders of a subgroup share with the engine: the current view's ring, and its
//! progress.

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::ReserveError;

use crate::fabric::AnyBell;
use crate::group::clients::origin::Origin;
use crate::group::description::terms::SubgroupDescription;
use crate::group::large::send_queue::LargeSendQueue;
use crate::group::send::receipt::counts::ReceiptCounts;
use crate::member::{OutboxCell, Shared};
use crate::poll::Ending;

/// The outbox of one view, and the number of its first message.
pub(crate) struct ViewOutbox {
    pub(crate) cell: OutboxCell,
    pub(crate) subgroup: SubgroupId,
    pub(crate) first: u64,
}

impl ViewOutbox {
    pub(crate) fn new(shared: &Arc<Shared>, subgroup: SubgroupId, first: u64) -> Option<Self> {
        let cell =
            OutboxCell::try_new(Arc::clone(shared), |shared| shared.outbox(subgroup).ok_or(()))
                .ok()?;
        Some(Self { cell, subgroup, first })
    }

    /// Returns the number of messages reserved here and in earlier views.
    pub(crate) fn reserved(&self) -> u64 {
        self.first.saturating_add(self.cell.borrow_dependent().reserved().0)
    }

    /// Returns another handle to the same view's outbox.
    pub(crate) fn another(&self) -> Option<Self> {
        Self::new(self.cell.borrow_owner(), self.subgroup, self.first)
    }
}

/// The state that the senders of a subgroup share with the engine.
pub(crate) struct SendState {
    pub(crate) subgroup: SubgroupId,
    pub(crate) message_max: u32,
    /// Whether external clients publish in the subgroup.
    pub(crate) has_clients: bool,
    /// The queue for large messages, if the subgroup allows them.
    pub(crate) large: Option<Arc<LargeSendQueue>>,
    pub(crate) ending: Arc<Ending>,
    /// Number of changes of `present`.
    pub(crate) turns: AtomicU64,
    /// `None` between two views, and while this node pauses.
    present: Mutex<Option<ViewOutbox>>,
    /// Whether a sender has found no ring.
    is_ring_wanted: AtomicBool,
    /// The levels that this node's messages have reached.
    pub(crate) counts: ReceiptCounts,
    /// Whether the members of the subgroup log the messages that they deliver.
    pub(crate) is_logged: bool,
    /// Wakes the thread that drives the member.
    bell: AnyBell,
    /// Messages with ordinals below this had been sent when the member ended. `u64::MAX` before the
    /// end.
    pub(crate) sent: AtomicU64,
}

impl SendState {
    pub(crate) fn new(
        subgroup: SubgroupId,
        description: &SubgroupDescription,
        large: Option<Arc<LargeSendQueue>>,
        ending: &Arc<Ending>,
        bell: &AnyBell,
    ) -> Arc<Self> {
        Arc::new(Self {
            subgroup,
            message_max: description.message_max,
            has_clients: description.clients,
            large,
            ending: Arc::clone(ending),
            turns: AtomicU64::new(0),
            present: Mutex::new(None),
            is_ring_wanted: AtomicBool::new(false),
            counts: ReceiptCounts::default(),
            is_logged: description.logged,
            bell: bell.clone(),
            sent: AtomicU64::new(u64::MAX),
        })
    }

    pub(crate) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Wakes the thread that drives the member if it is asleep.
    pub(crate) fn ring(&self) {
        self.bell.ring_if_asleep();
    }

    /// Returns the number of bytes appended to each message of a member.
    #[inline(always)]
    pub(crate) const fn trailer(&self) -> usize {
        if self.has_clients { Origin::Member.trailer() } else { 0 }
    }

    /// Returns the length of a message of `length` bytes together with its trailer. A slot may have
    /// more room than a message may occupy.
    #[inline(always)]
    pub(crate) fn with_trailer(
        &self,
        length: usize,
        trailer: usize,
    ) -> Result<usize, ReserveError> {
        let limit = self.message_max;
        if trailer > 0 && usize::try_from(limit).is_ok_and(|most| length > most) {
            return Err(ReserveError::TooLarge { length, limit });
        }
        Ok(length.saturating_add(trailer))
    }

    /// Notes that a sender has found no ring, so that a node that pauses becomes a sender again.
    #[cold]
    pub(crate) fn want_ring(&self) {
        if !self.is_ring_wanted.swap(true, Ordering::Relaxed) {
            self.ring();
        }
    }

    /// Returns whether a sender has found no ring since it was last handed out.
    pub(crate) fn is_ring_wanted(&self) -> bool {
        self.is_ring_wanted.load(Ordering::Relaxed)
    }

    /// Notes that a sender has found no ring, and returns the reason why a message of `length`
    /// bytes gets no slot.
    #[cold]
    pub(crate) fn refusal(&self, length: usize) -> ReserveError {
        self.want_ring();
        let limit = self.message_max;
        if usize::try_from(limit).is_ok_and(|most| length > most) {
            return ReserveError::TooLarge { length, limit };
        }
        ReserveError::Full
    }

    pub(crate) fn set(&self, present: Option<ViewOutbox>) {
        if present.is_some() {
            self.is_ring_wanted.store(false, Ordering::Relaxed);
        }
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        self.turns.fetch_add(1, Ordering::Release);
        // A new view has free slots.
        self.counts.wake_for_slots();
    }

    pub(crate) fn present(&self) -> Option<ViewOutbox> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.another()
    }
}
