//! A destination directory with contents that the sender must not change, and entries that no
//! correct sender packs.

use std::fs::{self, Permissions};
use std::os::unix::ffi::OsStringExt as _;
use std::os::unix::fs::{MetadataExt as _, PermissionsExt as _, symlink};
use std::path::{Path, PathBuf};

use tar::{EntryType, Header};

use super::place::UNPACKED;

/// Returns a header for `size` bytes of content, which does not have to follow.
#[cfg_attr(not(test), allow(dead_code, reason = "a fuzzer makes its own"))]
pub(super) fn header(kind: EntryType, path: &str, mode: u32, link: &str, size: u64) -> Vec<u8> {
    let mut header = Header::new_gnu();
    header.set_entry_type(kind);
    header.set_mode(mode);
    header.set_mtime(1_000_000_000);
    header.set_size(size);
    // Written directly, to bypass the checks for valid names.
    for (at, text) in [(0, path), (157, link)] {
        header.as_mut_bytes()[at..at + text.len()].copy_from_slice(text.as_bytes());
    }
    header.set_cksum();
    header.as_bytes().to_vec()
}

/// Returns an entry with its content.
#[cfg_attr(not(test), allow(dead_code, reason = "a fuzzer makes its own"))]
pub(super) fn entry(kind: EntryType, path: &str, mode: u32, link: &str, content: &[u8]) -> Vec<u8> {
    let mut bytes = header(kind, path, mode, link, content.len() as u64);
    bytes.extend_from_slice(content);
    bytes.resize(bytes.len().next_multiple_of(512), 0);
    bytes
}

/// A path, and all that could be changed about it: its mode, its time, and its content or the
/// target of a link.
pub(super) type FileState = (PathBuf, u32, i64, Vec<u8>);

/// Reads the state of a path. For the destination directory itself, only the mode counts, because
/// its time changes during a copy.
fn look(path: &Path, has_time: bool) -> Option<FileState> {
    let metadata = fs::symlink_metadata(path).ok()?;
    let content = if metadata.is_symlink() {
        fs::read_link(path).map_or_else(|_| Vec::new(), |to| to.into_os_string().into_vec())
    } else {
        fs::read(path).unwrap_or_default()
    };
    Some((
        path.to_path_buf(),
        metadata.mode(),
        if has_time { metadata.mtime() } else { 0 },
        content,
    ))
}

/// A destination directory, with contents that no other user may see, and another directory next to
/// it.
pub(super) struct Victim(tempfile::TempDir);

impl Victim {
    pub(super) fn new() -> Self {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        for private in ["to/private", "outside"] {
            let path = folder.path().join(private);
            fs::create_dir_all(&path).expect("a directory");
            fs::write(path.join("secret"), b"not the sender's").expect("a file");
            fs::set_permissions(path.join("secret"), Permissions::from_mode(0o600))
                .expect("its owner's");
            fs::set_permissions(&path, Permissions::from_mode(0o700)).expect("its owner's");
        }
        symlink("../outside", folder.path().join("to/leads-out")).expect("a link");
        Self(folder)
    }

    pub(super) fn folder(&self) -> &Path {
        self.0.path()
    }

    pub(super) fn to(&self) -> PathBuf {
        self.folder().join("to")
    }

    /// Returns the state of every path there.
    pub(super) fn seen(&self) -> Vec<FileState> {
        let paths =
            ["to", "to/private", "to/private/secret", "to/leads-out", "outside", "outside/secret"];
        paths.iter().filter_map(|path| look(&self.folder().join(path), *path != "to")).collect()
    }

    /// Fails if that state has changed, or if any path other than these names has appeared.
    #[track_caller]
    pub(super) fn assert_unchanged(&self, before: &[FileState], names: &[&str]) {
        assert_eq!(self.seen(), before);
        let known = [&["private", "leads-out"], names].concat();
        for (directory, known) in
            [("to", &known[..]), ("to/private", &["secret"]), ("outside", &["secret"])]
        {
            for entry in fs::read_dir(self.folder().join(directory)).expect("a directory") {
                let name = entry.expect("an entry").file_name();
                let is_known = known.iter().any(|known| name == **known);
                assert!(is_known && name != UNPACKED, "{name:?} came into {directory}");
            }
        }
    }
}
