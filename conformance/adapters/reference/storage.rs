//! A member's deliveries, in a file of its storage folder, with one JSON object per line.
//!
//! Invariants:
//! - the file has only completed deliveries: a restarted node must not be the first to deliver a
//!   message, because the view in which the others would have delivered it is over;
//! - every delivery reported durable is in the file, and the file is synced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// Maximum number of deliveries that have not been reported durable.
pub const UNTOLD_MAX: usize = 16;

/// A stored delivery.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub group: String,
    pub view: Option<u64>,
    pub sender: String,
    pub payload: String,
}

/// The file.
pub struct DeliveryFile {
    file: File,
    /// Length of the file up to the last complete delivery, in bytes.
    bytes: u64,
}

impl DeliveryFile {
    /// Opens the log in a folder, and reads it. A delivery that a kill left incomplete is cut off.
    pub fn open(folder: &Path) -> io::Result<(Self, Vec<Kept>)> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("delivered");
        let is_new = !path.exists();
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if is_new {
            // The file's name must survive too.
            File::open(folder)?.sync_all()?;
        }
        let mut text = String::new();
        file.read_to_string(&mut text)?;
        let whole_bytes = text.rfind('\n').map_or(0, |end| end + 1);
        let kept =
            text[..whole_bytes].lines().map(serde_json::from_str).collect::<Result<_, _>>()?;
        file.set_len(whole_bytes as u64)?;
        file.seek(SeekFrom::End(0))?;
        Ok((Self { file, bytes: whole_bytes as u64 }, kept))
    }

    /// Makes everything added so far survive the machine.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Adds a delivery completely or not at all.
    pub fn keep(&mut self, delivery: &Kept) -> io::Result<()> {
        let line = crate::wire::line(delivery);
        if let Err(error) = self.file.write_all(line.as_bytes()) {
            self.file.set_len(self.bytes)?;
            self.file.seek(SeekFrom::End(0))?;
            return Err(error);
        }
        self.bytes += line.len() as u64;
        Ok(())
    }
}
