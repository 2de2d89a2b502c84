//! The members' output lines, each with its arrival time.
//!
//! One thread reads each member's output. It holds at most one line, and its channel to the driver
//! is short, so a member that floods the driver delays only itself.

use std::io::{BufRead, BufReader, Read};
use std::sync::mpsc::SyncSender;
use std::time::Instant;

/// Length limit of a line in bytes.
pub(super) const LINE_BYTES_MAX: usize = 1 << 20;

/// Number of bytes shown of a line that is too long.
const SHOWN_BYTES: usize = 256;

/// The clock of a history, shared by all nodes.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock(Instant);

impl Clock {
    /// Starts a clock now.
    pub(super) fn start() -> Self {
        Self(Instant::now())
    }

    /// Returns the nanoseconds since the start.
    pub(super) fn now_ns(self) -> u64 {
        u64::try_from(self.0.elapsed().as_nanos()).unwrap_or(u64::MAX)
    }
}

/// An item read from a member.
#[derive(Debug)]
pub(super) struct ReceivedItem {
    pub(super) node: usize,
    /// The number of the node's incarnation.
    pub(super) inc: u32,
    pub(super) t_ns: u64,
    /// The line's number in this incarnation's output, from 1.
    pub(super) line: u64,
    pub(super) what: What,
}

/// The content of an item.
#[derive(Debug)]
pub(super) enum What {
    /// A line, without its line feed.
    Line(Vec<u8>),
    /// The output ended in the middle of this line.
    Cut(Vec<u8>),
    /// The beginning of a line that is too long. Nothing more is read.
    TooLong(Vec<u8>),
    /// The output ended.
    End,
}

/// Reads a member's output to its end, or until the receiver has been dropped.
pub(super) fn read(
    output: impl Read,
    node: usize,
    inc: u32,
    clock: Clock,
    received: &SyncSender<ReceivedItem>,
) {
    let mut output = BufReader::new(output);
    for line in 1.. {
        let what = next(&mut output);
        let last = !matches!(what, What::Line(_));
        let cut = matches!(what, What::Cut(_));
        if received.send(ReceivedItem { node, inc, t_ns: clock.now_ns(), line, what }).is_err() {
            return;
        }
        if cut {
            // Sending fails only if the driver has dropped the receiver.
            let _ = received.send(ReceivedItem {
                node,
                inc,
                t_ns: clock.now_ns(),
                line,
                what: What::End,
            });
        }
        if last {
            return;
        }
    }
}

fn next(output: &mut impl BufRead) -> What {
    let mut line = Vec::new();
    let read = output.by_ref().take(LINE_BYTES_MAX as u64 + 1).read_until(b'\n', &mut line);
    if line.last() == Some(&b'\n') {
        line.pop();
        return What::Line(line);
    }
    if line.len() > LINE_BYTES_MAX {
        line.truncate(SHOWN_BYTES);
        return What::TooLong(line);
    }
    // A pipe that fails is treated as ended.
    match read {
        Ok(_) if line.is_empty() => What::End,
        Err(_) if line.is_empty() => What::End,
        _ => What::Cut(line),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::sync_channel;

    use super::*;

    fn received(output: &[u8]) -> Vec<(u64, String)> {
        let (sender, receiver) = sync_channel(64);
        read(output, 0, 1, Clock::start(), &sender);
        drop(sender);
        receiver
            .iter()
            .map(|received| {
                let text = match received.what {
                    What::Line(line) => format!("line {}", String::from_utf8_lossy(&line)),
                    What::Cut(line) => format!("cut {}", String::from_utf8_lossy(&line)),
                    What::TooLong(line) => format!("too long {}", line.len()),
                    What::End => "end".to_owned(),
                };
                (received.line, text)
            })
            .collect()
    }

    fn expected(list: &[(u64, &str)]) -> Vec<(u64, String)> {
        list.iter().map(|(line, text)| (*line, (*text).to_owned())).collect()
    }

    #[test]
    fn lines_are_numbered_and_output_end_is_reported() {
        assert_eq!(
            received(b"a\n\nb\n"),
            expected(&[(1, "line a"), (2, "line "), (3, "line b"), (4, "end")])
        );
        assert_eq!(received(b""), expected(&[(1, "end")]));
    }

    #[test]
    fn incomplete_last_line_is_reported_separately() {
        assert_eq!(received(b"a\n{\"ty"), expected(&[(1, "line a"), (2, "cut {\"ty"), (2, "end")]));
    }

    #[test]
    fn too_long_line_ends_reading() {
        assert_eq!(received(&vec![b'x'; LINE_BYTES_MAX * 2]), expected(&[(1, "too long 256")]));
        let mut just = vec![b'x'; LINE_BYTES_MAX];
        just.push(b'\n');
        assert_eq!(received(&just).len(), 2);
    }
}
