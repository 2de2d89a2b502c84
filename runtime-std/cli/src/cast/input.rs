//! Sends standard input to the group: one line is one record.

use std::io::BufRead;
use std::time::Duration;

use super::frame::Frame;
use tramontane_local::exit::Failure;
use tramontane_local::lines::{Line, each_line};
use tramontane_runtime::group::Sender;
use tramontane_runtime::member::{SendError, Stopped};

/// Time during which the thread itself drives the node to free a slot, before it pauses.
const PATIENCE: Duration = Duration::from_millis(2);

/// Length of that pause. The window is full because some member is slow.
const REST: Duration = Duration::from_millis(1);

/// The reason why the input ended early.
#[derive(Debug)]
pub(super) enum InputError {
    /// The input itself failed.
    Failed(Failure),
    /// The member is no longer part of its group. Other threads notice this too.
    Stopped(Stopped),
}

impl From<Failure> for InputError {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Sends one message and waits for a free slot as long as necessary.
pub(super) fn send(sender: &mut Sender, frame: Frame<'_>) -> Result<(), InputError> {
    loop {
        match sender.send_with(frame.length(), PATIENCE, |payload| frame.write(payload)) {
            Ok(_) => return Ok(()),
            Err(SendError::TimedOut(_)) => std::thread::sleep(REST),
            Err(SendError::Stopped(stopped)) => return Err(InputError::Stopped(stopped)),
            Err(error) => {
                return Err(InputError::Failed(Failure::other(error, "please report this")));
            }
        }
    }
}

/// Sends every line that is not too long, then the end marker. Calls `refused` with each line that
/// is too long.
pub(super) fn send_lines(
    input: impl BufRead,
    limit: usize,
    sender: &mut Sender,
    refused: impl Fn(String),
) -> Result<(), InputError> {
    each_line(input, limit, |number, line| match line {
        Line::Whole(line) => send(sender, Frame::Record(line)),
        Line::TooLong => {
            refused(format!(
                "line {number} of the input was not sent: it is longer than {limit} bytes; start all members with a \
                 larger --message-max"
            ));
            Ok(())
        }
    })?;
    send(sender, Frame::InputEnded)
}
