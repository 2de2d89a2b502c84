//! The sending handle for application threads, which outlives views (VIE-7).

use std::marker::PhantomData;
use std::sync::atomic::Ordering;
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::{Reservation, ReserveError, ReservedRun};

use super::receipt::{Logged, NotLogged, Receipt, Volatile};
use super::send_state::{SendState, ViewOutbox};
use crate::group::clients::origin::Origin;
use crate::group::send::receipt::ordinal::Ordinal;
use crate::member::SendError;
use crate::poll::{DriveOrRing, MemberSteps, wait_driving};

/// The outbox in use, as of a given change of the shared state.
struct Present {
    /// `None` between two views.
    outbox: Option<ViewOutbox>,
    /// The number of bytes appended to each message of a member.
    trailer: usize,
    turns: u64,
    /// The outbox that a waiting call found after this one. It is kept here because the call's
    /// result may borrow from either of them.
    next: OnceLock<Box<Self>>,
}

impl Present {
    fn of(state: &SendState) -> Self {
        let turns = state.turns.load(Ordering::Acquire);
        Self { outbox: state.present(), trailer: state.trailer(), turns, next: OnceLock::new() }
    }

    #[inline(always)]
    fn is_past(&self, state: &SendState) -> bool {
        state.turns.load(Ordering::Acquire) != self.turns
    }
}

/// Sends in one subgroup, across all views of this member. Clone it for each thread; the messages
/// of one thread keep their order.
///
/// If the member is driven by its own thread, a sender that finds no free slot steps the member
/// itself while it waits. If the caller steps the member, another thread must do so during a wait.
///
/// A `Sender<Logged>` ([`Sender::logged`]) sends in the same way, but its receipts also report
/// where a message is durable.
pub struct Sender<K = Volatile> {
    // Dropped first, because it reads the memory of its view.
    present: Present,
    pub(crate) state: Arc<SendState>,
    pub(crate) driver: Option<Arc<dyn DriveOrRing>>,
    kind: PhantomData<fn() -> K>,
}

/// A slot in which a message is built. Commit the slot, or drop it to send nothing. It may be
/// committed in a later view than the one in which it was reserved.
pub struct Slot<'s> {
    reservation: Reservation<'s>,
    /// The number of bytes appended to the message. In a subgroup that accepts clients, these bytes
    /// name the message's origin.
    trailer: usize,
    first: u64,
    driver: Option<&'s dyn DriveOrRing>,
}

impl Slot<'_> {
    /// Returns the payload to fill in. It initially holds arbitrary stale bytes.
    #[inline(always)]
    #[must_use]
    pub fn payload(&mut self) -> &mut [u8] {
        let trailer = self.trailer;
        let all = self.reservation.payload();
        let length = all.len().saturating_sub(trailer);
        &mut all[..length]
    }

    /// Shortens the message.
    pub fn truncate(&mut self, length: usize) {
        self.reservation.truncate(length.saturating_add(self.trailer));
    }

    /// Commits the message, which is sent with the next step. Pass the returned number to
    /// [`Sender::receipt`] to obtain a receipt.
    #[inline(always)]
    pub fn commit(mut self) -> Ordinal {
        if self.trailer > 0 {
            Origin::Member.write_behind(self.reservation.payload());
        }
        self.commit_built()
    }

    /// Commits a client's message, with its origin.
    pub(crate) fn commit_of(mut self, origin: &Origin) {
        origin.write_behind(self.reservation.payload());
        self.commit_built();
    }

    #[inline(always)]
    fn commit_built(self) -> Ordinal {
        let ordinal = self.ordinal();
        self.reservation.commit();
        if let Some(driver) = self.driver {
            driver.ring();
        }
        ordinal
    }

    /// Commits the slot that describes a large message. Clients send no large messages, so nothing
    /// is appended.
    pub(crate) fn commit_large(mut self) -> Ordinal {
        let length = self.payload().len();
        self.reservation.truncate(length);
        let ordinal = self.ordinal();
        self.reservation.commit_large();
        if let Some(driver) = self.driver {
            driver.ring();
        }
        ordinal
    }

    /// Returns the number that the message will have.
    #[inline]
    pub(crate) fn ordinal(&self) -> Ordinal {
        Ordinal(self.first.saturating_add(self.reservation.position().0))
    }
}

/// Consecutive slots, to be filled in one at a time. When a run is dropped, its remaining slots
/// keep their positions but send nothing.
pub struct Run<'s> {
    run: ReservedRun<'s>,
    state: &'s SendState,
    trailer: usize,
    first: u64,
    driver: Option<&'s dyn DriveOrRing>,
}

impl<'s> Run<'s> {
    /// Returns the next slot, for a message of `length` bytes, or `None` when all slots have been
    /// returned.
    ///
    /// # Errors
    /// [`ReserveError::TooLarge`].
    #[inline(always)]
    pub fn next(&mut self, length: usize) -> Result<Option<Slot<'s>>, ReserveError> {
        let (first, driver) = (self.first, self.driver);
        let trailer = self.trailer;
        let slot = self.run.next(self.state.with_trailer(length, trailer)?)?;
        Ok(slot.map(|reservation| Slot { reservation, trailer, first, driver }))
    }
}

impl Sender {
    /// Converts this sender to one whose receipts also report where a message is durable.
    ///
    /// # Errors
    /// [`NotLogged`]: nothing becomes durable in this subgroup.
    pub fn logged(self) -> Result<Sender<Logged>, NotLogged> {
        if self.state.is_logged {
            Ok(Sender::new(&self.state, self.driver))
        } else {
            Err(NotLogged(self.state.subgroup))
        }
    }
}

impl<K> Sender<K> {
    pub(crate) fn new(state: &Arc<SendState>, driver: Option<Arc<dyn DriveOrRing>>) -> Self {
        let (present, state) = (Present::of(state), Arc::clone(state));
        Self { present, state, driver, kind: PhantomData }
    }

    /// Reserves a slot for a message of `length` bytes, if one is free now. Takes no lock, except
    /// in the first call in a view.
    ///
    /// # Errors
    /// [`ReserveError`]: full, contended, or too large. Between two views it is full.
    #[inline(always)]
    pub fn try_reserve(&mut self, length: usize) -> Result<Slot<'_>, ReserveError> {
        self.look_for_present();
        self.reserve_in(&self.present, length)
    }

    #[inline(always)]
    fn reserve_in<'s>(
        &'s self,
        present: &'s Present,
        length: usize,
    ) -> Result<Slot<'s>, ReserveError> {
        let Some(outbox) = &present.outbox else { return Err(self.refusal(length)) };
        let trailer = present.trailer;
        let length = self.state.with_trailer(length, trailer)?;
        let reservation = outbox.cell.borrow_dependent().reserve(length)?;
        Ok(Slot { reservation, trailer, first: outbox.first, driver: self.driver.as_deref() })
    }

    /// Sends a client's message, or a client control message, if a slot is free now.
    pub(crate) fn try_send_of(
        &mut self,
        origin: &Origin,
        payload: &[u8],
    ) -> Result<(), ReserveError> {
        self.look_for_present();
        let present = self.present.outbox.as_ref().ok_or_else(|| self.refusal(0))?;
        let length = payload.len().saturating_add(origin.trailer());
        let reservation = present.cell.borrow_dependent().reserve(length)?;
        let (first, driver) = (present.first, self.driver.as_deref());
        let mut slot = Slot { reservation, trailer: origin.trailer(), first, driver };
        slot.payload().copy_from_slice(payload);
        slot.commit_of(origin);
        Ok(())
    }

    /// Reserves up to `most` consecutive slots for a burst of messages, if at least one is free
    /// now. This is cheaper than reserving slots individually.
    ///
    /// # Errors
    /// Returns the same errors as [`Sender::try_reserve`].
    #[inline(always)]
    pub fn try_reserve_run(&mut self, most: u32) -> Result<Run<'_>, ReserveError> {
        self.look_for_present();
        self.reserve_run_in(&self.present, most)
    }

    #[inline(always)]
    fn reserve_run_in<'s>(
        &'s self,
        present: &'s Present,
        most: u32,
    ) -> Result<Run<'s>, ReserveError> {
        let outbox = present.outbox.as_ref().ok_or_else(|| self.refusal(0))?;
        let run = outbox.cell.borrow_dependent().reserve_run(most)?;
        let trailer = present.trailer;
        Ok(Run {
            run,
            state: &self.state,
            trailer,
            first: outbox.first,
            driver: self.driver.as_deref(),
        })
    }

    /// Returns the number of changes of the view's ring when this sender last looked.
    pub(super) const fn turns(&self) -> u64 {
        self.present.turns
    }

    /// Checks whether a view has begun or ended.
    #[inline(always)]
    fn look_for_present(&mut self) {
        if self.present.is_past(&self.state) {
            self.take_present();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_present(&mut self) {
        self.present = Present::of(&self.state);
    }

    /// Returns the reason why there is no slot between two views, or while this node pauses.
    #[cold]
    #[inline(never)]
    fn refusal(&self, length: usize) -> ReserveError {
        self.state.refusal(length)
    }

    /// Reserves a slot for a message of `length` bytes, waiting for one for at most `timeout`, even
    /// across view changes.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn reserve(&mut self, length: usize, timeout: Duration) -> Result<Slot<'_>, SendError> {
        self.reserve_with(timeout, |sender, present| sender.reserve_in(present, length))
    }

    /// Reserves up to `most` consecutive slots, waiting for the first one for at most `timeout`.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn reserve_run(&mut self, most: u32, timeout: Duration) -> Result<Run<'_>, SendError> {
        self.reserve_with(timeout, |sender, present| sender.reserve_run_in(present, most))
    }

    #[inline]
    fn reserve_with<'s, T>(
        &'s mut self,
        timeout: Duration,
        attempt: impl Fn(&'s Self, &'s Present) -> Result<T, ReserveError>,
    ) -> Result<T, SendError> {
        self.look_for_present();
        let sender: &'s Self = self;
        // `None` as long as a slot may still become free.
        let attempt = |present| match attempt(sender, present) {
            Ok(taken) => Some(Ok(taken)),
            // The limit is not known between two views.
            Err(ReserveError::TooLarge { length, limit }) => {
                Some(Err(SendError::TooLarge { length, limit }))
            }
            Err(ReserveError::Full | ReserveError::Contended) => None,
        };
        let mut present = &sender.present;
        if let Some(taken) = attempt(present) {
            return taken;
        }
        wait_driving(sender.driver.as_deref(), &sender.state.ending, timeout, || {
            if present.is_past(&sender.state) {
                present = present.next.get_or_init(|| Box::new(Present::of(&sender.state)));
            }
            attempt(present)
        })?
    }

    /// Sends a message of `length` bytes that `build` writes in place, waiting for a slot for at
    /// most `timeout`, even across view changes. `build` receives a slot that contains arbitrary
    /// stale bytes.
    ///
    /// # Errors
    /// Returns [`SendError`]; in that case, nothing has been sent.
    pub fn send_with(
        &mut self,
        length: usize,
        timeout: Duration,
        build: impl FnOnce(&mut [u8]),
    ) -> Result<Receipt<K>, SendError> {
        let mut slot = self.reserve(length, timeout)?;
        build(slot.payload());
        let ordinal = slot.commit();
        Ok(self.receipt(ordinal))
    }

    /// Declares that this node will send nothing in the subgroup for up to `rounds` rounds of the
    /// current view, or until its next message (NUL-5).
    pub fn declare_silence(&mut self, rounds: u64) {
        self.look_for_present();
        if let Some(outbox) = &self.present.outbox {
            outbox.cell.borrow_dependent().declare_silence(rounds);
        }
    }

    /// Sends a copy of `message`, waiting for a slot for at most `timeout`.
    ///
    /// # Errors
    /// Returns [`SendError`]; in that case, nothing has been sent.
    pub fn send(&mut self, message: &[u8], timeout: Duration) -> Result<Receipt<K>, SendError> {
        self.send_with(message.len(), timeout, |payload| payload.copy_from_slice(message))
    }

    /// Returns the maximum size of a message that fits into a slot, in bytes.
    #[must_use]
    pub fn message_max(&self) -> usize {
        usize::try_from(self.state.message_max).unwrap_or(usize::MAX)
    }

    /// Returns a receipt for a message sent in this subgroup, given the number that
    /// [`Slot::commit`] returned.
    #[must_use]
    pub fn receipt(&self, ordinal: Ordinal) -> Receipt<K> {
        Receipt::new(&self.state, ordinal)
    }

    /// Returns the steps of this member for threads that wait for its progress.
    #[must_use]
    pub fn stepping(&self) -> MemberSteps {
        MemberSteps::new(self.driver.clone())
    }

    /// The subgroup.
    #[must_use]
    pub fn subgroup(&self) -> SubgroupId {
        self.state.subgroup
    }
}

impl<K> Clone for Sender<K> {
    fn clone(&self) -> Self {
        Self::new(&self.state, self.driver.clone())
    }
}

impl<K> std::fmt::Debug for Sender<K> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sender").field("subgroup", &self.state.subgroup).finish_non_exhaustive()
    }
}
