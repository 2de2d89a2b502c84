//! A process's place in a group: one for its whole life, whatever views it is in.
//!
//! Where membership is fixed, the row stands in the base file, and the place ends with the one
//! view. Where it changes, the base file is a header alone: its lock says that the process lives,
//! its header which start of it that is, and each view's row has a file of its own
//! ([`rows`](Residence::rows)).

use std::ffi::CStr;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Area, Region, Regions, TooManyRegions};
use tramontane_core::ids::NodeId;

use super::block_memory::OwnRegion;
use super::error::Error;
use super::exchange::Range;
use super::files::{Names, OwnFiles};
use super::folder::{Folder, Patience};
use super::futex::{Bell, Fences};
use super::header::{HEADER_BYTES, Header, Identity, State};
use super::map::Map;
use super::peer::{Peer, PeerFiles};
use super::root::{GroupName, Root};
use super::space::group_bytes;

/// The place of one process in one group, from its start until it leaves or ends (VIE-11, VIE-12).
///
/// When it is dropped without [`leave`](Self::leave), this counts as a failure, as the end of the
/// process does.
#[derive(Debug)]
pub struct Residence {
    id: NodeId,
    identity: Identity,
    pub(super) folder: Arc<Folder>,
    /// The base file's mapping, which starts with the header.
    header: Arc<Map>,
    bell: Bell,
    /// None once this process left.
    files: Mutex<Option<OwnFiles>>,
    /// Processes that were found: each is looked at once, however many views have it.
    peers: Mutex<Vec<Arc<Peer>>>,
    regions: Mutex<Regions<Weak<OwnRegion>>>,
    /// The last serial number that was given to block memory.
    serial: AtomicU64,
}

impl Residence {
    /// Takes the place of a node in a group whose membership changes. What dead predecessors of
    /// that id left is cleared away.
    ///
    /// `digest` is that of the group's description: processes that go by another never see each
    /// other's rows. `incarnation` is a number that no other start of this node has. Waits for the
    /// folder's lock at most for `time_limit`, or until `cancel` is set.
    ///
    /// # Errors
    /// [`Error::DuplicateId`] if a live process has the place; [`Error::NoSpace`], and others: see
    /// [`Error`]. Nothing is left behind then.
    pub fn claim(
        root: &Root,
        group: &GroupName,
        node: NodeId,
        digest: u64,
        incarnation: u64,
        time_limit: Duration,
        cancel: &AtomicBool,
    ) -> Result<Self, Error> {
        let patience = Patience { until: Instant::now() + time_limit, cancel };
        let needed = group_bytes(std::iter::once(HEADER_BYTES));
        let files = OwnFiles::claim(root, group, node, needed, &patience)?;
        let (header, bell) = files.map(HEADER_BYTES, &patience)?;
        let sleeper_barrier = Fences::default().sleeper_barrier();
        let identity =
            Identity { digest, node: u64::from(node.get()), incarnation, sleeper_barrier };
        Header::new(&header).write(&identity);
        Header::new(&header).set_state(State::Running);
        Ok(Self::new(node, files, header, bell, identity, Vec::new()))
    }

    /// The place of a process whose base file is filled, and what it knows of others.
    pub(super) fn new(
        id: NodeId,
        files: OwnFiles,
        header: Arc<Map>,
        bell: Arc<Map>,
        identity: Identity,
        peers: Vec<Arc<Peer>>,
    ) -> Self {
        let bell = Bell::new(bell, identity.sleeper_barrier);
        let folder = Arc::clone(&files.folder);
        Self {
            id,
            identity,
            folder,
            header,
            bell,
            files: Mutex::new(Some(files)),
            peers: Mutex::new(peers),
            regions: Mutex::default(),
            serial: AtomicU64::new(0),
        }
    }

    /// Which node this is.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.id
    }

    /// Which start of it.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// A handle on the own doorbell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Where a node's control socket lives. Somebody else makes it; it goes with its owner, or is
    /// cleared with the dead.
    #[must_use]
    pub fn socket_path(&self, node: NodeId) -> PathBuf {
        door_in(self.folder.path(), node)
    }

    /// Whether a process has the place of a node now.
    ///
    /// # Errors
    /// [`Error::WrongDigest`] or [`Error::WrongVersion`] if it goes by another description of the
    /// group, or runs another version of the program: it and this process never see each other's
    /// rows. [`Error::Io`] if the folder cannot be read.
    pub fn is_live(&self, node: NodeId) -> Result<bool, Error> {
        let failed =
            |errno| Error::from_errno("cannot look for a member in", self.folder.path(), errno);
        let Some(files) = PeerFiles::find(&self.folder, node).map_err(failed)? else {
            return Ok(false);
        };
        if !files.header().is_of_this_format() {
            return Err(Error::WrongVersion { peer: node });
        }
        if files.header().digest() != self.identity.digest {
            return Err(Error::WrongDigest { peer: node });
        }
        files.is_live().map_err(failed)
    }

    /// Whether a live process of a node is a member: one that has the row of a view, by whatever
    /// description.
    ///
    /// # Errors
    /// [`Error::Io`] if the folder cannot be read.
    pub fn is_member(&self, node: NodeId) -> Result<bool, Error> {
        let failed =
            |errno| Error::from_errno("cannot look for a member in", self.folder.path(), errno);
        self.folder.has_live_member(node).map_err(failed)
    }

    /// Leaves the group on purpose: says so, removes this process's files, and rings whoever it
    /// knows. Rows stay mapped. Idempotent, and safe from any thread.
    ///
    /// A process that goes without this (an error, a panic, the end of the process) counts as
    /// failed: peers' fabrics report `Exited` and not `Left`.
    pub fn leave(&self) {
        self.end(State::Left);
    }

    fn end(&self, state: State) {
        let files = self.files().take();
        if let Some(files) = files {
            Header::new(&self.header).set_state(state);
            drop(files);
            for peer in self.peers().iter() {
                peer.bell().ring();
            }
        }
    }

    /// What a view's row is signed with.
    pub(super) fn identity(&self, layout_digest: u64) -> Identity {
        Identity { digest: layout_digest, ..self.identity }
    }

    /// The live process of another node, if it is there.
    pub(super) fn find(&self, node: NodeId) -> rustix::io::Result<Option<Arc<Peer>>> {
        let mut peers = self.peers();
        if let Some(known) = peers.iter().find(|peer| peer.id() == node)
            && known.loss().is_none()
        {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(found) = Peer::find(&self.folder, node, self.identity.digest)?.map(Arc::new)
        else {
            return Ok(None);
        };
        peers.retain(|peer| peer.id() != node);
        peers.push(Arc::clone(&found));
        Ok(Some(found))
    }

    /// Forgets processes that no view uses.
    pub(super) fn forget_unused(&self) {
        self.peers().retain(|peer| Arc::strong_count(peer) > 1);
    }

    /// Makes the file of a view's row, or of block memory. None if this process left.
    pub(super) fn make_file(&self, name: &CStr) -> Option<rustix::io::Result<OwnedFd>> {
        // With the lock held, so that a process that leaves meanwhile removes this file too.
        self.files().as_mut().map(|files| files.make_other(name))
    }

    /// Removes such a file. Not once this process left: the name may be its successor's by then.
    pub(super) fn remove_file(&self, name: &CStr) {
        if let Some(files) = self.files().as_mut() {
            files.remove_other(name);
        }
    }

    /// Gives block memory the lowest region that is free.
    pub(super) fn take_region(&self, memory: &Arc<OwnRegion>) -> Result<Region, TooManyRegions> {
        let is_gone = |memory: &Weak<OwnRegion>| memory.strong_count() == 0;
        self.regions().take(Arc::downgrade(memory), is_gone)
    }

    /// A range of block memory that is there.
    pub(super) fn block_range(&self, area: Area, length: usize) -> Option<Range> {
        let memory = self.regions().get(area.region)?.upgrade()?;
        Range::new(memory, area, length)
    }

    /// A number for block memory that was never given.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn regions(&self) -> MutexGuard<'_, Regions<Weak<OwnRegion>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn files(&self) -> MutexGuard<'_, Option<OwnFiles>> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Root {
    /// Where a node's control socket lives, for one who has no place in the group: see
    /// [`Residence::socket_path`].
    #[must_use]
    pub fn socket_path(&self, group: &GroupName, node: NodeId) -> PathBuf {
        door_in(&self.path().join(group.as_str()), node)
    }
}

fn door_in(folder: &Path, node: NodeId) -> PathBuf {
    folder.join(Names::of(node).door.to_string_lossy().as_ref())
}

impl Drop for Residence {
    fn drop(&mut self) {
        self.end(State::Failed);
    }
}
