//! Names of processes: CPG knows members by node and process number, the suite by name.
//!
//! Each member writes its name into the run's shared folder before it joins. So a member that is
//! told that a process joined finds its name.

use std::collections::HashMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};

use crate::cpg::Address;

/// The names of members.
#[derive(Clone, Debug)]
pub struct Members {
    folder: PathBuf,
    known: HashMap<Address, String>,
}

impl Members {
    /// The names of a run.
    ///
    /// # Errors
    /// The folder cannot be made.
    pub fn open(shared: &Path) -> io::Result<Self> {
        let folder = shared.join("corosync-members");
        fs::create_dir_all(&folder)?;
        Ok(Self { folder, known: HashMap::new() })
    }

    fn file(&self, of: Address) -> PathBuf {
        self.folder.join(format!("{}.{}", of.nodeid, of.pid))
    }

    /// Tells the others that the process is `node`.
    ///
    /// # Errors
    /// The file cannot be written.
    pub fn register(&self, of: Address, node: &str) -> io::Result<()> {
        let draft = self.folder.join(format!(".{}.{}", of.nodeid, of.pid));
        fs::write(&draft, node)?;
        fs::rename(draft, self.file(of))
    }

    /// The process's name. One that never said its name is shown by its numbers: it is none of this
    /// run's.
    pub fn name(&mut self, of: Address) -> &str {
        let file = self.file(of);
        self.known.entry(of).or_insert_with(|| {
            fs::read_to_string(file)
                .unwrap_or_else(|_| format!("corosync:{}.{}", of.nodeid, of.pid))
        })
    }

    /// A process is gone: its number may come back as another member's.
    pub fn forget(&mut self, of: Address) {
        self.known.remove(&of);
    }
}
