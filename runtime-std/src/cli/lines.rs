//! Standard input, line by line: one line, one record.

use std::io::{self, BufRead, Read as _};

use super::exit::{Failure, Status};

/// Hands over each line without its newline; a last one without any counts too.
///
/// `advice` is for whoever has a line of more than `limit` bytes.
pub(super) fn each_line<E: From<Failure>>(
    mut input: impl BufRead,
    limit: usize,
    advice: &str,
    mut each: impl FnMut(&[u8]) -> Result<(), E>,
) -> Result<(), E> {
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        number += 1;
        // One byte more than may be is enough to know that it is too large.
        match (&mut input).take(limit as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(unreadable(&error).into()),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > limit {
            let what = format_args!("record {number} of the input is larger than {limit} bytes");
            return Err(Failure::new(Status::Input, what, advice).into());
        }
        each(&line)?;
    }
}

fn unreadable(error: &io::Error) -> Failure {
    let what = format_args!("cannot read the input: {error}");
    Failure::new(Status::Input, what, "give an input that can be read")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lines(input: &[u8], limit: usize) -> Result<Vec<Vec<u8>>, String> {
        let mut lines = Vec::new();
        let outcome = each_line(input, limit, "start all members with a larger --message-max", |line| {
            lines.push(line.to_vec());
            Ok(())
        });
        match outcome {
            Ok(()) => Ok(lines),
            Err(failure) => Err(Failure::text(&failure).to_owned()),
        }
    }

    #[test]
    fn lines_are_taken_as_they_are() {
        assert_eq!(lines(b"", 3), Ok(vec![]));
        assert_eq!(
            lines(b"\n\nab\r\n\xff", 3),
            Ok(vec![b"".into(), b"".into(), b"ab\r".into(), b"\xff".into()])
        );
    }

    #[test]
    fn a_line_that_is_too_large_is_named_with_what_to_do() {
        assert!(lines(b"abc\n", 3).is_ok());
        let text = lines(b"abc\nabcd\n", 3).expect_err("too large");
        assert!(text.contains("record 2") && text.contains("--message-max"), "{text}");
    }
}
