//! Places of changes, agreed through files of the run's shared folder.
//!
//! A file stands for one change of a group in a ring: its name says which members joined or left.
//! That happens once, since a member is a process of its own and never joins again. (Process
//! numbers come back only after thousands of others.) It holds the change's place. It is made whole
//! and once, before its view is told to the driver. So all that install a view give it one place.

use std::fmt::Write as _;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use crate::cpg::{Change, Ring};

/// Between two looks for a file that another member will make.
const LOOK_AGAIN: Duration = Duration::from_millis(2);

/// The places of one group's changes.
#[derive(Debug)]
pub struct Registry {
    folder: PathBuf,
    /// How long a member that joined waits for the files of those that were there.
    patience: Duration,
}

impl Registry {
    /// The places of `group`'s changes.
    #[must_use]
    pub fn new(shared: &Path, group: &str, patience: Duration) -> Self {
        let name: String = group.bytes().fold(String::new(), |mut name, byte| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{byte:02x}");
            name
        });
        Self { folder: shared.join("corosync-views").join(name), patience }
    }

    /// The place of a change that this member counted: its count, unless somebody said otherwise
    /// before.
    pub fn agree(&self, ring: Ring, change: &Change, counted: u64) -> u64 {
        self.claim(ring, change, counted).unwrap_or_else(|error| {
            eprintln!("the place of a view cannot be shared: {error}");
            counted
        })
    }

    /// The place of the change by which this member joined others: theirs. If none of them says it
    /// in time, they are all gone, and it comes after all that they said.
    pub fn learn(&self, ring: Ring, change: &Change, first: u64) -> u64 {
        let file = self.file(ring, change);
        let deadline = Instant::now() + self.patience;
        while Instant::now() < deadline {
            if let Some(place) = read(&file) {
                return place;
            }
            std::thread::sleep(LOOK_AGAIN);
        }
        self.follow(ring, change, first)
    }

    /// The place of a change that only this member can know: after all others in the ring.
    pub fn follow(&self, ring: Ring, change: &Change, first: u64) -> u64 {
        let places = fs::read_dir(self.ring_folder(ring)).into_iter().flatten().flatten();
        let last = places.filter_map(|file| read(&file.path())).max();
        self.agree(ring, change, last.map_or(first, |last| last + 1))
    }

    fn ring_folder(&self, ring: Ring) -> PathBuf {
        self.folder.join(format!("{}-{}", ring.seq, ring.nodeid))
    }

    fn file(&self, ring: Ring, change: &Change) -> PathBuf {
        let joined = change.joined.iter().map(|of| ('+', of));
        let left = change.left.iter().map(|of| ('-', of));
        let name = joined.chain(left).fold(String::new(), |mut name, (sign, (of, _))| {
            // Writing to a string cannot fail.
            let _ = write!(name, "{sign}{}.{}", of.nodeid, of.pid);
            name
        });
        self.ring_folder(ring).join(name)
    }

    fn claim(&self, ring: Ring, change: &Change, place: u64) -> io::Result<u64> {
        let folder = self.ring_folder(ring);
        fs::create_dir_all(&folder)?;
        let file = self.file(ring, change);
        let draft = folder.join(format!(".draft-{}", std::process::id()));
        fs::write(&draft, place.to_string())?;
        // A link is made whole or not at all, and never over another.
        let linked = fs::hard_link(&draft, &file);
        fs::remove_file(&draft)?;
        match linked {
            Ok(()) => Ok(place),
            Err(error) => read(&file).ok_or(error),
        }
    }
}

fn read(file: &Path) -> Option<u64> {
    fs::read_to_string(file).ok()?.parse().ok()
}
