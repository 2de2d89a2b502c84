//! The input of a run, stored once in memory that all members map and none can change.
//!
//! The file has no name, so it cannot be left behind; members inherit its descriptor. It holds the
//! records end to end. The next multiple of 8 begins a table with the offset of each record and the
//! end of the last one, as 64-bit numbers. A member finds any record with two loads, and no member
//! parses the input.

use std::fs::File;
use std::io::{self, BufWriter, Write as _};
use std::os::fd::{AsFd, AsRawFd as _, BorrowedFd, FromRawFd as _, OwnedFd, RawFd};
use std::path::{Path, PathBuf};

use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use serde::{Deserialize, Serialize};

use tramontane_local::exit::Failure;
use tramontane_local::mapped::Mapped;
use tramontane_runtime::shared_memory::Error;

/// Bytes per write. The available memory is checked before each write.
const CHUNK: usize = 1 << 20;

/// The share of the machine's memory left to other processes: one part in this many.
const RESERVE: u64 = 8;

/// Size of an offset in bytes.
const OFFSET: usize = size_of::<u64>();

/// The numbers that a member needs to find the records in the input.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct InputShape {
    descriptor: RawFd,
    /// Total size of the records in bytes.
    pub(super) bytes: u64,
    /// Number of records.
    pub(super) records: usize,
}

/// An input that is still being written.
#[derive(Debug)]
pub(super) struct InputWriter {
    file: BufWriter<File>,
    path: PathBuf,
    offsets: Vec<u64>,
    record_max: usize,
    unchecked: usize,
}

/// An input that is complete.
#[derive(Debug)]
pub(super) struct Input {
    file: File,
    shape: InputShape,
    /// Size of the largest record in bytes.
    pub(super) record_max: usize,
}

impl InputWriter {
    /// Creates an empty input on the file system of `folder`.
    pub(super) fn new(folder: &Path) -> Result<Self, Failure> {
        let file = nameless(folder).map_err(|errno| match errno {
            Errno::NOENT | Errno::ACCESS | Errno::ROFS | Errno::NOTDIR => {
                let reason =
                    "no file can be created there; set TRAMONTANE_SHM_DIR to a folder of your own";
                Failure::from(Error::NotPermitted { path: folder.to_path_buf(), reason })
            }
            errno => refused(folder, errno.into()),
        })?;
        Ok(Self {
            file: BufWriter::with_capacity(CHUNK, File::from(file)),
            path: folder.to_path_buf(),
            offsets: vec![0],
            record_max: 0,
            unchecked: CHUNK,
        })
    }

    /// Appends a record.
    pub(super) fn push(&mut self, record: &[u8]) -> Result<(), Failure> {
        self.unchecked += record.len() + OFFSET;
        if self.unchecked >= CHUNK {
            self.unchecked = 0;
            self.check_memory()?;
        }
        self.file.write_all(record).map_err(|error| refused(&self.path, error))?;
        let end = self.bytes() + record.len() as u64;
        self.offsets.push(end);
        self.record_max = self.record_max.max(record.len());
        Ok(())
    }

    /// Returns the number of records.
    pub(super) fn records(&self) -> usize {
        self.offsets.len() - 1
    }

    fn bytes(&self) -> u64 {
        self.offsets.last().copied().unwrap_or(0)
    }

    /// A file system in memory may be larger than the available memory. The kernel then kills
    /// processes instead of refusing a write.
    fn check_memory(&self) -> Result<(), Failure> {
        // The offsets are stored twice: in this process, and at the end of the input.
        let needed = (2 * CHUNK + self.offsets.len() * OFFSET) as u64;
        match available_memory() {
            Some(free) if free < needed => {
                Err(Error::NoSpace { path: self.path.clone(), needed, free }.into())
            }
            _ => Ok(()),
        }
    }

    /// Completes it.
    pub(super) fn finish(mut self) -> Result<Input, Failure> {
        let (bytes, records) = (self.bytes(), self.records());
        let padding = [0; OFFSET];
        let gap = offsets_at(bytes) - bytes;
        let written = (|| {
            self.file.write_all(&padding[..usize::try_from(gap).unwrap_or(0)])?;
            for offset in &self.offsets {
                self.file.write_all(&offset.to_ne_bytes())?;
            }
            self.file.into_inner().map_err(io::IntoInnerError::into_error)
        })();
        let file = written.map_err(|error| refused(&self.path, error))?;
        // No process can write to the file after this. If /proc is not mounted, the file stays
        // writable, but no process writes to it.
        let file = File::open(format!("/proc/self/fd/{}", file.as_raw_fd())).unwrap_or(file);
        let shape = InputShape { descriptor: file.as_raw_fd(), bytes, records };
        Ok(Input { file, shape, record_max: self.record_max })
    }
}

impl Input {
    /// Describes the input for the members, which must inherit it.
    pub(super) const fn shape(&self) -> InputShape {
        self.shape
    }
}

impl AsFd for Input {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.file.as_fd()
    }
}

/// Creates a file without a name that can never be given one.
fn nameless(folder: &Path) -> rustix::io::Result<OwnedFd> {
    let flags = OFlags::RDWR | OFlags::TMPFILE | OFlags::EXCL | OFlags::CLOEXEC;
    match openat(CWD, folder, flags, Mode::RUSR | Mode::WUSR) {
        // This file system has no unnamed files, so anonymous memory is used.
        Err(Errno::OPNOTSUPP | Errno::ISDIR | Errno::INVAL) => {
            rustix::fs::memfd_create("tramontane-input", rustix::fs::MemfdFlags::CLOEXEC)
        }
        outcome => outcome,
    }
}

fn refused(folder: &Path, error: io::Error) -> Failure {
    match error.kind() {
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded | io::ErrorKind::FileTooLarge => {
            let text = format!(
                "not enough shared memory in {} for the input; free some, give less input, or set \
                 TRAMONTANE_SHM_DIR to a larger file system",
                folder.display()
            );
            Failure::with_text(tramontane_local::exit::Status::Resources, text)
        }
        _ => {
            Failure::system(format_args!("cannot store the input in {}", folder.display()), &error)
        }
    }
}

/// Returns the number of bytes that can still be allocated, if the kernel reports it.
fn available_memory() -> Option<u64> {
    let text = std::fs::read_to_string("/proc/meminfo").ok()?;
    let bytes = |name: &str| {
        let kilobytes = text.lines().find_map(|line| line.strip_prefix(name))?;
        kilobytes.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()?.checked_mul(1024)
    };
    Some(bytes("MemAvailable:")?.saturating_sub(bytes("MemTotal:")? / RESERVE))
}

/// Returns the position of the offsets in the file.
const fn offsets_at(bytes: u64) -> u64 {
    bytes.next_multiple_of(OFFSET as u64)
}

/// The records of the input, as a member reads them.
#[derive(Debug)]
pub(super) struct Records<'m> {
    bytes: &'m [u8],
    offsets: &'m [[u8; OFFSET]],
}

/// The owner of the mapping of the input.
#[derive(Debug)]
pub(super) struct Map {
    mapped: Mapped,
    length: usize,
    shape: InputShape,
}

impl Map {
    /// Maps the inherited input, read-only.
    pub(super) fn inherited(shape: InputShape) -> io::Result<Self> {
        // SAFETY: the parent passed this descriptor on for this process to own, and names it only
        // once.
        let file = File::from(unsafe { OwnedFd::from_raw_fd(shape.descriptor) });
        Self::new(&file, shape)
    }

    fn new(file: &File, shape: InputShape) -> io::Result<Self> {
        let length =
            shape.records.checked_add(1).and_then(|count| count.checked_mul(OFFSET)).and_then(
                |offsets| usize::try_from(offsets_at(shape.bytes)).ok()?.checked_add(offsets),
            );
        let Some(length) =
            length.filter(|length| file.metadata().is_ok_and(|is| is.len() == *length as u64))
        else {
            return Err(io::Error::other("the input's memory does not have the expected length"));
        };
        Ok(Self { mapped: Mapped::read_only(file, length)?, length, shape })
    }

    /// Returns the records of the input.
    pub(super) fn records(&self) -> Records<'_> {
        let offsets_at = usize::try_from(offsets_at(self.shape.bytes)).unwrap_or(self.length);
        // SAFETY: the mapping is as long as the file, whose length `new` has read. The file has no
        // name, and no holder has written to it since its completion.
        let (bytes, offsets) = unsafe { self.mapped.bytes() }.split_at(offsets_at);
        Records { bytes, offsets: offsets.as_chunks().0 }
    }
}

impl Records<'_> {
    /// How many.
    pub(super) fn len(&self) -> usize {
        self.offsets.len() - 1
    }

    /// Returns one record, or an empty slice if `index` is out of range.
    #[inline]
    pub(super) fn get(&self, index: usize) -> &[u8] {
        match self.offsets.get(index..) {
            Some([start, end, ..]) => {
                let [start, end] = [start, end].map(|at| u64::from_ne_bytes(*at) as usize);
                self.bytes.get(start..end).unwrap_or(&[])
            }
            _ => &[],
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn input_returns_pushed_records() {
        let folder = tempfile::tempdir().expect("a folder");
        let long = vec![7; 3 * CHUNK];
        let records: [&[u8]; 5] = [b"abc", b"", &long, b"\xff\n", b""];
        let mut writer = InputWriter::new(folder.path()).expect("an input");
        for record in records {
            writer.push(record).expect("room");
        }
        assert_eq!(writer.records(), records.len());
        let input = writer.finish().expect("complete");
        assert_eq!(input.record_max, long.len());
        let map = Map::new(&input.file, input.shape()).expect("mapped");
        let found = map.records();
        assert_eq!(found.len(), records.len());
        for (index, record) in records.iter().enumerate() {
            assert_eq!(found.get(index), *record);
        }
        assert_eq!(found.get(records.len()), b"");
        assert!(
            std::fs::read_dir(folder.path()).expect("a folder").next().is_none(),
            "it has a name"
        );
    }

    #[test]
    fn missing_input_folder_is_refused_with_advice() {
        let failure = InputWriter::new(Path::new("/nowhere/at/all")).expect_err("nowhere");
        assert_eq!(failure.status, tramontane_local::exit::Status::Resources);
        assert!(failure.text().contains("TRAMONTANE_SHM_DIR"), "{}", failure.text());
    }

    #[test]
    fn input_file_of_wrong_length_is_refused() {
        let folder = tempfile::tempdir().expect("a folder");
        let mut writer = InputWriter::new(folder.path()).expect("an input");
        writer.push(b"abc").expect("room");
        let input = writer.finish().expect("complete");
        let wrong = InputShape { records: 2, ..input.shape() };
        assert!(Map::new(&input.file, wrong).is_err());
    }
}
