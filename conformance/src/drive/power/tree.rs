//! In-memory files and folders that remember their synced state.
//!
//! Data is lost per file, in blocks: each file returns to its last synced state. Names are lost for
//! the whole disk at once: each sync makes all earlier names durable, as on a file system with a
//! single journal (ext4, XFS). So the disk is never stricter than such a file system, and no system
//! is blamed for relying on one.
//!
//! Invariants: `unsynced` holds the blocks that differ from the last sync, in their earlier state;
//! an inode is never removed, because a name that comes back may refer to it.

use std::collections::BTreeMap;
use std::time::SystemTime;

use rustix::io::Errno;

/// The root folder.
pub(super) const ROOT: u64 = 1;

/// The size of a block in bytes.
const BLOCK_BYTES: u64 = 4096;

/// Limit of blocks on a disk: 1 GiB.
const BLOCKS_MAX: u64 = 1 << 18;

/// The mode bits that give the kind of a file, and their value for each kind.
const KIND: u32 = 0o170_000;
const FOLDER: u32 = 0o040_000;
const FILE: u32 = 0o100_000;
const LINK: u32 = 0o120_000;

/// The contents of a disk.
#[derive(Debug)]
pub(super) struct Tree {
    inodes: BTreeMap<u64, Inode>,
    blocks: u64,
}

/// A file, a folder or another named object.
#[derive(Debug)]
pub(super) struct Inode {
    pub(super) mode: u32,
    pub(super) user: u32,
    pub(super) group: u32,
    pub(super) device: u32,
    pub(super) changed: SystemTime,
    content: TreeContent,
}

#[derive(Debug)]
enum TreeContent {
    File(File),
    Folder(Folder),
    /// A symbolic link and its target.
    Link(Vec<u8>),
    /// A socket or a similar object.
    Other,
}

/// The bytes of a file.
#[derive(Debug, Default)]
struct File {
    bytes: u64,
    blocks: BTreeMap<u64, Box<[u8]>>,
    synced_bytes: u64,
    unsynced: BTreeMap<u64, Option<Box<[u8]>>>,
}

/// The names in a folder.
#[derive(Debug, Default)]
struct Folder {
    names: BTreeMap<Vec<u8>, u64>,
    unsynced: BTreeMap<Vec<u8>, Option<u64>>,
}

impl File {
    /// Returns the blocks of a range, and the part of each block that is in the range.
    fn parts(offset: u64, bytes: u64) -> impl Iterator<Item = (u64, std::ops::Range<usize>)> {
        let end = offset.saturating_add(bytes);
        (offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES)).map(move |block| {
            let begin = block * BLOCK_BYTES;
            let within = |place: u64| place.clamp(begin, begin + BLOCK_BYTES) - begin;
            (block, within(offset) as usize..within(end) as usize)
        })
    }

    /// Saves the last synced state of a block before it changes.
    fn before_change(&mut self, block: u64) {
        let Self { blocks, unsynced, .. } = self;
        unsynced.entry(block).or_insert_with(|| blocks.get(&block).cloned());
    }

    /// Writes bytes; returns the number of blocks by which the file grew.
    fn write(&mut self, offset: u64, bytes: &[u8]) -> u64 {
        let (before, mut rest) = (self.blocks.len(), bytes);
        for (block, range) in Self::parts(offset, bytes.len() as u64) {
            self.before_change(block);
            let (part, left) = rest.split_at(range.len());
            let whole =
                self.blocks.entry(block).or_insert_with(|| vec![0; BLOCK_BYTES as usize].into());
            whole[range].copy_from_slice(part);
            rest = left;
        }
        self.bytes = self.bytes.max(offset + bytes.len() as u64);
        (self.blocks.len() - before) as u64
    }

    fn read(&self, offset: u64, bytes: u64) -> Vec<u8> {
        let bytes = bytes.min(self.bytes.saturating_sub(offset));
        let mut read = Vec::new();
        for (block, range) in Self::parts(offset, bytes) {
            match self.blocks.get(&block) {
                Some(whole) => read.extend_from_slice(&whole[range]),
                None => read.resize(read.len() + range.len(), 0),
            }
        }
        read
    }

    /// Fills a range with zeros.
    fn clear(&mut self, offset: u64, bytes: u64) {
        let end = offset.saturating_add(bytes);
        let there: Vec<u64> = self
            .blocks
            .range(offset / BLOCK_BYTES..end.div_ceil(BLOCK_BYTES))
            .map(|(block, _)| *block)
            .collect();
        for block in there {
            self.before_change(block);
            let begin = block * BLOCK_BYTES;
            let within = |place: u64| (place.clamp(begin, begin + BLOCK_BYTES) - begin) as usize;
            if let Some(whole) = self.blocks.get_mut(&block) {
                whole[within(offset)..within(end)].fill(0);
            }
        }
    }

    fn resize(&mut self, bytes: u64) {
        if bytes < self.bytes {
            self.clear(bytes, self.bytes - bytes);
        }
        self.bytes = bytes;
    }

    fn sync(&mut self) {
        self.synced_bytes = self.bytes;
        self.unsynced.clear();
    }

    fn lose(&mut self) {
        self.bytes = self.synced_bytes;
        for (block, before) in std::mem::take(&mut self.unsynced) {
            match before {
                Some(before) => drop(self.blocks.insert(block, before)),
                None => drop(self.blocks.remove(&block)),
            }
        }
    }
}

impl Folder {
    fn set(&mut self, name: &[u8], inode: Option<u64>) {
        let before = match inode {
            Some(inode) => self.names.insert(name.to_vec(), inode),
            None => self.names.remove(name),
        };
        self.unsynced.entry(name.to_vec()).or_insert(before);
    }

    fn lose(&mut self) {
        for (name, before) in std::mem::take(&mut self.unsynced) {
            match before {
                Some(before) => drop(self.names.insert(name, before)),
                None => drop(self.names.remove(&name)),
            }
        }
    }
}

impl Inode {
    /// Creates an inode without content.
    pub(super) fn new(mode: u32, (user, group): (u32, u32), device: u32) -> Self {
        let content = match mode & KIND {
            FOLDER => TreeContent::Folder(Folder::default()),
            FILE => TreeContent::File(File::default()),
            _ => TreeContent::Other,
        };
        Self { mode, user, group, device, changed: SystemTime::now(), content }
    }

    /// Creates a folder with these permissions.
    pub(super) fn folder(rights: u32, owner: (u32, u32)) -> Self {
        Self::new(FOLDER | rights & !KIND, owner, 0)
    }

    /// A symbolic link.
    pub(super) fn link(target: &[u8], owner: (u32, u32)) -> Self {
        let content = TreeContent::Link(target.to_vec());
        Self { content, ..Self::new(LINK | 0o777, owner, 0) }
    }

    pub(super) fn bytes(&self) -> u64 {
        match &self.content {
            TreeContent::File(file) => file.bytes,
            TreeContent::Link(target) => target.len() as u64,
            TreeContent::Folder(_) | TreeContent::Other => 0,
        }
    }

    fn is_folder(&self) -> bool {
        matches!(self.content, TreeContent::Folder(_))
    }
}

impl Tree {
    /// Creates an empty folder.
    pub(super) fn new() -> Self {
        let root = Inode::folder(0o755, (0, 0));
        Self { inodes: BTreeMap::from([(ROOT, root)]), blocks: 0 }
    }

    pub(super) fn inode(&mut self, inode: u64) -> Result<&mut Inode, Errno> {
        self.inodes.get_mut(&inode).ok_or(Errno::NOENT)
    }

    fn folder(&mut self, inode: u64) -> Result<&mut Folder, Errno> {
        let inode = self.inode(inode)?;
        inode.changed = SystemTime::now();
        match &mut inode.content {
            TreeContent::Folder(folder) => Ok(folder),
            _ => Err(Errno::NOTDIR),
        }
    }

    fn file(&mut self, inode: u64) -> Result<&mut File, Errno> {
        match &mut self.inode(inode)?.content {
            TreeContent::File(file) => Ok(file),
            TreeContent::Folder(_) => Err(Errno::ISDIR),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn find(&mut self, folder: u64, name: &[u8]) -> Result<u64, Errno> {
        match &self.inode(folder)?.content {
            TreeContent::Folder(folder) => folder.names.get(name).copied().ok_or(Errno::NOENT),
            _ => Err(Errno::NOTDIR),
        }
    }

    /// Lists the names in a folder, each with its inode and the inode's kind, sorted by inode.
    pub(super) fn list(&mut self, folder: u64) -> Result<Vec<(u64, Vec<u8>, u32)>, Errno> {
        let TreeContent::Folder(folder) = &self.inode(folder)?.content else {
            return Err(Errno::NOTDIR);
        };
        let names: Vec<(Vec<u8>, u64)> = folder.names.clone().into_iter().collect();
        let mut list = Vec::new();
        for (name, inode) in names {
            list.push((inode, name, (self.inode(inode)?.mode & KIND) >> 12));
        }
        list.sort_unstable();
        Ok(list)
    }

    /// Creates a name for a new inode; returns the inode's number.
    pub(super) fn make(&mut self, folder: u64, name: &[u8], inode: Inode) -> Result<u64, Errno> {
        if self.find(folder, name).is_ok() {
            return Err(Errno::EXIST);
        }
        let new = self.inodes.len() as u64 + ROOT;
        self.folder(folder)?.set(name, Some(new));
        self.inodes.insert(new, inode);
        Ok(new)
    }

    /// Adds a name for an existing inode.
    pub(super) fn name(&mut self, folder: u64, name: &[u8], inode: u64) -> Result<(), Errno> {
        if self.find(folder, name).is_ok() {
            return Err(Errno::EXIST);
        }
        self.folder(folder)?.set(name, Some(inode));
        Ok(())
    }

    /// Removes a name; it must belong to a folder if and only if `is_folder` is set.
    pub(super) fn remove(
        &mut self,
        folder: u64,
        name: &[u8],
        is_folder: bool,
    ) -> Result<(), Errno> {
        let inode = self.find(folder, name)?;
        match (&self.inode(inode)?.content, is_folder) {
            (TreeContent::Folder(of), true) if !of.names.is_empty() => return Err(Errno::NOTEMPTY),
            (TreeContent::Folder(_), false) => return Err(Errno::ISDIR),
            (TreeContent::Folder(_), true) | (_, false) => {}
            (_, true) => return Err(Errno::NOTDIR),
        }
        self.folder(folder)?.set(name, None);
        Ok(())
    }

    /// Renames an entry. The target may exist, must not exist, or is exchanged with the source.
    pub(super) fn rename(
        &mut self,
        (from, name): (u64, &[u8]),
        (to, new_name): (u64, &[u8]),
        (keep, exchange): (bool, bool),
    ) -> Result<(), Errno> {
        let moved = self.find(from, name)?;
        let there = self.find(to, new_name).ok();
        if exchange {
            let there = there.ok_or(Errno::NOENT)?;
            self.folder(from)?.set(name, Some(there));
        } else {
            match there {
                Some(_) if keep => return Err(Errno::EXIST),
                Some(there) if there == moved => return Ok(()),
                Some(there) => {
                    let is_folder = self.inode(there)?.is_folder();
                    if is_folder != self.inode(moved)?.is_folder() {
                        return Err(if is_folder { Errno::ISDIR } else { Errno::NOTDIR });
                    }
                    self.remove(to, new_name, is_folder)?;
                }
                None => {}
            }
            self.folder(from)?.set(name, None);
        }
        self.folder(to)?.set(new_name, Some(moved));
        Ok(())
    }

    pub(super) fn read(&mut self, inode: u64, offset: u64, bytes: u64) -> Result<Vec<u8>, Errno> {
        Ok(self.file(inode)?.read(offset, bytes))
    }

    pub(super) fn target(&mut self, inode: u64) -> Result<Vec<u8>, Errno> {
        match &self.inode(inode)?.content {
            TreeContent::Link(target) => Ok(target.clone()),
            _ => Err(Errno::INVAL),
        }
    }

    pub(super) fn write(&mut self, inode: u64, offset: u64, bytes: &[u8]) -> Result<(), Errno> {
        if self.blocks >= BLOCKS_MAX {
            return Err(Errno::NOSPC);
        }
        offset.checked_add(bytes.len() as u64 + BLOCK_BYTES).ok_or(Errno::FBIG)?;
        self.blocks += self.file(inode)?.write(offset, bytes);
        self.inode(inode)?.changed = SystemTime::now();
        Ok(())
    }

    pub(super) fn resize(&mut self, inode: u64, bytes: u64) -> Result<(), Errno> {
        self.file(inode)?.resize(bytes);
        self.inode(inode)?.changed = SystemTime::now();
        Ok(())
    }

    /// Extends a file to at least this length.
    pub(super) fn extend(&mut self, inode: u64, bytes: u64) -> Result<(), Errno> {
        let file = self.file(inode)?;
        file.bytes = file.bytes.max(bytes);
        Ok(())
    }

    pub(super) fn clear(&mut self, inode: u64, offset: u64, bytes: u64) -> Result<(), Errno> {
        self.file(inode)?.clear(offset, bytes);
        Ok(())
    }

    /// Makes a file's content and all names durable.
    pub(super) fn sync(&mut self, inode: u64) {
        if let Ok(file) = self.file(inode) {
            file.sync();
        }
        for inode in self.inodes.values_mut() {
            if let TreeContent::Folder(folder) = &mut inode.content {
                folder.unsynced.clear();
            }
        }
    }

    /// Cuts the power: everything returns to its last synced state.
    pub(super) fn lose(&mut self) {
        for inode in self.inodes.values_mut() {
            match &mut inode.content {
                TreeContent::File(file) => file.lose(),
                TreeContent::Folder(folder) => folder.lose(),
                TreeContent::Link(_) | TreeContent::Other => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(tree: &mut Tree, name: &[u8]) -> u64 {
        tree.make(ROOT, name, Inode::new(FILE | 0o644, (0, 0), 0)).expect("the name is free")
    }

    fn whole(tree: &mut Tree, inode: u64) -> Vec<u8> {
        tree.read(inode, 0, u64::MAX).expect("a file")
    }

    #[test]
    fn unsynced_bytes_are_lost() {
        let mut tree = Tree::new();
        let log = file(&mut tree, b"log");
        tree.write(log, 0, b"synced").expect("there is room");
        tree.sync(log);
        tree.write(log, 3, &[b'x'; 9000]).expect("there is room");
        assert_eq!(whole(&mut tree, log).len(), 9003);
        tree.lose();
        assert_eq!(whole(&mut tree, log), b"synced");
        tree.write(log, 6, b", again").expect("there is room");
        tree.resize(log, 9).expect("a file");
        tree.sync(log);
        tree.resize(log, 2).expect("a file");
        tree.resize(log, 5).expect("a file");
        assert_eq!(whole(&mut tree, log), b"sy\0\0\0");
        tree.lose();
        assert_eq!(whole(&mut tree, log), b"synced, a");
    }

    #[test]
    fn unsynced_rename_is_undone_by_power_loss() {
        let mut tree = Tree::new();
        let old = file(&mut tree, b"state");
        tree.write(old, 0, b"old").expect("there is room");
        tree.sync(old);
        let new = file(&mut tree, b"state.part");
        tree.write(new, 0, b"new").expect("there is room");
        tree.rename((ROOT, b"state.part"), (ROOT, b"state"), (false, false)).expect("it is there");
        tree.lose();
        assert_eq!(tree.find(ROOT, b"state"), Ok(old));
        assert_eq!(tree.find(ROOT, b"state.part"), Err(Errno::NOENT));
        let new = file(&mut tree, b"state.part");
        tree.write(new, 0, b"new").expect("there is room");
        tree.rename((ROOT, b"state.part"), (ROOT, b"state"), (false, false)).expect("it is there");
        tree.sync(ROOT);
        tree.lose();
        assert_eq!(tree.find(ROOT, b"state"), Ok(new));
        assert_eq!(whole(&mut tree, new), b"", "its bytes were not synced");
    }

    #[test]
    fn unwritten_ranges_read_as_zeros() {
        let mut tree = Tree::new();
        let log = file(&mut tree, b"log");
        tree.extend(log, 10_000).expect("a file");
        tree.write(log, 8190, b"four").expect("there is room");
        tree.clear(log, 8191, 2).expect("a file");
        assert_eq!(tree.read(log, 8188, 8), Ok(b"\0\0f\0\0r\0\0".to_vec()));
        assert_eq!(tree.read(log, 9_999, 8), Ok(vec![0]));
    }
}
