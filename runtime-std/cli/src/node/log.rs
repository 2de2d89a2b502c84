//! What a node keeps of what was delivered: its state, which a node that joins takes over.
//!
//! # Invariants
//! - A log holds whole lines, in the order of delivery: what cannot be written whole is taken back.
//! - A file holds all that the group delivered, or what came since it was rotated at one node. It
//!   takes no state over from a member that keeps the last lines alone.
//! - The file of an earlier life stays as it was until this process is a member; then what it
//!   joined with takes its place. A group that starts anew begins with empty logs, and what was
//!   there is kept under another name.
//! - Files are renamed, so a log is a regular file: a device, a directory or a pipe is refused
//!   before anything is done to it.

use std::collections::VecDeque;
use std::fs::{File, FileType, Metadata, OpenOptions, TryLockError};
use std::io::{self, BufRead as _, BufReader, Cursor, ErrorKind, Read, Write as _};
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

/// Lines that are kept in memory.
pub(super) const RECENT_LINES: usize = 1_000;

/// Bytes of them.
const RECENT_BYTES: usize = 16 << 20;

/// The first byte of a state: all lines of a file, those since it was rotated, or the last lines
/// from memory.
const WHOLE: [u8; 1] = *b"f";
const ROTATED: [u8; 1] = *b"r";
const RECENT: [u8; 1] = *b"-";

/// The state of one subgroup.
pub(super) enum Log {
    File(SharedLogFile),
    Recent(Recent),
}

/// A log file, which the application appends to and the main thread opens anew.
#[derive(Clone)]
pub(super) struct SharedLogFile(Arc<Mutex<LogFile>>);

impl SharedLogFile {
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        LogFile::open(path).map(|file| Self(Arc::new(Mutex::new(file))))
    }

    fn lock(&self) -> MutexGuard<'_, LogFile> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Opens what is at the log's path now, after a rotation.
    pub(super) fn reopen(&self) -> io::Result<()> {
        self.lock().reopen()
    }

    pub(super) fn path(&self) -> PathBuf {
        self.lock().path.clone()
    }
}

impl Log {
    /// The file, if it is one.
    pub(super) const fn file(&self) -> Option<&SharedLogFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Recent(_) => None,
        }
    }

    /// Adds whole lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.lock().append(lines),
            Self::Recent(recent) => recent.restore_from(lines),
        }
    }

    /// What it holds now, to be read while it grows.
    pub(super) fn snapshot(&self) -> io::Result<Box<dyn Read + Send>> {
        Ok(match self {
            Self::File(file) => Box::new(file.lock().snapshot()?),
            Self::Recent(recent) => {
                Box::new(Cursor::new(RECENT).chain(Cursor::new(recent.bytes())))
            }
        })
    }

    /// Takes over another member's, or begins with nothing if there is none.
    pub(super) fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        let refused = |what| Err(io::Error::new(ErrorKind::InvalidData, what));
        let mut kind = [0];
        // Without a first byte it is the beginning, which has no lines.
        let has_lines = state.read(&mut kind)? > 0;
        let is_file = [WHOLE, ROTATED].contains(&kind);
        match self {
            Self::File(_) if has_lines && !is_file => refused(
                "the members have no --log; start all nodes with --log, or this one without it",
            ),
            Self::Recent(_) if has_lines && is_file => {
                refused("the members have a --log; start this node with one too")
            }
            Self::File(file) => file.lock().restore(state, kind == ROTATED),
            Self::Recent(recent) => {
                *recent = Recent::default();
                recent.restore_from(state)
            }
        }
    }

    /// This process is a member: from now on the log is the group's. Says where a log of an earlier
    /// life is kept that is not part of it.
    pub(super) fn begin(&mut self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::File(file) => file.lock().begin(),
            Self::Recent(_) => Ok(None),
        }
    }
}

/// The last lines, in memory.
#[derive(Default)]
pub(super) struct Recent {
    lines: VecDeque<Vec<u8>>,
    bytes: usize,
}

impl Recent {
    fn restore_from(&mut self, lines: impl Read) -> io::Result<()> {
        let mut lines = BufReader::new(lines);
        loop {
            let mut line = Vec::new();
            if lines.read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
            self.bytes += line.len();
            self.lines.push_back(line);
            while self.lines.len() > RECENT_LINES || self.bytes > RECENT_BYTES {
                self.bytes -= self.lines.pop_front().map_or(0, |line| line.len());
            }
        }
    }

    fn bytes(&self) -> Vec<u8> {
        self.lines.iter().flatten().copied().collect()
    }
}

/// All lines, in a file.
pub(super) struct LogFile {
    path: PathBuf,
    /// What is written to: the log, or what will take its place.
    file: File,
    length: u64,
    is_restored: bool,
    /// Lines of the group are missing before those in the file.
    is_rotated: bool,
}

impl LogFile {
    /// Opens the log, made if it is not there. No other process may have it open as its log.
    pub(super) fn open(path: &Path) -> io::Result<Self> {
        let file = open(path)?;
        let length = file.metadata()?.len();
        // A link stays, and what it leads to is the log: a rename would put the log in the link's
        // place.
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
            // Half a line is none.
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
        let lines = Snapshot { file: self.file.try_clone()?, at: 0, length: self.length };
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
        // Lines of before that the group's members have rotated away are nowhere else.
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

    /// Opens what is at the path now: a file that was rotated stays as it is. If that cannot be, the
    /// lines go to the file that was rotated.
    fn reopen(&mut self) -> io::Result<()> {
        // What was restored gets the path at the beginning.
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
            // The join failed; the next joining node begins another one.
            let _ = std::fs::remove_file(self.joining_path());
        }
    }
}

/// The first bytes of a log, which others may append to, rename or cut off meanwhile.
struct Snapshot {
    file: File,
    at: u64,
    length: u64,
}

impl Read for Snapshot {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = usize::try_from(self.length - self.at).unwrap_or(usize::MAX);
        let wanted = left.min(into.len());
        let bytes = self.file.read_at(&mut into[..wanted], self.at)?;
        if bytes == 0 && wanted > 0 {
            // The joining node asks another member.
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

/// Opens a file, made if it is not there, and locks it. Nothing is opened that is not a regular
/// file: that alone may block, or do something to a device.
fn open(path: &Path) -> io::Result<File> {
    check_kind(path, std::fs::metadata(path))?;
    let mut options = OpenOptions::new();
    let at_once = rustix::fs::OFlags::NONBLOCK.bits().cast_signed();
    let file = options.create(true).read(true).append(true).custom_flags(at_once).open(path)?;
    // Something else may have come to its place.
    check_type(path, file.metadata()?.file_type())?;
    match file.try_lock() {
        Ok(()) => Ok(file),
        Err(TryLockError::WouldBlock) => {
            Err(io::Error::new(ErrorKind::ResourceBusy, "another process uses it as its log"))
        }
        Err(TryLockError::Error(error)) => Err(error),
    }
}

/// Fails if there is something other than a regular file.
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

    fn content(log: &Log) -> Vec<u8> {
        let mut bytes = Vec::new();
        log.snapshot().and_then(|mut state| state.read_to_end(&mut bytes)).expect("it can be read");
        bytes.split_off(1)
    }

    #[test]
    fn memory_keeps_the_last_lines() {
        let mut log = Log::Recent(Recent::default());
        for number in 0..RECENT_LINES + 2 {
            log.append(format!("{number}\n").as_bytes()).expect("room");
        }
        let bytes = content(&log);
        assert!(bytes.starts_with(b"2\n3\n"), "{}", String::from_utf8_lossy(&bytes[..20]));
        log.append(&vec![b'x'; RECENT_BYTES + 1]).expect("room");
        assert_eq!(content(&log), b"");
    }

    #[test]
    fn a_log_of_an_earlier_life_is_kept_where_the_group_starts_anew_and_replaced_where_it_runs() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let mut log = Log::File(SharedLogFile::open(&path).expect("it is free"));
        assert_eq!(log.begin().expect("a new one"), Some(with_ending(&path, "1")));
        log.append(b"new\n").expect("room");
        assert_eq!(content(&log), b"new\n");
        assert_eq!(std::fs::read(with_ending(&path, "1")).expect("kept"), b"old\n");
        drop(log);

        let mut log = Log::File(SharedLogFile::open(&path).expect("it is free"));
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
    fn state_passes_only_between_files_or_between_memories() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let hand_on = |from: &Log, to: &mut Log| {
            from.snapshot().and_then(|mut state| to.restore(&mut state)).map_err(|e| e.to_string())
        };
        let mut recent = Log::Recent(Recent::default());
        let mut file = Log::File(SharedLogFile::open(&path).expect("it is free"));
        let refusals = [hand_on(&recent, &mut file), hand_on(&file, &mut recent)];
        for refused in refusals.map(|handed| handed.expect_err("one has a --log")) {
            assert!(refused.contains("--log") && refused.contains("; "), "{refused}");
        }
        hand_on(&recent, &mut Log::Recent(Recent::default())).expect("memory takes it");
        drop(file);
        assert_eq!(std::fs::read(&path).expect("it is there"), b"old\n");
        assert!(!with_ending(&path, "joining").exists());
    }

    #[test]
    fn joiner_of_rotated_log_keeps_its_earlier_lines() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        let file = SharedLogFile::open(&path).expect("it is free");
        let mut log = Log::File(file.clone());
        log.append(b"first\n").expect("room");
        file.reopen().expect("it is the same file");
        assert_eq!(content(&log), b"first\n");
        std::fs::rename(&path, with_ending(&path, "rotated")).expect("another name");
        file.reopen().expect("room");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"");
        log.append(b"second\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("it is there"), b"second\n");

        std::fs::write(&other, "zeroth\nfirst\n").expect("a file");
        let mut joiner = Log::File(SharedLogFile::open(&other).expect("it is free"));
        log.snapshot().and_then(|mut state| joiner.restore(&mut state)).expect("room");
        assert_eq!(joiner.begin().expect("room"), Some(with_ending(&other, "1")));
        assert_eq!(std::fs::read(with_ending(&other, "1")).expect("kept"), b"zeroth\nfirst\n");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"second\n");
        let state = joiner.snapshot().and_then(io::read_to_string).expect("it can be read");
        assert_eq!(state, "rsecond\n", "and so does the next");
    }

    /// A node whose lines are in a durable log fills its file from that, from the beginning on.
    #[test]
    fn a_state_of_no_bytes_is_the_beginning() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let mut log = Log::File(SharedLogFile::open(&path).expect("it is free"));
        log.restore(&mut io::empty()).expect("room");
        log.append(b"again\n").expect("room");
        assert_eq!(std::fs::read(&path).expect("untouched"), b"old\n");
        assert_eq!(log.begin().expect("the restored one"), None);
        assert_eq!(std::fs::read(&path).expect("replaced"), b"again\n");
        let mut recent = Log::Recent(Recent::default());
        recent.append(b"old\n").expect("room");
        recent.restore(&mut io::empty()).expect("room");
        assert_eq!(content(&recent), b"");
    }

    #[test]
    fn a_log_that_is_rotated_is_handed_on_whole_or_not_at_all() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let mut log = Log::File(SharedLogFile::open(&path).expect("it is free"));
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
    fn a_log_behind_a_link_is_replaced_and_the_link_stays() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, link) = (folder.path().join("log"), folder.path().join("link"));
        std::os::unix::fs::symlink(&path, &link).expect("a link");
        let mut log = Log::File(SharedLogFile::open(&link).expect("nothing is there yet"));
        log.restore(&mut &b"fgroup's\n"[..]).expect("room");
        assert_eq!(log.begin().expect("the restored one"), None);
        assert!(std::fs::symlink_metadata(&link).expect("it is there").is_symlink());
        assert_eq!(std::fs::read(&path).expect("it is there"), b"group's\n");
    }

    #[test]
    fn what_is_beside_a_log_is_no_way_to_another_file() {
        let folder = tempfile::tempdir().expect("a folder");
        let (path, other) = (folder.path().join("log"), folder.path().join("other"));
        std::fs::write(&other, "precious\n").expect("a file");
        let log = SharedLogFile::open(&path).expect("nothing is there yet");
        std::os::unix::fs::symlink(&other, with_ending(&path, "joining")).expect("a link");
        Log::File(log).restore(&mut &b"fgroup's\n"[..]).expect_err("a link");
        LogFile::open(&path).err().expect("a link");
        assert_eq!(std::fs::read(&other).expect("it is there"), b"precious\n");
    }

    #[test]
    fn a_log_has_one_process() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        let _first = LogFile::open(&path).expect("it is free");
        let error = LogFile::open(&path).err().expect("it is taken");
        assert_eq!(error.kind(), ErrorKind::ResourceBusy);
    }
}
