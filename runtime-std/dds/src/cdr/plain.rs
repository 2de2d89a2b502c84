//! Types whose memory is their CDR: they are built and read where they lie.

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::encoding::{Encoding, encode};
use super::type_support::TypeSupport;

/// A type that is its own CDR: numbers and arrays of numbers, `#[repr(C)]`, without gaps between
/// its fields. Derive zerocopy's four traits, and this one is there.
///
/// CDR aligns each number to its size, as `repr(C)` does; so without gaps both are the same bytes.
/// A writer checks that once, with the value zero, before it lends the first slot.
pub trait PlainType: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout + Sized {}

impl<T: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout> PlainType for T {}

/// Whether the memory of a type is its CDR, as far as its size tells: field orders of both are
/// those of the declaration.
pub(crate) fn is_plain<T: Serialize + FromBytes + IntoBytes>() -> bool {
    encode(&T::new_zeroed()).is_ok_and(|encoded| encoded.len() == size_of::<T>())
}

/// A value where it lies: nothing if it lies unaligned, or was written by a host of the other byte
/// order.
pub(crate) fn plain_ref<T: PlainType>(bytes: &[u8], encoding: Encoding) -> Option<&T> {
    if encoding != Encoding::NATIVE {
        return None;
    }
    T::ref_from_bytes(bytes).ok()
}
