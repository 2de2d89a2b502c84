//! What a replica has in each role: who it is, its links, and what it has counted and shown.
//!
//! The steps of the protocol are functions of it, each in the file of its subject. One that only a
//! role can take asks for what that role has (see `role`).
//!
//! Requirements: TRM-1, TRM-3.

use super::counts::{Counts, UpTo};
use super::follow::Follow;
use super::link::{Attached, LinkId, ReplicaLinks};
use super::log::Log;
use super::overlay::{CHILDREN_MAX, Destinations, Overlay, ReplicaId};
use super::places::Places;
use super::progress::{Halt, Progress};
use super::replies::Replies;
use super::shape::Shape;
use super::timestamp::Timestamp;
use crate::fabric::Capabilities;
use crate::ids::{Ordinal, Time};

/// What a replica is opened with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaOptions {
    /// Between two heartbeats, in nanoseconds.
    pub heartbeat_ns: u64,
    /// After how long without a heartbeat a peer counts as gone: longer than the longest upcall.
    pub suspect_ns: u64,
    /// How long a campaign may take before another begins.
    pub campaign_ns: u64,
    /// After how long without its connection a client's place is given up.
    pub lease_ns: u64,
    /// Which start of this replica it is. A replica that comes back has a higher one.
    pub incarnation: u16,
    /// It has been here since its group began, so it counts in quorums (TRM-5).
    pub is_founder: bool,
    /// Takes everything that is there in each step. Off: one entry at a time, each decided before
    /// the next, as the paper does.
    pub batching: bool,
    /// Passes messages on to children while they are being replicated, and not only once they are
    /// decided. The children do the same work earlier, and deliver once their parent has decided.
    pub passes_on_early: bool,
    /// Passes messages on to the leader of a child alone. Off: to its other replicas too, behind
    /// all that anybody waits for and once they are decided, as the paper does.
    pub serves_leaders_alone: bool,
    /// A step takes no more payloads once it has copied so many bytes of them: what it has goes out
    /// first, and others copy theirs meanwhile. It always takes one.
    pub run_bytes: u64,
}

impl Default for ReplicaOptions {
    fn default() -> Self {
        Self {
            heartbeat_ns: 1_000_000,
            suspect_ns: 10_000_000,
            campaign_ns: 20_000_000,
            lease_ns: 1_000_000_000,
            incarnation: 1,
            is_founder: true,
            batching: true,
            passes_on_early: true,
            serves_leaders_alone: true,
            run_bytes: 16 << 10,
        }
    }
}

/// What a replica keeps of one link: a list of these is lent to it.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkState {
    pub(super) attached: Attached,
    /// Of a peer: its last heartbeat, and when it came.
    pub(super) heartbeat: u64,
    pub(super) heard_at: Option<Time>,
    /// Of a peer: the request for its log is to be posted.
    pub(super) asks: bool,
    /// Of a peer: it is to be shown which bodies are here.
    pub(super) has_bodies: bool,
    /// Of a peer: how its log is written.
    pub(super) follow: Follow,
    /// Of a child's replica: what is passed on to it.
    pub(super) passing: Passing,
    /// Of a client: which of its replies are to be posted, as offsets from and up to.
    pub(super) replies: Option<(usize, usize)>,
    /// Of a client: it wrote what no correct client writes.
    pub(super) is_bad: bool,
    /// A count in the control line that may go out later: as it is, and as it was posted last.
    pub(super) count: u64,
    pub(super) count_told: u64,
}

/// What is passed on to one replica of a child.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passing {
    /// The next position to be stored in the row.
    pub(super) stored: Ordinal,
    /// The next position to be posted.
    pub(super) posted: Ordinal,
    /// The place in the log where the search for the next position goes on.
    pub(super) place: u64,
    /// How much of it was shown as decided, here and at the child.
    pub(super) shown: (u64, u64),
    /// The row holds what a later log has otherwise: only a new view's row can be used again.
    pub(super) is_spoilt: bool,
}

/// What a replica knows of a child as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildState {
    pub(super) reach: Destinations,
    pub(super) shape: Shape,
    /// The place of the first entry that the child may not have decided yet.
    pub(super) kept_from: u64,
    /// How many positions the child is known to have decided.
    pub(super) settled: u64,
}

/// What a replica has shown to others.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastShown {
    /// To clients and the parent: whether it leads.
    pub(super) leading: bool,
    /// To its peers: its standing, and whom it hears.
    pub(super) standing: u64,
    pub(super) hears: u64,
    /// The number of the last heartbeat, and when it was given.
    pub(super) beats: u64,
    pub(super) beat_at: Option<Time>,
}

/// What a replica remembers of its campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Campaigns {
    /// The number of the last one, and when it began.
    pub(super) number: u32,
    pub(super) began: Option<Time>,
    /// How many were begun since the group was last known to have a leader.
    pub(super) attempts: u32,
    /// Reads of payloads into the own log that are under way, and over which link. They may land
    /// after their campaign is over.
    pub(super) reads: Option<(LinkId, u32)>,
}

/// What a replica has in each role.
#[derive(Debug)]
pub(super) struct Common<'s> {
    pub(super) overlay: &'s Overlay,
    pub(super) id: ReplicaId,
    pub(super) options: ReplicaOptions,
    pub(super) shape: Shape,
    pub(super) links: ReplicaLinks,
    pub(super) state: Places<'s, LinkState>,
    pub(super) counts: Counts<'s>,
    pub(super) replies: Replies<'s>,
    /// Room for one payload.
    pub(super) payload: &'s mut [u8],
    pub(super) children: heapless::Vec<ChildState, CHILDREN_MAX>,
    pub(super) capabilities: Capabilities,
    /// The highest timestamp that this replica has granted, or chosen itself.
    pub(super) promised: Timestamp,
    /// Whether this replica counts in quorums.
    pub(super) is_voter: bool,
    pub(super) delivered: u64,
    pub(super) shown: LastShown,
    pub(super) campaigns: Campaigns,
    pub(super) progress: Progress,
}

impl Common<'_> {
    pub(super) fn is_ready(&self, link: LinkId) -> bool {
        self.state.at(link).attached.is_ready()
    }

    /// The next positions and ordinals are worked out anew from what is in the own log. Gives how
    /// many entries from the delivered ones on continue each other.
    pub(super) fn recount(&mut self, log: Log<'_>, tail: u64) -> Result<u64, Halt> {
        self.counts.forget_proposed();
        let mut place = self.delivered;
        // bound: the entries of the log
        for _ in 0..self.shape.entries() {
            if place >= tail {
                break;
            }
            let Some(entry) = log.load(place)? else { break };
            if self.counts.count(&entry, UpTo::Proposed).is_err() {
                break;
            }
            place = place.saturating_add(1);
        }
        Ok(place)
    }
}
