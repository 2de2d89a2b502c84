//! Samples built in the group's slot.

use std::marker::PhantomData;

use super::outlet::{OpenSlot, Subject};
use crate::cdr::{InstanceHandle, PlainType, SEQUENCE_LENGTH_BYTES};
use crate::error::DdsError;
use crate::wire::{HEADER_BYTES, Kind};

/// A sample of a plain type, in its slot. Dropping it writes nothing.
pub struct Loan<'w, T> {
    slot: OpenSlot<'w>,
    sample: PhantomData<fn(T)>,
}

/// A sequence of bytes, in its slot. Dropping it writes nothing.
pub struct OctetsLoan<'w> {
    slot: OpenSlot<'w>,
}

const MISALIGNED: &str = "the slot is not aligned for this type; use write";

impl<'w, T: PlainType> Loan<'w, T> {
    pub(super) fn new(mut slot: OpenSlot<'w>) -> Result<Self, DdsError> {
        if T::mut_from_bytes(body(&mut slot)).is_err() {
            return Err(DdsError::PreconditionNotMet(MISALIGNED.into()));
        }
        Ok(Self { slot, sample: PhantomData })
    }

    /// Writes the sample.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`](crate::DataWriter::write).
    pub fn write(mut self) -> Result<(), DdsError> {
        let instance = InstanceHandle::of::<T>(self.sample())?;
        self.slot.progress.register(instance)?;
        self.slot.commit(&Subject::now(Kind::Data, instance))
    }
}

/// Returns the memory after the header.
fn body<'s>(slot: &'s mut OpenSlot<'_>) -> &'s mut [u8] {
    slot.slot.payload().get_mut(HEADER_BYTES..).unwrap_or_default()
}

impl<T: PlainType> Loan<'_, T> {
    /// Returns the sample under construction.
    #[allow(clippy::missing_panics_doc, reason = "it was checked when the slot was lent")]
    #[inline]
    pub fn sample(&mut self) -> &mut T {
        // The slot does not move, so the earlier check still holds.
        match T::mut_from_bytes(body(&mut self.slot)) {
            Ok(sample) => sample,
            Err(_) => unreachable!("{MISALIGNED}"),
        }
    }
}

impl<'w> OctetsLoan<'w> {
    pub(super) fn new(mut slot: OpenSlot<'w>, bytes: usize) -> Result<Self, DdsError> {
        let length =
            u32::try_from(bytes).map_err(|_| DdsError::TooLarge { bytes, limit: usize::MAX })?;
        if let Some(place) = body(&mut slot).first_chunk_mut::<SEQUENCE_LENGTH_BYTES>() {
            *place = length.to_ne_bytes();
        }
        Ok(Self { slot })
    }

    /// Writes the sample.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`](crate::DataWriter::write).
    pub fn write(self) -> Result<(), DdsError> {
        self.slot.progress.register(InstanceHandle::KEYLESS)?;
        self.slot.commit(&Subject::now(Kind::Data, InstanceHandle::KEYLESS))
    }

    /// Returns the bytes under construction.
    #[inline]
    pub fn bytes(&mut self) -> &mut [u8] {
        body(&mut self.slot).get_mut(SEQUENCE_LENGTH_BYTES..).unwrap_or_default()
    }
}

impl<T> std::fmt::Debug for Loan<'_, T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Loan").finish_non_exhaustive()
    }
}

impl std::fmt::Debug for OctetsLoan<'_> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OctetsLoan").finish_non_exhaustive()
    }
}
