//! A process's residence in a group, which is the same in all its views and lasts as long as the
//! process runs.
//!
//! In the group's folder, the process has a file, whose lock shows that the process is alive, and a
//! socket, to which its peers send the descriptors of their memory.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError, Weak};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Area, Region, Regions, TooManyRegions};
use tramontane_core::ids::{NodeId, ViewId};

use super::descriptors::{Datagram, DescriptorMessage, Subject};
use super::error::Error;
use super::files::Names;
use super::folder::{Folder, Patience};
use super::futex::Bell;
use super::header::Maker;
use super::member_file::{Identity, MemberFile, State};
use super::own_place::{Keeper, OwnPlace};
use super::own_region::{OwnRegion, Range};
use super::peer::{Peer, refused};
use super::root::{GroupName, Root};
use super::sealed::{SealedMemory, Writers};
use super::space::BELL_BYTES;

/// The time for which messages from a process that cannot be found are kept. The process creates
/// its names again much sooner.
const UNKNOWN_MAX: Duration = Duration::from_secs(5);

/// The maximum number of such messages.
const UNKNOWN_COUNT_MAX: usize = 64;

/// The residence of one process in one group, from its start until it leaves or ends (VIE-11,
/// VIE-12).
///
/// Dropping it without [`leave`](Self::leave) counts as a failure, like the end of the process.
#[derive(Debug)]
pub struct Residence {
    identity: Identity,
    place: Arc<OwnPlace>,
    /// Dropped before the files that it checks.
    _keeper: Keeper,
    bell: Bell,
    /// The bell, which is sent to peers so that they can ring it.
    bell_file: OwnedFd,
    /// Locked while messages are received, so that a later search for memory finds everything that
    /// has arrived. Contains messages from processes that could not be found, each with its time,
    /// because the names of such a process may have been removed.
    receiving: Mutex<Vec<(Instant, Datagram)>>,
    /// Processes that have been found. Each is checked only once, however many views include it.
    peers: Mutex<Vec<Arc<Peer>>>,
    regions: Mutex<Regions<Weak<OwnRegion>>>,
    /// Regions that are part of all views. They are never removed.
    own_regions: Mutex<Vec<(Region, Arc<OwnRegion>)>>,
    /// The last serial number that was assigned.
    serial: AtomicU64,
}

impl Residence {
    /// Claims a node's id in a group, and removes the files of dead predecessors with that id.
    ///
    /// `digest` is the digest of the group's description: processes with different descriptions
    /// never see each other's rows. `incarnation` is a number that no other incarnation of this
    /// node has. Waits for the folder's lock for at most `time_limit`, or until `cancel` is set.
    ///
    /// # Errors
    /// Returns [`Error::DuplicateId`] if a live process has the id; [`Error::NoSpace`],
    /// [`Error::CannotSeal`] and others as described in [`Error`]. Nothing is left behind in these
    /// cases.
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
        let sleeper_barrier = root.fences().sleeper_barrier();
        let identity = Identity { digest, node, incarnation, sleeper_barrier };
        // The bell is created before any peer can find this process, because it is sent to each
        // peer.
        let SealedMemory { file: bell_file, map } = SealedMemory::new(BELL_BYTES, Writers::All)?;
        let place = Arc::new(OwnPlace::claim(root, group, &identity, &patience)?);
        Ok(Self {
            identity,
            _keeper: Keeper::start(&place)?,
            place,
            bell: Bell::new(Arc::new(map), identity.sleeper_barrier),
            bell_file,
            receiving: Mutex::default(),
            peers: Mutex::default(),
            regions: Mutex::default(),
            own_regions: Mutex::default(),
            serial: AtomicU64::new(0),
        })
    }

    /// Returns the node id.
    #[must_use]
    pub const fn node(&self) -> NodeId {
        self.identity.node
    }

    /// Returns the incarnation of the node.
    #[must_use]
    pub const fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// Returns a handle to the local doorbell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Returns the path of a node's control socket. The socket is created by another component, and
    /// is removed with its owner, or with the files of dead members.
    #[must_use]
    pub fn socket_path(&self, node: NodeId) -> PathBuf {
        door_in(self.path(), node)
    }

    /// Returns a sentence for people about the names in the folder, if any have been removed while
    /// this process had its files there.
    #[must_use]
    pub fn notice(&self) -> Option<String> {
        self.place.notice()
    }

    /// Returns the path of the group's folder, even if the folder has been replaced.
    pub(super) fn path(&self) -> &Path {
        self.place.path()
    }

    /// Returns the folder in which this process has its files.
    pub(super) fn folder(&self) -> Arc<Folder> {
        self.place.folder()
    }

    /// Returns whether a live process has the id of a node.
    ///
    /// # Errors
    /// Returns [`Error::WrongDigest`] or [`Error::WrongVersion`] if the process has a different
    /// description of the group or runs a different version of the program, so that it and this
    /// process never see each other's rows. Returns [`Error::Io`] if the folder cannot be read.
    pub fn is_live(&self, node: NodeId) -> Result<bool, Error> {
        let Some(file) = self.member_file(node)? else { return Ok(false) };
        let Some(said) = file.read() else { return Ok(false) };
        if !said.is_of_this_format {
            return Err(Error::WrongVersion { peer: node });
        }
        if said.identity.digest != self.identity.digest {
            return Err(Error::WrongDigest { peer: node });
        }
        Ok(!said.state.is_over())
    }

    /// Returns whether a node's live process is a member, that is, whether it has the row of a view
    /// under any description.
    ///
    /// # Errors
    /// Returns [`Error::Io`] if the folder cannot be read.
    pub fn is_member(&self, node: NodeId) -> Result<bool, Error> {
        let file = self.member_file(node)?;
        // A live process with a damaged file may be a member.
        Ok(file.is_some_and(|file| file.read().is_none_or(|said| said.row != 0)))
    }

    /// Returns the file of a node's live process.
    fn member_file(&self, node: NodeId) -> Result<Option<MemberFile>, Error> {
        MemberFile::find(&self.folder(), node)
            .map_err(|errno| Error::from_errno("cannot look for a member in", self.path(), errno))
    }

    /// Deliberately leaves the group: publishes that, removes this process's files, and rings all
    /// peers that have sent it a row. Rows stay mapped. Idempotent, and safe from any thread.
    ///
    /// A process that ends without this call (by an error, a panic, or the end of the process)
    /// counts as failed: peers' fabrics report `Exited` rather than `Left`.
    pub fn leave(&self) {
        self.end(State::Left);
    }

    fn end(&self, state: State) {
        if self.place.end(state) {
            self.peers().iter().filter_map(|peer| peer.bell()).for_each(Bell::ring);
        }
    }

    /// Returns the signature of this process's memory.
    pub(super) fn maker(&self, number: u64) -> Maker {
        Maker { node: u64::from(self.node().get()), incarnation: self.incarnation(), number }
    }

    /// Sends memory to a peer. Returns false if it must be sent again later, because the peer is
    /// not running or has not taken earlier messages.
    pub(super) fn send(
        &self,
        to: &Peer,
        subject: Subject,
        memory: BorrowedFd<'_>,
    ) -> rustix::io::Result<bool> {
        let message =
            DescriptorMessage { node: self.node(), incarnation: self.incarnation(), subject };
        let files = [memory, self.bell_file.as_fd()];
        let files = if matches!(subject, Subject::Row { .. }) { &files[..] } else { &files[..1] };
        to.send(message, files)
    }

    /// Receives the messages that peers have sent.
    pub(super) fn receive(&self) {
        let mut unknown = self.receiving.lock().unwrap_or_else(PoisonError::into_inner);
        let mut received = std::mem::take(&mut *unknown);
        self.place.receive(|new| received.push((Instant::now(), new)));
        received.retain_mut(|(came, new)| {
            let is_over = self.take_received(new);
            !is_over && came.elapsed() < UNKNOWN_MAX
        });
        let surplus = received.len().saturating_sub(UNKNOWN_COUNT_MAX);
        received.drain(..surplus);
        *unknown = received;
    }

    /// Accepts a message or drops it. Returns false if its sender cannot be found.
    fn take_received(&self, received: &mut Datagram) -> bool {
        let Some(message) = received.message else {
            tracing::warn!(
                "ignored a malformed memory announcement; check that all members run the same \
                 version"
            );
            return true;
        };
        let Some(peer) = self.find(message.node).ok().flatten() else { return false };
        // A message from a process that has since ended is of no use.
        if peer.incarnation() != message.incarnation {
            tracing::debug!(member = %message.node, "memory of a process that was not found");
        } else if let Err(why) = peer.accept(&message, std::mem::take(&mut received.files)) {
            refused(message.node, why);
        }
        true
    }

    /// Returns the live process of another node, if there is one.
    pub(super) fn find(&self, node: NodeId) -> rustix::io::Result<Option<Arc<Peer>>> {
        let mut peers = self.peers();
        if let Some(known) = peers.iter().find(|peer| peer.id() == node)
            && known.loss().is_none()
        {
            return Ok(Some(Arc::clone(known)));
        }
        let Some(found) = Peer::find(&self.folder(), node, self.identity.digest)?.map(Arc::new)
        else {
            return Ok(None);
        };
        peers.retain(|peer| peer.id() != node);
        peers.push(Arc::clone(&found));
        Ok(Some(found))
    }

    /// Finds peers under their new names, if they have created these again.
    pub(super) fn renew_peers(&self) {
        let folder = self.folder();
        self.peers().iter().for_each(|peer| peer.renew(&folder));
    }

    /// Forgets processes that are in no view, and memory that its owner has given up.
    pub(super) fn forget_what_is_over(&self) {
        let mut peers = self.peers();
        peers.iter().for_each(|peer| peer.forget_what_is_over());
        peers.retain(|peer| Arc::strong_count(peer) > 1 || peer.has_sent());
    }

    /// Sends the local regions to a peer that lacks them. Returns false if some must be sent again
    /// later.
    pub(super) fn send_regions(&self, peer: &Peer) -> rustix::io::Result<bool> {
        let own = self.own_regions();
        while let Some((region, memory)) = own.get(peer.regions_told()) {
            if !memory.send_region_to(self, peer, *region)? {
                return Ok(false);
            }
            peer.note_region_told();
        }
        Ok(true)
    }

    /// Adds a row of this process.
    pub(super) fn add_row(&self, row: (ViewId, u64)) -> Result<(), Error> {
        match self.place.with_files(|files| files.add_row(row)) {
            Some(true) => Ok(()),
            Some(false) => Err(Error::ViewIsThere { view: row.0 }),
            None => Err(Error::HasLeft { node: self.node() }),
        }
    }

    /// Removes a row of this process.
    pub(super) fn remove_row(&self, row: (ViewId, u64)) {
        self.place.with_files(|files| files.remove_row(row));
    }

    /// Returns whether this process has left.
    pub(super) fn has_left(&self) -> bool {
        self.place.with_files(|_| ()).is_none()
    }

    /// Assigns the lowest free region number to block memory.
    pub(super) fn take_region(&self, memory: &Arc<OwnRegion>) -> Result<Region, TooManyRegions> {
        let is_gone = |memory: &Weak<OwnRegion>| memory.strong_count() == 0;
        self.regions().take(Arc::downgrade(memory), is_gone)
    }

    /// Assigns the requested number to a region, if it is free.
    pub(super) fn take_this_region(&self, region: Region, memory: &Arc<OwnRegion>) -> bool {
        let is_gone = |memory: &Weak<OwnRegion>| memory.strong_count() == 0;
        self.regions().take_this(region, Arc::downgrade(memory), is_gone)
    }

    /// Returns the regions that are part of all views.
    pub(super) fn own_regions(&self) -> MutexGuard<'_, Vec<(Region, Arc<OwnRegion>)>> {
        self.own_regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Notes that a node's process has been met again after it was cut off.
    pub(super) fn meet(&self, node: NodeId) {
        self.peers().iter().filter(|peer| peer.id() == node).for_each(|peer| peer.meet());
    }

    /// Returns a range of existing block memory.
    pub(super) fn block_range(&self, area: Area, length: usize) -> Option<Range> {
        let memory = self.regions().get(area.region)?.upgrade()?;
        Range::new(memory, area, length)
    }

    /// Returns a serial number that has never been assigned.
    pub(super) fn next_serial(&self) -> u64 {
        self.serial.fetch_add(1, Ordering::Relaxed) + 1
    }

    fn regions(&self) -> MutexGuard<'_, Regions<Weak<OwnRegion>>> {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn peers(&self) -> MutexGuard<'_, Vec<Arc<Peer>>> {
        self.peers.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Root {
    /// Returns the path of a node's control socket, for a process without a residence in the group:
    /// see [`Residence::socket_path`].
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
