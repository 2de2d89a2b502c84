//! A node's record of its deliveries. It is the node's state, which a joining node receives: a log
//! file, or the most recent lines in memory.

use std::collections::VecDeque;
use std::io::{self, BufRead, BufReader, Cursor, Read};
use std::path::PathBuf;

use crate::log_file::{NO_FILE, SharedLogFile, begin_without_file};

/// Maximum number of lines kept in memory.
pub(super) const RECENT_LINES: usize = 1_000;

/// Maximum total size of those lines in bytes.
const RECENT_BYTES: usize = 16 << 20;

/// The state of one subgroup.
pub(super) enum SubgroupLog {
    File(SharedLogFile),
    Recent(Recent),
}

impl SubgroupLog {
    /// Returns the log file, if there is one.
    pub(super) const fn file(&self) -> Option<&SharedLogFile> {
        match self {
            Self::File(file) => Some(file),
            Self::Recent(_) => None,
        }
    }

    /// Adds whole lines.
    pub(super) fn append(&mut self, lines: &[u8]) -> io::Result<()> {
        match self {
            Self::File(file) => file.append(lines),
            Self::Recent(recent) => recent.restore_from(lines),
        }
    }

    /// Returns the current contents, to be read while the log grows.
    pub(super) fn snapshot(&self) -> io::Result<Box<dyn Read + Send>> {
        match self {
            Self::File(file) => file.snapshot(),
            Self::Recent(recent) => {
                Ok(Box::new(Cursor::new(NO_FILE).chain(Cursor::new(recent.bytes()))))
            }
        }
    }

    /// Restores another member's state, or begins empty if `state` is empty.
    pub(super) fn restore(&mut self, state: &mut dyn Read) -> io::Result<()> {
        match self {
            Self::File(file) => file.restore(state),
            Self::Recent(recent) => {
                begin_without_file(state)?;
                *recent = Recent::default();
                recent.restore_from(BufReader::new(state))
            }
        }
    }

    /// Notes that this process is a member, so that the log is now the group's. Returns the path of
    /// the log that an earlier incarnation left, if it was kept because it is not part of the
    /// group's.
    pub(super) fn begin(&mut self) -> io::Result<Option<PathBuf>> {
        match self {
            Self::File(file) => file.begin(),
            Self::Recent(_) => Ok(None),
        }
    }
}

/// The most recent lines, kept in memory.
#[derive(Default)]
pub(super) struct Recent {
    bytes: VecDeque<u8>,
    /// The length of each line.
    lengths: VecDeque<usize>,
}

impl Recent {
    fn restore_from(&mut self, mut lines: impl BufRead) -> io::Result<()> {
        let mut line = Vec::new();
        while lines.read_until(b'\n', &mut line)? > 0 {
            self.bytes.extend(&line);
            self.lengths.push_back(line.len());
            line.clear();
            while self.lengths.len() > RECENT_LINES || self.bytes.len() > RECENT_BYTES {
                let oldest = self.lengths.pop_front().unwrap_or_default();
                self.bytes.drain(..oldest);
            }
        }
        Ok(())
    }

    fn bytes(&self) -> Vec<u8> {
        self.bytes.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn content(log: &SubgroupLog) -> Vec<u8> {
        let mut bytes = Vec::new();
        log.snapshot().and_then(|mut state| state.read_to_end(&mut bytes)).expect("it can be read");
        bytes.split_off(1)
    }

    #[test]
    fn in_memory_log_keeps_only_last_lines() {
        let mut log = SubgroupLog::Recent(Recent::default());
        for number in 0..RECENT_LINES + 2 {
            log.append(format!("{number}\n").as_bytes()).expect("room");
        }
        let bytes = content(&log);
        assert!(bytes.starts_with(b"2\n3\n"), "{}", String::from_utf8_lossy(&bytes[..20]));
        log.append(&vec![b'x'; RECENT_BYTES + 1]).expect("room");
        assert_eq!(content(&log), b"");
        log.append(b"old\n").expect("room");
        log.restore(&mut io::empty()).expect("room");
        assert_eq!(content(&log), b"");
    }

    #[test]
    fn state_transfers_only_between_logs_of_same_kind() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("log");
        std::fs::write(&path, "old\n").expect("a file");
        let hand_on = |from: &SubgroupLog, to: &mut SubgroupLog| {
            from.snapshot().and_then(|mut state| to.restore(&mut state)).map_err(|e| e.to_string())
        };
        let mut recent = SubgroupLog::Recent(Recent::default());
        let mut file = SubgroupLog::File(SharedLogFile::open(&path).expect("it is free"));
        let refusals = [hand_on(&recent, &mut file), hand_on(&file, &mut recent)];
        for refused in refusals.map(|handed| handed.expect_err("one has a --log")) {
            assert!(refused.contains("--log") && refused.contains("; "), "{refused}");
        }
        hand_on(&recent, &mut SubgroupLog::Recent(Recent::default())).expect("memory takes it");
        drop(file);
        assert_eq!(std::fs::read(&path).expect("it is there"), b"old\n");
        assert!(!folder.path().join("log.joining").exists());
    }
}
