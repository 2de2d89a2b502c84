//! What a member delivered, in a file of its storage folder, one JSON object a line.
//!
//! Invariants:
//! - what is in the file was delivered: a restarted node must not be the first to deliver
//!   something, because the view in which the others would have delivered it too is over;
//! - what was said to be durable is in the file, and the file is synced.

use std::fs::{File, OpenOptions};
use std::io::{self, Read, Seek, SeekFrom, Write};
use std::path::Path;

use serde::{Deserialize, Serialize};

/// A delivery as it is kept.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Kept {
    pub group: String,
    pub view: Option<u64>,
    pub sender: String,
    pub payload: String,
}

/// The file.
pub struct Log {
    file: File,
    /// How long the file is, up to the last delivery that is whole.
    bytes: u64,
}

impl Log {
    /// Opens the log in a folder, and reads what it holds. What a kill cut in the middle is cut
    /// off.
    pub fn open(folder: &Path) -> io::Result<(Self, Vec<Kept>)> {
        std::fs::create_dir_all(folder)?;
        let path = folder.join("delivered");
        let is_new = !path.exists();
        let mut file =
            OpenOptions::new().read(true).write(true).create(true).truncate(false).open(path)?;
        if is_new {
            // Its name is to survive too.
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

    /// What was added survives the machine from now on.
    pub fn sync(&self) -> io::Result<()> {
        self.file.sync_data()
    }

    /// Adds a delivery, or nothing of it.
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
