//! A log's data other than records: its owner, its incarnation, its beginning, and a few named
//! values of the group (its view, seals and trims).
//!
//! The metadata is small and changes rarely: at a start, at a view change, or with a snapshot. So
//! it is always rewritten completely, first over the older of two files and then over the newer
//! one, each with a sync.
//!
//! # Invariants
//! - After [`Metadata::write`] has returned, both files have the same content. Damage to one of
//!   them loses nothing, and never restores an older state.
//! - Of two intact copies, the newer one is used. After a crash between the two writes, that is the
//!   new one.
//!
//! The format on disk: the prefix, a checksum of the rest, the copy's generation, the length of the
//! content, the content, and zeros.

use std::collections::BTreeMap;
use std::io;

use crate::damage::{Damage, Damaged};
use crate::error::{At, OpenLogError, SYNC};
use crate::format::{
    BLOCK_BYTES, FORMAT_VERSION, FileKind, PREFIX_BYTES, Prefix, Seed, put, put_prefix,
    read_prefix, round_up, u64_at,
};
use crate::layer::{FileLayer, LayerFile as _, read_whole};
use crate::record::Sequence;

/// The names of the two copies.
pub(crate) const COPIES: [&str; 2] = ["metadata-1", "metadata-2"];

/// The offset of the content.
const CONTENT: usize = PREFIX_BYTES + 24;

/// The owner of a log.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Identity {
    /// The group's name, with an identifier that distinguishes the group from a later one of the
    /// same name.
    pub group: String,
    /// The subgroup's name.
    pub subgroup: String,
}

impl std::fmt::Display for Identity {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "subgroup {} of group {}", self.subgroup, self.group)
    }
}

/// The stored content.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct StoredMetadata {
    /// A number that distinguishes this log from every other log, even of the same subgroup.
    pub(crate) log: u64,
    pub(crate) identity: Identity,
    /// The number of times that the log has been opened for writing.
    pub(crate) incarnation: u64,
    /// First record that is served.
    pub(crate) base: Sequence,
    /// The first segment that has not been discarded.
    pub(crate) first_segment: u64,
    pub(crate) values: BTreeMap<String, Vec<u8>>,
}

/// The content, with its two copies.
#[derive(Debug)]
pub(crate) struct Metadata<L: FileLayer> {
    pub(crate) content: StoredMetadata,
    state: CopyState,
    files: Option<[L::File; 2]>,
}

/// The state of the copies.
#[derive(Clone, Copy, Debug)]
pub(crate) struct CopyState {
    generation: u64,
    /// The copy that is used. The other one is written first, so that one copy is always intact.
    newest: usize,
}

/// The result of searching a folder for metadata.
pub(crate) enum FoundMetadata {
    /// No log has ever been completely created there.
    Nothing,
    Metadata {
        content: StoredMetadata,
        state: CopyState,
        damage: Vec<Damage>,
    },
}

/// The state of one copy on disk.
enum Copy {
    Sound { content: StoredMetadata, generation: u64 },
    Absent,
    Damaged,
    Newer(u32),
}

/// Searches for the metadata. `has_segments` says whether there have ever been records.
pub(crate) fn find<L: FileLayer>(
    layer: &L,
    has_segments: bool,
) -> Result<FoundMetadata, OpenLogError> {
    let mut copies = Vec::new();
    for name in COPIES {
        let at = At { path: layer.path(), file: name, action: "read" };
        let bytes = read_whole(layer, name).map_err(|error| at.open_error(error))?;
        copies.push(read_copy(&bytes));
    }
    for (name, copy) in COPIES.iter().zip(&copies) {
        if let Copy::Newer(found) = copy {
            let (path, file) = (layer.path().to_owned(), (*name).to_owned());
            return Err(OpenLogError::NewerFormat {
                path,
                file,
                found: *found,
                known: FORMAT_VERSION,
            });
        }
    }
    // The second copy is created only after the first is durable.
    if !has_segments && matches!(copies[..], [Copy::Absent | Copy::Damaged, Copy::Absent]) {
        return Ok(FoundMetadata::Nothing);
    }
    let mut damage = Vec::new();
    let mut found: Option<(StoredMetadata, CopyState)> = None;
    for (newest, (name, copy)) in COPIES.iter().zip(copies).enumerate() {
        match copy {
            Copy::Sound { content, generation } => {
                if found.as_ref().is_none_or(|(_, state)| generation > state.generation) {
                    found = Some((content, CopyState { generation, newest }));
                }
            }
            Copy::Absent | Copy::Damaged | Copy::Newer(_) => {
                damage.push(Damage { file: (*name).into(), offset: 0, what: Damaged::Metadata });
            }
        }
    }
    match found {
        Some((content, state)) => Ok(FoundMetadata::Metadata { content, state, damage }),
        None => Err(OpenLogError::MetadataLost { path: layer.path().to_owned() }),
    }
}

impl<L: FileLayer> Metadata<L> {
    /// Creates read-only metadata.
    pub(crate) fn to_read(content: StoredMetadata, state: CopyState) -> Self {
        Self { content, state, files: None }
    }

    /// Creates both copies for a new log.
    pub(crate) fn create(layer: &L, content: StoredMetadata) -> Result<Self, OpenLogError> {
        let state = CopyState { generation: 1, newest: 1 };
        let mut made = Self { content, state, files: None };
        let image = made.image(0);
        let mut files = Vec::new();
        for name in COPIES {
            let at = |action| At { path: layer.path(), file: name, action };
            // These files are left over from an interrupted start.
            match layer.remove(name) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(at("remove").open_error(error));
                }
                Ok(()) | Err(_) => {}
            }
            let mut file = layer.create(name).map_err(|error| at("create").open_error(error))?;
            file.write_at(&image, 0).map_err(|error| at("write").open_error(error))?;
            file.sync().map_err(|error| at(SYNC).open_error(error))?;
            layer.sync_folder().map_err(|error| at(SYNC).open_error(error))?;
            files.push(file);
        }
        made.files = <[_; 2]>::try_from(files).ok();
        Ok(made)
    }

    /// Opens both copies for writing. A missing copy is created empty.
    pub(crate) fn open(
        layer: &L,
        content: StoredMetadata,
        state: CopyState,
    ) -> Result<Self, OpenLogError> {
        let mut files = Vec::new();
        for name in COPIES {
            let at = |action| At { path: layer.path(), file: name, action };
            let file = match layer.open(name) {
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    let file =
                        layer.create(name).map_err(|error| at("create").open_error(error))?;
                    layer.sync_folder().map_err(|error| at(SYNC).open_error(error))?;
                    file
                }
                opened => opened.map_err(|error| at("open").open_error(error))?,
            };
            files.push(file);
        }
        Ok(Self { content, state, files: <[_; 2]>::try_from(files).ok() })
    }

    /// Returns whether the metadata may be written.
    pub(crate) fn is_writable(&self) -> bool {
        self.files.is_some()
    }

    /// Makes the content durable. The error names the step and the copy that failed.
    pub(crate) fn write(&mut self) -> Result<(), (&'static str, &'static str, io::Error)> {
        self.state.generation += 1;
        let Some(mut files) = self.files.take() else { return Ok(()) };
        for copy in [1 - self.state.newest, self.state.newest] {
            let (file, name) = (&mut files[copy], COPIES[copy]);
            let failed = |action| move |error| (action, name, error);
            let length = file.length().map_err(failed("read"))?;
            let image = self.image(usize::try_from(length).unwrap_or(0));
            file.write_at(&image, 0).map_err(failed("write"))?;
            file.sync().map_err(failed(SYNC))?;
        }
        self.files = Some(files);
        Ok(())
    }

    /// Returns a copy in the form written to a file that already has `least` bytes.
    fn image(&self, least: usize) -> Vec<u8> {
        let mut bytes = vec![0; CONTENT];
        put_prefix(&mut bytes, FileKind::Metadata);
        put(&mut bytes, PREFIX_BYTES + 8, self.state.generation);
        encode(&self.content, &mut bytes);
        let length = bytes.len() - CONTENT;
        put(&mut bytes, PREFIX_BYTES + 16, length as u64);
        bytes.resize(round_up(bytes.len().max(least), BLOCK_BYTES), 0);
        let checksum = Seed::PLAIN.checksum(&bytes[PREFIX_BYTES + 8..CONTENT + length]);
        put(&mut bytes, PREFIX_BYTES, checksum);
        bytes
    }
}

fn read_copy(bytes: &[u8]) -> Copy {
    match read_prefix(bytes, FileKind::Metadata) {
        Prefix::Newer(version) => return Copy::Newer(version),
        Prefix::Damaged if bytes.iter().all(|byte| *byte == 0) => return Copy::Absent,
        Prefix::Damaged => return Copy::Damaged,
        Prefix::Known => {}
    }
    let sound = || {
        let length = usize::try_from(u64_at(bytes, PREFIX_BYTES + 16)).ok()?;
        let end = CONTENT.checked_add(length)?;
        let covered = bytes.get(PREFIX_BYTES + 8..end)?;
        let is_sound = u64_at(bytes, PREFIX_BYTES) == Seed::PLAIN.checksum(covered)
            && bytes[end..].iter().all(|byte| *byte == 0);
        let content = decode(bytes.get(CONTENT..end)?)?;
        is_sound.then(|| Copy::Sound { content, generation: u64_at(bytes, PREFIX_BYTES + 8) })
    };
    sound().unwrap_or(Copy::Damaged)
}

fn encode(content: &StoredMetadata, bytes: &mut Vec<u8>) {
    let numbers = [content.log, content.incarnation, content.base.0, content.first_segment];
    for number in numbers {
        bytes.extend_from_slice(&number.to_le_bytes());
    }
    let identity = [&content.identity.group, &content.identity.subgroup];
    let values = content.values.iter().flat_map(|(name, value)| [name.as_bytes(), value]);
    for part in identity.map(|text| text.as_bytes()).into_iter().chain(values) {
        bytes.extend_from_slice(&(part.len() as u64).to_le_bytes());
        bytes.extend_from_slice(part);
    }
}

fn decode(bytes: &[u8]) -> Option<StoredMetadata> {
    let numbers = bytes.get(..32)?;
    let [log, incarnation, base, first_segment] = [0, 8, 16, 24].map(|at| u64_at(numbers, at));
    let mut rest = &bytes[32..];
    let mut part = || -> Option<Vec<u8>> {
        let length = usize::try_from(u64_at(rest.get(..8)?, 0)).ok()?;
        let part = rest[8..].get(..length)?;
        rest = &rest[8 + length..];
        Some(part.to_vec())
    };
    let (group, subgroup) = (String::from_utf8(part()?).ok()?, String::from_utf8(part()?).ok()?);
    let mut values = BTreeMap::new();
    while let Some(name) = part() {
        values.insert(String::from_utf8(name).ok()?, part()?);
    }
    let identity = Identity { group, subgroup };
    Some(StoredMetadata { log, identity, incarnation, base: Sequence(base), first_segment, values })
}
