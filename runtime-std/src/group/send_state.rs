//! What senders of a subgroup share with the engine: the present view's ring, and how far it got.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tramontane_core::fabric::LocalBell as _;
use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::ReserveError;

use super::clients::Origin;
use super::description::SubgroupDescription;
use super::large::LargeSendQueue;
use super::receipt::Counts;
use crate::fabric::AnyBell;
use crate::member::{OutboxCell, Shared};
use crate::poll::Ending;

/// The sending end of one view, with the number of its first message.
pub(super) struct ViewOutbox {
    pub(super) cell: OutboxCell,
    pub(super) subgroup: SubgroupId,
    pub(super) first: u64,
}

impl ViewOutbox {
    pub(super) fn new(shared: &Arc<Shared>, subgroup: SubgroupId, first: u64) -> Option<Self> {
        let cell =
            OutboxCell::try_new(Arc::clone(shared), |shared| shared.outbox(subgroup).ok_or(()))
                .ok()?;
        Some(Self { cell, subgroup, first })
    }

    /// Another one of the same view.
    pub(super) fn another(&self) -> Option<Self> {
        Self::new(self.cell.borrow_owner(), self.subgroup, self.first)
    }
}

/// What senders of a subgroup share with the engine.
pub(super) struct SendState {
    pub(super) subgroup: SubgroupId,
    pub(super) message_max: u32,
    /// Whether clients from outside publish in the subgroup.
    pub(super) has_clients: bool,
    /// Where the bytes of large messages go, if the subgroup takes such.
    pub(super) large: Option<Arc<LargeSendQueue>>,
    pub(super) ending: Arc<Ending>,
    /// Rises with each change of `present`.
    pub(super) turns: AtomicU64,
    /// Nothing between two views.
    present: Mutex<Option<ViewOutbox>>,
    /// How far own messages got.
    pub(super) counts: Counts,
    /// Whether the members of the subgroup log what they deliver.
    pub(super) is_logged: bool,
    /// Wakes the thread that drives the member.
    bell: AnyBell,
    /// Messages with ordinals below this were sent when the member ended; `u64::MAX` before.
    pub(super) sent: AtomicU64,
}

impl SendState {
    pub(super) fn new(
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
            counts: Counts::default(),
            is_logged: description.logged,
            bell: bell.clone(),
            sent: AtomicU64::new(u64::MAX),
        })
    }

    pub(super) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Wakes the thread that drives the member, if it sleeps.
    pub(super) fn ring(&self) {
        self.bell.ring_if_asleep();
    }

    /// Bytes behind each message of a member.
    #[inline(always)]
    pub(super) const fn trailer(&self) -> usize {
        if self.has_clients { Origin::Member.trailer() } else { 0 }
    }

    /// The bytes of a message of `length` with what is behind it. A slot may have more room than a
    /// message may take.
    #[inline(always)]
    pub(super) fn with_trailer(
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

    /// Why a message of `length` bytes finds no slot between two views.
    #[cold]
    pub(super) fn refusal(&self, length: usize) -> ReserveError {
        let limit = self.message_max;
        if usize::try_from(limit).is_ok_and(|most| length > most) {
            return ReserveError::TooLarge { length, limit };
        }
        ReserveError::Full
    }

    pub(super) fn set(&self, present: Option<ViewOutbox>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        self.turns.fetch_add(1, Ordering::Release);
    }

    pub(super) fn present(&self) -> Option<ViewOutbox> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.another()
    }
}
