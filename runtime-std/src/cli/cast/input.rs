//! From standard input to the group: one line, one record.

use std::io::{self, BufRead, Read as _};
use std::time::Duration;

use super::frame::Frame;
use crate::cli::exit::{Failure, Status};
use crate::member::{SendError, Sender, Stopped};

/// How long a record that finds no free slot drives the node itself, before it rests.
const PATIENCE: Duration = Duration::from_millis(2);

/// How long it rests then: a window is full because some member is slow.
const REST: Duration = Duration::from_millis(1);

/// Why input ended early.
#[derive(Debug)]
pub(super) enum InputError {
    /// The input itself.
    Failed(Failure),
    /// The member is no longer part of its group, which others notice too.
    Stopped(Stopped),
}

/// Sends one message, however long it takes until a slot is free.
pub(super) fn send(sender: &Sender, frame: Frame<'_>) -> Result<(), InputError> {
    loop {
        match sender.reserve(frame.length(), PATIENCE) {
            Ok(mut slot) => {
                frame.write(slot.payload());
                slot.commit();
                return Ok(());
            }
            Err(SendError::TimedOut(_)) => std::thread::sleep(REST),
            Err(SendError::Stopped(stopped)) => return Err(InputError::Stopped(stopped)),
            Err(error) => {
                return Err(InputError::Failed(Failure::new(Status::Other, error, "please report this")));
            }
        }
    }
}

/// Sends every line, and then that there are no more.
pub(super) fn send_lines(input: impl BufRead, limit: usize, sender: &Sender) -> Result<(), InputError> {
    each_line(input, limit, |line| send(sender, Frame::Record(line)))?;
    send(sender, Frame::InputEnded)
}

/// Hands over each line without its newline; a last one without any counts too.
fn each_line(
    mut input: impl BufRead,
    limit: usize,
    mut each: impl FnMut(&[u8]) -> Result<(), InputError>,
) -> Result<(), InputError> {
    let mut line = Vec::new();
    let mut number = 0_u64;
    loop {
        line.clear();
        number += 1;
        // One byte more than may be is enough to know that it is too large.
        match (&mut input).take(limit as u64 + 1).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) => return Err(InputError::Failed(unreadable(&error))),
        }
        if line.last() == Some(&b'\n') {
            line.pop();
        }
        if line.len() > limit {
            let what = format_args!("record {number} of the input is larger than {limit} bytes");
            let advice = "start all members with a larger --message-max";
            return Err(InputError::Failed(Failure::new(Status::Input, what, advice)));
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
        let outcome = each_line(input, limit, |line| {
            lines.push(line.to_vec());
            Ok(())
        });
        match outcome {
            Ok(()) => Ok(lines),
            Err(InputError::Failed(failure)) => Err(failure.text().to_owned()),
            Err(InputError::Stopped(stopped)) => Err(stopped.to_string()),
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
