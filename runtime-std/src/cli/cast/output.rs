//! From the group's order to standard output.
//!
//! Deliveries are formatted into a buffer, and a thread of its own writes out whatever is there: one record
//! at a low rate, at once; many at a high one, in one go. The buffer is bounded: a member whose output nobody
//! takes holds back delivery, and with it the group, as any full pipe does.

use std::io::{self, Write as _};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use clap::ValueEnum;
use serde::Serialize;
use tramontane_core::multicast::{Application, Batch, Message};

use super::Event;
use super::frame::Frame;

/// Formatted bytes that may wait to be written. One record more may come on top.
const WAITING_MAX: usize = 4 << 20;

/// How delivered records are written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The record's bytes and a newline
    Text,
    /// A JSON object a line: place, sender, and text, or base64 where it is not UTF-8
    Jsonl,
}

/// A record as JSON.
#[derive(Serialize)]
struct Line<'r> {
    place: u64,
    sender: u16,
    #[serde(skip_serializing_if = "Option::is_none")]
    text: Option<&'r str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    base64: Option<String>,
}

impl Format {
    /// Adds a record to what is to be written.
    fn add(self, place: u64, sender: u16, record: &[u8], to: &mut Vec<u8>) {
        match self {
            Self::Text => to.extend_from_slice(record),
            Self::Jsonl => {
                let text = std::str::from_utf8(record).ok();
                let base64 = if text.is_none() { Some(STANDARD.encode(record)) } else { None };
                // Numbers and strings into memory: nothing that can fail.
                let _ = serde_json::to_writer(&mut *to, &Line { place, sender, text, base64 });
            }
        }
        to.push(b'\n');
    }
}

/// What waits to be written.
#[derive(Debug, Default)]
struct Waiting {
    bytes: Vec<u8>,
    /// The writing thread is busy with what it took.
    writing: bool,
    /// Nothing is wanted any more: what comes is dropped.
    discard: bool,
}

#[derive(Debug, Default)]
struct Shared {
    waiting: Mutex<Waiting>,
    changed: Condvar,
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, Waiting> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn discard(&self) {
        let mut waiting = self.lock();
        waiting.discard = true;
        waiting.bytes.clear();
        self.changed.notify_all();
    }
}

/// The end that the command holds.
#[derive(Clone, Debug)]
pub(super) struct Output(Arc<Shared>);

impl Output {
    /// Starts the writing thread. An error of the output is an event; what comes after it is dropped.
    pub(super) fn start(events: Sender<Event>) -> io::Result<Self> {
        let output = Self(Arc::default());
        let shared = Arc::clone(&output.0);
        std::thread::Builder::new().name("tramontane-write".into()).spawn(move || {
            if let Err(error) = write_out(&shared) {
                shared.discard();
                // The command may be over already.
                let _ = events.send(Event::OutputFailed(error));
            }
        })?;
        Ok(output)
    }

    /// Drops what waits and all that comes: whoever waits for room goes on.
    pub(super) fn discard(&self) {
        self.0.discard();
    }

    /// Waits until all is written, at most so long. True if it is.
    pub(super) fn drain(&self, timeout: Duration) -> bool {
        let under_way = |waiting: &mut Waiting| !waiting.bytes.is_empty() || waiting.writing;
        let waited = self.0.changed.wait_timeout_while(self.0.lock(), timeout, under_way);
        let (waiting, timed_out) = waited.unwrap_or_else(PoisonError::into_inner);
        !timed_out.timed_out() && !waiting.discard
    }
}

/// The writing thread.
fn write_out(shared: &Shared) -> io::Result<()> {
    let mut taken = Vec::new();
    let mut output = io::stdout().lock();
    loop {
        {
            let mut waiting = shared.lock();
            waiting.writing = false;
            shared.changed.notify_all();
            while waiting.bytes.is_empty() {
                waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            std::mem::swap(&mut waiting.bytes, &mut taken);
            waiting.writing = true;
            shared.changed.notify_all();
        }
        output.write_all(&taken)?;
        output.flush()?;
        taken.clear();
    }
}

/// The application: formats records, and counts the members whose input ended.
pub(super) struct Receiver {
    output: Output,
    format: Format,
    events: Sender<Event>,
    /// Members that may still send records.
    sending: u16,
}

impl Receiver {
    /// Of a group of so many members.
    pub(super) fn new(output: Output, format: Format, events: Sender<Event>, members: u16) -> Self {
        Self { output, format, events, sending: members }
    }

    fn take(&mut self, message: &Message<'_>, to: &mut Vec<u8>) {
        let event = match Frame::read(message.payload) {
            Some(Frame::Record(record)) => {
                self.format.add(message.place.get(), message.rank.get(), record, to);
                return;
            }
            Some(Frame::InputEnded) => {
                self.sending = self.sending.saturating_sub(1);
                if self.sending > 0 {
                    return;
                }
                Event::AllEnded
            }
            Some(Frame::Complete) => return,
            None => Event::NotUnderstood(message.rank),
        };
        // The command may be over already.
        let _ = self.events.send(event);
    }
}

impl Application for Receiver {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        let shared = Arc::clone(&self.output.0);
        let mut waiting = shared.lock();
        let was_empty = waiting.bytes.is_empty();
        for message in batch {
            while waiting.bytes.len() >= WAITING_MAX && !waiting.discard {
                shared.changed.notify_all();
                waiting = shared.changed.wait(waiting).unwrap_or_else(PoisonError::into_inner);
            }
            self.take(&message, &mut waiting.bytes);
        }
        if waiting.discard {
            waiting.bytes.clear();
        } else if was_empty && !waiting.bytes.is_empty() {
            shared.changed.notify_all();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn formatted(format: Format, record: &[u8]) -> String {
        let mut bytes = Vec::new();
        format.add(7, 2, record, &mut bytes);
        String::from_utf8_lossy(&bytes).into_owned()
    }

    #[test]
    fn text_is_the_record_and_a_newline() {
        assert_eq!(formatted(Format::Text, b"a b"), "a b\n");
        assert_eq!(formatted(Format::Text, b""), "\n");
    }

    #[test]
    fn json_says_place_and_sender_and_takes_any_bytes() {
        assert_eq!(formatted(Format::Jsonl, b"a\"\n"), "{\"place\":7,\"sender\":2,\"text\":\"a\\\"\\n\"}\n");
        assert_eq!(formatted(Format::Jsonl, b""), "{\"place\":7,\"sender\":2,\"text\":\"\"}\n");
        assert_eq!(formatted(Format::Jsonl, b"\xff\x00"), "{\"place\":7,\"sender\":2,\"base64\":\"/wA=\"}\n");
    }
}
