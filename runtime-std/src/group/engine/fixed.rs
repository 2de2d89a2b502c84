//! A member of a group with fixed membership. The group has one view, which begins when all members
//! are present, and ends when the first of them leaves or fails.
//!
//! There are no view changes, joining nodes or large messages: the layout has no columns for views,
//! a step is [`Node::step`], and an idle group posts nothing.

use std::sync::Arc;
use std::time::Duration;

use self_cell::{MutBorrow, self_cell};
use tramontane_core::fabric::HostFabric as _;
use tramontane_core::ids::{Rank, SubgroupId};
use tramontane_core::multicast::{self, Batch};
use tramontane_core::node::{Node, OpenError, Progress};

use super::parts::{Parts, Step};
use super::request::Request;
use crate::fabric::AnyFabric;
use crate::group::delivery::application::Application;
use crate::group::delivery::message::ViewChanged;
use crate::group::delivery::messages::Messages;
use crate::group::description::layout::ViewLayout;
use crate::group::description::view::{FIRST_VIEW, View};
use crate::group::status::group_status::MemberState;
use crate::group::status::statistics::{Seen, Statistics};
use crate::member::{Memory, PrivateState, Shared, Stopped};
use crate::poll::{Clock, Ending, Steps, guarded};

/// The interval between checks of the peers, that is, the maximum time for which a lost process
/// goes unnoticed.
const CHECK_PEERS: Duration = Duration::from_millis(200);

/// The memory that the node borrows.
struct Borrowed {
    shared: Arc<Shared>,
    layout: ViewLayout,
    state: PrivateState,
}

self_cell!(
    /// The node, with the memory that it borrows.
    struct NodeCell {
        owner: MutBorrow<Borrowed>,
        #[not_covariant]
        dependent: Node,
    }
);

/// The member that is stepped.
pub(crate) struct Fixed<A: Application> {
    // Dropped first, because it reads memory that `shared` keeps.
    node: NodeCell,
    shared: Arc<Shared>,
    view: Arc<View>,
    parts: Parts<A>,
    clock: Clock,
    has_ended: bool,
    has_left: bool,
}

impl<A: Application> Fixed<A> {
    /// Opens the node on memory that all members have prepared, and informs the application of the
    /// view.
    pub(crate) fn open(
        mut parts: Parts<A>,
        own: Rank,
        layout: ViewLayout,
        memory: Memory,
    ) -> Result<Self, Stopped> {
        let view = View::first(&parts.participant.description);
        let failed = |error: OpenError| Stopped::NoMemory(error.to_string());
        let shared = Arc::new(Shared::new(layout.get(), own, memory).map_err(failed)?);
        let capabilities = tramontane_core::fabric::Fabric::capabilities(&parts.fabric);
        let options = parts.participant.options;
        let state = PrivateState::new(layout.get(), own);
        let borrowed = Borrowed { shared: Arc::clone(&shared), layout, state };
        let node = NodeCell::try_new(MutBorrow::new(borrowed), |borrowed| {
            let Borrowed { shared, layout, state } = borrowed.borrow_mut();
            Node::open(FIRST_VIEW, layout.get(), own, shared.loan(state), options, capabilities)
        });
        let node = node.map_err(failed)?;
        for sending in &mut parts.sending {
            sending.begin(&shared, false);
        }
        parts.statistics.installed();
        let mut member = Self {
            node,
            shared,
            view: Arc::new(view),
            parts,
            clock: Clock::new(),
            has_ended: false,
            has_left: false,
        };
        let Self { parts, view, .. } = &mut member;
        let _span = parts.participant.enter_view_span(FIRST_VIEW);
        let change =
            ViewChanged { view, own: parts.participant.own, joined: &view.members, gone: &[] };
        guarded(|| {
            parts.application.view_changed(&change);
            Ok(())
        })?;
        member.show_status();
        Ok(member)
    }

    /// Returns the application.
    pub(crate) fn application(&mut self) -> &mut A {
        self.parts.application.get_mut()
    }

    /// Returns this member's statistics.
    pub(crate) const fn statistics(&self) -> &Statistics {
        &self.parts.statistics
    }

    #[inline]
    fn note_delivered(&mut self) {
        let Self { node, parts, .. } = self;
        parts
            .note_delivered(|subgroup| node.with_dependent(|_, node| node.own_delivered(subgroup)));
    }

    #[cold]
    fn lost(&self, progress: &Progress) -> Stopped {
        let Some((rank, cause)) = progress.lost else { return Stopped::Closed };
        let node = self.shared.node_at(rank);
        tracing::warn!(%rank, ?node, %cause, "a peer is lost");
        Stopped::PeerLost { rank, node, cause }
    }
}

impl<A: Application> Steps for Fixed<A> {
    type Fabric = AnyFabric;
    type Done = Step;

    #[inline]
    fn fabric(&mut self) -> &mut AnyFabric {
        &mut self.parts.fabric
    }

    #[inline]
    fn clock(&mut self) -> &mut Clock {
        &mut self.clock
    }

    fn ending(&self) -> &Ending {
        &self.parts.participant.ending
    }

    #[inline]
    fn work(&mut self) -> Result<Step, Stopped> {
        let Self { node, view, parts, clock, .. } = self;
        let (now, fabric) = (clock.now(), &mut parts.fabric);
        let mut upcalls = Upcalls { view, application: &mut parts.application };
        let stepped = node.with_dependent_mut(|_, node| node.step(now, fabric, &mut upcalls));
        let progress = stepped.map_err(Stopped::Broken)?;
        if progress.delivered > 0 {
            self.note_delivered();
        }
        if progress.lost.is_some() {
            return Err(self.lost(&progress));
        }
        self.parts.count(&progress);
        Ok(Step { progress, moved_large: false })
    }

    fn take_requests(&mut self) -> Result<(), Stopped> {
        while let Ok(request) = self.parts.requests.try_recv() {
            // With fixed membership, a member receives no other requests.
            if matches!(request, Request::Leave) {
                return Err(Stopped::Left);
            }
        }
        Ok(())
    }

    fn show_status(&mut self) {
        let state = match self.parts.participant.ending.stopped() {
            None => MemberState::Steady,
            Some(Stopped::Left) => MemberState::Left,
            Some(_) => MemberState::Halted,
        };
        let frontiers = |subgroup: SubgroupId| {
            self.node.with_dependent(|_, node| node.frontiers(subgroup)).unwrap_or_default()
        };
        let (suspected, joining) = (Vec::new(), Vec::new());
        let notices = self.parts.fabric.notice().into_iter().collect();
        let (frontiers, durable) = (&frontiers, &|_| None);
        let seen = Seen { state, suspected, joining, notices, slow: &[], frontiers, durable };
        self.parts.statistics.show(&self.parts.participant, &self.view, &seen);
        self.parts.statistics.show_fabric(&self.parts.fabric);
    }

    fn check_interval(&self) -> Duration {
        CHECK_PEERS
    }

    fn sleep_max(&self) -> Duration {
        CHECK_PEERS
    }

    fn idle_time(&self) -> Duration {
        self.parts.idle_time()
    }

    fn is_settled(&self) -> bool {
        self.node.with_dependent(|_, node| node.is_settled())
    }

    fn writes(&self) -> u64 {
        self.parts.statistics.writes()
    }

    #[cold]
    fn end(&mut self, why: Stopped) -> Stopped {
        let why = self.parts.participant.ending.stop(why);
        if self.has_ended {
            return why;
        }
        self.has_ended = true;
        let _span = self.parts.participant.enter_end_span();
        tracing::info!(%why, "this member ends");
        self.note_delivered();
        let Self { node, parts, .. } = self;
        let undelivered =
            |subgroup: SubgroupId| node.with_dependent(|_, node| node.undelivered(subgroup));
        parts.give_back(&why, undelivered, |_, _| None);
        self.show_status();
        why
    }

    fn leave(&mut self) {
        self.end(Stopped::Closed);
        if !self.has_left {
            self.has_left = true;
            self.parts.fabric.leave();
        }
    }
}

impl<A: Application> Drop for Fixed<A> {
    fn drop(&mut self) {
        self.leave();
    }
}

/// Passes stable messages to the application.
struct Upcalls<'e, A> {
    view: &'e View,
    application: &'e mut A,
}

impl<A: Application> multicast::Application for Upcalls<'_, A> {
    #[inline]
    fn deliver(&mut self, batch: &mut Batch<'_>) {
        self.application.deliver(&mut Messages::plain(batch, self.view));
    }
}
