//! From standard input to the group, through all views: one line, one message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::Event;
use crate::cli::exit::{Failure, Status};
use crate::cli::lines::each_line;
use crate::group::{LargeUnsent, SendLargeError, Sender};
use crate::member::SendError;

/// How long a line waits for a slot before it looks whether it is wanted still.
const PATIENCE: Duration = Duration::from_millis(50);

/// Why no more lines are sent.
enum InputEnd {
    Failed(Failure),
    /// This node is on its way out.
    NotWanted,
}

impl From<Failure> for InputEnd {
    fn from(failure: Failure) -> Self {
        Self::Failed(failure)
    }
}

/// Reads and sends in a thread that nobody waits for: a read cannot be called off. Without a sender lines are refused.
pub(super) fn start(
    sender: Option<Sender>,
    line_max: usize,
    is_over: &Arc<AtomicBool>,
    events: mpsc::Sender<Event>,
) -> io::Result<()> {
    let is_over = Arc::clone(is_over);
    let read = move || {
        let event = match send_lines(sender, line_max, &is_over) {
            Ok(()) => Event::InputEnded,
            Err(InputEnd::Failed(failure)) => Event::Failed(failure),
            Err(InputEnd::NotWanted) => return,
        };
        // The command may be over already.
        let _ = events.send(event);
    };
    std::thread::Builder::new().name("tramontane-read".into()).spawn(read).map(drop)
}

fn send_lines(mut sender: Option<Sender>, line_max: usize, is_over: &AtomicBool) -> Result<(), InputEnd> {
    let advice = "raise message_max, or large_max, in the group file, of all members";
    each_line(io::stdin().lock(), line_max, advice, |line| {
        let Some(sender) = &mut sender else {
            let what = "this node sends in no subgroup, and its input has a line";
            let advice = "add it to the senders in the group file, or give it no input";
            return Err(Failure::new(Status::Input, what, advice).into());
        };
        send(sender, line, is_over)
    })
}

fn send(sender: &mut Sender, line: &[u8], is_over: &AtomicBool) -> Result<(), InputEnd> {
    if line.len() > sender.message_max() {
        return send_large(sender, line, is_over);
    }
    loop {
        if is_over.load(Ordering::Relaxed) {
            return Err(InputEnd::NotWanted);
        }
        match sender.send(line, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(error) => go_on(error)?,
        }
    }
}

/// A line that fits no slot.
fn send_large(sender: &mut Sender, line: &[u8], is_over: &AtomicBool) -> Result<(), InputEnd> {
    let refused = |error: SendLargeError| Failure::told(Status::Input, error);
    let mut buffer = sender.buffer(line.len()).map_err(refused)?;
    if let Some(place) = buffer.get_mut(..line.len()) {
        place.copy_from_slice(line);
    }
    loop {
        if is_over.load(Ordering::Relaxed) {
            return Err(InputEnd::NotWanted);
        }
        match sender.send_large(buffer, line.len(), PATIENCE) {
            Ok(_) => return Ok(()),
            Err(LargeUnsent { why: SendLargeError::Send(error), buffer: Some(back) }) => {
                go_on(error)?;
                buffer = back;
            }
            Err(LargeUnsent { why, .. }) => return Err(refused(why).into()),
        }
    }
}

/// Whether it is to be tried again.
fn go_on(error: SendError) -> Result<(), InputEnd> {
    match error {
        SendError::TimedOut(_) => Ok(()),
        SendError::Stopped(_) => Err(InputEnd::NotWanted),
        SendError::TooLarge { .. } => Err(Failure::told(Status::Input, error).into()),
    }
}
