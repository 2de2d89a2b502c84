//! A sample where it lies.

use std::marker::PhantomData;
use std::sync::Arc;

use serde::Deserialize;

use super::info::SampleInfo;
use crate::cdr::{PlainType, TypeSupport, decode, plain_ref};
use crate::error::DdsError;
use crate::topic::Payload;

/// A sample that is lent: from the group's ring while a listener is called, or from the reader's
/// memory.
///
/// Over shared memory the ring belongs to the writer's process. A program that does not trust all
/// participants copies the value before it checks it, and uses the copy: [`Lent::data`] is one.
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

    /// What stands beside it.
    #[must_use]
    pub const fn info(&self) -> &'a SampleInfo {
        self.info
    }

    /// Its CDR; without a value ([`SampleInfo::valid_data`]) that of the key, if it was kept.
    #[must_use]
    pub const fn cdr(&self) -> &'a [u8] {
        self.bytes
    }

    /// The value as another type that may borrow from where it lies, such as
    /// [`OctetsRef`](crate::OctetsRef).
    ///
    /// # Errors
    /// [`DdsError::Cdr`]: there is no value, or none of this type.
    pub fn view<V: Deserialize<'a>>(&self) -> Result<V, DdsError> {
        if !self.info.valid_data {
            return Err(DdsError::Cdr("this tells a state, and has no value".into()));
        }
        decode(self.bytes, self.info.encoding)
    }
}

impl<'a, T: TypeSupport> Lent<'a, T> {
    /// The value.
    ///
    /// # Errors
    /// [`DdsError::Cdr`]: there is no value, or none of this type.
    pub fn data(&self) -> Result<T, DdsError> {
        self.view()
    }

    /// The value where it lies, of a plain type. Nothing if there is none, if it lies unaligned, or
    /// if it was written by a host of the other byte order; [`Lent::data`] gives a copy then.
    #[must_use]
    pub fn plain(&self) -> Option<&'a T>
    where
        T: PlainType,
    {
        if self.info.valid_data { plain_ref(self.bytes, self.info.encoding) } else { None }
    }
}

/// A sample that a reader gave out. Its value stays where it is for as long as this lives.
#[derive(Debug)]
pub struct Sample<T> {
    /// What stands beside it.
    pub info: SampleInfo,
    payload: Option<Arc<Payload>>,
    sample: PhantomData<fn() -> T>,
}

impl<T> Sample<T> {
    pub(crate) const fn new(info: SampleInfo, payload: Option<Arc<Payload>>) -> Self {
        Self { info, payload, sample: PhantomData }
    }

    /// The sample, lent.
    #[must_use]
    pub fn lend(&self) -> Lent<'_, T> {
        Lent::new(&self.info, self.payload.as_ref().map_or(&[], |payload| &payload.bytes))
    }
}

impl<T: TypeSupport> Sample<T> {
    /// The value.
    ///
    /// # Errors
    /// [`DdsError::Cdr`]: there is no value, or none of this type.
    pub fn data(&self) -> Result<T, DdsError> {
        self.lend().data()
    }

    /// The value where it lies, of a plain type: as [`Lent::plain`].
    #[must_use]
    pub fn plain(&self) -> Option<&T>
    where
        T: PlainType,
    {
        self.lend().plain()
    }
}
