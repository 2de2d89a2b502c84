//! Log files: a node or a replica of a shard writes its deliveries to a file, as lines. The file is
//! also its state, which a joining node or replica receives.
//!
//! # Invariants
//! - A log holds whole lines, in the order of delivery. If its last line is incomplete, that line
//!   is removed.
//! - A file holds everything that the group delivered, or everything since a node rotated its file.
//!   It is never restored from the state of a member without a file.
//! - The file of an earlier incarnation stays unchanged until this process is a member. Then the
//!   state that it joined with replaces the file. A group that forms anew begins with empty logs,
//!   but keeps the old files under other names.
//! - Files are renamed, so a log must be a regular file. A device, a directory or a pipe is refused
//!   before it is touched.

mod rotation;

use std::fs::{File, FileType, Metadata, OpenOptions, TryLockError};
use std::io::{self, Cursor, ErrorKind, Read, Write as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use tramontane_local::exit::Failure;

pub(super) use rotation::Rotation;

/// First bytes of a state, by its kind: all lines of a file, the lines since its rotation, or the
/// lines of a member without a file.
const WHOLE: [u8; 1] = *b"f";
const ROTATED: [u8; 1] = *b"r";
pub(super) const NO_FILE: [u8; 1] = *b"-";

/// Time allowed for the previous process to exit after being killed.
const LOCK_PATIENCE: Duration = Duration::from_secs(1);

/// Reads the kind of a state for a member with or without a file. Returns `None` for a state
/// without bytes, which is the initial state.
fn read_kind(state: &mut dyn Read, has_file: bool) -> io::Result<Option<[u8; 1]>> {
    let mut kind = [0];
    if state.read(&mut kind)? == 0 {
        return Ok(None);
    }
    let is_file = [WHOLE, ROTATED].contains(&kind);
    let what = match (has_file, is_file) {
        (true, false) => {
            "the members were started without --log; start all with --log, or this one without it"
        }
        (false, true) => "the members were started with --log; start this one with --log too",
        _ => return Ok(Some(kind)),
    };
    Err(io::Error::new(ErrorKind::InvalidData, what))
}

/// Reads the kind of a state for a member without a file.
pub(super) fn begin_without_file(state: &mut dyn Read) -> io::Result<()> {
    read_kind(state, false).map(|_| ())
}

/// A log file. The application appends to it, and the main thread reopens it.
#[derive(Clone)]
pub(super) struct SharedLogFile(Arc<Mutex<LogFile>>);

impl SharedLogFile {
    /// Opens the log, and creates it if necessary. Fails if another process has it open as its log.
    pub(super) fn open(path: &Path) -> Result<Self, Failure> {
        let wrong = |error: io::Error| {
            let what = format_args!("cannot open the log {}: {error}", path.display());
            Failure::usage(what, "give each process a separate, writable --log")
        };
        let file = LogFile::open(path).map_err(wrong)?;
        Ok(Self(Arc::new(Mutex::new(file))))
    }

    fn lock(&self) -> MutexGuard<'_, LogFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds whole lines.
    pub(super) fn append(&self, lines: &[u8]) -> io::Result<()> {
        self.lock().append(lines)
    }

    /// Returns the current contents, to be read while the log grows.
    pub(super) fn snapshot(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(Box::new(self.lock().snapshot()?))
    }

    /// Restores another member's state, or begins empty if `state` is empty.
    pub(super) fn restore(&self, state: &mut dyn Read) -> io::Result<()> {
        let kind = read_kind(state, true)?;
        self.lock().restore(state, kind == Some(ROTATED))
    }

    /// Notes that this process is a member, so that the log is now the group's. Returns the path of
    /// the log that an earlier incarnation left, if it was kept because it is not part of the
    /// group's.
    pub(super) fn begin(&self) -> io::Result<Option<PathBuf>> {
        self.lock().begin()
    }

    /// Opens the file that is now at the log's path, after a rotation.
    fn reopen(&self) -> io::Result<()> {
        self.lock().reopen()
    }

    pub(crate) fn path(&self) -> PathBuf {
        self.lock().path.clone()
    }
}

/// Returns a notice that says where lines of an earlier incarnation are kept.
pub(super) fn kept_text(kept: &Path) -> String {
    format!("starting a new log; the log of an earlier run has been kept as {}", kept.display())
}

/// The lines of a log, in a file.
struct LogFile {
    path: PathBuf,
    /// The file being written: the log, or the file that will replace it.
    file: File,
    length: u64,
    is_restored: bool,
    /// Whether the file lacks lines that the group delivered before those in the file.
    is_rotated: bool,
}

impl LogFile {
    /// Opens the log, and creates it if necessary. Fails if another process has it open as its log.
    fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        // A symbolic link stays, and its target is the log. Renaming over the link itself would
        // replace it with the log.
        let path = path.canonicalize()?;
        let log = Self { path, file, length, is_restored: false, is_rotated: false };
        check_kind(&log.joining_path(), std::fs::symlink_metadata(log.joining_path()))?;
        Ok(log)
    }

    fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        let written = self.file.write_all(lines);
        let whole = if written.is_ok() {
            lines.len()
        } else {
            // Incomplete lines do not count.
            let bytes = self.file.metadata()?.len().saturating_sub(self.length);
            let bytes = lines.len().min(usize::try_from(bytes).unwrap_or(usize::MAX));
            lines[..bytes].iter().rposition(|byte| *byte == b'\n').map_or(0, |last| last + 1)
        };
        self.length += u64::try_from(whole).unwrap_or(u64::MAX);
        if written.is_err() {
            self.file.set_len(self.length)?;
        }
        written
    }

    fn snapshot(&self) -> io::Result<impl Read + Send + use<>> {
        let kind = if self.is_rotated { ROTATED } else { WHOLE };
        let lines = LogBytes { file: self.file.try_clone()?, at: 0, length: self.length };
        Ok(Cursor::new(kind).chain(lines))
    }

    fn restore(&mut self, state: &mut dyn Read, is_rotated: bool) -> io::Result<()> {
        if !self.is_restored {
            let path = self.joining_path();
            check_kind(&path, std::fs::symlink_metadata(&path))?;
            self.file = open(&path)?;
            self.is_restored = true;
        }
        self.is_rotated = is_rotated;
        self.length = 0;
        self.file.set_len(0)?;
        self.length = io::copy(state, &mut self.file)?;
        Ok(())
    }

    fn begin(&mut self) -> io::Result<Option<PathBuf>> {
        let before = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        // If the group's members have rotated away older lines, this file may have the only copy.
        let kept = if before > 0 && (self.is_rotated || !self.is_restored) {
            let kept = (1_u32..).map(|number| with_ending(&self.path, &number.to_string()));
            let is_free = |path: &PathBuf| std::fs::symlink_metadata(path).is_err();
            let kept = kept.into_iter().find(is_free).unwrap_or_default();
            std::fs::rename(&self.path, &kept)?;
            Some(kept)
        } else {
            None
        };
        if self.is_restored {
            self.is_restored = false;
            std::fs::rename(self.joining_path(), &self.path)?;
        } else if kept.is_some() {
            *self = Self::open(&self.path)?;
        }
        Ok(kept)
    }

    /// Opens the file that is now at the path. The rotated file is not changed. If the open fails,
    /// lines still go to the rotated file.
    fn reopen(&mut self) -> io::Result<()> {
        // A restored file gets the path when this process becomes a member.
        if self.is_restored {
            return Ok(());
        }
        let own = self.file.metadata()?;
        let is_own = |found: Metadata| (found.dev(), found.ino()) == (own.dev(), own.ino());
        if !std::fs::metadata(&self.path).is_ok_and(is_own) {
            *self = Self::open(&self.path)?;
            self.is_rotated = true;
        }
        Ok(())
    }

    fn joining_path(&self) -> PathBuf {
        with_ending(&self.path, "joining")
    }
}

impl Drop for LogFile {
    fn drop(&mut self) {
        if self.is_restored {
            // The join failed, so its file is removed. The next join begins with a new file.
            let _ = std::fs::remove_file(self.joining_path());
        }
    }
}

/// The bytes that a log held at some moment. Others may append to the log, rename it or truncate it
/// meanwhile.
struct LogBytes {
    file: File,
    at: u64,
    length: u64,
}

impl Read for LogBytes {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let wanted = left.min(into.len());
        let bytes = self.file.read_at(&mut into[..wanted], self.at)?;
        if bytes == 0 && wanted > 0 {
            // The error makes the joining node ask another member.
            let what =
                "the log is shorter than what this node wrote to it: another program truncated it";
            return Err(io::Error::new(ErrorKind::UnexpectedEof, what));
        }
        self.at += bytes as u64;
        Ok(bytes)
    }
}

/// `path.ending`.
pub(super) fn with_ending(path: &Path, ending: &str) -> PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(".");
    name.push(ending);
    name.into()
}

/// Opens a file, creating it if necessary, and locks it. Only regular files are opened, because
/// opening another kind of file may block or affect a device.
fn open(path: &Path) -> io::Result<File> {
    check_kind(path, std::fs::metadata(path))?;
    let mut options = OpenOptions::new();
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = options.create(true).read(true).append(true).custom_flags(at_once).open(path)?;
    // The file may have been replaced with another kind of file in the meantime.
    check_type(path, file.metadata()?.file_type())?;
    let until = Instant::now() + LOCK_PATIENCE;
    loop {
        match file.try_lock() {
            Ok(()) => return Ok(file),
            Err(TryLockError::WouldBlock) if Instant::now() < until => {
                std::thread::sleep(LOCK_PATIENCE / 100);
            }
            Err(TryLockError::WouldBlock) => {
                let what = "another process uses it as its log";
                return Err(io::Error::new(ErrorKind::ResourceBusy, what));
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
    }
}

/// Fails if something other than a regular file is at the path.
fn check_kind(path: &Path, found: io::Result<Metadata>) -> io::Result<()> {
    match found {
        Ok(found) => check_type(path, found.file_type()),
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(error),
    }
}

fn check_type(path: &Path, found: FileType) -> io::Result<()> {
    let what = match found {
        _ if found.is_file() => return Ok(()),
        _ if found.is_dir() => "a directory",
        _ if found.is_symlink() => "a symbolic link",
        _ if found.is_fifo() => "a pipe",
        _ if found.is_socket() => "a socket",
        _ => "a device",
    };
    let what = format!("{} is {what}; a log must be a regular file", path.display());
    Err(io::Error::new(ErrorKind::InvalidInput, what))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(path: &Path) -> SharedLogFile {
        SharedLogFile::open(path).expect("it is free")
    }

    fn content(log: &SharedLogFile) -> Vec<u8> {
        let mut bytes = Vec::new();
        log.snapshot().and_then(|mut state| state.read_to_end(&mut bytes)).expect("it can be read");
        bytes.split_off(1)
    }

    #[test]
    fn existing_log_is_kept_or_replaced_by_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let log = open(&path);
        assert_eq!(log.begin().expect("a new one"), Some(with_ending(&path, "1")));
        log.append(b"new\n").expect("room");
        assert_eq!(content(&log), b"new\n");
        assert_eq!(std::fs::read(with_ending(&path, "1")).expect("kept"), b"old\n");
        drop(log);

        let log = open(&path);
        log.restore(&mut &b"fgroup's\n"[..]).expect("room");
        log.append(b"since\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("untouched"), b"new\n");
        log.restore(&mut &b"fgroup's again\n"[..]).expect("room");
        assert_eq!(log.begin().expect("the restored one"), None);
        log.append(b"more\n").expect("room");
        assert_eq!(content(&log), b"group's again\nmore\n");
        assert!(!with_ending(&path, "joining").exists());
    }

    #[test]
    fn joiner_of_rotated_log_keeps_its_earlier_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        let log = open(&path);
        log.append(b"first\n").expect("room");
        log.reopen().expect("it is the same file");
        assert_eq!(content(&log), b"first\n");
        std::fs::rename(&path, with_ending(&path, "rotated")).expect("another name");
        log.reopen().expect("room");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"");
        log.append(b"second\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"second\n");

        std::fs::write(&other, "zeroth\nfirst\n").expect("a file");
        let joiner = open(&other);
        log.snapshot().and_then(|mut state| joiner.restore(&mut state)).expect("room");
        assert_eq!(joiner.begin().expect("room"), Some(with_ending(&other, "1")));
        assert_eq!(std::fs::read(with_ending(&other, "1")).expect("kept"), b"zeroth\nfirst\n");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"second\n");
        let state = joiner.snapshot().and_then(io::read_to_string).expect("it can be read");
        assert_eq!(state, "rsecond\n", "and so does the next");
    }

    /// A node whose lines are in a durable log fills its file from that log, from the beginning.
    #[test]
    fn empty_state_is_the_initial_state() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let log = open(&path);
        log.restore(&mut io::empty()).expect("room");
        log.append(b"again\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("untouched"), b"old\n");
        assert_eq!(log.begin().expect("the restored one"), None);
        assert_eq!(std::fs::read(&path).expect("replaced"), b"again\n");
    }

    #[test]
    fn rotated_log_is_transferred_completely_if_possible() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let log = open(&path);
        log.append(b"first\nsecond\n").expect("room");
        let before = log.snapshot().expect("it is there");
        std::fs::rename(&path, with_ending(&path, "rotated")).expect("another name");
        log.append(b"third\n").expect("room");
        assert_eq!(content(&log), b"first\nsecond\nthird\n");
        assert_eq!(io::read_to_string(before).expect("as it was"), "ffirst\nsecond\n");

        let rotated =
            File::options().write(true).open(with_ending(&path, "rotated")).expect("it is there");
        rotated.set_len(6).expect("a size");
        let error = log.snapshot().and_then(io::read_to_string).expect_err("it is cut off");
        assert_eq!(error.kind(), ErrorKind::UnexpectedEof);
        log.append(b"fourth\n").expect("room");
        log.snapshot().and_then(io::read_to_string).expect_err("some of it is gone for ever");
    }

    #[test]
    fn log_behind_symbolic_link_is_replaced() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("log"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let log = open(&link);
        log.restore(&mut &b"fgroup's\n"[..]).expect("room");
        assert_eq!(log.begin().expect("the restored one"), None);
        assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(std::fs::read(&path).expect("it is there"), b"group's\n");
    }

    #[test]
    fn symbolic_link_at_temporary_path_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        std::fs::write(&other, "precious\n").expect("a file");
        let log = open(&path);
        std::os::unix::fs::symlink(&other, with_ending(&path, "joining")).expect("a link");
        log.restore(&mut &b"fgroup's\n"[..]).expect_err("a link");
        LogFile::open(&path).err().expect("a link");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"precious\n");
    }

    #[test]
    fn log_can_be_opened_by_one_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let _first = LogFile::open(&path).expect("it is free");
        let error = LogFile::open(&path).err().expect("it is taken");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    }
}
