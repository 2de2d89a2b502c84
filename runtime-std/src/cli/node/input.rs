//! From standard input to the group, through all views: one line, one message.

use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::time::Duration;

use super::Event;
use crate::cli::exit::{Failure, Status};
use crate::cli::lines::each_line;
use crate::group::Sender;
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
    message_max: u32,
    is_over: &Arc<AtomicBool>,
    events: mpsc::Sender<Event>,
) -> io::Result<()> {
    let is_over = Arc::clone(is_over);
    let read = move || {
        let event = match send_lines(sender, message_max, &is_over) {
            Ok(()) => Event::InputEnded,
            Err(InputEnd::Failed(failure)) => Event::Failed(failure),
            Err(InputEnd::NotWanted) => return,
        };
        // The command may be over already.
        let _ = events.send(event);
    };
    std::thread::Builder::new().name("tramontane-read".into()).spawn(read).map(drop)
}

fn send_lines(mut sender: Option<Sender>, message_max: u32, is_over: &AtomicBool) -> Result<(), InputEnd> {
    let limit = usize::try_from(message_max).unwrap_or(usize::MAX);
    let advice = "raise message_max in the group file, of all members";
    each_line(io::stdin().lock(), limit, advice, |line| {
        let Some(sender) = &mut sender else {
            let what = "this node sends in no subgroup, and its input has a line";
            let advice = "add it to the senders in the group file, or give it no input";
            return Err(Failure::new(Status::Input, what, advice).into());
        };
        send(sender, line, is_over)
    })
}

fn send(sender: &mut Sender, line: &[u8], is_over: &AtomicBool) -> Result<(), InputEnd> {
    loop {
        if is_over.load(Ordering::Relaxed) {
            return Err(InputEnd::NotWanted);
        }
        match sender.send(line, PATIENCE) {
            Ok(_) => return Ok(()),
            Err(SendError::TimedOut(_)) => {}
            Err(SendError::Stopped(_)) => return Err(InputEnd::NotWanted),
            Err(error @ SendError::TooLarge { .. }) => {
                return Err(Failure::told(Status::Input, error).into());
            }
        }
    }
}
