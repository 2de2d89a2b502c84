//! What comes out of the log becomes lines for the driver.

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

/// How far in the log this node has delivered, kept over restarts.
pub struct Place {
    file: File,
    /// Where earlier starts of the node came to.
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

    /// A start that is killed while it replays has not delivered less than the one before.
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
    /// The groups of the member, each with how many messages this start has delivered.
    pub delivered: BTreeMap<String, u64>,
    /// How far it came.
    pub place: Place,
    /// How long the next upcall is to take.
    pub pause_ms: Arc<AtomicU64>,
}

impl Delivery {
    /// Delivers what comes.
    pub fn run(mut self, records: &Receiver<(u64, Record)>) {
        for (place, record) in records {
            // Kept first: what was said before a kill is a replay after it.
            if let Err(error) = self.place.keep(place) {
                halt("halted", &format!("the place cannot be kept: {error}"));
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

    /// The second start is killed while it replays: it has not delivered less than the first.
    #[test]
    fn a_start_that_is_killed_while_it_replays_does_not_put_the_place_back() {
        let folder = tempfile::tempdir().expect("a folder");
        for (delivers, before) in [(5, None), (2, Some(5)), (7, Some(5)), (0, Some(7))] {
            let place = Place::open(folder.path()).expect("a file");
            assert_eq!(place.before, before);
            place.keep(delivers).expect("it is kept");
        }
    }
}
