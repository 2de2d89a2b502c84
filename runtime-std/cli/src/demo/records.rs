//! Input as records: lines, or blocks of a fixed size.

use std::io::{self, BufRead, Read};
use std::num::NonZeroUsize;

/// How the input is cut into records.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Cut {
    /// At newlines, which are not part of a record. A last line without a newline is a record too.
    Lines,
    /// Blocks of this size; the last record of an input may be shorter.
    Blocks(NonZeroUsize),
}

/// The reason that an input could not be cut.
#[derive(Debug)]
pub(super) enum CutError<E> {
    /// The input could not be read.
    Read(io::Error),
    /// The number, counted from 1, of a record that is larger than the limit.
    TooLarge(u64),
    /// The caller refused a record.
    Refused(E),
}

/// Cuts an input into records and passes each to the caller. Records are limited to `limit` bytes,
/// and at most one is held in memory.
pub(super) fn cut<E>(
    input: impl Read,
    how: Cut,
    limit: usize,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), CutError<E>> {
    let mut input = io::BufReader::with_capacity(1 << 18, input);
    let mut record = Vec::new();
    let mut number = 0_u64;
    loop {
        record.clear();
        number += 1;
        let read = match how {
            // The input can be endless. Reading one byte more than the limit is enough to detect a
            // record that is too large.
            Cut::Lines => (&mut input).take(limit as u64 + 1).read_until(b'\n', &mut record),
            Cut::Blocks(bytes) => (&mut input).take(bytes.get() as u64).read_to_end(&mut record),
        };
        if read.map_err(CutError::Read)? == 0 {
            return Ok(());
        }
        if how == Cut::Lines && record.last() == Some(&b'\n') {
            record.pop();
        }
        if record.len() > limit {
            return Err(CutError::TooLarge(number));
        }
        each(&record).map_err(CutError::Refused)?;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn records(input: &[u8], how: Cut, limit: usize) -> Result<Vec<Vec<u8>>, u64> {
        let mut records = Vec::new();
        let outcome = cut(input, how, limit, |record| {
            records.push(record.to_vec());
            Ok::<(), ()>(())
        });
        match outcome {
            Ok(()) => Ok(records),
            Err(CutError::TooLarge(number)) => Err(number),
            Err(other) => panic!("{other:?}"),
        }
    }

    #[test]
    fn lines_end_at_newline_or_end_of_input() {
        let lines = |input: &[u8]| records(input, Cut::Lines, 4).expect("lines");
        assert_eq!(lines(b""), Vec::<Vec<u8>>::new());
        assert_eq!(lines(b"\n"), [b""]);
        assert_eq!(lines(b"ab\n\ncd\r\n\xff"), [&b"ab"[..], b"", b"cd\r", b"\xff"]);
    }

    #[test]
    fn only_lines_up_to_limit_are_accepted() {
        assert_eq!(
            records(b"abcd\nabcd", Cut::Lines, 4),
            Ok(vec![b"abcd".to_vec(), b"abcd".to_vec()])
        );
        assert_eq!(records(b"abcd\nabcde\n", Cut::Lines, 4), Err(2));
        assert_eq!(records(b"abcde", Cut::Lines, 4), Err(1));
        assert_eq!(records(b"\n\n", Cut::Lines, 0), Ok(vec![Vec::new(), Vec::new()]));
    }

    #[test]
    fn all_blocks_except_the_last_have_equal_size() {
        let blocks = Cut::Blocks(NonZeroUsize::new(3).expect("not zero"));
        let expected = [&b"a\nb"[..], b"c"].map(<[u8]>::to_vec).to_vec();
        assert_eq!(records(b"a\nbc", blocks, 3), Ok(expected));
        assert_eq!(records(b"", blocks, 3), Ok(Vec::new()));
    }

    #[test]
    fn refused_record_ends_the_reading() {
        let outcome = cut(&b"a\nb\n"[..], Cut::Lines, 4, |_| Err("enough"));
        assert!(matches!(outcome, Err(CutError::Refused("enough"))));
    }
}
