//! Commands and states as bytes: a byte with the format's version, and then postcard's encoding.
//!
//! A command of a group follows the time at which it was proposed, in microseconds since 1970. A
//! barrier, which a linearizable query sends, has only the time, behind a byte of its own. No bytes
//! at all are the initial state.

use std::cell::Cell;

use postcard::ser_flavors::Flavor;
use postcard::serialize_with_flavor;
use serde::Serialize;
use serde::de::DeserializeOwned;

/// The version of the format. Programs with another version end when they receive this one.
const FORMAT: u8 = 2;

/// The first byte of a barrier.
const BARRIER: u8 = 0;

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

/// Encodes a barrier.
pub(super) fn barrier(time_us: u64) -> Vec<u8> {
    let mut bytes = vec![BARRIER];
    bytes.extend(time_us.to_le_bytes());
    bytes
}

/// Returns the time of a barrier, or `None` if the bytes are a command.
pub(super) fn barrier_time(bytes: &[u8]) -> Option<u64> {
    let (&BARRIER, time) = bytes.split_first()? else { return None };
    Some(u64::from_le_bytes(time.try_into().ok()?))
}

/// Calls a function with an encoded command, in a buffer that this thread uses again, unless the
/// function takes it.
pub(super) fn with_encoded<T: Serialize, R>(
    command: &T,
    send: impl FnOnce(&mut Vec<u8>) -> R,
) -> Result<R, String> {
    // Taken out, because encoding runs the program's code, which may propose.
    let mut bytes = BUFFER.take();
    bytes.clear();
    let encoded = serialize_with_flavor(&(FORMAT, command), EncodingBuffer(&mut bytes));
    let result = encoded.map(|()| send(&mut bytes)).map_err(|error| error.to_string());
    if bytes.capacity() <= KEEP_BYTES {
        BUFFER.set(bytes);
    }
    result
}

/// The largest buffer that a thread keeps, in bytes.
const KEEP_BYTES: usize = 1 << 16;

thread_local! {
    static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

/// Appends to a buffer of the caller.
struct EncodingBuffer<'b>(&'b mut Vec<u8>);

impl Flavor for EncodingBuffer<'_> {
    type Output = ();

    #[inline]
    fn try_push(&mut self, byte: u8) -> postcard::Result<()> {
        self.0.push(byte);
        Ok(())
    }

    #[inline]
    fn try_extend(&mut self, bytes: &[u8]) -> postcard::Result<()> {
        self.0.extend_from_slice(bytes);
        Ok(())
    }

    fn finalize(self) -> postcard::Result<()> {
        Ok(())
    }
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
        assert_eq!(barrier_time(&barrier(u64::MAX - 1)), Some(u64::MAX - 1));
        let command = encode(&(5_u64, ())).expect("it encodes");
        assert_eq!((barrier_time(&command), barrier_time(&[])), (None, None));
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
