//! The requirements on a topic's type.

use md5::{Digest as _, Md5};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};

use byteorder::BigEndian;

use crate::error::DdsError;

/// A type of samples. The key identifies the instance of a sample; a type without a key has `Key =
/// ()`, and its topic has one instance.
///
/// ```
/// use serde::{Deserialize, Serialize};
/// use tramontane_dds::TypeSupport;
///
/// #[derive(Serialize, Deserialize)]
/// struct Track {
///     aircraft: u32,
///     altitude_m: f32,
/// }
///
/// impl TypeSupport for Track {
///     const TYPE_NAME: &'static str = "Track";
///     type Key = u32;
///     fn key(&self) -> u32 {
///         self.aircraft
///     }
/// }
/// ```
pub trait TypeSupport: Serialize + DeserializeOwned + 'static {
    /// The type's name. It must be the same in the domain's description and in all programs.
    const TYPE_NAME: &'static str;
    /// The fields that distinguish instances: those that IDL marks as `@key`, in the order of the
    /// declaration.
    type Key: Serialize + DeserializeOwned;
    /// Returns the key of the sample.
    fn key(&self) -> Self::Key;
}

/// Returns whether a type's topic has instances.
#[must_use]
const fn is_keyed<T: TypeSupport>() -> bool {
    size_of::<T::Key>() > 0
}

/// An instance, identified by RTPS's hash of its key: equal keys have equal handles in all
/// processes.
#[derive(
    Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize,
)]
pub struct InstanceHandle(pub [u8; 16]);

impl InstanceHandle {
    /// The only instance of a type without a key.
    pub const KEYLESS: Self = Self([0; 16]);

    /// Returns the handle that a writer's announcement carries, which encodes the generation of its
    /// topic.
    pub(crate) fn of_generation(generation: u64) -> Self {
        Self(u128::from(generation).to_le_bytes())
    }

    /// Returns the handle of a key. By RTPS 9.6.3.8, it is the key's CDR, most significant byte
    /// first, if it has at most 16 bytes; otherwise the MD5 of that CDR.
    ///
    /// # Errors
    /// [`DdsError::Cdr`].
    pub fn of_key(key: &impl Serialize) -> Result<Self, DdsError> {
        let bytes = cdr_encoding::to_vec::<_, BigEndian>(key)
            .map_err(|error| DdsError::Cdr(error.to_string()))?;
        if bytes.len() > 16 {
            return Ok(Self(Md5::digest(&bytes).into()));
        }
        let mut handle = [0; 16];
        handle[..bytes.len()].copy_from_slice(&bytes);
        Ok(Self(handle))
    }

    /// Returns the handle of a sample's instance.
    #[inline]
    pub(crate) fn of<T: TypeSupport>(sample: &T) -> Result<Self, DdsError> {
        if is_keyed::<T>() { Self::of_key(&sample.key()) } else { Ok(Self::KEYLESS) }
    }
}

impl std::fmt::Display for InstanceHandle {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        self.0.iter().try_for_each(|byte| write!(out, "{byte:02x}"))
    }
}

/// A sequence of bytes, IDL's `sequence<octet>`, as the paper's experiments publish it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Octets(#[serde(with = "serde_bytes")] pub Vec<u8>);

/// A sequence of bytes, borrowed in place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct OctetsRef<'a>(#[serde(borrow, with = "serde_bytes")] pub &'a [u8]);

/// Size, in bytes, of the CDR before the content of a sequence.
pub(crate) const SEQUENCE_LENGTH_BYTES: usize = 4;

impl TypeSupport for Octets {
    const TYPE_NAME: &'static str = "Octets";
    type Key = ();
    fn key(&self) {}
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn handle_of_long_key_is_its_hash() {
        let handle = InstanceHandle::of_key(&0x0102_0304_u32).expect("plain");
        assert_eq!(handle.0[..6], [1, 2, 3, 4, 0, 0]);
        // The MD5 of "\0\0\0\x11" + "0123456789abcdef\0".
        let long = InstanceHandle::of_key(&"0123456789abcdef").expect("plain");
        let expected = Md5::digest(b"\0\0\0\x110123456789abcdef\0");
        assert_eq!(long.0[..], expected[..]);
        assert_ne!(long, InstanceHandle::of_key(&"0123456789abcdeg").expect("plain"));
    }

    #[test]
    fn octet_sequence_is_decoded_without_copying() {
        let encoded = crate::cdr::encode(&Octets(vec![7; 5])).expect("plain");
        assert_eq!(encoded, [5, 0, 0, 0, 7, 7, 7, 7, 7]);
        let read: OctetsRef<'_> =
            crate::cdr::decode(&encoded, crate::cdr::Encoding::CDR_LE).expect("plain");
        assert_eq!(read.0.as_ptr(), encoded[SEQUENCE_LENGTH_BYTES..].as_ptr());
    }
}
