//! Types whose memory layout is their CDR: they are built and read in place.

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::encoding::{Encoding, encode};
use super::type_support::TypeSupport;

/// A type whose memory layout is its CDR: numbers and arrays of numbers, `#[repr(C)]`, without gaps
/// between its fields. Any type that derives zerocopy's four traits has this one.
///
/// CDR aligns each number to its size, as `repr(C)` does; so without gaps both are the same bytes.
/// A writer checks that once, with the value zero, before it lends the first slot.
pub trait PlainType: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout + Sized {}

impl<T: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout> PlainType for T {}

/// Returns whether a type's memory layout is its CDR, judged by the size: both have the fields in
/// declaration order.
pub(crate) fn is_plain<T: Serialize + FromBytes + IntoBytes>() -> bool {
    encode(&T::new_zeroed()).is_ok_and(|encoded| encoded.len() == size_of::<T>())
}

/// Returns a value in place; `None` if it is unaligned, or was written by a host with another byte
/// order.
pub(crate) fn plain_ref<T: PlainType>(bytes: &[u8], encoding: Encoding) -> Option<&T> {
    if encoding != Encoding::NATIVE {
        return None;
    }
    T::ref_from_bytes(bytes).ok()
}
