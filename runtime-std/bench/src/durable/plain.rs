//! Plain writers: each appends bytes to a separate file, and syncs it as often as a log.
//!
//! A writer continues its file from round to round, as a log does. A disk overwrites allocated
//! blocks faster than it allocates new ones, and a writer that started over would overwrite old
//! blocks.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// The writers.
pub(super) struct PlainWriters {
    files: Vec<File>,
}

impl PlainWriters {
    /// Creates the writers, each with an empty file in the folder.
    ///
    /// # Errors
    /// Fails if a file cannot be created.
    pub(super) fn create(folder: &Path, writers: u16) -> io::Result<Self> {
        let files = (0..writers).map(|number| File::create(folder.join(format!("plain-{number}"))));
        Ok(Self { files: files.collect::<io::Result<_>>()? })
    }

    /// Has each writer write `bytes` bytes in `commits` commits, all writers at the same time, and
    /// returns the duration.
    ///
    /// # Errors
    /// Fails if a file cannot be written.
    pub(super) fn write(&mut self, bytes: u64, commits: u64) -> io::Result<Duration> {
        let commits = commits.max(1);
        let content = vec![7; usize::try_from(bytes.div_ceil(commits)).unwrap_or(usize::MAX)];
        let began = Instant::now();
        std::thread::scope(|scope| {
            let writing = self.files.iter_mut().map(|file| {
                let content = &content;
                scope.spawn(move || {
                    (0..commits).try_for_each(|_| {
                        file.write_all(content)?;
                        file.sync_data()
                    })
                })
            });
            let writing: Vec<_> = writing.collect();
            writing.into_iter().try_for_each(|thread| {
                thread.join().unwrap_or_else(|_| Err(io::Error::other("a writer panicked")))
            })
        })?;
        Ok(began.elapsed())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn plain_writers_append_to_their_files_every_round() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writers = PlainWriters::create(folder.path(), 2).expect("they are made");
        for round in 1..=2 {
            writers.write(1000, 3).expect("it is written");
            for number in 0..2 {
                let file = std::fs::metadata(folder.path().join(format!("plain-{number}")));
                let bytes = file.expect("it is there").len();
                assert_eq!(bytes, round * 1002, "three commits of 334 bytes a round");
            }
        }
    }
}
