//! Prints the messages of a log in order.

use std::io::{self, BufWriter, Write};

use serde::Serialize;
use tramontane_log::{Log, Record, Sequence, SystemFolder};

use tramontane_local::exit::Failure;
use tramontane_local::lines::add_message;
use tramontane_local::record::Bytes;

/// A message as JSON.
#[derive(Serialize)]
struct PrintedMessage<'r> {
    sequence: u64,
    view: u64,
    place: u64,
    sender: u32,
    message: Bytes<'r>,
}

/// Prints `count` messages, beginning at a sequence number. Stops at the first damaged message.
pub(super) fn run(
    log: &Log<SystemFolder>,
    from: Option<u64>,
    count: Option<u64>,
    json: bool,
) -> Result<(), Failure> {
    let mut output = BufWriter::new(io::stdout().lock());
    let mut records = log.records(from.map_or(log.first(), Sequence))?;
    let mut left = count.unwrap_or(u64::MAX);
    let mut text = Vec::new();
    while left > 0 {
        let Some(record) = records.read_next() else { break };
        let printed = match record {
            Ok(record) if json => put_json(&record, &mut output),
            Ok(record) => {
                text.clear();
                add_message(record.bytes, &mut text);
                output.write_all(&text)
            }
            Err(error) => {
                output.flush().map_err(|error| Failure::output(&error))?;
                return Err(error.into());
            }
        };
        printed.map_err(|error| Failure::output(&error))?;
        left -= 1;
    }
    output.flush().map_err(|error| Failure::output(&error))
}

fn put_json(record: &Record<'_>, output: &mut impl Write) -> io::Result<()> {
    let message = PrintedMessage {
        sequence: record.sequence.0,
        view: record.view.get(),
        place: record.place.get(),
        sender: record.sender.get(),
        message: Bytes::of(record.bytes),
    };
    serde_json::to_writer(&mut *output, &message)?;
    output.write_all(b"\n")
}
