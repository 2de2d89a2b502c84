//! Conversion of values to CDR and back. Writing uses this host's byte order.

use std::io;

use byteorder::{BigEndian, LittleEndian, NativeEndian};
use serde::{Deserialize, Serialize};

use crate::error::DdsError;

/// The encoding of a sample, as RTPS's representation identifier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Encoding(pub u16);

impl Encoding {
    /// Plain CDR, most significant byte first.
    pub const CDR_BE: Self = Self(0x0000);
    /// Plain CDR, least significant byte first.
    pub const CDR_LE: Self = Self(0x0001);
    /// Plain CDR in this host's byte order.
    pub const NATIVE: Self =
        if cfg!(target_endian = "little") { Self::CDR_LE } else { Self::CDR_BE };
}

/// Encodes a value as CDR.
///
/// # Errors
/// [`DdsError::Cdr`]: CDR has no such type.
pub fn encode(value: &impl Serialize) -> Result<Vec<u8>, DdsError> {
    let mut bytes = Vec::new();
    cdr_encoding::to_writer::<_, NativeEndian, _>(&mut bytes, value).map_err(cannot)?;
    Ok(bytes)
}

/// Encodes a value as CDR at the beginning of `to`. Returns the encoded size in bytes. If the value
/// does not fit, the error contains that size.
pub(crate) fn encode_in_place(value: &impl Serialize, to: &mut [u8]) -> Result<usize, DdsError> {
    let limit = to.len();
    let mut into = InPlace { to, written: 0 };
    cdr_encoding::to_writer::<_, NativeEndian, _>(&mut into, value).map_err(cannot)?;
    match into.written {
        bytes if bytes > limit => Err(DdsError::TooLarge { bytes, limit }),
        bytes => Ok(bytes),
    }
}

/// Decodes a value from CDR. The value may borrow from the bytes.
///
/// # Errors
/// [`DdsError::Cdr`]: the bytes are no such value, or in an encoding that is not read here.
pub fn decode<'a, V: Deserialize<'a>>(bytes: &'a [u8], encoding: Encoding) -> Result<V, DdsError> {
    let decoded = match encoding {
        Encoding::CDR_LE => cdr_encoding::from_bytes::<V, LittleEndian>(bytes),
        Encoding::CDR_BE => cdr_encoding::from_bytes::<V, BigEndian>(bytes),
        Encoding(other) => {
            return Err(DdsError::Cdr(format!("encoding {other:#06x} is not plain CDR")));
        }
    };
    decoded.map(|(value, _)| value).map_err(cannot)
}

fn cannot(error: cdr_encoding::Error) -> DdsError {
    DdsError::Cdr(error.to_string())
}

/// A writer into a slot. It also counts the bytes that do not fit.
struct InPlace<'b> {
    to: &'b mut [u8],
    written: usize,
}

impl io::Write for InPlace<'_> {
    #[inline]
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let start = self.written;
        self.written += bytes.len();
        if let Some(place) = self.to.get_mut(start..self.written) {
            place.copy_from_slice(bytes);
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, Serialize, Deserialize)]
    struct Shape {
        color: String,
        x: i32,
        weight: f64,
    }

    /// RTPS 10.7: a string's length includes the terminating zero, and numbers are aligned to their
    /// size, counted from the beginning.
    #[test]
    fn cdr_encoding_matches_the_standard() {
        let shape = Shape { color: "BLUE".into(), x: 34, weight: 1.0 };
        let expected = [
            5, 0, 0, 0, b'B', b'L', b'U', b'E', 0, 0, 0, 0, 34, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xf0,
            0x3f,
        ];
        // The tests' host is little-endian.
        assert_eq!(encode(&shape).expect("plain"), expected);
        assert_eq!(decode::<Shape>(&expected, Encoding::CDR_LE).expect("plain"), shape);
    }

    #[test]
    fn oversized_value_is_reported() {
        let mut slot = [0; 16];
        let shape = Shape { color: "BLUE".into(), x: 34, weight: 1.0 };
        let told = encode_in_place(&shape, &mut slot).expect_err("too large");
        // The error contains the whole size, not the size up to the field that does not fit.
        assert!(matches!(told, DdsError::TooLarge { bytes: 24, limit: 16 }), "{told}");
        assert!(decode::<Shape>(&slot, Encoding(7)).is_err());
        assert!(decode::<Shape>(&[5, 0, 0, 0, 1], Encoding::CDR_LE).is_err());
    }
}
