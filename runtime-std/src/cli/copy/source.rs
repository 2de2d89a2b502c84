//! What is to be copied: looked at once before anything is sent, then packed as one archive.

use std::collections::BTreeSet;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::talk::Manifest;
use crate::cli::exit::{Failure, Status};

/// Files and directories, each with the name that it gets.
#[derive(Debug)]
pub(super) struct Source {
    entries: Vec<(PathBuf, String)>,
    pub(super) manifest: Manifest,
}

impl Source {
    /// Looks at what is to be copied.
    pub(super) fn look(files: &[PathBuf]) -> Result<Self, Failure> {
        let mut seen = BTreeSet::new();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for file in files {
            let name = name_of(file)?;
            if !seen.insert(name.clone()) {
                let what = format_args!("two of what is to be copied are called {name}");
                return Err(Failure::new(Status::Usage, what, "copy one after the other"));
            }
            bytes += size_of(file).map_err(|error| unreadable(file, &error))?;
            entries.push((file.clone(), name));
        }
        let names = entries.iter().map(|(_, name)| name.clone()).collect();
        Ok(Self { entries, manifest: Manifest { names, bytes } })
    }

    /// Writes all of it as one archive.
    pub(super) fn pack(&self, into: impl Write) -> Result<(), Failure> {
        let mut archive = tar::Builder::new(into);
        archive.follow_symlinks(false);
        for (path, name) in &self.entries {
            let is_directory = fs::symlink_metadata(path).map_err(|error| unreadable(path, &error))?.is_dir();
            let packed = if is_directory {
                archive.append_dir_all(name, path)
            } else {
                archive.append_path_with_name(path, name)
            };
            packed.map_err(|error| unreadable(path, &error))?;
        }
        archive.into_inner().map(drop).map_err(|error| Failure::system("cannot send", &error))
    }
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::ConnectionAborted {
        // Of the copy, and not of the file: whoever ended it says why.
        return Failure::told(Status::PeerLost, error);
    }
    let what = format_args!("cannot read {}: {error}", path.display());
    Failure::new(Status::Input, what, "give files and directories that you may read")
}

/// The last part of a path, which must be one that a file can be called by.
fn name_of(path: &Path) -> Result<String, Failure> {
    let whole = path.canonicalize().map_err(|error| unreadable(path, &error))?;
    // What a link is called counts, not what it leads to.
    let name = path.file_name().or_else(|| whole.file_name());
    match name.and_then(|name| name.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => {
            let what = format_args!("{} has no name that all hosts can read", path.display());
            Err(Failure::new(Status::Usage, what, "give it one in UTF-8, and not the root of a file system"))
        }
    }
}

/// Bytes of all files below a path.
fn size_of(path: &Path) -> io::Result<u64> {
    let mut bytes = 0;
    let mut left = vec![path.to_path_buf()];
    while let Some(path) = left.pop() {
        let metadata = fs::symlink_metadata(&path)?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path)? {
                left.push(entry?.path());
            }
        } else if metadata.is_file() {
            bytes += metadata.len();
        }
    }
    Ok(bytes)
}
