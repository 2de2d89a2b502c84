//! The application of a judged member: a line for each message, written before the upcall returns.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tramontane_core::multicast::{Application, Batch};

use super::payload;
use super::protocol::Answer;

/// Writes one line at once. Both the main thread and the polling thread answer.
pub(super) fn say(answer: &Answer<'_>) -> io::Result<()> {
    let mut line = serde_json::to_vec(answer)?;
    line.push(b'\n');
    let mut out = io::stdout().lock();
    out.write_all(&line)?;
    out.flush()
}

/// Who the suite's names belong to.
#[derive(Debug)]
pub(super) struct Names {
    /// By rank.
    pub(super) nodes: Vec<String>,
    /// By subgroup.
    pub(super) groups: Vec<String>,
}

/// Tells the driver what is delivered.
#[derive(Debug)]
pub(super) struct Delivery {
    names: Arc<Names>,
    /// How much longer the next upcall takes, in ms; taken by it.
    pause_ms: Arc<AtomicU64>,
    lines: Vec<u8>,
}

impl Delivery {
    pub(super) fn new(names: Arc<Names>, pause_ms: Arc<AtomicU64>) -> Self {
        Self { names, pause_ms, lines: Vec::new() }
    }
}

impl Application for Delivery {
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        let group = self.names.groups.get(batch.subgroup().index()).map_or("", String::as_str);
        self.lines.clear();
        for message in batch {
            let answer = Answer::Deliver {
                message: payload::name(message.payload),
                sender: self.names.nodes.get(message.rank.index()).map_or("", String::as_str),
                group,
                sequence: message.place.0,
                bytes: message.payload.len(),
                digest: payload::digest(message.payload),
            };
            // A vector takes whatever is written to it, and these types are JSON whatever they hold.
            let _ = serde_json::to_writer(&mut self.lines, &answer);
            self.lines.push(b'\n');
        }
        let mut out = io::stdout().lock();
        // Without a driver there is nobody to tell; the end of the input says so to the main thread.
        let _ = out.write_all(&self.lines).and_then(|()| out.flush());
        drop(out);
        let pause_ms = self.pause_ms.swap(0, Ordering::Relaxed);
        if pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }
}
