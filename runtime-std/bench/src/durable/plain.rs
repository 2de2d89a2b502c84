//! Plain writers: each appends bytes to a file of its own, and syncs it as often as a log did.

use std::fs::File;
use std::io::{self, Write as _};
use std::path::Path;
use std::time::{Duration, Instant};

/// Has so many writers write so many bytes each, in so many commits, all at once. Gives how long
/// that took.
///
/// # Errors
/// A file cannot be written.
pub(super) fn write(folder: &Path, writers: u16, bytes: u64, commits: u64) -> io::Result<Duration> {
    let commit_bytes = usize::try_from(bytes.div_ceil(commits.max(1))).unwrap_or(usize::MAX);
    let files = (0..writers).map(|number| File::create(folder.join(format!("plain-{number}"))));
    let files: Vec<File> = files.collect::<io::Result<_>>()?;
    let content = vec![7; commit_bytes];
    let began = Instant::now();
    std::thread::scope(|scope| {
        let writing = files.into_iter().map(|mut file| {
            let content = &content;
            scope.spawn(move || {
                (0..commits.max(1)).try_for_each(|_| {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_writer_writes_all_bytes() {
        let folder = tempfile::tempdir().expect("a folder");
        write(folder.path(), 2, 1000, 3).expect("it is written");
        for number in 0..2 {
            let length = std::fs::metadata(folder.path().join(format!("plain-{number}")));
            assert_eq!(length.expect("it is there").len(), 1002, "three commits of 334 bytes");
        }
    }
}
