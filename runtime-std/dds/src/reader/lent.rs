//! Samples that are lent in place.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;

use super::info::SampleInfo;
use crate::cdr::{PlainType, TypeSupport, decode, plain_ref};
use crate::error::DdsError;
use crate::topic::Payload;

/// A borrowed sample: it lies in the group's ring while a listener is called, or in the reader's
/// memory.
///
/// Over shared memory the ring belongs to the writer's process. A program that does not trust all
/// participants must copy the value with [`Lent::data`] before checking it, and use the copy.
#[derive(Debug)]
pub struct Lent<'a, T> {
    info: &'a SampleInfo,
    bytes: &'a [u8],
    sample: PhantomData<fn() -> T>,
}

impl<'a, T> Lent<'a, T> {
    pub(crate) const fn new(info: &'a SampleInfo, bytes: &'a [u8]) -> Self {
        Self { info, bytes, sample: PhantomData }
    }

    /// Returns the information about the sample.
    #[must_use]
    pub const fn info(&self) -> &'a SampleInfo {
        self.info
    }

    /// Returns the sample's CDR. If there is no value ([`SampleInfo::valid_data`]), returns the
    /// key's CDR, if that was kept.
    #[must_use]
    pub const fn cdr(&self) -> &'a [u8] {
        self.bytes
    }

    /// Returns the value as another type that may borrow from its bytes, such as
    /// [`OctetsRef`](crate::OctetsRef).
    ///
    /// # Errors
    /// Fails with [`DdsError::Cdr`] if there is no value, or if it is not of this type.
    pub fn view<V: Deserialize<'a>>(&self) -> Result<V, DdsError> {
        if !self.info.valid_data {
            return Err(DdsError::Cdr("this tells a state, and has no value".into()));
        }
        decode(self.bytes, self.info.encoding)
    }
}

impl<'a, T: TypeSupport> Lent<'a, T> {
    /// Returns a copy of the value.
    ///
    /// # Errors
    /// Fails with [`DdsError::Cdr`] if there is no value, or if it is not of this type.
    pub fn data(&self) -> Result<T, DdsError> {
        self.view()
    }

    /// Returns the value of a plain type in place. Returns `None` if there is no value, if it is
    /// unaligned, or if a host with the other byte order wrote it; [`Lent::data`] then makes a
    /// copy.
    #[must_use]
    pub fn plain(&self) -> Option<&'a T>
    where
        T: PlainType,
    {
        if self.info.valid_data { plain_ref(self.bytes, self.info.encoding) } else { None }
    }
}

/// A sample that a reader has returned. Its value stays in place while this exists.
#[derive(Debug)]
pub struct Sample<T> {
    /// The information about the sample.
    pub info: SampleInfo,
    payload: Option<Arc<Payload>>,
    sample: PhantomData<fn() -> T>,
}

impl<T> Sample<T> {
    pub(crate) const fn new(info: SampleInfo, payload: Option<Arc<Payload>>) -> Self {
        Self { info, payload, sample: PhantomData }
    }

    /// Returns the sample in borrowed form.
    #[must_use]
    pub fn lend(&self) -> Lent<'_, T> {
        Lent::new(&self.info, self.payload.as_ref().map_or(&[], |payload| &payload.bytes))
    }
}

impl<T: TypeSupport> Sample<T> {
    /// Returns a copy of the value.
    ///
    /// # Errors
    /// Fails with [`DdsError::Cdr`] if there is no value, or if it is not of this type.
    pub fn data(&self) -> Result<T, DdsError> {
        self.lend().data()
    }

    /// Returns the value of a plain type in place, like [`Lent::plain`].
    #[must_use]
    pub fn plain(&self) -> Option<&T>
    where
        T: PlainType,
    {
        self.lend().plain()
    }
}
