//! The output of the member under test: one line for each message, written before the upcall
//! returns.

use std::io::{self, Write as _};
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;

use super::payload;
use super::protocol::{Line, digest};
use tramontane_runtime::group::Message;

/// The names that the suite uses for nodes and groups.
#[derive(Debug)]
pub(super) struct Names {
    /// The names by node id.
    pub(super) nodes: Vec<String>,
    /// The group names, by subgroup.
    pub(super) groups: Vec<String>,
}

/// Reports deliveries to the driver.
#[derive(Debug)]
pub(super) struct DriverReporter {
    names: Arc<Names>,
    /// Additional duration of the next upcall, in ms. That upcall resets it.
    pause_ms: Arc<AtomicU64>,
    lines: Vec<u8>,
}

impl DriverReporter {
    pub(super) fn new(names: Arc<Names>, pause_ms: Arc<AtomicU64>) -> Self {
        Self { names, pause_ms, lines: Vec::new() }
    }
}

impl Names {
    /// Returns the name of a node by its id, which is its position among the nodes.
    pub(super) fn node(&self, id: u32) -> Option<&str> {
        self.nodes.get(usize::try_from(id).ok()?).map(String::as_str)
    }
}

impl DriverReporter {
    /// Writes a line for each message of a subgroup, and returns the number of messages.
    pub(super) fn report<'m>(
        &mut self,
        subgroup: SubgroupId,
        messages: impl Iterator<Item = Message<'m>>,
    ) -> u64 {
        let mut count = 0;
        let group = self.names.groups.get(subgroup.index()).map_or("", String::as_str);
        self.lines.clear();
        for Message { sender, view, place, payload, is_replayed, .. } in messages {
            let name = payload::name(payload);
            let answer = Line::Deliver {
                message: name.as_deref(),
                sender: self.names.node(sender.get()).unwrap_or(""),
                group,
                view: Some(view.0),
                sequence: Some(place.0),
                bytes: payload.len(),
                digest: digest(payload),
                replayed: is_replayed,
            };
            // Writing to a vector cannot fail, and these types are always valid JSON.
            let _ = serde_json::to_writer(&mut self.lines, &answer);
            self.lines.push(b'\n');
            count += 1;
        }
        let mut out = io::stdout().lock();
        // Without a driver, nobody reads the output; the end of the input ends the main thread.
        let _ = out.write_all(&self.lines).and_then(|()| out.flush());
        drop(out);
        let pause_ms = self.pause_ms.swap(0, Ordering::Relaxed);
        if pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
        count
    }
}
