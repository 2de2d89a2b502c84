//! Commands and states as bytes: a byte with the format's version, and then postcard's encoding.
//!
//! No bytes at all are a barrier, which a linearizable query sends, or the initial state.

use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the format. Programs with another version end when they receive this one.
const FORMAT: u8 = 1;

/// The reason why bytes cannot be decoded.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub(super) enum NotDecoded {
    #[error("its format is {0}, and this program knows {FORMAT}")]
    Format(u8),
    #[error("it is not of this program's type")]
    Type,
}

/// Encodes a command or a state.
pub(super) fn encode<T: Serialize>(value: &T) -> Result<Vec<u8>, String> {
    postcard::to_stdvec(&(FORMAT, value)).map_err(|error| error.to_string())
}

/// Decodes a command or a state, which must take all the bytes.
pub(super) fn decode<T: DeserializeOwned>(bytes: &[u8]) -> Result<T, NotDecoded> {
    match bytes.split_first() {
        Some((&FORMAT, encoded)) => match postcard::take_from_bytes(encoded) {
            Ok((value, [])) => Ok(value),
            _ => Err(NotDecoded::Type),
        },
        Some((&format, _)) => Err(NotDecoded::Format(format)),
        None => Err(NotDecoded::Type),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn encoded_values_return_unchanged() {
        for value in [(7_u32, "seven".to_owned()), (u32::MAX, String::new())] {
            assert_eq!(decode(&encode(&value).expect("it encodes")), Ok(value));
        }
        assert_eq!(encode(&()), Ok(vec![FORMAT]), "a barrier is shorter than any command");
    }

    #[test]
    fn foreign_bytes_are_refused() {
        assert_eq!(decode::<u32>(&[9, 1]), Err(NotDecoded::Format(9)));
        assert_eq!(decode::<u32>(&[]), Err(NotDecoded::Type));
        assert_eq!(decode::<u32>(&[FORMAT]), Err(NotDecoded::Type), "too short");
        assert_eq!(decode::<u32>(&[FORMAT, 1, 1]), Err(NotDecoded::Type), "too long");
        // A length without the bytes for it allocates nothing.
        let long = [FORMAT, 0xff, 0xff, 0xff, 0xff, 0x0f];
        assert_eq!(decode::<Vec<u64>>(&long), Err(NotDecoded::Type));
    }
}
