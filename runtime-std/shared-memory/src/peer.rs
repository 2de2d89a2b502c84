//! A peer's process, as seen by this process: its file, which shows whether it is alive, its
//! doorbell, and the memory that it has sent.

use std::os::fd::{AsFd as _, BorrowedFd, OwnedFd};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};

use rustix::io::Errno;
use tramontane_core::fabric::{LossCause, REGIONS_MAX, Region};
use tramontane_core::ids::{NodeId, ViewId};

use super::descriptors::{DescriptorMessage, Subject, WayTo};
use super::files::Names;
use super::folder::Folder;
use super::futex::Bell;
use super::header::{HEADER_BYTES, Header, Maker};
use super::map::{Access, Map};
use super::member_file::{Identity, MemberFile, State};
use super::region_memory::{PeerRegion, PeerRegions, RegionIndex};
use super::sealed::{Unusable, Writers, check};
use super::space::BELL_BYTES;

/// The maximum number of rows and write queues that one process may have sent in advance, for views
/// that are not open here. The number of used ones is bounded by the number of this process's
/// views.
const AHEAD_MAX: usize = 64;

/// The maximum number of block memories that a peer may have sent without any block from them: all
/// of its memories, in two views.
const BLOCKS_MAX: usize = 2 * REGIONS_MAX;

/// Memory from a peer that has been checked.
#[derive(Debug)]
struct SentMemory {
    subject: Subject,
    /// The mapping: only the header of a row, or all of any other memory.
    map: Map,
    /// A row's descriptor, and its total length.
    row: Option<(OwnedFd, usize)>,
    /// Whether a view uses the memory.
    is_used: bool,
}

/// A peer's open file and the connection to its socket. Both stay valid even if their names are
/// removed.
#[derive(Debug)]
struct Contact {
    file: MemberFile,
    way: WayTo,
}

/// A peer's process. A later process with the same id is a different peer.
#[derive(Debug)]
pub(super) struct Peer {
    identity: Identity,
    contact: Mutex<Contact>,
    /// The peer's bell, which arrives with its first row.
    bell: OnceLock<Bell>,
    /// The rows and block memory that the peer has sent.
    sent: Mutex<Vec<SentMemory>>,
    /// The peer's regions, which are part of all views.
    regions: Mutex<PeerRegions>,
    /// The number of local regions that have been sent to the peer so far.
    regions_told: AtomicUsize,
    /// Whether all traffic with this process has ended, in every view, until the two meet again.
    is_cut: AtomicBool,
}

impl Peer {
    /// Finds the live process of a node, if it exists and has the same description of the group.
    pub(super) fn find(
        folder: &Folder,
        node: NodeId,
        digest: u64,
    ) -> rustix::io::Result<Option<Self>> {
        let Some(file) = MemberFile::find(folder, node)? else { return Ok(None) };
        let is_of_group = |statement: &super::member_file::Statement| {
            statement.is_of_this_format
                && statement.identity.digest == digest
                && statement.identity.node == node
                && statement.state == State::Running
        };
        let Some(statement) = file.read().filter(is_of_group) else { return Ok(None) };
        let way = match WayTo::open(folder, &Names::of(node).memory) {
            Ok(way) => way,
            // The file has been removed, and its owner is creating another one.
            Err(Errno::NOENT | Errno::CONNREFUSED) => return Ok(None),
            Err(errno) => return Err(errno),
        };
        Ok(Some(Self {
            identity: statement.identity,
            contact: Mutex::new(Contact { file, way }),
            bell: OnceLock::new(),
            sent: Mutex::default(),
            regions: Mutex::default(),
            regions_told: AtomicUsize::new(0),
            is_cut: AtomicBool::new(false),
        }))
    }

    /// Which node.
    pub(super) const fn id(&self) -> NodeId {
        self.identity.node
    }

    /// Returns the incarnation of the peer.
    pub(super) const fn incarnation(&self) -> u64 {
        self.identity.incarnation
    }

    /// Returns the peer's doorbell, once it has sent a row.
    pub(super) fn bell(&self) -> Option<&Bell> {
        self.bell.get()
    }

    /// Ends all traffic with the peer until the two processes meet again.
    pub(super) fn cut(&self) {
        self.is_cut.store(true, Ordering::Relaxed);
    }

    /// Notes that the two processes have met again. Future views include the peer, but open views
    /// stay cut.
    pub(super) fn meet(&self) {
        self.is_cut.store(false, Ordering::Relaxed);
    }

    /// Returns whether the peer has been cut off.
    pub(super) fn is_cut(&self) -> bool {
        self.is_cut.load(Ordering::Relaxed)
    }

    /// Returns whether and how the peer has ended. Takes two system calls; a failed call counts as
    /// no news.
    pub(super) fn loss(&self) -> Option<LossCause> {
        let contact = self.contact();
        let gone = matches!(contact.file.is_locked(), Ok(false));
        // The peer's state is read after the lock, because the peer writes it before it releases
        // the lock. A damaged file contains no state.
        match contact.file.read().map(|statement| statement.state) {
            Some(State::Left) => Some(LossCause::Left),
            Some(State::Failed) => Some(LossCause::Exited),
            Some(State::Running | State::MadeAgain) | None => gone.then_some(LossCause::Exited),
        }
    }

    /// Sends descriptors to the peer: see [`WayTo::send`].
    pub(super) fn send(
        &self,
        message: DescriptorMessage,
        files: &[BorrowedFd<'_>],
    ) -> rustix::io::Result<bool> {
        self.contact().way.send(message, files)
    }

    /// Switches to the process's new file and socket, if it has created these again, because it
    /// does not keep the old ones forever.
    pub(super) fn renew(&self, folder: &Folder) {
        let has_others =
            self.contact().file.read().is_some_and(|said| said.state == State::MadeAgain);
        if has_others
            && let Ok(Some(found)) = Self::find(folder, self.id(), self.identity.digest)
            && found.identity == self.identity
        {
            let contact = found.contact.into_inner().unwrap_or_else(PoisonError::into_inner);
            *self.contact() = contact;
        }
    }

    fn contact(&self) -> MutexGuard<'_, Contact> {
        self.contact.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Accepts memory that this process sent, if it can be mapped and read safely, whatever the
    /// process does.
    pub(super) fn accept(
        &self,
        message: &DescriptorMessage,
        files: [Option<OwnedFd>; 2],
    ) -> Result<(), Unusable> {
        let subject = message.subject;
        let (file, bell) = match (subject, files) {
            (Subject::Row { .. }, [Some(row), Some(bell)]) => (row, Some(bell)),
            (Subject::Row { .. }, _) | (_, [_, Some(_)] | [None, None]) => {
                return Err(Unusable::Message);
            }
            (_, [Some(memory), None]) => (memory, None),
        };
        let bytes = check(file.as_fd(), Writers::Owner)?;
        if bytes < HEADER_BYTES {
            return Err(Unusable::Length);
        }
        let map = match subject {
            Subject::Row { .. } => Map::new(file.as_fd(), HEADER_BYTES, Access::Read),
            Subject::Queue { .. } => Map::new(file.as_fd(), bytes, Access::Read),
            Subject::Block { .. } => Map::new_large(file.as_fd(), bytes, Access::Read),
            Subject::Region { .. } => Map::new_sparse(file.as_fd(), bytes),
        };
        let map = map.map_err(|_| Unusable::NotMemory)?;
        let maker = Maker {
            node: u64::from(self.id().get()),
            incarnation: self.incarnation(),
            number: subject.number(),
        };
        if !Header::new(&map).is_by(&maker) {
            return Err(Unusable::Owner);
        }
        if let Some(bell) = bell.as_ref().filter(|_| self.bell.get().is_none()) {
            self.take_bell(bell)?;
        }
        if let Subject::Region { region, .. } = subject {
            return self.keep_region(region, map, &maker);
        }
        self.keep(SentMemory { subject, map, row: bell.map(|_| (file, bytes)), is_used: false })
    }

    /// A region stays as it was first sent, because views already use it. It may arrive again from
    /// a process that has since forgotten this one.
    fn keep_region(&self, region: Region, map: Map, maker: &Maker) -> Result<(), Unusable> {
        let index = RegionIndex::of(region).ok_or(Unusable::TooMany)?;
        let place = &mut self.regions.lock().unwrap_or_else(PoisonError::into_inner)[index.0];
        match place {
            Some(known) if known.is_by(maker) => {}
            Some(_) => return Err(Unusable::TooMany),
            None => *place = Some(Arc::new(PeerRegion::new(map))),
        }
        Ok(())
    }

    /// Returns the regions that the peer has sent. It sends them before its first row.
    pub(super) fn regions(&self) -> PeerRegions {
        self.regions.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// Returns the number of local regions that have been sent to the peer, in the order in which
    /// they were created.
    pub(super) fn regions_told(&self) -> usize {
        self.regions_told.load(Ordering::Relaxed)
    }

    /// Counts one more region as sent. Only one call may run at a time.
    pub(super) fn note_region_told(&self) {
        self.regions_told.fetch_add(1, Ordering::Relaxed);
    }

    fn keep(&self, new: SentMemory) -> Result<(), Unusable> {
        let mut sent = self.sent();
        // New memory replaces memory that has been given up.
        sent.retain(|other| other.subject != new.subject && !Header::new(&other.map).is_over());
        let kind = std::mem::discriminant(&new.subject);
        let is_ahead =
            |other: &&SentMemory| !other.is_used && std::mem::discriminant(&other.subject) == kind;
        let most =
            if matches!(new.subject, Subject::Block { .. }) { BLOCKS_MAX } else { AHEAD_MAX };
        if sent.iter().filter(is_ahead).count() >= most {
            return Err(Unusable::TooMany);
        }
        sent.push(new);
        Ok(())
    }

    fn take_bell(&self, bell: &OwnedFd) -> Result<(), Unusable> {
        if check(bell.as_fd(), Writers::All)? != BELL_BYTES {
            return Err(Unusable::Length);
        }
        let map = Map::new(bell.as_fd(), BELL_BYTES, Access::Write);
        let map = Arc::new(map.map_err(|_| Unusable::NotMemory)?);
        self.bell.get_or_init(|| Bell::new(map, self.identity.sleeper_barrier));
        Ok(())
    }

    /// Maps a row that the peer has sent. Returns true if the row has arrived and its owner has not
    /// given it up.
    ///
    /// The row can be mapped again for a view whose memory is allocated anew here but not at the
    /// peer.
    pub(super) fn put_row(
        &self,
        view: ViewId,
        digest: u64,
        place: &Map,
    ) -> rustix::io::Result<bool> {
        let mut sent = self.sent();
        let subject = Subject::Row { view, digest };
        let Some(at) = sent.iter().position(|memory| memory.subject == subject) else {
            return Ok(false);
        };
        let Some((file, bytes)) = &sent[at].row else { return Ok(false) };
        if *bytes != place.bytes() {
            refused(self.id(), Unusable::Length);
        } else if !Header::new(&sent[at].map).is_over() {
            place.replace(file.as_fd())?;
            sent[at].is_used = true;
            return Ok(true);
        }
        sent.swap_remove(at);
        Ok(false)
    }

    /// Takes block memory that the peer sent for a view.
    pub(super) fn take_block(&self, view: ViewId, serial: u64) -> Option<Map> {
        let subject = Subject::Block { view, serial };
        self.take(|memory| memory.subject == subject)
    }

    /// Takes the newest queue that the peer sent for a view.
    pub(super) fn take_queue(&self, view: ViewId) -> Option<Map> {
        self.take(|memory| match memory.subject {
            Subject::Queue { view: of, .. } => of == view,
            _ => false,
        })
    }

    fn take(&self, is_it: impl Fn(&SentMemory) -> bool) -> Option<Map> {
        let mut sent = self.sent();
        let at = sent.iter().rposition(is_it)?;
        Some(sent.remove(at).map)
    }

    /// Forgets memory that its owner has given up.
    pub(super) fn forget_what_is_over(&self) {
        self.sent().retain(|memory| !Header::new(&memory.map).is_over());
    }

    /// Returns whether the peer has sent something that may still be needed.
    pub(super) fn has_sent(&self) -> bool {
        let has_regions = self.regions().iter().any(Option::is_some);
        (has_regions || !self.sent().is_empty()) && self.loss().is_none()
    }

    fn sent(&self) -> MutexGuard<'_, Vec<SentMemory>> {
        self.sent.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// Reports the reason why something sent by a peer is not used.
pub(super) fn refused(member: NodeId, why: Unusable) {
    tracing::warn!(
        %member,
        "memory that this member sent is not used: {why}; run the same version everywhere, and no \
         other program that opens this group's folder"
    );
}
