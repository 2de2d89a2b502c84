//! The sources of a copy: scanned once before anything is sent, then packed as one archive.

use std::collections::BTreeSet;
use std::fs::{self, Metadata};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use super::archive::{self, Changed};
use super::messages::Manifest;
use super::place::UNPACKED;
use tramontane_local::exit::{Failure, Status};

/// Files and directories, each with its name at the destination.
#[derive(Debug)]
pub(super) struct CopySource {
    entries: Vec<(PathBuf, String)>,
    pub(super) manifest: Manifest,
}

impl CopySource {
    /// Scans the sources. `check` fails when the user wants to end.
    pub(super) fn scan(
        files: &[PathBuf],
        check: &dyn Fn() -> Result<(), Failure>,
    ) -> Result<Self, Failure> {
        let mut seen = BTreeSet::new();
        let mut entries = Vec::new();
        let mut bytes = 0;
        for file in files {
            let name = name_of(file)?;
            if !seen.insert(name.clone()) {
                let what = format_args!("two sources have the name {name}");
                return Err(Failure::usage(what, "copy them separately"));
            }
            each_below(file, &name, |path, _, metadata| {
                check()?;
                bytes += if metadata.is_file() { metadata.len() } else { 0 };
                refuse_special(path, metadata)
            })?;
            entries.push((file.clone(), name));
        }
        let names = entries.iter().map(|(_, name)| name.clone()).collect();
        Ok(Self { entries, manifest: Manifest { names, bytes } })
    }

    /// Writes all sources as one archive.
    pub(super) fn pack(&self, into: impl Write) -> Result<(), Failure> {
        let mut archive = tar::Builder::new(into);
        archive.follow_symlinks(false);
        for (path, name) in &self.entries {
            each_below(path, name, |path, name, metadata| {
                refuse_special(path, metadata)?;
                refuse_unpacked(path)?;
                archive::append(&mut archive, path, name, metadata)
                    .map_err(|error| unreadable(path, &error))
            })?;
        }
        archive.into_inner().map(drop).map_err(|error| Failure::system("cannot send", &error))
    }
}

/// Calls `visit` with a path and everything below it, and with their names in the archive. A
/// directory precedes its contents.
fn each_below(
    path: &Path,
    name: &str,
    mut visit: impl FnMut(&Path, &Path, &Metadata) -> Result<(), Failure>,
) -> Result<(), Failure> {
    let mut left = vec![(path.to_path_buf(), PathBuf::from(name))];
    while let Some((path, name)) = left.pop() {
        let unreadable = |error: io::Error| unreadable(&path, &error);
        let metadata = fs::symlink_metadata(&path).map_err(unreadable)?;
        visit(&path, &name, &metadata)?;
        if metadata.is_dir() {
            for entry in fs::read_dir(&path).map_err(unreadable)? {
                let entry = entry.map_err(unreadable)?;
                left.push((entry.path(), name.join(entry.file_name())));
            }
        }
    }
    Ok(())
}

/// Refuses anything that is not a file, a directory or a link, because it would arrive as something
/// else.
fn refuse_special(path: &Path, metadata: &Metadata) -> Result<(), Failure> {
    if metadata.is_file() || metadata.is_dir() || metadata.is_symlink() {
        return Ok(());
    }
    let what = format_args!("{} is neither a file, a directory nor a link", path.display());
    Err(Failure::input(what, "move it out of the source"))
}

/// Refuses the folder in which a copy unpacks, because this copy may add to it.
fn refuse_unpacked(path: &Path) -> Result<(), Failure> {
    if path.file_name().is_none_or(|name| name != UNPACKED) {
        return Ok(());
    }
    let what =
        format_args!("{} belongs to a copy that is running, or was interrupted", path.display());
    Err(Failure::input(what, "wait until the copy ends, or remove the folder, and copy again"))
}

fn unreadable(path: &Path, error: &io::Error) -> Failure {
    if error.kind() == io::ErrorKind::ConnectionAborted {
        // The copy has failed, not the file. The member that ended the copy reports the reason.
        return Failure::with_text(Status::PeerLost, error);
    }
    if error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Changed>) {
        let what = format_args!("{} changed while it was copied", path.display());
        return Failure::input(
            what,
            "copy it while nothing changes it, including its permissions, times and links",
        );
    }
    let what = format_args!("cannot read {}: {error}", path.display());
    Failure::input(what, "give readable files and directories")
}

/// Returns the last component of a path, which must be a valid file name.
fn name_of(path: &Path) -> Result<String, Failure> {
    let whole = path.canonicalize().map_err(|error| unreadable(path, &error))?;
    // The name of the link counts, not that of its target.
    let name = path.file_name().or_else(|| whole.file_name());
    match name.and_then(|name| name.to_str()) {
        Some(name) => Ok(name.to_owned()),
        None => {
            let what = format_args!("{} has no name in UTF-8", path.display());
            Err(Failure::usage(
                what,
                "rename it, or if it is the root of a file system, copy its contents",
            ))
        }
    }
}
