//! A replica of a group: its state, and the step that drives it.
//!
//! The methods, in call order: [`Replica::open`]; [`Replica::attach`] for each peer that connects,
//! at any time; [`Replica::step`] repeatedly; [`Replica::detach`] for a peer that is lost.
//! [`Replica::snapshot`] and [`Replica::restore`] carry a replica's state, together with the
//! application's own state, to a replica that has lost it.
//!
//! # Invariants
//! - A step does a bounded amount of work, because each loop is bounded by one of the overlay's
//!   numbers.
//! - A replica that has granted its log to another replica no longer leads in that step (TRM-3).
//! - Nothing is delivered before it has been decided, and nothing is delivered twice.
//!
//! Source: TRAM, section 5.3 (Algorithm 2).
//!
//! Requirements: TRM-5, TRM-6.

use super::common::{Campaigns, ChildState, Common, LastShown, LinkState, ReplicaOptions};
use super::counts::{Counts, SourceState};
use super::link::{Attached, Attachment, LinkId, Memory, ReplicaLinks, Stage};
use super::log::Log;
use super::overlay::{Overlay, ReplicaId};
use super::pass_on::Served;
use super::places::Places;
use super::progress::{Halt, OpenError, Progress, ShardApplication};
use super::replies::Replies;
use super::role::{Follower, Held, Leader, Role};
use super::saved::SavedLog;
use super::shape::Shape;
use super::step::StepContext;
use super::stream::Stream;
use super::timestamp::Timestamp;
use crate::fabric::{Capabilities, Fabric, Permissions, Promises};
use crate::ids::{Time, index_from_u32};

/// The state that a caller lends to a replica.
#[derive(Debug)]
pub struct LentState<'s> {
    /// One entry per link: [`ReplicaLinks::len`].
    pub links: &'s mut [LinkState],
    /// One entry for the parent, and one per client.
    pub sources: &'s mut [SourceState],
    /// A slice of [`Replica::reply_cells`] cells.
    pub replies: &'s mut [u64],
    /// Room for the largest payload.
    pub payload: &'s mut [u8],
}

/// A replica of a group.
#[derive(Debug)]
pub struct Replica<'s> {
    pub(super) common: Common<'s>,
    pub(super) role: Role,
}

impl<'s> Replica<'s> {
    /// Opens a replica over lent state.
    ///
    /// # Errors
    /// Fails if the replica is not in the overlay, the lent state is too small, or the fabric lacks
    /// a promise that the protocol requires.
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
        if options.is_durable && shape.has_references() {
            return Err(OpenError::References);
        }
        let is_enough = state.len() >= links.len()
            && sources.len() == clients.saturating_add(1)
            && replies.len() == Self::reply_cells(overlay)
            && payload.len() >= index_from_u32(shape.payload_max());
        if !is_enough {
            return Err(OpenError::StateTooSmall);
        }
        check_fabric(&capabilities, &shape)?;
        // If it were zero, not even the first payload of a step would be taken.
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
            // The push cannot fail: no group of an overlay has more children.
            let _ = children.push(child);
        }
        let counts = Counts::new(sources, children.len());
        let common = Common {
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
            is_voter: options.is_founder,
            delivered: 0,
            shown: LastShown::default(),
            campaigns: Campaigns::default(),
            disk: SavedLog::default(),
            is_restored: false,
            progress: Progress::default(),
        };
        Ok(Self { common, role: Role::Follower(Follower::default()) })
    }

    /// Returns the number of cells in which a replica of an overlay keeps its replies to clients.
    #[must_use]
    pub const fn reply_cells(overlay: &Overlay) -> usize {
        Replies::cells(overlay)
    }

    /// Starts to use a view. The host has opened the view at the fabric, and lends its rows from
    /// then on. If the link had another view, this view replaces it (see [`Replica::detach`]).
    pub fn attach<M: Memory>(
        &mut self,
        now: Time,
        link: LinkId,
        attachment: Attachment,
        memory: &M,
    ) -> Result<(), Halt> {
        self.detach(now, link);
        let Self { common, role } = self;
        if common.links.role(link).is_none() {
            return Ok(());
        }
        let state = common.state.at_mut(link);
        *state = LinkState::default();
        state.attached = Attached {
            stage: Stage::Waiting,
            view: attachment.view,
            peer: attachment.peer,
            incarnation: attachment.incarnation,
            since: now,
            dirty: true,
        };
        common.show_all(role, link, memory)
    }

    /// Gives up a link's view. The host must have revoked the peer's permission to write to the
    /// log, because the log may be granted to another replica from then on. The host may then
    /// close the view.
    pub fn detach(&mut self, now: Time, link: LinkId) {
        let Self { common, role } = self;
        let state = common.state.at_mut(link);
        if state.attached.stage != Stage::Absent {
            *state = LinkState::default();
            state.attached.since = now;
        }
        // The permissions of a view end with the view.
        if let Role::Follower(follower) = role
            && follower.granted_to == Some(link)
        {
            follower.granted_to = None;
        }
        common.forget_reads(link);
        role.end_without(link);
    }

    /// Does one step: takes the events, acts on them, and posts the changes.
    ///
    /// # Errors
    /// Fails if the replica cannot continue, because its memory does not fit or its log contradicts
    /// itself.
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
        A: ShardApplication,
    {
        let Self { common, role } = self;
        let log = Log::new(memory.log(), common.shape);
        let step = &mut StepContext { now, fabric, memory, log };
        common.progress = Progress::default();
        common.show_restored(role, step.memory)?;
        common.take_events(role, step);
        common.make_ready(step);
        common.beat(role, step)?;
        common.listen(role, step)?;
        common.answer_requests(role, step)?;
        common.stand(role, step)?;
        match role {
            Role::Follower(follower) => {
                common.hold_bodies(follower, step)?;
                common.report(follower, step)?;
                if common.deliver(&follower.held, application, step)? {
                    // The missing entries have arrived. If others are missing, the leader will
                    // report that again.
                    follower.needs_snapshot = false;
                }
            }
            Role::Candidate(campaign) => {
                common.deliver(&Held::default(), application, step)?;
                *role = common.campaign(*campaign, step)?;
            }
            Role::Leader(leader) => {
                common.step_as_leader(leader, application, step)?;
                if leader.is_contradicted {
                    common.begin_campaign(role, step)?;
                }
            }
        }
        common.show_leading(role.is_leader(), memory)?;
        common.show_standing(role, memory)?;
        common.post_children(Served::Leaders, step)?;
        common.post_clients(step)?;
        common.post_lines(step)?;
        common.progress.delivered_total = common.delivered;
        Ok(common.progress)
    }

    /// Returns the replica's id.
    #[must_use]
    pub const fn id(&self) -> ReplicaId {
        self.common.id
    }

    /// Returns whether the replica leads its group, as far as it knows.
    #[must_use]
    pub const fn is_leader(&self) -> bool {
        self.role.is_leader()
    }

    /// Returns whether the replica counts in quorums.
    #[must_use]
    pub const fn is_voter(&self) -> bool {
        self.common.is_voter
    }

    /// Returns the timestamp of the leader to which the replica last granted its log.
    #[must_use]
    pub const fn promised(&self) -> Timestamp {
        self.common.promised
    }

    /// Returns the number of entries that the replica has delivered.
    #[must_use]
    pub const fn delivered(&self) -> u64 {
        self.common.delivered
    }

    /// Returns whether the replica lacks entries that its group no longer has, so that it needs a
    /// snapshot from another replica.
    #[must_use]
    pub const fn needs_snapshot(&self) -> bool {
        self.role.needs_snapshot()
    }

    /// Returns the replica's links.
    #[must_use]
    pub const fn links(&self) -> &ReplicaLinks {
        &self.common.links
    }

    /// Returns the stage of a link.
    #[must_use]
    pub fn stage(&self, link: LinkId) -> Stage {
        self.common.state.at(link).attached.stage
    }
}

impl Common<'_> {
    /// Does a leader's work in a step. The posts that other members wait for come first: messages
    /// for the children's leaders and entries, then replies, then the counts of what the followers
    /// may deliver.
    fn step_as_leader<F, M, A>(
        &mut self,
        leader: &mut Leader,
        application: &mut A,
        step: &mut StepContext<'_, F, M>,
    ) -> Result<(), Halt>
    where
        F: Fabric + Permissions,
        M: Memory,
        A: ShardApplication,
    {
        self.look_at_acknowledgements(step)?;
        self.copy_headers(step)?;
        self.prepare_followers(leader, step)?;
        self.look_at_bodies(leader, step)?;
        self.decide(leader, step)?;
        self.deliver(&Held::default(), application, step)?;
        self.propose(leader, step)?;
        self.pass_on(leader, Served::Leaders, step)?;
        self.post_children(Served::Leaders, step)?;
        self.stream_all(leader, Stream::Entries, step)?;
        self.decide(leader, step)?;
        self.show_leading(true, step.memory)?;
        self.post_clients(step)?;
        self.stream_all(leader, Stream::All, step)?;
        if !self.options.serves_leaders_alone {
            self.pass_on(leader, Served::Others, step)?;
            self.post_children(Served::Others, step)?;
        }
        Ok(())
    }
}

fn check_fabric(capabilities: &Capabilities, shape: &Shape) -> Result<(), OpenError> {
    if !capabilities.promises.contains(Promises::WRITE_ORDER) {
        return Err(OpenError::FabricPromises);
    }
    // A list to a log must have room for at least one entry, and a fabric accepts as many bytes in
    // a list as in a write.
    let is_too_small = capabilities.write_bytes_max < shape.slot_bytes()
        || capabilities.write_bytes_max < shape.answer_bytes(u64::MAX)
        || capabilities.write_bytes_max < shape.list_bytes()
        || capabilities.writes_max < 4
        || capabilities.guard_bytes_max < 24;
    if is_too_small { Err(OpenError::FabricTooSmall) } else { Ok(()) }
}
