//! From application threads into whichever view is present: senders that outlive views (VIE-7).
//!
//! # Invariants
//! - A message is numbered once: its *ordinal* counts all that this node has reserved in the
//!   subgroup. A view's ring begins with the first message that the view before ended without, so
//!   ordinals go on through views.
//! - The next view's ring is handed out only once everything that remained of the views before is
//!   in it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock, PoisonError};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::node::{Undelivered, UndeliveredMessage};
use tramontane_core::smc::{Reservation, ReserveError, ReservedRun};

use super::large::LargeGate;
use crate::member::{OutboxCell, SendError, Shared};
use crate::poll::{Drive, Ending, wait_driving};

/// The sending end of one view, with the number of its first message.
struct ViewOutbox {
    cell: OutboxCell,
    subgroup: SubgroupId,
    first: u64,
}

impl ViewOutbox {
    fn new(shared: &Arc<Shared>, subgroup: SubgroupId, first: u64) -> Option<Self> {
        let cell =
            OutboxCell::try_new(Arc::clone(shared), |shared| shared.outbox(subgroup).ok_or(()))
                .ok()?;
        Some(Self { cell, subgroup, first })
    }

    /// Another one of the same view.
    fn another(&self) -> Option<Self> {
        Self::new(self.cell.borrow_owner(), self.subgroup, self.first)
    }
}

/// What a sender sends in, as of some turn of its gate.
struct Present {
    /// Nothing between two views.
    outbox: Option<ViewOutbox>,
    turns: u64,
    /// What a call that waits found after this: what it returns may borrow from any of them.
    next: OnceLock<Box<Self>>,
}

impl Present {
    fn of(gate: &Gate) -> Self {
        let turns = gate.turns.load(Ordering::Acquire);
        Self { outbox: gate.present(), turns, next: OnceLock::new() }
    }

    #[inline(always)]
    fn is_past(&self, gate: &Gate) -> bool {
        gate.turns.load(Ordering::Acquire) != self.turns
    }
}

/// What senders of a subgroup share with the engine.
pub(super) struct Gate {
    subgroup: SubgroupId,
    message_max: u32,
    /// Where the bytes of large messages go, if the subgroup takes such.
    pub(super) large: Option<Arc<LargeGate>>,
    pub(super) ending: Arc<Ending>,
    /// Rises with each change of `present`.
    turns: AtomicU64,
    /// Nothing between two views.
    present: Mutex<Option<ViewOutbox>>,
    /// Messages with ordinals below this were delivered here.
    delivered: AtomicU64,
    /// Messages with ordinals below this were sent when the member ended; `u64::MAX` before.
    sent: AtomicU64,
}

impl Gate {
    pub(super) fn new(
        subgroup: SubgroupId,
        message_max: u32,
        large: Option<Arc<LargeGate>>,
        ending: &Arc<Ending>,
    ) -> Arc<Self> {
        Arc::new(Self {
            subgroup,
            message_max,
            large,
            ending: Arc::clone(ending),
            turns: AtomicU64::new(0),
            present: Mutex::new(None),
            delivered: AtomicU64::new(0),
            sent: AtomicU64::new(u64::MAX),
        })
    }

    pub(super) const fn subgroup(&self) -> SubgroupId {
        self.subgroup
    }

    /// Why a message of `length` bytes finds no slot between two views.
    #[cold]
    fn refusal(&self, length: usize) -> ReserveError {
        let limit = self.message_max;
        if usize::try_from(limit).is_ok_and(|most| length > most) {
            return ReserveError::TooLarge { length, limit };
        }
        ReserveError::Full
    }

    fn set(&self, present: Option<ViewOutbox>) {
        *self.present.lock().unwrap_or_else(PoisonError::into_inner) = present;
        self.turns.fetch_add(1, Ordering::Release);
    }

    fn present(&self) -> Option<ViewOutbox> {
        self.present.lock().unwrap_or_else(PoisonError::into_inner).as_ref()?.another()
    }
}

/// What became of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fate {
    /// It was delivered here; so every member that goes on has it, and delivers it too. Not so in a
    /// subgroup without order (`unordered`): there each member delivers what it has, so that others
    /// may lack it if a member is lost, and it is not sent again.
    Delivered,
    /// It is under way. If the view changes first it is sent again in the next one, in its order
    /// (VIE-7); without an order that is done only for what was not sent at all.
    UnderWay,
    /// This member ended before it was sent: nobody has it, and nobody will.
    NotSent,
    /// It was sent, and this member ended before it knew more: the others may have delivered it, or
    /// may not.
    Unknown,
}

/// Stands for a message that was committed: what becomes of it is its [`Fate`]. In a subgroup
/// without order that says what this member knows, and nothing of the others.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Receipt(u64);

impl Receipt {
    /// The message's number among all that this node sent in the subgroup.
    pub(super) const fn ordinal(self) -> u64 {
        self.0
    }

    /// The receipt of the message of that number, for tests of applications that keep receipts.
    #[must_use]
    pub const fn of(ordinal: u64) -> Self {
        Self(ordinal)
    }
}

/// Sends in one subgroup, through all views of this member. Clone one for each thread; each
/// thread's messages keep their order.
///
/// Where a thread of its own drives the member, a sender that finds no free slot steps the member
/// itself while it waits. Where its caller steps it, a wait needs the caller to step meanwhile, in
/// another thread.
pub struct Sender {
    // Dropped first: it reads the memory of its view.
    present: Present,
    pub(super) gate: Arc<Gate>,
    pub(super) driver: Option<Arc<dyn Drive>>,
}

/// A slot that is being built in: commit it, or drop it to send nothing. It may be committed in a
/// later view than it was taken in.
pub struct Slot<'s> {
    reservation: Reservation<'s>,
    first: u64,
    driver: Option<&'s dyn Drive>,
}

impl Slot<'_> {
    /// The message, to be built; it holds whatever lay there before.
    #[inline]
    #[must_use]
    pub fn payload(&mut self) -> &mut [u8] {
        self.reservation.payload()
    }

    /// Makes the message shorter.
    pub fn truncate(&mut self, length: usize) {
        self.reservation.truncate(length);
    }

    /// Hands the message over. It goes out with the next step.
    #[inline]
    pub fn commit(self) -> Receipt {
        let receipt = self.receipt();
        self.reservation.commit();
        if let Some(driver) = self.driver {
            driver.ring();
        }
        receipt
    }

    /// Hands over what describes a large message.
    pub(super) fn commit_large(self) -> Receipt {
        let receipt = self.receipt();
        self.reservation.commit_large();
        if let Some(driver) = self.driver {
            driver.ring();
        }
        receipt
    }

    /// What will stand for the message.
    #[inline]
    pub(super) fn receipt(&self) -> Receipt {
        Receipt(self.first.saturating_add(self.reservation.position().0))
    }
}

/// Slots in a row, to be built in one after the other. Those that are left when it is dropped hold
/// their places and send nothing.
pub struct Run<'s> {
    run: ReservedRun<'s>,
    first: u64,
    driver: Option<&'s dyn Drive>,
}

impl<'s> Run<'s> {
    /// The next slot, for a message of `length` bytes; none when all were handed out.
    ///
    /// # Errors
    /// [`ReserveError::TooLarge`].
    #[inline]
    pub fn next(&mut self, length: usize) -> Result<Option<Slot<'s>>, ReserveError> {
        let (first, driver) = (self.first, self.driver);
        Ok(self.run.next(length)?.map(|reservation| Slot { reservation, first, driver }))
    }
}

impl Sender {
    pub(super) fn new(gate: &Arc<Gate>, driver: Option<Arc<dyn Drive>>) -> Self {
        Self { present: Present::of(gate), gate: Arc::clone(gate), driver }
    }

    /// Takes a slot for a message of `length` bytes, if one is free now. Takes no lock, but for the
    /// first call in a view.
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
        let reservation = outbox.cell.borrow_dependent().reserve(length)?;
        Ok(Slot { reservation, first: outbox.first, driver: self.driver.as_deref() })
    }

    /// Takes up to `most` slots in a row, if one is free now, for a burst of messages: cheaper than
    /// one by one.
    ///
    /// # Errors
    /// As [`Sender::try_reserve`].
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
        let outbox = present.outbox.as_ref().ok_or(ReserveError::Full)?;
        let run = outbox.cell.borrow_dependent().reserve_run(most)?;
        Ok(Run { run, first: outbox.first, driver: self.driver.as_deref() })
    }

    /// A view may have begun, or ended.
    #[inline(always)]
    fn look_for_present(&mut self) {
        if self.present.is_past(&self.gate) {
            self.take_present();
        }
    }

    #[cold]
    #[inline(never)]
    fn take_present(&mut self) {
        self.present = Present::of(&self.gate);
    }

    /// Why there is no slot between two views.
    #[cold]
    #[inline(never)]
    fn refusal(&self, length: usize) -> ReserveError {
        self.gate.refusal(length)
    }

    /// Takes a slot for a message of `length` bytes, waiting for one at most `timeout`: through
    /// changes of the view too.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn reserve(&mut self, length: usize, timeout: Duration) -> Result<Slot<'_>, SendError> {
        self.reserve_with(timeout, |sender, present| sender.reserve_in(present, length))
    }

    /// Takes up to `most` slots in a row, waiting for the first at most `timeout`.
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
        // Nothing while it may still come.
        let attempt = |present| match attempt(sender, present) {
            Ok(taken) => Some(Ok(taken)),
            // Between two views this is not known.
            Err(ReserveError::TooLarge { length, limit }) => {
                Some(Err(SendError::TooLarge { length, limit }))
            }
            Err(ReserveError::Full | ReserveError::Contended) => None,
        };
        let mut present = &sender.present;
        if let Some(taken) = attempt(present) {
            return taken;
        }
        wait_driving(sender.driver.as_deref(), &sender.gate.ending, timeout, || {
            if present.is_past(&sender.gate) {
                present = present.next.get_or_init(|| Box::new(Present::of(&sender.gate)));
            }
            attempt(present)
        })?
    }

    /// Sends a message of `length` bytes that `build` writes in place, waiting for a slot at most
    /// `timeout`: through changes of the view too. `build` is handed whatever the slot held before.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent then.
    pub fn send_with(
        &mut self,
        length: usize,
        timeout: Duration,
        build: impl FnOnce(&mut [u8]),
    ) -> Result<Receipt, SendError> {
        let mut slot = self.reserve(length, timeout)?;
        build(slot.payload());
        Ok(slot.commit())
    }

    /// Declares that nothing will be sent here for up to `rounds` rounds of the present view, or
    /// until the next message (NUL-5).
    pub fn declare_silence(&mut self, rounds: u64) {
        self.look_for_present();
        if let Some(outbox) = &self.present.outbox {
            outbox.cell.borrow_dependent().declare_silence(rounds);
        }
    }

    /// Sends a copy of `message`, waiting for a slot at most `timeout`.
    ///
    /// # Errors
    /// [`SendError`]; nothing was sent then.
    pub fn send(&mut self, message: &[u8], timeout: Duration) -> Result<Receipt, SendError> {
        self.send_with(message.len(), timeout, |payload| payload.copy_from_slice(message))
    }

    /// The longest message that a slot takes, in bytes.
    #[must_use]
    pub fn message_max(&self) -> usize {
        usize::try_from(self.gate.message_max).unwrap_or(usize::MAX)
    }

    /// What became of a message that was sent here.
    #[must_use]
    pub fn fate(&self, receipt: Receipt) -> Fate {
        // In this order: what was delivered before the member ended counts as delivered.
        let sent = self.gate.sent.load(Ordering::Acquire);
        if receipt.0 < self.gate.delivered.load(Ordering::Acquire) {
            Fate::Delivered
        } else if sent == u64::MAX {
            Fate::UnderWay
        } else if receipt.0 < sent {
            Fate::Unknown
        } else {
            Fate::NotSent
        }
    }

    /// The subgroup.
    #[must_use]
    pub fn subgroup(&self) -> SubgroupId {
        self.gate.subgroup
    }
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        Self::new(&self.gate, self.driver.clone())
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sender").field("subgroup", &self.gate.subgroup).finish_non_exhaustive()
    }
}

/// A message that its sender committed, and that this member ended without delivering.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Unsent {
    /// The subgroup.
    pub subgroup: SubgroupId,
    /// What its sender was given for it.
    pub receipt: Receipt,
    /// The bytes.
    pub payload: Vec<u8>,
    /// Whether it was sent, so that other members may have delivered it.
    pub was_sent: bool,
}

/// Part of what a view ended without.
struct Rest {
    ring: Arc<ViewOutbox>,
    remains: Undelivered,
}

/// The engine's side of one subgroup in which this node sends.
pub(super) struct Outgoing {
    gate: Arc<Gate>,
    /// The present view's ring, if this node sends in it.
    ring: Option<Arc<ViewOutbox>>,
    /// Whether senders have it: not while something remains of earlier views.
    is_handed_out: bool,
    /// What remains of earlier views, in the order in which it is to be sent.
    rests: VecDeque<Rest>,
    is_unordered: bool,
}

impl Outgoing {
    pub(super) fn new(gate: Arc<Gate>, is_unordered: bool) -> Self {
        Self { gate, ring: None, is_handed_out: false, rests: VecDeque::new(), is_unordered }
    }

    pub(super) fn subgroup(&self) -> SubgroupId {
        self.gate.subgroup
    }

    /// Takes note of how many messages of the present view were delivered here.
    pub(super) fn delivered(&self, in_view: u64) {
        if let Some(ring) = &self.ring {
            self.gate.delivered.store(ring.first.saturating_add(in_view), Ordering::Release);
        }
    }

    /// The present view has ended without these; whatever remains of views before it comes after
    /// them.
    pub(super) fn end(&mut self, remains: Option<Undelivered>) {
        self.gate.set(None);
        self.is_handed_out = false;
        let (Some(ring), Some(mut remains)) = (self.ring.take(), remains) else { return };
        if self.is_unordered {
            // Without an order nobody can say who has it; sent again it might come twice (DEL-3).
            while remains.was_sent() && remains.get(ring.cell.borrow_dependent()).is_some() {
                remains.pass();
            }
        }
        self.rests.push_front(Rest { ring, remains });
    }

    /// The ordinal of the present ring's first message, if this node sends here in the present
    /// view.
    pub(super) fn ring_first(&self) -> Option<u64> {
        self.ring.as_ref().map(|ring| ring.first)
    }

    /// A view has begun in which this node sends here, or does not.
    pub(super) fn begin(&mut self, shared: &Arc<Shared>) {
        let delivered = self.gate.delivered.load(Ordering::Relaxed);
        let first = self.rests.front().map_or(delivered, Rest::first);
        self.ring = ViewOutbox::new(shared, self.gate.subgroup, first).map(Arc::new);
        self.carry();
    }

    /// Brings what remains into the present view's ring, as far as it is built, and then hands the
    /// ring out.
    pub(super) fn carry(&mut self) {
        let Some(ring) = self.ring.as_ref().filter(|_| !self.is_handed_out) else { return };
        while let Some(Rest { ring: from, remains }) = self.rests.front_mut() {
            match remains.carry(from.cell.borrow_dependent(), ring.cell.borrow_dependent()) {
                Ok(true) => drop(self.rests.pop_front()),
                Ok(false) => return,
                Err(error) => {
                    // The next view has the same window and slots, so this cannot be; and nothing
                    // is lost silently.
                    tracing::error!(subgroup = %self.gate.subgroup, %error, "a message cannot be carried over");
                    return;
                }
            }
        }
        self.is_handed_out = true;
        self.gate.set(ring.another());
    }

    /// Whether senders wait for something of earlier views.
    pub(super) fn is_carrying(&self) -> bool {
        self.ring.is_some() && !self.is_handed_out
    }

    /// The member has ended: what was committed and not delivered goes back to the caller (VIE-7).
    /// Who left knows where its last view ended, so what it did not deliver nobody does; who halted
    /// does not. The first call counts: what was sent is known only then. `large` has the bytes of
    /// large messages, by ordinal.
    pub(super) fn give_back(
        &mut self,
        has_left: bool,
        unsent: &mut Vec<Unsent>,
        mut large: impl FnMut(u64) -> Option<Vec<u8>>,
    ) {
        if self.gate.sent.load(Ordering::Relaxed) != u64::MAX {
            return;
        }
        let mut sent = self.gate.delivered.load(Ordering::Relaxed);
        for Rest { ring, remains } in &mut self.rests {
            let from = ring.cell.borrow_dependent();
            while let Some(remaining) = remains.get(from) {
                let was_sent = remains.was_sent() && !has_left;
                let ordinal = ring.first.saturating_add(remains.position().0);
                if was_sent {
                    sent = ordinal.saturating_add(1);
                }
                let payload = match remaining {
                    UndeliveredMessage::Message(payload) => Some(payload.to_vec()),
                    UndeliveredMessage::Large(_) => large(ordinal),
                    UndeliveredMessage::Dropped | UndeliveredMessage::Building => None,
                };
                let (subgroup, receipt) = (self.gate.subgroup, Receipt(ordinal));
                unsent.extend(payload.map(|payload| Unsent {
                    subgroup,
                    receipt,
                    payload,
                    was_sent,
                }));
                remains.pass();
            }
        }
        self.rests.clear();
        self.gate.sent.store(sent, Ordering::Release);
    }
}

impl Rest {
    /// The ordinal of the first message.
    fn first(&self) -> u64 {
        self.ring.first.saturating_add(self.remains.position().0)
    }
}
