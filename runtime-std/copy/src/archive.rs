//! Entries of the archive that a copy consists of. The archive is valid only if each file's content
//! is exactly as long as its header says. A file that is truncated, extended or written to while it
//! is being read is reported as a separate error.

use std::fs::{self, File, Metadata};
use std::io::{self, Cursor, Read, Write};
use std::os::unix::fs::{FileExt as _, MetadataExt as _};
use std::path::Path;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::fs::{SeekFrom, seek};
use rustix::io::Errno;
use tar::{Builder, EntryType, GnuExtSparseHeader, GnuSparseHeader, Header};

/// Size, in bytes, of the blocks in which the system counts a file's storage. It may differ from
/// the file system's own block size.
const ACCOUNTED_BYTES: u64 = 512;

/// Maximum number of parts between holes that a file's header lists. A file with more parts is sent
/// without holes, as zeros, because the list would take too much memory at a receiver.
pub(super) const EXTENTS_MAX: usize = 1 << 17;

/// A receiver must accept the list. A header holds 21 parts, and the first four are in the main
/// header.
const _: () = assert!(((EXTENTS_MAX / 21 + 2) * 512) as u64 + 16_384 < super::entries::HEADERS_MAX);

/// Longer than one step of a kernel's clock for file times. Two changes of a file within one step
/// may leave it with the same time.
const CLOCK_STEP: Duration = Duration::from_millis(20);

/// A file's size or time changed while it was being read.
#[derive(Debug, thiserror::Error)]
#[error("it changed while it was copied")]
pub(super) struct Changed;

impl From<Changed> for io::Error {
    fn from(changed: Changed) -> Self {
        Self::new(io::ErrorKind::InvalidData, changed)
    }
}

/// Adds one file, directory or link, but not the contents of a directory.
pub(super) fn append(
    archive: &mut Builder<impl Write>,
    path: &Path,
    name: &Path,
    kind: &Metadata,
) -> io::Result<()> {
    if kind.is_dir() {
        return archive.append_dir(name, path);
    }
    if kind.is_symlink() {
        let mut header = Header::new_gnu();
        header.set_metadata(kind);
        return archive.append_link(&mut header, name, fs::read_link(path)?);
    }
    append_file(archive, &File::open(path)?, name)
}

fn append_file(archive: &mut Builder<impl Write>, file: &File, name: &Path) -> io::Result<()> {
    let metadata = settled(file)?;
    let size = metadata.len();
    let mut header = Header::new_gnu();
    header.set_metadata(&metadata);
    let extents = extents(file, &metadata)?;
    let listed = if extents == [Extent { offset: 0, bytes: size }] {
        Vec::new()
    } else {
        list_extents(&mut header, &extents, size)
    };
    archive.append_data(
        &mut header,
        name,
        Cursor::new(listed).chain(Exactly { file, extents: &extents, read: 0 }),
    )?;
    if state(&file.metadata()?) == state(&metadata) { Ok(()) } else { Err(Changed.into()) }
}

/// Returns the metadata of a file once its last change is old enough that any further change gets a
/// different time.
fn settled(file: &File) -> io::Result<Metadata> {
    let metadata = file.metadata()?;
    let (seconds, nanoseconds) = (metadata.ctime(), metadata.ctime_nsec());
    let changed =
        Duration::new(seconds.try_into().unwrap_or(0), nanoseconds.try_into().unwrap_or(0));
    let now = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
    if now.saturating_sub(changed) < CLOCK_STEP {
        std::thread::sleep(CLOCK_STEP);
        if state(&file.metadata()?) != state(&metadata) {
            return Err(Changed.into());
        }
    }
    Ok(metadata)
}

/// Returns the part of the metadata that any change modifies: a file's size, and the time of its
/// last change. The time of the last write is not enough, because programs set it back. The time of
/// the last change cannot be set, and also moves with a file's permissions and links.
fn state(metadata: &Metadata) -> (u64, i64, i64) {
    (metadata.len(), metadata.ctime(), metadata.ctime_nsec())
}

/// A part of a file that is not a hole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Extent {
    offset: u64,
    bytes: u64,
}

/// Returns the parts of a file that are not holes. If the file ends with a hole, it is followed by
/// an empty extent, as archives require.
fn extents(file: &File, metadata: &Metadata) -> io::Result<Vec<Extent>> {
    let size = metadata.len();
    if metadata.blocks().saturating_mul(ACCOUNTED_BYTES) >= size {
        return Ok(vec![Extent { offset: 0, bytes: size }]);
    }
    let mut extents = Vec::new();
    let mut end = 0;
    while end < size {
        let offset = match seek(file, SeekFrom::Data(end)) {
            Ok(offset) => offset.min(size),
            Err(Errno::NXIO) => size,
            Err(error) => return Err(error.into()),
        };
        // The system always reports a hole at the end of a file.
        let hole = if offset < size {
            seek(file, SeekFrom::Hole(offset)).map_err(|_| Changed)?
        } else {
            size
        };
        if offset < size && hole <= offset {
            return Err(Changed.into());
        }
        end = hole.min(size);
        extents.push(Extent { offset, bytes: end - offset });
        if extents.len() > EXTENTS_MAX {
            return Ok(vec![Extent { offset: 0, bytes: size }]);
        }
    }
    Ok(extents)
}

/// Writes a list of extents into a header. Returns further headers for the extents that do not fit;
/// they precede the content.
fn list_extents(header: &mut Header, extents: &[Extent], size: u64) -> Vec<u8> {
    header.set_entry_type(EntryType::GNUSparse);
    header.set_size(extents.iter().map(|extent| extent.bytes).sum());
    let mut rest = extents.iter();
    if let Some(header) = header.as_gnu_mut() {
        header.set_real_size(size);
        fill(&mut header.sparse, &mut rest);
        header.set_is_extended(rest.len() > 0);
    }
    let mut further = Vec::new();
    while rest.len() > 0 {
        let mut header = GnuExtSparseHeader::new();
        fill(&mut header.sparse, &mut rest);
        header.set_is_extended(rest.len() > 0);
        further.extend_from_slice(header.as_bytes());
    }
    further
}

fn fill<'e>(places: &mut [GnuSparseHeader], extents: &mut impl Iterator<Item = &'e Extent>) {
    for (place, extent) in places.iter_mut().zip(extents) {
        place.set_offset(extent.offset);
        place.set_length(extent.bytes);
    }
}

/// Reads the extents of a file, and fails unless they have exactly as many bytes as expected.
struct Exactly<'f> {
    file: &'f File,
    extents: &'f [Extent],
    /// Number of bytes read so far from the first extent.
    read: u64,
}

impl Read for Exactly<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        while let Some((first, others)) = self.extents.split_first() {
            if self.read < first.bytes {
                let wanted =
                    usize::try_from(first.bytes - self.read).unwrap_or(usize::MAX).min(into.len());
                let bytes = self.file.read_at(&mut into[..wanted], first.offset + self.read)?;
                self.read += bytes as u64;
                return if bytes > 0 || wanted == 0 { Ok(bytes) } else { Err(Changed.into()) };
            }
            (self.extents, self.read) = (others, 0);
        }
        Ok(0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collects an archive, and changes the source once the archive's first bytes have arrived.
    struct Meanwhile<D> {
        bytes: Vec<u8>,
        interference: Option<D>,
    }

    impl<D: FnOnce()> Write for Meanwhile<D> {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.bytes.extend_from_slice(bytes);
            if let Some(interfere) = self.interference.take() {
                interfere();
            }
            Ok(bytes.len())
        }

        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Packs a file of `bytes` bytes, optionally with a hole before its last bytes, and changes its
    /// size to `becomes` meanwhile.
    fn pack(bytes: u64, has_hole: bool, becomes: u64) -> io::Result<Vec<u8>> {
        let folder = tempfile::tempdir_in("/dev/shm")?;
        let path = folder.path().join("file");
        let file = File::create(&path)?;
        let content: Vec<u8> = (0..bytes).map(|byte| (byte % 251 + 1) as u8).collect();
        let from = if has_hole { 1 << 20 } else { 0 };
        file.write_all_at(&content, from)?;
        file.set_len(from + bytes)?;
        let resize = || file.set_len(from + becomes).expect("a size");
        let into =
            Meanwhile { bytes: Vec::new(), interference: (becomes != bytes).then_some(resize) };
        let mut archive = Builder::new(into);
        append(&mut archive, &path, Path::new("file"), &fs::symlink_metadata(&path)?)?;
        Ok(archive.into_inner()?.bytes)
    }

    /// Returns the content of an archive with one file.
    fn unpack(archive: &[u8]) -> Vec<u8> {
        let folder = tempfile::tempdir().expect("a folder");
        tar::Archive::new(archive).unpack(folder.path()).expect("an archive");
        fs::read(folder.path().join("file")).expect("a file")
    }

    #[test]
    fn file_resized_while_packing_is_refused() {
        for has_hole in [false, true] {
            // The change is so small that padding would hide it, or it is large, or it truncates
            // the file to nothing.
            for (bytes, becomes) in
                [(1000, 999), (100_000, 10), (1000, 0), (1000, 1001), (100_000, 200_000)]
            {
                let error = pack(bytes, has_hole, becomes).expect_err("it changed");
                let is_told = error
                    .get_ref()
                    .is_some_and(<dyn std::error::Error + Send + Sync>::is::<Changed>);
                assert!(is_told, "{bytes} became {becomes}: {error}");
            }
        }
    }

    /// The file is overwritten immediately after its creation, and its time is set back.
    #[test]
    fn file_overwritten_while_packing_is_refused() {
        for is_set_back in [false, true] {
            let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
            let path = folder.path().join("file");
            fs::write(&path, vec![1; 100_000]).expect("room");
            let metadata = fs::symlink_metadata(&path).expect("a file");
            let modified = metadata.modified().expect("a time");
            let overwrite = || {
                let file = File::options().write(true).open(&path).expect("a file");
                file.write_all_at(&[2], 10).expect("room");
                if is_set_back {
                    file.set_modified(modified).expect("set back");
                }
            };
            let mut archive =
                Builder::new(Meanwhile { bytes: Vec::new(), interference: Some(overwrite) });
            let error =
                append(&mut archive, &path, Path::new("file"), &metadata).expect_err("it changed");
            assert!(
                error.get_ref().is_some_and(<dyn std::error::Error + Send + Sync>::is::<Changed>),
                "{error}"
            );
            drop(archive.into_inner());
        }
    }

    #[test]
    fn sparse_file_keeps_its_holes() {
        for has_hole in [false, true] {
            for bytes in [0, 1, 511, 512, 513, 100_000] {
                let archive = pack(bytes, has_hole, bytes).expect("an archive");
                let hole = if has_hole { 1 << 20 } else { 0 };
                assert!(archive.len() < 110_000, "holes are not carried");
                let content = unpack(&archive);
                assert_eq!(content.len() as u64, hole + bytes);
                let expected = (0..bytes).map(|byte| (byte % 251 + 1) as u8);
                assert!(content.iter().copied().skip(hole as usize).eq(expected));
            }
        }
    }

    #[test]
    fn file_with_many_holes_uses_extra_headers() {
        let folder = tempfile::tempdir_in("/dev/shm").expect("a folder");
        let path = folder.path().join("file");
        let file = File::create(&path).expect("a file");
        for number in 0..100_u64 {
            file.write_all_at(&[number as u8 + 1; 4096], number << 16).expect("room");
        }
        file.set_len(101 << 16).expect("a hole at the end");
        let mut archive = Builder::new(Vec::new());
        let metadata = fs::symlink_metadata(&path).expect("a file");
        append(&mut archive, &path, Path::new("file"), &metadata).expect("an archive");
        let archive = archive.into_inner().expect("an archive");
        assert!(archive.len() < 500_000, "{}", archive.len());
        assert!(unpack(&archive) == fs::read(&path).expect("a file"));
    }
}
