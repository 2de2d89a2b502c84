//! Types whose memory layout is identical to their CDR. Their values are built and read in place.

use serde::Serialize;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

use super::encoding::{Encoding, encode};
use super::type_support::TypeSupport;

/// A type whose memory layout is identical to its CDR: numbers and arrays of numbers, `#[repr(C)]`,
/// without gaps between its fields. Any type that derives zerocopy's four traits also has this
/// trait.
///
/// CDR aligns each number to its size, as `repr(C)` does. So without gaps, memory and CDR are the
/// same bytes. A writer checks that once, with the value zero, before it lends the first slot.
pub trait PlainType: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout + Sized {}

impl<T: TypeSupport + FromBytes + IntoBytes + Immutable + KnownLayout> PlainType for T {}

/// Returns whether a type's memory layout is identical to its CDR. Comparing the sizes is enough,
/// because both have the fields in declaration order.
pub(crate) fn is_plain<T: Serialize + FromBytes + IntoBytes>() -> bool {
    encode(&T::new_zeroed()).is_ok_and(|encoded| encoded.len() == size_of::<T>())
}

/// Returns a value in place, or `None` if the bytes are unaligned or come from a host with another
/// byte order.
pub(crate) fn plain_ref<T: PlainType>(bytes: &[u8], encoding: Encoding) -> Option<&T> {
    if encoding != Encoding::NATIVE {
        return None;
    }
    T::ref_from_bytes(bytes).ok()
}
