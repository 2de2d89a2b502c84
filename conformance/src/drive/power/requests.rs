//! The kernel's requests to a file system in user space, and the answers: the part of its protocol
//! (version 7.31, `linux/fuse.h`) that programs depend on.

use std::time::{Duration, SystemTime, UNIX_EPOCH};

use rustix::io::Errno;

use super::tree::{Inode, ROOT, Tree};

/// Length limit of a write request in bytes.
const WRITE_BYTES_MAX: u32 = 128 << 10;

/// Length limit of a request: a write and its headers.
pub(super) const REQUEST_BYTES_MAX: usize = (WRITE_BYTES_MAX as usize) + 8192;

/// The protocol version.
const VERSION: [u32; 2] = [7, 31];

/// Flag: writes may be longer than a page.
const BIG_WRITES: u32 = 1 << 5;

/// Flags of an open file that make each write synchronous: `O_DSYNC`, whose bit `O_SYNC` includes.
const SYNCED_WRITES: u32 = 0o10_000;

/// The attributes that a `setattr` request sets.
const SETS_MODE: u32 = 1;
const SETS_USER: u32 = 1 << 1;
const SETS_GROUP: u32 = 1 << 2;
const SETS_BYTES: u32 = 1 << 3;
const SETS_CHANGED: u32 = 1 << 5;
const SETS_CHANGED_NOW: u32 = 1 << 8;

/// Modes of allocation.
const KEEPS_SIZE: u32 = 1;
const PUNCHES_HOLE: u32 = 1 << 1;
const ZEROS_RANGE: u32 = 1 << 4;

/// Length of a request's header in bytes.
const HEADER_BYTES: usize = 40;

/// A request.
pub(super) struct DiskRequest<'r> {
    operation: u32,
    unique: u64,
    inode: u64,
    owner: (u32, u32),
    body: &'r [u8],
}

/// Returns the number at an offset, or 0 after the end.
fn u32_at(bytes: &[u8], place: usize) -> u32 {
    bytes.get(place..place + 4).and_then(|four| four.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn u64_at(bytes: &[u8], place: usize) -> u64 {
    let eight = bytes.get(place..place + 8).and_then(|eight| eight.try_into().ok());
    eight.map_or(0, u64::from_ne_bytes)
}

/// Returns the two names in a body, starting at an offset.
fn names(body: &[u8], place: usize) -> (&[u8], &[u8]) {
    let mut names = body.get(place..).unwrap_or_default().split(|byte| *byte == 0);
    (names.next().unwrap_or_default(), names.next().unwrap_or_default())
}

/// An answer under construction.
#[derive(Default)]
struct PowerAnswer(Vec<u8>);

impl PowerAnswer {
    fn u32s(mut self, numbers: &[u32]) -> Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        self
    }

    fn u64s(mut self, numbers: &[u64]) -> Self {
        self.0.extend(numbers.iter().flat_map(|number| number.to_ne_bytes()));
        self
    }

    /// Appends an inode's attributes. The kernel must not cache them, because they change when the
    /// power is cut.
    fn attributes(self, number: u64, inode: &Inode) -> Self {
        let since = inode.changed.duration_since(UNIX_EPOCH).unwrap_or_default();
        let (seconds, nanoseconds) = (since.as_secs(), since.subsec_nanos());
        let bytes = inode.bytes();
        self.u64s(&[number, bytes, bytes.div_ceil(512), seconds, seconds, seconds])
            .u32s(&[nanoseconds; 3])
            .u32s(&[inode.mode, 1, inode.user, inode.group, inode.device, 4096, 0])
    }

    fn entry(self, number: u64, inode: &Inode) -> Self {
        self.u64s(&[number, 0, 0, 0]).u32s(&[0, 0]).attributes(number, inode)
    }

    fn opened(self) -> Self {
        self.u64s(&[0]).u32s(&[0, 0])
    }
}

impl<'r> DiskRequest<'r> {
    /// Parses a request.
    pub(super) fn read(bytes: &'r [u8]) -> Option<Self> {
        Some(Self {
            operation: u32_at(bytes, 4),
            unique: u64_at(bytes, 8),
            inode: u64_at(bytes, 16),
            owner: (u32_at(bytes, 24), u32_at(bytes, 28)),
            body: bytes.get(HEADER_BYTES..)?,
        })
    }

    /// Returns the bytes of the answer, or nothing if the request has no answer. Without power
    /// every answer is an error.
    pub(super) fn answer(&self, tree: &mut Tree, has_power: bool) -> Option<Vec<u8>> {
        // `forget` of one or several inodes, and `interrupt`.
        if matches!(self.operation, 2 | 36 | 42) {
            return None;
        }
        let done = if has_power { self.perform(tree) } else { Err(Errno::IO) };
        let (error, PowerAnswer(body)) = match done {
            Ok(answer) => (0, answer),
            Err(errno) => (-errno.raw_os_error(), PowerAnswer::default()),
        };
        let bytes = u32::try_from(16 + body.len()).unwrap_or(u32::MAX);
        let header = PowerAnswer::default().u32s(&[bytes, error as u32]).u64s(&[self.unique]);
        Some([header.0, body].concat())
    }

    fn perform(&self, tree: &mut Tree) -> Result<PowerAnswer, Errno> {
        let (inode, body) = (self.inode, self.body);
        let (first, second) = names(body, 0);
        let answer = PowerAnswer::default();
        match self.operation {
            1 => self.entry(tree, first),
            3 => {
                let answer = answer.u64s(&[0, 0]);
                Ok(answer.attributes(inode, tree.inode(inode)?))
            }
            4 => self.set_attributes(tree),
            5 => Ok(PowerAnswer(tree.target(inode)?)),
            6 => self.make(tree, first, Inode::link(second, self.owner)),
            8 => {
                let (mode, device) = (u32_at(body, 0), u32_at(body, 4));
                self.make(tree, names(body, 16).0, Inode::new(mode, self.owner, device))
            }
            9 => {
                let folder = Inode::folder(u32_at(body, 0), self.owner);
                self.make(tree, names(body, 8).0, folder)
            }
            10 => tree.remove(inode, first, false).map(|()| answer),
            11 => tree.remove(inode, first, true).map(|()| answer),
            12 => self.rename(tree, 0, names(body, 8)).map(|()| answer),
            45 => self.rename(tree, u32_at(body, 8), names(body, 16)).map(|()| answer),
            13 => {
                let name = names(body, 8).0;
                tree.name(inode, name, u64_at(body, 0))?;
                self.entry(tree, name)
            }
            14 | 27 => tree.inode(inode).map(|_| answer.opened()),
            15 => {
                let (offset, bytes) = (u64_at(body, 8), u64::from(u32_at(body, 16)));
                tree.read(inode, offset, bytes).map(PowerAnswer)
            }
            16 => self.write(tree),
            17 => Ok(answer
                .u64s(&[1 << 18, 1 << 17, 1 << 17, 1 << 20, 1 << 20])
                .u32s(&[4096, 255, 4096, 0, 0, 0, 0, 0, 0, 0])),
            // Closing a file does not sync it.
            18 | 25 | 29 => Ok(answer),
            20 | 30 => {
                tree.sync(inode);
                Ok(answer)
            }
            26 => {
                let asked = u32_at(body, 8);
                let [major, minor] = VERSION;
                Ok(answer
                    .u32s(&[major, minor, asked, BIG_WRITES, 0, WRITE_BYTES_MAX, 1])
                    .u32s(&[0; 9]))
            }
            28 => self.list(tree),
            43 => self.allocate(tree).map(|()| answer),
            // The kernel has a fallback for each of these, or reports the error to the program.
            _ => Err(Errno::NOSYS),
        }
    }

    fn entry(&self, tree: &mut Tree, name: &[u8]) -> Result<PowerAnswer, Errno> {
        let found = tree.find(self.inode, name)?;
        Ok(PowerAnswer::default().entry(found, tree.inode(found)?))
    }

    fn make(&self, tree: &mut Tree, name: &[u8], inode: Inode) -> Result<PowerAnswer, Errno> {
        tree.make(self.inode, name, inode)?;
        self.entry(tree, name)
    }

    fn rename(&self, tree: &mut Tree, flags: u32, (from, to): (&[u8], &[u8])) -> Result<(), Errno> {
        let folder = u64_at(self.body, 0);
        tree.rename((self.inode, from), (folder, to), (flags & 1 != 0, flags & 2 != 0))
    }

    fn set_attributes(&self, tree: &mut Tree) -> Result<PowerAnswer, Errno> {
        let body = self.body;
        let sets = |what: u32| u32_at(body, 0) & what != 0;
        if sets(SETS_BYTES) {
            tree.resize(self.inode, u64_at(body, 16))?;
        }
        let inode = tree.inode(self.inode)?;
        if sets(SETS_MODE) {
            inode.mode = u32_at(body, 68);
        }
        if sets(SETS_USER) {
            inode.user = u32_at(body, 76);
        }
        if sets(SETS_GROUP) {
            inode.group = u32_at(body, 80);
        }
        if sets(SETS_CHANGED_NOW) {
            inode.changed = SystemTime::now();
        } else if sets(SETS_CHANGED) {
            let since = Duration::new(u64_at(body, 40), u32_at(body, 60).min(999_999_999));
            inode.changed = UNIX_EPOCH.checked_add(since).unwrap_or(UNIX_EPOCH);
        }
        Ok(PowerAnswer::default().u64s(&[0, 0]).attributes(self.inode, inode))
    }

    fn write(&self, tree: &mut Tree) -> Result<PowerAnswer, Errno> {
        let (offset, bytes) = (u64_at(self.body, 8), u32_at(self.body, 16));
        let data = self.body.get(40..40 + bytes as usize).ok_or(Errno::INVAL)?;
        tree.write(self.inode, offset, data)?;
        if u32_at(self.body, 32) & SYNCED_WRITES != 0 {
            tree.sync(self.inode);
        }
        Ok(PowerAnswer::default().u32s(&[bytes, 0]))
    }

    fn allocate(&self, tree: &mut Tree) -> Result<(), Errno> {
        let (offset, bytes) = (u64_at(self.body, 8), u64_at(self.body, 16));
        let way = u32_at(self.body, 24);
        if way & !(KEEPS_SIZE | PUNCHES_HOLE | ZEROS_RANGE) != 0 {
            return Err(Errno::OPNOTSUPP);
        }
        if way & (PUNCHES_HOLE | ZEROS_RANGE) != 0 {
            tree.clear(self.inode, offset, bytes)?;
        }
        if way & KEEPS_SIZE == 0 {
            tree.extend(self.inode, offset.checked_add(bytes).ok_or(Errno::FBIG)?)?;
        }
        Ok(())
    }

    /// Lists as many of a folder's names after an offset as fit. Offsets follow the inode numbers,
    /// so that removing names meanwhile hides no others.
    fn list(&self, tree: &mut Tree) -> Result<PowerAnswer, Errno> {
        let (after, room) = (u64_at(self.body, 8), u32_at(self.body, 16) as usize);
        const FOLDER: u32 = 4;
        let own = [(1, self.inode, b".".to_vec(), FOLDER), (2, ROOT, b"..".to_vec(), FOLDER)];
        let list = tree.list(self.inode)?.into_iter();
        let list = list.map(|(inode, name, kind)| (inode + 2, inode, name, kind));
        let mut answer = PowerAnswer::default();
        for (place, inode, name, kind) in own.into_iter().chain(list) {
            if place <= after {
                continue;
            }
            let length = u32::try_from(name.len()).unwrap_or(0);
            let PowerAnswer(mut entry) =
                PowerAnswer::default().u64s(&[inode, place]).u32s(&[length, kind]);
            entry.extend(name);
            entry.resize(entry.len().next_multiple_of(8), 0);
            if answer.0.len() + entry.len() > room {
                break;
            }
            answer.0.extend(entry);
        }
        Ok(answer)
    }
}
