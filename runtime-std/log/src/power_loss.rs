//! A disk for tests that knows which data has been synced, and loses the rest.
//!
//! # Invariants
//! - Until power is lost, a process reads what it has written.
//! - After that, a file has the data of its last completed sync. Each sector of later writes may or
//!   may not be present, regardless of their order; the same holds for the file's new length.
//! - Each creation, renaming or removal since the folder's last sync may or may not have happened,
//!   independently of the others. A file whose name is missing is lost, even if it was synced.
//! - Every operation that changes something has a number. Power can be cut at any of them: it is
//!   lost during that operation, and all later operations fail.

use std::collections::BTreeMap;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::layer::{FileLayer, LayerFile};

/// The number of bytes that a disk writes atomically.
pub const SECTOR_BYTES: usize = 512;

/// A folder on such a disk. Clones refer to the same folder.
#[derive(Clone, Debug)]
pub struct PowerLossFolder {
    path: PathBuf,
    disk: Arc<Mutex<VolatileDisk>>,
}

/// A file on such a disk.
#[derive(Debug)]
pub struct PowerLossFile {
    id: usize,
    disk: Arc<Mutex<VolatileDisk>>,
}

/// The lock of such a folder.
#[derive(Debug)]
pub struct PowerLossLock(Arc<Mutex<VolatileDisk>>);

/// The faults to be injected into a disk.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Faults {
    /// The number of the operation at which power is cut.
    pub power_cut_at: Option<u64>,
    /// The number of the sync that fails without writing its data to the disk. Reads still return
    /// the data.
    pub failing_sync: Option<u64>,
    /// The capacity of the disk, in bytes.
    pub capacity_bytes: Option<u64>,
}

#[derive(Debug, Default)]
struct VolatileDisk {
    files: Vec<FileBytes>,
    names: BTreeMap<String, usize>,
    durable_names: BTreeMap<String, usize>,
    steps: Vec<NameStep>,
    faults: Faults,
    operations: u64,
    syncs: u64,
    folder_syncs: u64,
    is_off: bool,
    is_locked: bool,
}

#[derive(Clone, Debug, Default)]
struct FileBytes {
    /// The bytes that a process reads.
    seen: Vec<u8>,
    durable: Vec<u8>,
    /// Changes since the last sync, as offsets and bytes. Empty bytes mean a new length.
    changes: Vec<(usize, Vec<u8>)>,
}

#[derive(Clone, Debug)]
enum NameStep {
    Create(String, usize),
    Rename(String, String),
    Remove(String),
}

impl NameStep {
    fn apply(&self, names: &mut BTreeMap<String, usize>) {
        match self {
            Self::Create(name, id) => {
                names.insert(name.clone(), *id);
            }
            Self::Rename(from, to) => {
                if let Some(id) = names.remove(from) {
                    names.insert(to.clone(), id);
                }
            }
            Self::Remove(name) => {
                names.remove(name);
            }
        }
    }
}

impl FileBytes {
    fn apply(bytes: &mut Vec<u8>, at: usize, change: &[u8]) {
        bytes.resize(bytes.len().max(at + change.len()), 0);
        bytes[at..at + change.len()].copy_from_slice(change);
    }

    fn change(&mut self, at: usize, change: &[u8]) {
        Self::apply(&mut self.seen, at, change);
        self.changes.push((at, change.to_vec()));
    }

    /// Returns the content after a loss of power. `keeps` decides for each sector whether it is
    /// kept.
    fn after_power_loss(&self, keeps: &mut impl FnMut() -> bool) -> Vec<u8> {
        let mut bytes = self.durable.clone();
        for (at, change) in &self.changes {
            if change.is_empty() && keeps() {
                Self::apply(&mut bytes, *at, change);
            }
            let mut from = 0;
            while from < change.len() {
                let to = change.len().min(from + SECTOR_BYTES - (at + from) % SECTOR_BYTES);
                if keeps() {
                    Self::apply(&mut bytes, at + from, &change[from..to]);
                }
                from = to;
            }
        }
        bytes
    }
}

impl VolatileDisk {
    fn off() -> io::Error {
        io::Error::other("the power is off")
    }

    fn found(&self, name: &str) -> io::Result<usize> {
        if self.is_off {
            return Err(Self::off());
        }
        self.names.get(name).copied().ok_or_else(|| io::ErrorKind::NotFound.into())
    }

    /// Counts an operation. Returns whether power is cut during it.
    fn operation(&mut self) -> io::Result<bool> {
        if self.is_off {
            return Err(Self::off());
        }
        self.operations += 1;
        self.is_off = self.faults.power_cut_at == Some(self.operations);
        Ok(self.is_off)
    }

    fn step(&mut self, step: NameStep) -> io::Result<()> {
        let is_cut = self.operation()?;
        step.apply(&mut self.names);
        self.steps.push(step);
        if is_cut { Err(Self::off()) } else { Ok(()) }
    }

    fn sync(&mut self, id: usize) -> io::Result<()> {
        if self.operation()? {
            return Err(Self::off());
        }
        self.syncs += 1;
        let file = &mut self.files[id];
        let changes = std::mem::take(&mut file.changes);
        if self.faults.failing_sync == Some(self.syncs) {
            // As in real kernels, the pages count as clean although they have not been written.
            return Err(io::Error::other("the disk failed"));
        }
        for (at, change) in changes {
            FileBytes::apply(&mut file.durable, at, &change);
        }
        Ok(())
    }

    fn check_space(&self, id: usize, end: usize) -> io::Result<()> {
        let used: usize = self.names.values().map(|id| self.files[*id].seen.len()).sum();
        let more = end.saturating_sub(self.files[id].seen.len());
        match self.faults.capacity_bytes {
            Some(capacity) if (used + more) as u64 > capacity => {
                Err(io::ErrorKind::StorageFull.into())
            }
            _ => Ok(()),
        }
    }
}

impl PowerLossFolder {
    /// Creates an empty folder.
    #[must_use]
    pub fn new(faults: Faults) -> Self {
        Self::of(VolatileDisk { faults, ..VolatileDisk::default() })
    }

    fn of(disk: VolatileDisk) -> Self {
        Self { path: "disk".into(), disk: Arc::new(Mutex::new(disk)) }
    }

    fn disk(&self) -> MutexGuard<'_, VolatileDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the folder after power has been restored, on a disk with different faults. `keeps`
    /// decides for each unsynced sector and step whether it is kept.
    #[must_use]
    pub fn after_power_loss(&self, mut keeps: impl FnMut() -> bool, faults: Faults) -> Self {
        let disk = self.disk();
        let mut names = disk.durable_names.clone();
        for step in disk.steps.iter().filter(|_| keeps()) {
            step.apply(&mut names);
        }
        let mut files = Vec::new();
        for id in names.values_mut() {
            let bytes = disk.files[*id].after_power_loss(&mut keeps);
            *id = files.len();
            files.push(FileBytes { seen: bytes.clone(), durable: bytes, changes: Vec::new() });
        }
        Self::of(VolatileDisk {
            files,
            durable_names: names.clone(),
            names,
            faults,
            ..VolatileDisk::default()
        })
    }

    /// Returns the folder as the next process finds it if the machine keeps running. All written
    /// data can be read, and unsynced data remains unsynced.
    #[must_use]
    pub fn after_process_end(&self, faults: Faults) -> Self {
        let disk = self.disk();
        Self::of(VolatileDisk {
            files: disk.files.clone(),
            names: disk.names.clone(),
            durable_names: disk.durable_names.clone(),
            steps: disk.steps.clone(),
            faults,
            ..VolatileDisk::default()
        })
    }

    /// Returns the number of operations that have changed something.
    #[must_use]
    pub fn operations(&self) -> u64 {
        self.disk().operations
    }

    /// Returns the number of file syncs.
    #[must_use]
    pub fn syncs(&self) -> u64 {
        self.disk().syncs
    }

    /// Returns the number of folder syncs.
    #[must_use]
    pub fn folder_syncs(&self) -> u64 {
        self.disk().folder_syncs
    }

    /// Returns the bytes of a file.
    #[must_use]
    pub fn bytes(&self, name: &str) -> Option<Vec<u8>> {
        let disk = self.disk();
        disk.names.get(name).map(|id| disk.files[*id].seen.clone())
    }

    /// Durably changes bytes of a file, like a decaying disk.
    pub fn decay(&self, name: &str, change: impl FnOnce(&mut Vec<u8>)) {
        let mut disk = self.disk();
        if let Some(id) = disk.names.get(name).copied() {
            let file = &mut disk.files[id];
            change(&mut file.seen);
            file.durable.clone_from(&file.seen);
        }
    }
}

impl FileLayer for PowerLossFolder {
    type File = PowerLossFile;
    type Lock = PowerLossLock;

    fn path(&self) -> &Path {
        &self.path
    }

    fn list(&self) -> io::Result<Vec<String>> {
        let disk = self.disk();
        if disk.is_off {
            Err(VolatileDisk::off())
        } else {
            Ok(disk.names.keys().cloned().collect())
        }
    }

    fn create(&self, name: &str) -> io::Result<PowerLossFile> {
        let mut disk = self.disk();
        if disk.found(name).is_ok() {
            return Err(io::ErrorKind::AlreadyExists.into());
        }
        let id = disk.files.len();
        disk.files.push(FileBytes::default());
        disk.step(NameStep::Create(name.to_owned(), id))?;
        Ok(PowerLossFile { id, disk: Arc::clone(&self.disk) })
    }

    fn open(&self, name: &str) -> io::Result<PowerLossFile> {
        let id = self.disk().found(name)?;
        Ok(PowerLossFile { id, disk: Arc::clone(&self.disk) })
    }

    fn rename(&self, from: &str, to: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.found(from)?;
        disk.step(NameStep::Rename(from.to_owned(), to.to_owned()))
    }

    fn remove(&self, name: &str) -> io::Result<()> {
        let mut disk = self.disk();
        disk.found(name)?;
        disk.step(NameStep::Remove(name.to_owned()))
    }

    fn sync_folder(&self) -> io::Result<()> {
        let mut disk = self.disk();
        if disk.operation()? {
            return Err(VolatileDisk::off());
        }
        disk.folder_syncs += 1;
        disk.steps.clear();
        disk.durable_names = disk.names.clone();
        Ok(())
    }

    fn lock(&self) -> io::Result<PowerLossLock> {
        let mut disk = self.disk();
        if std::mem::replace(&mut disk.is_locked, true) {
            return Err(io::ErrorKind::WouldBlock.into());
        }
        Ok(PowerLossLock(Arc::clone(&self.disk)))
    }
}

impl Drop for PowerLossLock {
    fn drop(&mut self) {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).is_locked = false;
    }
}

impl PowerLossFile {
    fn disk(&self) -> MutexGuard<'_, VolatileDisk> {
        self.disk.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl LayerFile for PowerLossFile {
    fn length(&self) -> io::Result<u64> {
        let disk = self.disk();
        if disk.is_off {
            Err(VolatileDisk::off())
        } else {
            Ok(disk.files[self.id].seen.len() as u64)
        }
    }

    fn allocate(&mut self, bytes: u64) -> io::Result<()> {
        let mut disk = self.disk();
        let (id, end) = (self.id, bytes as usize);
        disk.check_space(id, end)?;
        let is_cut = disk.operation()?;
        let file = &mut disk.files[id];
        file.seen.resize(file.seen.len().max(end), 0);
        file.changes.push((end, Vec::new()));
        if is_cut { Err(VolatileDisk::off()) } else { Ok(()) }
    }

    fn read_at(&self, bytes: &mut [u8], offset: u64) -> io::Result<usize> {
        let disk = self.disk();
        if disk.is_off {
            return Err(VolatileDisk::off());
        }
        let from = disk.files[self.id].seen.get(offset as usize..).unwrap_or_default();
        let read = from.len().min(bytes.len());
        bytes[..read].copy_from_slice(&from[..read]);
        Ok(read)
    }

    fn write_at(&mut self, bytes: &[u8], offset: u64) -> io::Result<()> {
        let mut disk = self.disk();
        let (id, at) = (self.id, offset as usize);
        disk.check_space(id, at + bytes.len())?;
        let is_cut = disk.operation()?;
        disk.files[id].change(at, bytes);
        if is_cut { Err(VolatileDisk::off()) } else { Ok(()) }
    }

    fn sync(&mut self) -> io::Result<()> {
        let id = self.id;
        self.disk().sync(id)
    }
}
