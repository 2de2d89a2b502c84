//! The state of a replica in every role: its identity, its links, its counts, and the values that
//! it has published.
//!
//! The steps of the protocol are functions of this state, each in the file of its subject. A step
//! that belongs to one role takes the state of that role as well (see `role`).
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
use super::saved::SavedLog;
use super::shape::Shape;
use super::timestamp::Timestamp;
use crate::fabric::Capabilities;
use crate::ids::{Ordinal, Time};

/// The options of a replica.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ReplicaOptions {
    /// Time between two heartbeats, in nanoseconds.
    pub heartbeat_ns: u64,
    /// Time without a heartbeat after which a peer counts as lost; longer than the longest upcall.
    pub suspect_ns: u64,
    /// Time that a campaign may take before another begins.
    pub campaign_ns: u64,
    /// Time without a connection after which a client is closed.
    pub lease_ns: u64,
    /// Incarnation of this replica. A replica that returns has a higher one.
    pub incarnation: u16,
    /// Whether the replica has been in its group since the group began, so that it counts in
    /// quorums (TRM-5).
    pub is_founder: bool,
    /// Whether each step takes everything available. If off, each entry is decided before the next
    /// is taken, as in the paper.
    pub batching: bool,
    /// Whether messages are passed on to children while they are being replicated, rather than only
    /// once they have been decided. The children then do the same work earlier, and deliver once
    /// their parent has decided.
    pub passes_on_early: bool,
    /// Whether messages are passed on only to the leader of a child. If off, the child's other
    /// replicas receive them too, as in the paper: once the messages have been decided, and after
    /// all posts that others wait for.
    pub serves_leaders_alone: bool,
    /// Whether the host keeps the replica's log on a disk (see
    /// [`Replica::take_unsaved`](super::Replica::take_unsaved)). Entries then count, and are
    /// delivered, only once they have been saved. The overlay must not use references.
    pub is_durable: bool,
    /// Number of bytes of copied payloads after which a step takes no more: its results are sent
    /// first, and other replicas copy their payloads in the meantime. A step always takes at least
    /// one payload.
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
            is_durable: false,
            run_bytes: 16 << 10,
        }
    }
}

/// A replica's state for one link. The caller lends one such state per link.
#[derive(Clone, Copy, Debug, Default)]
pub struct LinkState {
    pub(super) attached: Attached,
    /// For a peer: its last heartbeat. `heard_at` is the time of its arrival.
    pub(super) heartbeat: u64,
    pub(super) heard_at: Option<Time>,
    /// For a peer: whether the request for the peer's log must be posted.
    pub(super) asks: bool,
    /// For a peer: whether the peer must be told what this replica has seen, or which bodies are
    /// here or needed.
    pub(super) reports: bool,
    /// For a peer: the state of its log.
    pub(super) follow: Follow,
    /// For a child's replica: the messages passed on to the replica.
    pub(super) passing: Passing,
    /// For a client: the range of its replies that must be posted.
    pub(super) replies: Option<(usize, usize)>,
    /// For a client: whether the client wrote something that no correct client writes.
    pub(super) is_bad: bool,
    /// Count in the control line that may be posted later than other values; `count_told` is the
    /// value that was last posted.
    pub(super) count: u64,
    pub(super) count_told: u64,
}

/// The state of passing messages on to one replica of a child.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Passing {
    /// Next position to store in the replica's row.
    pub(super) stored: Ordinal,
    /// Next position to post.
    pub(super) posted: Ordinal,
    /// Log index at which the search for the next position continues.
    pub(super) place: u64,
    /// Counts published as decided, by this group and by the child.
    pub(super) shown: (u64, u64),
    /// Whether the row has a message that differs in a later log. If so, only a new view's row can
    /// be used.
    pub(super) is_spoilt: bool,
}

/// A replica's state of a child as a whole.
#[derive(Clone, Copy, Debug)]
pub(super) struct ChildState {
    pub(super) reach: Destinations,
    pub(super) shape: Shape,
    /// Log index of the first entry that the child may not have decided yet.
    pub(super) kept_from: u64,
    /// Number of positions that the child is known to have decided.
    pub(super) settled: u64,
}

/// The values that a replica has last published.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct LastShown {
    /// Whether the replica leads, as published to clients and the parent.
    pub(super) leading: bool,
    /// Standing published to the replica's peers. `hears` is the set of peers that it hears.
    pub(super) standing: u64,
    pub(super) hears: u64,
    /// Number of the last heartbeat. `beat_at` is the time of that heartbeat.
    pub(super) beats: u64,
    pub(super) beat_at: Option<Time>,
}

/// A replica's record of its campaigns.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Campaigns {
    /// Number of the last campaign. `began` is the time when it began.
    pub(super) number: u32,
    pub(super) began: Option<Time>,
    /// Number of campaigns since the group was last known to have a leader.
    pub(super) attempts: u32,
    /// Number of repairs of peers' logs.
    pub(super) repairs: u64,
    /// Reads of payloads into the local log that are in flight: their link and number. They may
    /// land after the campaign is over.
    pub(super) reads: Option<(LinkId, u32)>,
}

/// The state of a replica in every role.
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
    /// Highest timestamp that this replica has granted or chosen itself.
    pub(super) promised: Timestamp,
    /// Whether this replica counts in quorums.
    pub(super) is_voter: bool,
    pub(super) delivered: u64,
    pub(super) shown: LastShown,
    pub(super) campaigns: Campaigns,
    pub(super) disk: SavedLog,
    /// Whether the peers are to learn of a restored snapshot in the next step.
    pub(super) is_restored: bool,
    pub(super) progress: Progress,
}

impl Common<'_> {
    pub(super) fn is_ready(&self, link: LinkId) -> bool {
        self.state.at(link).attached.is_ready()
    }

    /// Recomputes the next positions and ordinals from the local log. Returns the log index at
    /// which the entries, starting with the delivered ones, cease to form a gapless sequence.
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
