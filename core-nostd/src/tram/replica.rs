//! A replica of a group: its state, and the step that drives it.
//!
//! The methods in their order: [`Replica::open`]; [`Replica::attach`] for each peer that is met, at
//! any time; [`Replica::step`] again and again; [`Replica::detach`] for a peer that is lost.
//! [`Replica::snapshot`] and [`Replica::restore`] carry what a replica knows to one that has lost
//! it, beside the application's own state.
//!
//! # Invariants
//! - A step does a bounded amount of work: each loop is bounded by a number of the overlay.
//! - A replica that granted its log to another leads no more in that step (TRM-3).
//! - Nothing is delivered that is not decided, and nothing twice.
//!
//! Source: TRAM, section 5.3 (Algorithm 2).
//!
//! Requirement: TRM-6.

use super::bodies::{Held, Wanted};
use super::campaign::Campaign;
use super::counts::{Counts, SourceState, UpTo};
use super::follow::Follow;
use super::link::{Attached, Attachment, LinkId, Memory, ReplicaLinks, Stage};
use super::log::Log;
use super::overlay::{CHILDREN_MAX, Destinations, Overlay, ReplicaId};
use super::pass_on::Served;
use super::places::Places;
use super::posting::CONTROL_BYTES;
use super::progress::{Application, Halt, OpenError, Progress};
use super::replies::Replies;
use super::shape::Shape;
use super::stream::Stream;
use super::timestamp::Timestamp;
use crate::fabric::{Capabilities, Fabric, Permissions, Promises};
use crate::ids::{Ordinal, Rank, Time, index_from_u32};
use crate::memory::RowWriter;

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

/// The state that is lent to a replica.
#[derive(Debug)]
pub struct LentState<'s> {
    /// One for each of [`ReplicaLinks::len`].
    pub links: &'s mut [LinkState],
    /// One for the parent, and one for each client.
    pub sources: &'s mut [SourceState],
    /// [`Replica::reply_cells`] cells.
    pub replies: &'s mut [u64],
    /// Room for the largest payload.
    pub payload: &'s mut [u8],
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

/// Whether a replica leads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Leadership {
    Follower,
    Candidate(Campaign),
    Leader,
}

/// A replica of a group.
#[derive(Debug)]
pub struct Replica<'s> {
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
    /// The replica that may write to this replica's log in the attached view.
    pub(super) granted_to: Option<LinkId>,
    /// Whether this replica counts in quorums.
    pub(super) is_voter: bool,
    pub(super) leadership: Leadership,
    /// What the clients, and the peers, were shown of it.
    pub(super) shown_leading: bool,
    pub(super) shown_standing: u64,
    pub(super) shown_hears: u64,
    pub(super) campaigns: u32,
    /// When the last campaign began.
    pub(super) campaign_at: Option<Time>,
    pub(super) attempts: u32,

    /// The end of the own log, as its leader.
    pub(super) tail: u64,
    pub(super) delivered: u64,
    pub(super) needs_snapshot: bool,
    /// It has restored a snapshot, and its log has this stamp still: a leader has not filled it.
    pub(super) gapped: Option<Timestamp>,
    /// An entry that the parent passed on early was replaced in the parent's log: the own log ends
    /// below it from the next campaign on.
    pub(super) is_contradicted: bool,
    /// As a new leader: its first entry has not been proposed yet.
    pub(super) owes_null: bool,
    /// Bytes of the payloads that this step has given places.
    pub(super) run_bytes: u64,
    /// Reads of payloads into the own log that are under way, and over which link.
    pub(super) reads: Option<(LinkId, u32)>,
    /// The number of the last heartbeat, and when it was given.
    pub(super) beats: u64,
    pub(super) beat_at: Option<Time>,
    /// Whose turn it is among the clients.
    pub(super) turn: u16,
    pub(super) held: Held,
    /// As a leader: a message of the parent's whose body is not here, and since when.
    pub(super) wanted: Option<Wanted>,
    pub(super) wanted_since: Option<(Ordinal, Time)>,
    pub(super) progress: Progress,
}

impl<'s> Replica<'s> {
    /// A replica over lent state.
    ///
    /// # Errors
    /// The replica is not in the overlay, the lent state is too small, or the fabric lacks a
    /// promise that the protocol stands on.
    pub fn open(
        overlay: &'s Overlay,
        id: ReplicaId,
        options: ReplicaOptions,
        capabilities: Capabilities,
        lent: LentState<'s>,
    ) -> Result<Self, OpenError> {
        let LentState { links: state, sources, replies, payload } = lent;
        if id.rank.0 >= overlay.replicas(id.group) {
            return Err(OpenError::NoSuchReplica);
        }
        let shape = Shape::of(overlay, id.group);
        let links = ReplicaLinks::of(overlay, id.group);
        let clients = usize::from(overlay.limits().clients);
        let is_enough = state.len() >= links.len()
            && sources.len() == clients.saturating_add(1)
            && replies.len() == Self::reply_cells(overlay)
            && payload.len() >= index_from_u32(shape.payload_max());
        if !is_enough {
            return Err(OpenError::StateTooSmall);
        }
        check_fabric(&capabilities, &shape)?;
        // None would never be enough for a first payload.
        let options = ReplicaOptions { run_bytes: options.run_bytes.max(1), ..options };
        state.fill(LinkState::default());
        let mut children = heapless::Vec::new();
        // bound: the children
        for below in links.below() {
            let child = ChildState {
                reach: overlay.reach(below.group),
                shape: Shape::of(overlay, below.group),
                kept_from: 0,
                settled: 0,
            };
            // There is room: an overlay has no group with more children.
            let _ = children.push(child);
        }
        let counts = Counts::new(sources, children.len());
        Ok(Self {
            overlay,
            id,
            options,
            shape,
            links,
            state: Places::new(state),
            counts,
            replies: Replies::new(replies, overlay),
            payload,
            children,
            capabilities,
            promised: Timestamp::NONE,
            granted_to: None,
            is_voter: options.is_founder,
            leadership: Leadership::Follower,
            shown_leading: false,
            shown_standing: 0,
            shown_hears: 0,
            campaigns: 0,
            campaign_at: None,
            attempts: 0,
            tail: 0,
            delivered: 0,
            needs_snapshot: false,
            gapped: None,
            is_contradicted: false,
            owes_null: false,
            run_bytes: 0,
            reads: None,
            beats: 0,
            beat_at: None,
            turn: 0,
            held: Held::default(),
            wanted: None,
            wanted_since: None,
            progress: Progress::default(),
        })
    }

    /// Takes a view into use. The host has opened it at the fabric, and lends its rows from now on.
    /// A link that had another view has this one instead.
    pub fn attach<M: Memory>(
        &mut self,
        now: Time,
        link: LinkId,
        attachment: Attachment,
        memory: &M,
    ) -> Result<(), Halt> {
        self.detach(now, link);
        if self.links.role(link).is_none() {
            return Ok(());
        }
        let state = self.state.at_mut(link);
        *state = LinkState::default();
        state.attached = Attached {
            stage: Stage::Waiting,
            view: attachment.view,
            peer: attachment.peer,
            incarnation: attachment.incarnation,
            since: now,
            dirty: true,
        };
        self.show_all(link, memory)
    }

    /// Gives up a link's view. The host may close it.
    pub fn detach(&mut self, now: Time, link: LinkId) {
        let state = self.state.at_mut(link);
        if state.attached.stage != Stage::Absent {
            *state = LinkState::default();
            state.attached.since = now;
        }
        // Where a view is gone, its rights are, too.
        if self.granted_to == Some(link) {
            self.granted_to = None;
        }
        self.forget_reads(link);
    }

    /// One step: takes what came, does what follows from it, and posts what changed.
    ///
    /// # Errors
    /// The replica cannot go on: its memory does not fit, or its log contradicts itself.
    pub fn step<F, M, A>(
        &mut self,
        now: Time,
        fabric: &mut F,
        memory: &M,
        application: &mut A,
    ) -> Result<Progress, Halt>
    where
        F: Fabric + Permissions,
        M: Memory,
        A: Application,
    {
        self.progress = Progress::default();
        self.take_events(now, fabric);
        self.make_ready(now, fabric);
        self.beat(now, memory)?;
        self.listen(now, memory)?;
        self.answer_requests(now, fabric, memory)?;
        self.stand(now, fabric, memory)?;
        let log = Log::new(memory.log(), self.shape);
        match self.leadership {
            Leadership::Follower => {
                self.hold_bodies(log, memory)?;
                self.deliver(log, memory, application)?;
            }
            Leadership::Candidate(campaign) => {
                self.deliver(log, memory, application)?;
                self.campaign(now, campaign, fabric, memory)?;
            }
            Leadership::Leader => {
                self.copy_headers(fabric, log, memory)?;
                self.prepare_followers(log, memory)?;
                self.look_at_bodies(now, log, memory)?;
                self.decide(log, memory)?;
                self.deliver(log, memory, application)?;
                self.propose(now, fabric, log, memory)?;
                // What others wait for goes first: messages for the children's leaders, entries,
                // then replies, then what the followers may deliver.
                self.pass_on(Served::Leaders, now, fabric, log, memory)?;
                self.post_children(Served::Leaders, fabric, memory)?;
                self.stream_all(Stream::Entries, fabric, log, memory)?;
                self.decide(log, memory)?;
                self.show_leading(memory)?;
                self.post_clients(fabric, memory)?;
                self.stream_all(Stream::All, fabric, log, memory)?;
                if !self.options.serves_leaders_alone {
                    self.pass_on(Served::Others, now, fabric, log, memory)?;
                    self.post_children(Served::Others, fabric, memory)?;
                }
                if self.is_contradicted {
                    self.begin_campaign(now, fabric, memory)?;
                }
            }
        }
        self.show_leading(memory)?;
        self.show_standing(memory)?;
        self.post_children(Served::Leaders, fabric, memory)?;
        self.post_clients(fabric, memory)?;
        self.post_lines(fabric, memory)?;
        self.progress.delivered_total = self.delivered;
        Ok(self.progress)
    }

    /// Who this is.
    #[must_use]
    pub const fn id(&self) -> ReplicaId {
        self.id
    }

    /// Whether it leads its group, as far as it knows.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        matches!(self.leadership, Leadership::Leader)
    }

    /// Whether it counts in quorums.
    #[must_use]
    pub const fn is_voter(&self) -> bool {
        self.is_voter
    }

    /// The timestamp of the leader to which it last gave its log.
    #[must_use]
    pub const fn promised(&self) -> Timestamp {
        self.promised
    }

    /// How many entries it has delivered.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.delivered
    }

    /// It lacks entries that its group has no longer: it needs a snapshot of another replica.
    #[must_use]
    pub const fn needs_snapshot(&self) -> bool {
        self.needs_snapshot
    }

    /// Its links.
    #[must_use]
    pub const fn links(&self) -> &ReplicaLinks {
        &self.links
    }

    /// How far a link is.
    #[must_use]
    pub fn stage(&self, link: LinkId) -> Stage {
        self.state.at(link).attached.stage
    }

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

fn check_fabric(capabilities: &Capabilities, shape: &Shape) -> Result<(), OpenError> {
    let needed = Promises::WRITE_ORDER.union(Promises::COMPLETION_VISIBLE);
    if !capabilities.promises.contains(needed) {
        return Err(OpenError::FabricPromises);
    }
    // A list to a log has an entry at least: a fabric takes as many bytes in it as in a write.
    let entry = shape.header_bytes().saturating_add(index_from_u32(shape.payload_max()));
    let is_too_small = capabilities.write_bytes_max < shape.slot_bytes()
        || capabilities.write_bytes_max < entry.saturating_add(CONTROL_BYTES)
        || capabilities.writes_max < 4
        || capabilities.guard_bytes_max < 24;
    if is_too_small { Err(OpenError::FabricTooSmall) } else { Ok(()) }
}

/// Stores a cell of an own row.
pub(super) fn put(row: RowWriter<'_>, offset: usize, value: u64) -> Result<(), Halt> {
    row.cell(offset)?.publish(value);
    Ok(())
}

/// The rank of a link to a peer of the own group.
pub(super) const fn rank_of(link: LinkId) -> Rank {
    Rank(link.0)
}
