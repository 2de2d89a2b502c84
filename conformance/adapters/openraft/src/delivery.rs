//! Turns entries of the log into lines for the driver.

use std::collections::BTreeMap;
use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::FileExt as _;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::time::Duration;

use crate::protocol::{Line, digest, halt, name, say};
use crate::types::Record;

/// The position in the log up to which this node has delivered, kept over restarts.
pub struct Place {
    file: File,
    /// The position that earlier incarnations of the node reached.
    before: Option<u64>,
}

impl Place {
    /// Opens the file in a folder.
    pub fn open(folder: &Path) -> io::Result<Self> {
        let path = folder.join("place");
        let file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        let mut kept = [0; 8];
        let before = file.read_exact_at(&mut kept, 0).is_ok().then(|| u64::from_le_bytes(kept));
        Ok(Self { file, before })
    }

    /// An incarnation that is killed while it replays must not lower the position.
    fn keep(&self, place: u64) -> io::Result<()> {
        if self.is_replay(place) {
            return Ok(());
        }
        self.file.write_all_at(&place.to_le_bytes(), 0)
    }

    fn is_replay(&self, place: u64) -> bool {
        self.before.is_some_and(|before| place <= before)
    }
}

/// The application of a member.
pub struct Delivery {
    /// The groups of the member, and the number of messages that this incarnation has delivered in
    /// each.
    pub delivered: BTreeMap<String, u64>,
    /// The position in the log.
    pub place: Place,
    /// The duration of the next upcall.
    pub pause_ms: Arc<AtomicU64>,
}

impl Delivery {
    /// Delivers the entries of the log.
    pub fn run(mut self, records: &Receiver<(u64, Record)>) {
        for (place, record) in records {
            // The position is stored first, so that a message delivered just before a kill is
            // replayed after it.
            if let Err(error) = self.place.keep(place) {
                halt("halted", &format!("cannot store the log position: {error}"));
            }
            self.deliver(place, &record);
        }
    }

    fn deliver(&mut self, place: u64, record: &Record) {
        let Record { sender, groups, payload, .. } = record;
        let own = groups.iter().find(|group| self.delivered.contains_key(*group));
        let Some((group, count)) = own.and_then(|group| self.delivered.get_key_value(group)) else {
            return;
        };
        let (group, sequence) = (group.clone(), *count);
        say(&Line::Deliver {
            message: name(payload),
            sender,
            group: &group,
            view: None,
            sequence: None,
            bytes: payload.len(),
            digest: digest(payload.as_bytes()),
            replayed: self.place.is_replay(place),
        });
        say(&Line::Durable { group: &group, upto: sequence });
        self.delivered.insert(group, sequence + 1);
        std::thread::sleep(Duration::from_millis(self.pause_ms.swap(0, Ordering::Relaxed)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The second incarnation is killed while it replays, and must not lower the first one's
    /// position.
    #[test]
    fn kill_during_replay_does_not_lose_position() {
        let folder = tempfile::tempdir().expect("a folder");
        for (delivers, before) in [(5, None), (2, Some(5)), (7, Some(5)), (0, Some(7))] {
            let place = Place::open(folder.path()).expect("a file");
            assert_eq!(place.before, before);
            place.keep(delivers).expect("it is kept");
        }
    }
}
