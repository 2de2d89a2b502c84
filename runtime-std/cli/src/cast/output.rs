//! Writes a cast's records to standard output, in the group's order.

use std::sync::mpsc::Sender;

use clap::ValueEnum;
use serde::Serialize;

use super::event::CastEvent;
use super::frame::Frame;
use tramontane_local::output::Output;
use tramontane_local::record::Bytes;
use tramontane_runtime::group::{Application, Message, Messages};

/// Output format of delivered records.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub(super) enum Format {
    /// The record's bytes and a newline
    Text,
    /// One JSON object per line: position, sender, and text (or base64 if it is not UTF-8)
    Jsonl,
}

/// A record as JSON.
#[derive(Serialize)]
struct CastLine<'r> {
    place: u64,
    sender: u32,
    #[serde(flatten)]
    record: Bytes<'r>,
}

impl Format {
    /// Appends a record to the output.
    fn add(self, place: u64, sender: u32, record: &[u8], to: &mut Vec<u8>) {
        match self {
            Self::Text => to.extend_from_slice(record),
            Self::Jsonl => {
                // Writing numbers and strings to memory cannot fail.
                let _ = serde_json::to_writer(
                    &mut *to,
                    &CastLine { place, sender, record: Bytes::of(record) },
                );
            }
        }
        to.push(b'\n');
    }
}

/// The application: formats records, and counts the members whose input has ended.
pub(super) struct Receiver {
    output: Output,
    format: Format,
    events: Sender<CastEvent>,
    /// Number of members that may still send records.
    sending: u32,
}

impl Receiver {
    /// Creates the application for a group of `nodes` members.
    pub(super) fn new(
        output: Output,
        format: Format,
        events: Sender<CastEvent>,
        members: u32,
    ) -> Self {
        Self { output, format, events, sending: members }
    }

    fn take(&mut self, message: &Message<'_>, to: &mut Vec<u8>) {
        let event = match Frame::read(message.payload) {
            Some(Frame::Record(record)) => {
                self.format.add(message.place.get(), message.sender.get(), record, to);
                return;
            }
            Some(Frame::InputEnded) => {
                self.sending = self.sending.saturating_sub(1);
                if self.sending > 0 {
                    return;
                }
                CastEvent::AllEnded
            }
            Some(Frame::Complete) => return,
            None => CastEvent::NotUnderstood(message.sender),
        };
        // The command may have ended already.
        let _ = self.events.send(event);
    }
}

impl Application for Receiver {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let output = self.output.clone();
        output.put_each(messages, |message, to| self.take(&message, to));
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
    fn text_output_is_the_record_plus_newline() {
        assert_eq!(formatted(Format::Text, b"a b"), "a b\n");
        assert_eq!(formatted(Format::Text, b""), "\n");
    }

    #[test]
    fn json_output_has_position_sender_and_payload() {
        assert_eq!(
            formatted(Format::Jsonl, b"a\"\n"),
            "{\"place\":7,\"sender\":2,\"text\":\"a\\\"\\n\"}\n"
        );
        assert_eq!(formatted(Format::Jsonl, b""), "{\"place\":7,\"sender\":2,\"text\":\"\"}\n");
        assert_eq!(
            formatted(Format::Jsonl, b"\xff\x00"),
            "{\"place\":7,\"sender\":2,\"base64\":\"/wA=\"}\n"
        );
    }
}
