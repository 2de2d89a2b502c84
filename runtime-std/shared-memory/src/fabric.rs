//! The `Fabric` over shared rows, in which a write to a row needs no transfer at all.
//!
//! The release store in the local row is the write, and it is visible before `post` is called. So a
//! post only has to check its ranges, and wake its target if the target is asleep. A list is
//! complete as soon as it has been posted. The bytes of a guard cannot be preserved as they were at
//! the call, and need not be: a cell only grows, and its own release store follows the content that
//! it covers.
//!
//! A view opens before its peers' rows exist. The descriptor of the local row is sent to each peer
//! that is present. While rows are missing at either end, `poll` checks for them at intervals, and
//! a member that has received a row rings the row's owner.
//!
//! No call here allocates memory once all views are open and all peers have been found. The only
//! system calls are one in a post or a wake whose target is asleep, those of
//! [`SharedMemory::sleep`] and `arm`, those of [`SharedMemory::check_peers`], and those of the
//! search for a missing row.

use std::collections::VecDeque;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Weak};
use std::time::Duration;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, HostFabric, LocalBell, PermissionEvent, Promises,
    Region, Token, ViewMemory, ViewPlan, WRITES_MAX, Write,
};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::layout::{CACHE_LINE, ROW_MAX};

use super::error::Error;
use super::exchange::Exchange;
use super::futex::Bell;
use super::mappings::{Mappings, ViewMappings};
use super::met::MetProcess;
use super::open_view::OpenView;
use super::open_views::{OpenViews, VIEWS_MAX};
use super::region_memory::{OwnRegions, REGIONS_MAX};
use super::region_outlet::{ListResults, TOKENS_MAX};
use super::residence::Residence;
use super::view_regions::is_to_region;
use super::write_queue::{list_bytes_max, ring_bytes};

/// The maximum number of completions waiting for a poll. Beyond it, a post with a token is refused
/// for now.
pub(super) const COMPLETIONS_MAX: usize = 1024;

/// The number of events about a member of a view: it is ready, and it is lost.
const EVENTS_A_MEMBER: usize = 2;

/// The capacity for events about a region between two polls, sufficient for an owner that changes
/// the right at each poll. More events cause an allocation.
const EVENTS_A_REGION: usize = 4;

/// The number of polls between two checks for missing rows: at first, and after a long time without
/// a new row.
const LOOK_POLLS_MIN: u32 = 64;
const LOOK_POLLS_MAX: u32 = 1 << 14;

/// The schedule of checks for missing rows. They become rarer until there is a reason to check.
#[derive(Debug)]
struct Pace {
    polls_left: u32,
    polls: u32,
}

impl Pace {
    const fn new() -> Self {
        Self { polls_left: LOOK_POLLS_MIN, polls: LOOK_POLLS_MIN }
    }

    /// Counts a poll. Returns true if a check is due.
    fn is_due(&mut self) -> bool {
        self.polls_left = self.polls_left.saturating_sub(1);
        if self.polls_left > 0 {
            return false;
        }
        self.polls = self.polls.saturating_mul(2).min(LOOK_POLLS_MAX);
        self.polls_left = self.polls;
        true
    }
}

/// The shared-memory fabric of one process, over the [`Mappings`] of its views.
#[derive(Debug)]
pub struct SharedMemory {
    pub(super) residence: Arc<Residence>,
    bell: Bell,
    /// The memory of views that are not open yet. The caller that requested the memory keeps it
    /// alive.
    made: Vec<Weak<ViewMappings>>,
    /// Whether memory for a view has been allocated. From then on, the set of regions is fixed.
    pub(super) has_made_rows: bool,
    pub(super) views: OpenViews,
    /// Processes that were met, for the next view to be opened.
    pub(super) met: Vec<MetProcess>,
    pub(super) own_regions: OwnRegions,
    /// Size in bytes of each write queue that this process creates.
    pub(super) ring_bytes: usize,
    /// The views that have queues to or from regions. A poll examines only these.
    with_queues: Vec<ViewId>,
    pub(super) completed: VecDeque<Token>,
    /// Readiness and losses that `poll` has not yet reported.
    pub(super) events: VecDeque<Event>,
    /// Changes of rights that `poll_permission` has not yet reported.
    pub(super) told: VecDeque<PermissionEvent>,
    /// Whether a member's row or queue is missing but may still be received.
    is_awaiting: bool,
    is_armed: bool,
    pace: Pace,
}

impl SharedMemory {
    /// Notes that two processes have met again, so that a cut between them no longer applies to
    /// future views. It still applies to open views. Intended for hosts whose members separate and
    /// reconnect while they run.
    pub fn meet(&self, node: NodeId) {
        self.residence.meet(node);
    }

    /// Takes the connection, a stream socket, over which the process of a node was met. Call this
    /// before the view that both are in is opened. From then on,
    /// [`check_peers`](HostFabric::check_peers) reports the process as lost if it ends, even if it
    /// ends before this process has found its memory.
    pub fn keep_connection(&mut self, node: NodeId, connection: OwnedFd) {
        self.met.retain(|met| met.node != node);
        self.met.push(MetProcess { node, connection });
    }

    /// Returns whether a peer has ended a view that is open here. Nothing that is written to the
    /// view will be read.
    #[must_use]
    pub fn has_ended(&self, view: ViewId, peer: Rank) -> bool {
        self.view(view).is_some_and(|open| open.membership.is_given_up(peer))
    }

    /// Creates the fabric of a process, without any open view.
    #[must_use]
    pub fn for_residence(residence: &Arc<Residence>) -> Self {
        Self {
            residence: Arc::clone(residence),
            bell: residence.bell(),
            made: Vec::new(),
            has_made_rows: false,
            views: OpenViews::default(),
            met: Vec::new(),
            own_regions: OwnRegions::default(),
            ring_bytes: ring_bytes(0),
            with_queues: Vec::new(),
            completed: VecDeque::with_capacity(COMPLETIONS_MAX),
            events: VecDeque::new(),
            told: VecDeque::new(),
            is_awaiting: false,
            is_armed: false,
            pace: Pace::new(),
        }
    }

    /// Returns this process's residence in the group.
    #[must_use]
    pub const fn residence(&self) -> &Arc<Residence> {
        &self.residence
    }

    /// Returns news about peers, which are checked for at intervals. There is rarely any news.
    #[cold]
    fn next_news(&mut self) -> Option<Event> {
        if self.is_awaiting && self.pace.is_due() {
            self.look();
        }
        self.events.pop_front()
    }

    /// Handles a ring, which may announce a new row or a right that has been granted.
    #[cold]
    fn woken(&mut self) -> Event {
        if self.bell.take_news() {
            self.pace = Pace::new();
            self.look();
        }
        Event::Woken
    }

    /// Notes that something is expected from a peer. Polls check for it, often at first.
    pub(super) fn await_news(&mut self) {
        (self.is_awaiting, self.pace) = (true, Pace::new());
    }

    /// Sends rows that peers lack, and checks for rows that are missing here or have been replaced.
    /// Sending comes first: of two members that check for each other, at least one then finds the
    /// other's row, and rings. Then does the same for the queues of regions.
    #[cold]
    fn look(&mut self) {
        let (mut is_row_missing, mut is_queue_missing) = (false, false);
        for view in self.views.iter_mut() {
            is_row_missing |= view.send_rows(&self.residence);
            is_queue_missing |= view.awaits_queues();
        }
        if is_row_missing || is_queue_missing {
            self.residence.receive();
        }
        if is_row_missing {
            for view in self.views.iter_mut() {
                view.put_rows(&mut self.events);
            }
        }
        self.is_awaiting = self.meet_rights();
        self.is_awaiting |= self.views.iter().any(OpenView::is_awaiting);
    }

    /// Reads the rights granted by peers, and checks for queues where rights have been granted.
    /// Returns true if a queue is still to be sent or received.
    fn meet_rights(&mut self) -> bool {
        let Self { views, residence, ring_bytes, completed, told, with_queues, .. } = self;
        let mut is_awaiting = false;
        with_queues.clear();
        for view in views.iter_mut() {
            let mut told = ListResults { completed: &mut *completed, permissions: &mut *told };
            let outlook = view.meet_rights((residence, *ring_bytes), &mut told);
            is_awaiting |= outlook.is_awaiting;
            if outlook.has_queues {
                with_queues.push(view.id);
            }
        }
        // The capacity for all events that can arise before the next poll, so that no poll
        // allocates.
        let most = COMPLETIONS_MAX + with_queues.len() * TOKENS_MAX;
        completed.reserve(most.saturating_sub(completed.len()));
        let most = with_queues.len() * EVENTS_A_REGION * REGIONS_MAX;
        told.reserve(most.saturating_sub(told.len()));
        is_awaiting
    }

    /// Applies peers' lists to the local regions, and notes the results of local posts. Returns
    /// true if a list has been applied.
    #[inline]
    fn carry_regions(&mut self) -> bool {
        let Self { views, own_regions, with_queues, completed, told, events, .. } = self;
        let mut has_applied = false;
        for id in with_queues.iter() {
            let Some(view) = views.get_mut(*id) else { continue };
            let mut told = ListResults { completed: &mut *completed, permissions: &mut *told };
            has_applied |= view.carry_regions(own_regions, &mut told, events);
        }
        has_applied
    }

    /// Returns the next event about regions, if a peer may write to local regions or this member
    /// may write to a peer's.
    #[inline]
    fn next_of_regions(&mut self) -> Option<Event> {
        let has_applied = self.carry_regions();
        if let Some(token) = self.completed.pop_front() {
            return Some(Event::Completed(token));
        }
        // An applied list wakes a member that is about to sleep, because the member may have
        // checked for data before it polled.
        (has_applied && self.is_armed).then_some(Event::Woken)
    }

    fn view(&self, id: ViewId) -> Option<&OpenView> {
        self.views.get(id)
    }

    /// Takes the memory with which a view is opened, if it was allocated for that view.
    fn take_made(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Option<Arc<ViewMappings>> {
        let is_it =
            |made: &Arc<ViewMappings>| made.is(memory) && made.view() == view && !made.is_over();
        let found = |(place, made): (usize, &Weak<ViewMappings>)| {
            Some((place, made.upgrade().filter(is_it)?))
        };
        let (place, membership) = self.made.iter().enumerate().find_map(found)?;
        self.made.swap_remove(place);
        Some(membership)
    }
}

/// Returns whether the source and target of a write are the same range of the row. Anything else
/// would have to move bytes.
#[inline]
fn is_carried(write: &Write, row_bytes: usize) -> bool {
    let fits = write.source.offset.checked_add(write.length).is_some_and(|end| end <= row_bytes);
    fits && write.source == write.target && write.source.region == Region::ROW
}

impl SharedMemory {
    /// Posts a list to a peer's region. The list is copied, not shared: see `permissions`.
    fn post_to_region(
        &mut self,
        (view, to): (ViewId, Rank),
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        if token.is_some() && self.completed.len() >= COMPLETIONS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        let open = self.views.get_mut(view).ok_or(ErrorKind::Other)?;
        let memory = (&self.own_regions, list_bytes_max(self.ring_bytes));
        open.post_to_region(to, memory, writes, token)
    }
}

impl Fabric for SharedMemory {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::all(),
            writes_max: WRITES_MAX,
            write_bytes_max: ROW_MAX,
            guard_bytes_max: CACHE_LINE,
            write_overhead_bytes: usize::MAX,
        }
    }

    /// # Errors
    /// [`ErrorKind::Other`] if the view is open, or if as many views as permitted are open;
    /// [`ErrorKind::WrongMemory`] if [`HostFabric::rows`] did not make the memory for this view, or
    /// if it was used before. So a view that ended may be opened again in fresh memory with another
    /// list of members. Its host must not open it again after it was installed.
    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        if self.view(view).is_some() || self.views.len() >= VIEWS_MAX {
            return Err(ErrorKind::Other);
        }
        let membership = self.take_made(view, memory).ok_or(ErrorKind::WrongMemory)?;
        let members = |view: &OpenView| view.membership.ids().len();
        let told = self.views.iter().map(members).sum::<usize>() + memory.members.len();
        self.events.reserve(EVENTS_A_MEMBER * told);
        self.views.add(OpenView::new(view, membership, &mut self.met));
        self.pace = Pace::new();
        self.look();
        Ok(())
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.view(view).is_some_and(|view| view.is_ready(peer))
    }

    /// Ends all traffic with that node in every open view, and with the node's process in future
    /// views.
    fn cut(&mut self, view: ViewId, peer: Rank) {
        let Some(node) = self.view(view).and_then(|view| view.node_at(peer)) else { return };
        for view in self.views.iter_mut() {
            view.cut(node);
        }
    }

    fn retire(&mut self, view: ViewId) -> bool {
        if let Some(open) = self.views.remove(view) {
            open.end();
            let is_of = |event: &Event| match event {
                Event::Ready { view: of, .. } | Event::PeerLost { view: of, .. } => *of == view,
                Event::Completed(_) | Event::Woken => false,
            };
            self.events.retain(|event| !is_of(event));
            self.told.retain(|event| match event {
                PermissionEvent::Denied { view: of, .. }
                | PermissionEvent::Restored { view: of, .. } => *of != view,
            });
            self.with_queues.retain(|of| *of != view);
            self.residence.forget_what_is_over();
        }
        // Nothing is ever in flight, because peers read, and the memory that they read stays mapped
        // on their side. A block that a peer is just copying is not reported.
        true
    }

    #[inline]
    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        if is_to_region(writes) {
            return self.post_to_region((view, to), writes, token);
        }
        let open = self.view(view).ok_or(ErrorKind::Other)?;
        let bell = open.target(to)?;
        if writes.len() > WRITES_MAX
            || !writes.iter().all(|write| is_carried(write, open.row_bytes))
        {
            return Err(ErrorKind::OutOfRange);
        }
        if token.is_some() && self.completed.len() == COMPLETIONS_MAX {
            return Err(ErrorKind::QueueFull);
        }
        // At most one fence per post, and none if the sleeper pays. It is unknown here which stores
        // belong to which post, so one fence for all posts of a step could not be placed safely.
        bell.ring_if_asleep();
        if let Some(token) = token {
            self.completed.push_back(token);
        }
        Ok(())
    }

    #[inline]
    fn poll(&mut self) -> Option<Event> {
        if let Some(token) = self.completed.pop_front() {
            return Some(Event::Completed(token));
        }
        if self.is_awaiting || !self.events.is_empty() {
            let event = self.next_news();
            if event.is_some() {
                return event;
            }
        }
        if !self.with_queues.is_empty() {
            let event = self.next_of_regions();
            if event.is_some() {
                return event;
            }
        }
        if self.bell.doorbell().take() { Some(self.woken()) } else { None }
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        if let Some(Ok(bell)) = self.view(view).map(|view| view.target(to)) {
            bell.ring();
        }
    }

    fn arm(&mut self) -> bool {
        let has_blocks =
            self.views.iter().filter_map(|view| view.exchange.as_ref()).any(Exchange::has_work);
        self.is_armed = self.completed.is_empty()
            && self.events.is_empty()
            && self.told.is_empty()
            && !has_blocks
            && self.bell.doorbell().arm();
        self.is_armed
    }

    fn disarm(&mut self) {
        self.is_armed = false;
        self.bell.doorbell().disarm();
    }

    fn observe_barrier(&self) {}
}

impl LocalBell for Bell {
    #[inline]
    fn ring_if_asleep(&self) {
        Bell::ring_if_asleep(self);
    }
}

impl HostFabric for SharedMemory {
    type Bell = Bell;
    type Rows = Mappings;
    type MemoryError = Error;

    /// Allocates fresh memory. See [`Residence::rows`].
    fn rows(&mut self, plan: &ViewPlan<'_>) -> Result<Mappings, Error> {
        self.has_made_rows = true;
        let rows = self.residence.rows(plan)?;
        self.made.retain(|made| made.strong_count() > 0);
        self.made.push(Arc::downgrade(rows.membership()));
        Ok(rows)
    }

    fn local_bell(&self) -> Bell {
        self.bell.clone()
    }

    /// May end early, and then returns that no ring has arrived. The cause is a signal, or the late
    /// half of an earlier ring whose system call was overtaken by this member's next sleep.
    fn sleep(&mut self, timeout: Duration) -> bool {
        self.bell.doorbell().sleep(timeout)
    }

    /// Also finds newly arrived peers.
    ///
    /// Takes three system calls per peer and one more, each taking less than a microsecond.
    /// Intended for a timer that runs about ten times per second, and for [`Event::Woken`]: a peer
    /// rings if it leaves, or if it fails while its process continues. A killed peer does not ring.
    fn check_peers(&mut self) -> bool {
        let mut is_news = false;
        for view in self.views.iter_mut() {
            is_news |= view.check(&mut self.events);
        }
        // Receives even what is not needed yet, so that no sender finds the queue full for long.
        self.residence.receive();
        self.residence.renew_peers();
        self.residence.forget_what_is_over();
        self.look();
        is_news
    }

    /// See [`Residence::leave`].
    fn leave(&mut self) {
        self.residence.leave();
    }
}
