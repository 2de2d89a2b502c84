//! The regions of a member: its own regions, its connections to the peers' regions, and the changes
//! of permissions.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;

use tramontane_core::fabric::{PermissionEvent, Region, Token};
use tramontane_core::ids::Rank;

use crate::adapter::{Access, MemoryRegion, ProtectionDomain};
use crate::protocol::{Announcer, EndedKeys, Holder, Notice};

/// The access that queue pairs allow: keys alone decide which writes are accepted.
pub(crate) const REGION_ACCESS: Access = Access::REMOTE_READ.union(Access::REMOTE_WRITE);

/// One of this member's regions, for which keys are created.
#[derive(Debug)]
pub(crate) struct OwnRegion {
    pub(crate) domain: ProtectionDomain,
    /// The registration through which peers read.
    pub(crate) memory: Arc<MemoryRegion>,
}

impl OwnRegion {
    pub(super) fn register(&self) -> io::Result<MemoryRegion> {
        let access = Access::LOCAL_WRITE | Access::REMOTE_WRITE;
        MemoryRegion::new(&self.domain, self.memory.pages(), self.memory.bytes(), access)
    }
}

/// A peer's right to write to one of this member's regions.
#[derive(Debug)]
pub(super) enum WriteRight {
    /// A registration with its key: the device carries out the peer's writes.
    Key(MemoryRegion),
    /// A number that the peer's updates contain: this member applies the peer's writes.
    Number(u32),
}

impl WriteRight {
    /// Returns the number by which the peer knows the right.
    pub(super) fn name(&self) -> u32 {
        match self {
            Self::Key(memory) => memory.remote_key(),
            Self::Number(number) => *number,
        }
    }

    /// Ends the right. After this returns, no write under it lands.
    pub(super) fn end(self) -> io::Result<()> {
        match self {
            Self::Key(memory) => memory.end(),
            Self::Number(_) => Ok(()),
        }
    }
}

/// The state of a region's connection.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Way {
    /// Both ends are up.
    Open,
    /// This end is up in a new epoch, and the other end has not answered.
    Asked,
    /// A write was denied, or the owner's end was reset.
    Broken,
}

/// One region's connection to one peer.
#[derive(Debug)]
pub(crate) struct RegionLink {
    pub(super) link: usize,
    pub(super) peer: Rank,
    pub(super) region: Region,
    /// The region's number in the list of regions, which notices use to identify it.
    pub(super) number: u8,
    /// The peer's right to write to this member's region, if it has one.
    pub(super) right: Option<WriteRight>,
    /// Number of rights that the peer has had, if this member applies the peer's writes.
    pub(super) rights_given: u32,
    /// The right of the last update that was not applied, because the right had ended.
    pub(super) refused_right: Option<u32>,
    /// The tokens of lists that were sent as updates, each with the number of its last update.
    pub(super) tokens: VecDeque<(u64, Token)>,
    /// Whether updates have been posted to the peer's region since it was last known that some
    /// might not be applied.
    pub(super) has_updated: bool,
    /// Revoked keys that the peer has had.
    pub(super) ended: EndedKeys,
    /// The announcements of the key to the peer.
    pub(super) announcer: Announcer,
    /// The key with which this member may write to the peer's region, if it knows one.
    pub(super) holder: Holder,
    /// Whether a post has been refused for lack of a key.
    pub(super) refused: bool,
    pub(super) way: Way,
    pub(super) epoch: u32,
    /// The notice to send next.
    pub(super) due: Option<Notice>,
    /// Whether anything has been posted on this connection since the last ring.
    pub(super) posted: bool,
    /// The number of completed requests at which the peer is rung.
    pub(super) ring_at: Option<u64>,
}

impl RegionLink {
    pub(crate) fn new(link: usize, peer: Rank, region: Region, number: u8) -> Self {
        Self {
            link,
            peer,
            region,
            number,
            right: None,
            rights_given: 0,
            refused_right: None,
            tokens: VecDeque::new(),
            has_updated: false,
            ended: EndedKeys::new(),
            announcer: Announcer::default(),
            holder: Holder::default(),
            refused: false,
            way: Way::Open,
            epoch: 0,
            due: None,
            posted: false,
            ring_at: None,
        }
    }
}

/// Changes of permissions that have not been polled yet.
#[derive(Debug)]
pub(crate) struct PermissionQueue {
    pub(super) events: VecDeque<PermissionEvent>,
    most: usize,
}

impl PermissionQueue {
    pub(super) fn new(links: usize) -> Self {
        // Each region's connection has at most one event of each kind that still matters.
        let most = links.saturating_mul(4).max(1);
        Self { events: VecDeque::with_capacity(most), most }
    }

    pub(super) fn has_news(&self) -> bool {
        !self.events.is_empty()
    }

    pub(super) fn push(&mut self, event: PermissionEvent) {
        if self.events.contains(&event) {
            // Only the latest event counts.
            self.events.retain(|other| *other != event);
        }
        if self.events.len() < self.most {
            self.events.push_back(event);
        }
    }
}
