//! The sending end: reserve, build in place, commit; or a blocking send with a timeout.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::smc::{Reservation, ReserveError, ReservedRun};

use super::lent::{OutboxCell, Shared};
use super::unsendable::SendError;
use crate::poll::{Drive, wait_driving};

/// Sends in one subgroup. Clone one for each thread; each thread's messages keep their order.
pub struct Sender {
    outbox: OutboxCell,
    subgroup: SubgroupId,
    driver: Option<Arc<dyn Drive>>,
}

/// A slot that is being built in: commit it, or drop it to send nothing.
pub struct Slot<'s> {
    reservation: Reservation<'s>,
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
    pub fn commit(self) {
        self.reservation.commit();
        if let Some(driver) = self.driver {
            driver.ring();
        }
    }
}

/// Slots in a row, to be built in one after the other. Those that are left when it is dropped hold
/// their places and send nothing.
pub struct Run<'s> {
    run: ReservedRun<'s>,
    driver: Option<&'s dyn Drive>,
}

impl<'s> Run<'s> {
    /// The next slot, for a message of `length` bytes; none when all were handed out.
    ///
    /// # Errors
    /// [`ReserveError::TooLarge`].
    #[inline]
    pub fn next(&mut self, length: usize) -> Result<Option<Slot<'s>>, ReserveError> {
        let driver = self.driver;
        Ok(self.run.next(length)?.map(|reservation| Slot { reservation, driver }))
    }
}

impl Sender {
    pub(super) fn new(
        shared: &Arc<Shared>,
        subgroup: SubgroupId,
        driver: Option<Arc<dyn Drive>>,
    ) -> Option<Self> {
        let outbox =
            OutboxCell::try_new(Arc::clone(shared), |shared| shared.outbox(subgroup).ok_or(()))
                .ok()?;
        Some(Self { outbox, subgroup, driver })
    }

    /// Takes a slot for a message of `length` bytes, if one is free now. Takes no lock.
    ///
    /// # Errors
    /// [`ReserveError`]: full, contended, or too large.
    #[inline]
    pub fn try_reserve(&self, length: usize) -> Result<Slot<'_>, ReserveError> {
        let reservation = self.outbox.borrow_dependent().reserve(length)?;
        Ok(Slot { reservation, driver: self.driver.as_deref() })
    }

    /// Takes up to `most` slots in a row, if one is free now, for a burst of messages: cheaper than
    /// one by one.
    ///
    /// # Errors
    /// [`ReserveError`]: full, or contended.
    #[inline]
    pub fn try_reserve_run(&self, most: u32) -> Result<Run<'_>, ReserveError> {
        let run = self.outbox.borrow_dependent().reserve_run(most)?;
        Ok(Run { run, driver: self.driver.as_deref() })
    }

    /// Takes up to `most` slots in a row, waiting for the first at most `timeout`.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn reserve_run(&self, most: u32, timeout: Duration) -> Result<Run<'_>, SendError> {
        match self.try_reserve_run(most) {
            Ok(run) => Ok(run),
            Err(_) => self.wait(timeout, || self.try_reserve_run(most)),
        }
    }

    /// Takes a slot, waiting for one at most `timeout`.
    ///
    /// With a polling thread, a sender that finds no free slot drives the node itself while it
    /// waits.
    ///
    /// # Errors
    /// [`SendError`].
    #[inline]
    pub fn reserve(&self, length: usize, timeout: Duration) -> Result<Slot<'_>, SendError> {
        match self.try_reserve(length) {
            Ok(slot) => Ok(slot),
            Err(ReserveError::TooLarge { length, limit }) => {
                Err(SendError::TooLarge { length, limit })
            }
            Err(ReserveError::Full | ReserveError::Contended) => {
                self.wait(timeout, || self.try_reserve(length))
            }
        }
    }

    /// Sends a copy of `message`, waiting for a slot at most `timeout`.
    ///
    /// # Errors
    /// [`SendError`].
    pub fn send(&self, message: &[u8], timeout: Duration) -> Result<(), SendError> {
        let mut slot = self.reserve(message.len(), timeout)?;
        slot.payload().copy_from_slice(message);
        slot.commit();
        Ok(())
    }

    /// Declares that nothing will be sent here for up to `rounds` rounds, or until the next message
    /// (NUL-5).
    pub fn declare_silence(&self, rounds: u64) {
        self.outbox.borrow_dependent().declare_silence(rounds);
    }

    fn wait<R>(
        &self,
        timeout: Duration,
        mut attempt: impl FnMut() -> Result<R, ReserveError>,
    ) -> Result<R, SendError> {
        let ending = self.outbox.borrow_owner().ending();
        wait_driving(self.driver.as_deref(), ending, timeout, || attempt().ok())
    }
}

impl Clone for Sender {
    fn clone(&self) -> Self {
        let shared = self.outbox.borrow_owner();
        Self::new(shared, self.subgroup, self.driver.clone()).expect("the outbox that this one has")
    }
}

impl std::fmt::Debug for Sender {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Sender").field("subgroup", &self.subgroup).finish_non_exhaustive()
    }
}
