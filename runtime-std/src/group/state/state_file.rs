//! The file format of a node's state: two copies of one record, each with a checksum and a
//! generation.
//!
//! # What holds
//! - Once [`StateFile::write`] has returned, both copies contain the record. Damage to one copy
//!   loses nothing, and never restores an older record.
//! - The newer of two valid copies is used. After a crash between the two writes, that is the new
//!   record, and the next start rewrites both copies.
//! - A copy is overwritten in place, so a full disk does not prevent the write.
//! - A new copy gets its name once its content is durable. So a copy without content is a damaged
//!   one, and not the trace of a write that a full disk or a loss of power has stopped.
//!
//! A copy is JSON. It begins with the checksum, a number of fixed length, followed by everything
//! that the checksum covers, up to the end of the file. The file is padded with blanks.

use std::fs::{File, OpenOptions};
use std::io;
use std::io::ErrorKind;
use std::os::unix::fs::{FileExt as _, MetadataExt as _, OpenOptionsExt as _};
use std::path::Path;

use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use xxhash_rust::xxh3::xxh3_64;

/// The names of the two copies.
pub(crate) const COPIES: [&str; 2] = ["membership.json", "membership-2.json"];

/// The format of a copy. The first format had a single copy, without a checksum.
const FORMAT: u32 = 2;

/// The beginning of a copy, and the text after the digits of the checksum.
const BEGINS: &[u8] = b"{\"checksum\":\"";
const BEHIND: &[u8] = b"\",";
const DIGITS: usize = 16;

/// Files grow in blocks, so that most writes leave the length of the file unchanged.
const BLOCK_BYTES: usize = 4096;

/// The content that the checksum covers, except for the brace before it.
#[derive(Serialize, Deserialize)]
struct Covered<T> {
    format: u32,
    generation: u64,
    record: T,
}

/// The number of the format, without the rest.
#[derive(Deserialize)]
struct Format {
    format: u32,
}

/// The state of one copy on disk.
enum Copy<T> {
    Absent,
    Sound { generation: u64, record: T },
    Newer(u32),
    Damaged(String),
}

/// The reason why there is no valid record although there was one.
#[derive(Debug)]
pub(crate) enum StateFileError {
    Io(io::Error),
    /// The record was written by a newer version.
    Newer(u32),
    /// Neither copy is valid.
    Damaged(String),
}

impl From<io::Error> for StateFileError {
    fn from(error: io::Error) -> Self {
        Self::Io(error)
    }
}

/// The open files of the two copies.
#[derive(Debug)]
pub(crate) struct StateFile {
    files: Option<[File; 2]>,
    generation: u64,
    /// The copy that is used. The other one is written first, so that one copy is valid at any
    /// time.
    newest: usize,
}

/// The content of a folder: the record, if there ever was one, and the damaged copy, if the other
/// one is valid.
type FoundRecord<T> = (StateFile, Option<T>, Option<&'static str>);

impl StateFile {
    /// Reads the record in a folder, and rewrites both copies, because one may be outdated or
    /// damaged.
    pub(crate) fn open<T: Serialize + DeserializeOwned>(
        folder: &Path,
    ) -> Result<FoundRecord<T>, StateFileError> {
        let mut found = Self::read(folder)?;
        if let (file, Some(record), _) = &mut found {
            file.write(folder, record)?;
        }
        Ok(found)
    }

    /// Reads the record in a folder without changing anything.
    pub(crate) fn read<T: DeserializeOwned>(
        folder: &Path,
    ) -> Result<FoundRecord<T>, StateFileError> {
        let mut copies = Vec::new();
        for name in COPIES {
            copies.push(match std::fs::read(folder.join(name)) {
                Ok(bytes) => read_copy::<T>(&bytes),
                Err(error) if error.kind() == ErrorKind::NotFound => Copy::Absent,
                Err(error) => return Err(error.into()),
            });
        }
        let (mut file, mut found) = (Self { files: None, generation: 0, newest: 1 }, None);
        let (mut damaged, mut why) = (None, None);
        for (at, copy) in copies.into_iter().enumerate() {
            match copy {
                Copy::Absent => {}
                Copy::Newer(format) => return Err(StateFileError::Newer(format)),
                Copy::Damaged(text) => (damaged, why) = (Some(COPIES[at]), Some(text)),
                Copy::Sound { generation, record } => {
                    if found.is_none() || generation > file.generation {
                        (file.generation, file.newest) = (generation, at);
                        found = Some(record);
                    }
                }
            }
        }
        match (&found, why) {
            (None, Some(why)) => Err(StateFileError::Damaged(why)),
            _ => Ok((file, found, damaged)),
        }
    }

    /// Makes a record durable.
    pub(crate) fn write<T: Serialize>(&mut self, folder: &Path, record: &T) -> io::Result<()> {
        self.generation += 1;
        let bytes = encode(self.generation, record)?;
        // The copies are reopened after an error, or if one has been removed.
        let is_there = |file: &File| file.metadata().is_ok_and(|found| found.nlink() > 0);
        let files = match self.files.take() {
            Some(files) if files.iter().all(is_there) => files,
            _ => open_copies(folder, &bytes)?,
        };
        for at in [1 - self.newest, self.newest] {
            let file = &files[at];
            let length = usize::try_from(file.metadata()?.len()).unwrap_or(0);
            file.write_all_at(&padded(&bytes, length), 0)?;
            file.sync_all()?;
        }
        self.files = Some(files);
        Ok(())
    }
}

/// Opens both copies. A missing one is created with the given content.
fn open_copies(folder: &Path, bytes: &[u8]) -> io::Result<[File; 2]> {
    let [first, second] = COPIES.map(|name| open_copy(folder, name, bytes));
    let files = [first?, second?];
    File::open(folder)?.sync_all()?;
    Ok(files)
}

fn open_copy(folder: &Path, name: &str, bytes: &[u8]) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.read(true).write(true).mode(0o600);
    match options.open(folder.join(name)) {
        Err(error) if error.kind() == ErrorKind::NotFound => {}
        opened => return opened,
    }
    let unnamed = folder.join(format!("{name}.new"));
    let file = options.create(true).truncate(true).open(&unnamed)?;
    file.write_all_at(&padded(bytes, 0), 0)?;
    file.sync_all()?;
    std::fs::rename(unnamed, folder.join(name))?;
    Ok(file)
}

/// Returns a copy with its checksum, padded to whole blocks and to the length of its file.
fn padded(bytes: &[u8], length: usize) -> Vec<u8> {
    let mut bytes = bytes.to_vec();
    bytes.resize(bytes.len().max(length).next_multiple_of(BLOCK_BYTES), b' ');
    put_checksum(&mut bytes);
    bytes
}

/// Encodes a copy without the blanks, and with a checksum of zero.
fn encode<T: Serialize>(generation: u64, record: &T) -> io::Result<Vec<u8>> {
    let covered = serde_json::to_vec(&Covered { format: FORMAT, generation, record })?;
    let mut bytes = BEGINS.to_vec();
    bytes.extend([b'0'; DIGITS]);
    bytes.extend(BEHIND);
    bytes.extend(&covered[1..]);
    bytes.push(b'\n');
    Ok(bytes)
}

/// Inserts the checksum of the remaining bytes into a copy.
pub(crate) fn put_checksum(bytes: &mut [u8]) {
    let (begins, covered) = bytes.split_at_mut(BEGINS.len() + DIGITS);
    let digits = format!("{:016x}", xxh3_64(covered));
    begins[BEGINS.len()..].copy_from_slice(digits.as_bytes());
}

fn read_copy<T: DeserializeOwned>(bytes: &[u8]) -> Copy<T> {
    let damaged = |why: &str| Copy::Damaged(why.to_owned());
    if !bytes.starts_with(BEGINS) {
        return read_first_format(bytes);
    }
    let mut expected = bytes.to_vec();
    let covered = expected.get(BEGINS.len() + DIGITS..).filter(|rest| rest.starts_with(BEHIND));
    let Some(covered) = covered else { return damaged("it is cut short") };
    let covered = [b"{", &covered[BEHIND.len()..]].concat();
    put_checksum(&mut expected);
    if expected != bytes {
        return damaged("its checksum is wrong");
    }
    match serde_json::from_slice::<Format>(&covered) {
        Ok(Format { format }) if format > FORMAT => return Copy::Newer(format),
        _ => {}
    }
    match serde_json::from_slice(&covered) {
        Ok(Covered { generation, record, .. }) => Copy::Sound { generation, record },
        Err(error) => Copy::Damaged(error.to_string()),
    }
}

/// Reads the bare record of the first format.
fn read_first_format<T: DeserializeOwned>(bytes: &[u8]) -> Copy<T> {
    match serde_json::from_slice::<Format>(bytes) {
        Ok(Format { format: 1 }) => {}
        Ok(Format { format }) if format > FORMAT => return Copy::Newer(format),
        _ if bytes.is_empty() => return Copy::Damaged("it is empty".to_owned()),
        _ => return Copy::Damaged("it was not written by a node".to_owned()),
    }
    match serde_json::from_slice(bytes) {
        Ok(record) => Copy::Sound { generation: 0, record },
        Err(error) => Copy::Damaged(error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn open(folder: &Path) -> Result<Option<u64>, StateFileError> {
        StateFile::open(folder).map(|(_, record, _)| record)
    }

    /// Writes two copies of a record.
    fn written(folder: &Path, record: u64) -> StateFile {
        let (mut file, _, _) = StateFile::open::<u64>(folder).expect("a folder");
        file.write(folder, &record).expect("room");
        file
    }

    #[test]
    fn every_flipped_state_bit_is_detected() {
        let place = tempfile::tempdir().expect("a folder");
        written(place.path(), 7);
        let sound = std::fs::read(place.path().join(COPIES[0])).expect("a copy");
        assert_eq!(sound.len(), BLOCK_BYTES);
        for bit in 0..8 * sound.len() {
            let mut bytes = sound.clone();
            bytes[bit / 8] ^= 1 << (bit % 8);
            assert!(matches!(read_copy::<u64>(&bytes), Copy::Damaged(_)), "bit {bit}");
        }
        for length in 0..sound.len() {
            assert!(matches!(read_copy::<u64>(&sound[..length]), Copy::Damaged(_)), "{length}");
        }
    }

    #[test]
    fn damage_to_one_state_copy_is_repaired() {
        for (at, name) in COPIES.iter().enumerate() {
            for damage in [Some(&b"{"[..]), Some(b""), None] {
                let place = tempfile::tempdir().expect("a folder");
                written(place.path(), 6).write(place.path(), &7_u64).expect("room");
                let copy = place.path().join(name);
                match damage {
                    Some(bytes) => std::fs::write(&copy, bytes).expect("a file"),
                    None => std::fs::remove_file(&copy).expect("a file"),
                }
                let (_, record, damaged) =
                    StateFile::open::<u64>(place.path()).expect("one is left");
                assert_eq!((record, damaged), (Some(7), damage.map(|_| *name)));
                // Both copies are intact again.
                std::fs::remove_file(place.path().join(COPIES[1 - at])).expect("a file");
                assert_eq!(open(place.path()).expect("written again"), Some(7));
            }
        }
    }

    #[test]
    fn damage_to_both_state_copies_is_an_error() {
        let place = tempfile::tempdir().expect("a folder");
        assert_eq!(open(place.path()).expect("nothing"), None);
        written(place.path(), 7);
        for name in COPIES {
            std::fs::write(place.path().join(name), "{").expect("a file");
        }
        assert!(matches!(open(place.path()), Err(StateFileError::Damaged(_))));
    }

    /// Otherwise a node whose first write was stopped could not start again.
    #[test]
    fn failed_first_write_leaves_no_copy() {
        let place = tempfile::tempdir().expect("a folder");
        let mount = |arguments: &[&str]| {
            let mut command = std::process::Command::new(arguments[0]);
            command.args(&arguments[1..]).arg(place.path()).output()
        };
        let mounted = mount(&["mount", "-t", "tmpfs", "-o", "size=4k", "tmpfs"]);
        if !mounted.is_ok_and(|output| output.status.success()) {
            eprintln!("inconclusive: this user may not mount a file system");
            return;
        }
        std::fs::write(place.path().join("other"), "x").expect("room for a page");
        let (mut file, none, _) = StateFile::open::<u64>(place.path()).expect("a folder");
        let written = file.write(place.path(), &7_u64);
        let next = open(place.path()).expect("nothing is damaged");
        mount(&["umount", "-l"]).expect("it is mounted");
        assert!(written.is_err(), "the disk is full");
        assert_eq!((none, next), (None, None));
    }

    /// If a process is killed while it writes, either the previous record or the new one remains.
    #[test]
    fn newer_of_two_sound_copies_is_used() {
        let place = tempfile::tempdir().expect("a folder");
        written(place.path(), 7);
        let before = std::fs::read(place.path().join(COPIES[0])).expect("a copy");
        for name in COPIES {
            written(place.path(), 8);
            std::fs::write(place.path().join(name), &before).expect("room");
            assert_eq!(open(place.path()).expect("both are sound"), Some(8));
        }
    }

    #[test]
    fn newer_state_format_is_distinguished_from_damage() {
        let place = tempfile::tempdir().expect("a folder");
        let mut bytes = encode(3, &7_u64).expect("JSON");
        let text = String::from_utf8(bytes).expect("text").replace("\"format\":2", "\"format\":3");
        bytes = text.into_bytes();
        put_checksum(&mut bytes);
        std::fs::write(place.path().join(COPIES[0]), bytes).expect("a file");
        assert!(matches!(open(place.path()), Err(StateFileError::Newer(3))));
        std::fs::write(place.path().join(COPIES[0]), "{\"format\":4}").expect("a file");
        assert!(matches!(open(place.path()), Err(StateFileError::Newer(4))));
    }
}
