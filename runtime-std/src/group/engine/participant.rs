//! The identity and settings of a process in its group, which stay the same in all views.

use std::sync::Arc;
use std::time::Duration;

use tracing::span::EnteredSpan;
use tramontane_core::ids::{NodeId, ViewId};
use tramontane_core::node::Options;
use tramontane_core::view::ViewOptions;

use crate::group::description::terms::Description;
use crate::poll::{Ending, nanoseconds};

/// A process as a participant in its group.
pub(crate) struct Participant {
    pub(crate) description: Description,
    /// This node.
    pub(crate) own: NodeId,
    pub(crate) options: Options,
    pub(crate) ending: Arc<Ending>,
}

/// The minimum time that a member has to appear in a view.
const FIRST_TIMEOUT_MIN: Duration = Duration::from_secs(2);

impl Participant {
    /// Returns this member's options for views.
    pub(crate) fn view_options(&self) -> ViewOptions {
        let failure_timeout = self.failure_timeout();
        let first_timeout = failure_timeout.saturating_mul(self.calls_before_first());
        ViewOptions {
            heartbeat_interval_ns: nanoseconds(self.heartbeat()),
            failure_timeout_ns: nanoseconds(failure_timeout),
            first_timeout_ns: nanoseconds(first_timeout.max(FIRST_TIMEOUT_MIN)),
            members_max: self.joins_and_members_max(),
            majority: self.description.majority,
        }
    }

    /// Returns the number of upcalls, each lasting at most a failure timeout, that may run at a
    /// member between the decision of a view and the member's first step in it: one per subgroup
    /// for the previous view's remaining deliveries, one that reports the view, and one that was
    /// already running.
    fn calls_before_first(&self) -> u32 {
        u32::try_from(self.description.subgroups.len()).unwrap_or(u32::MAX).saturating_add(2)
    }

    /// Returns the maximum number of ids in the list of a next view: all nodes, and each reserved
    /// subgroup and sender that may pause, both as on and as off.
    fn joins_and_members_max(&self) -> usize {
        let changes = self.description.subgroups.iter().map(|of| {
            let senders = if of.pause_senders_after_ms > 0 { of.senders().len() } else { 0 };
            senders.saturating_add(usize::from(of.reserved)).saturating_mul(2)
        });
        changes.fold(self.description.nodes.len(), usize::saturating_add)
    }

    /// Enters the span in which a view begins, the application's upcall included.
    pub(crate) fn enter_view_span(&self, view: ViewId) -> EnteredSpan {
        let group = &self.description.name;
        tracing::info_span!("view_change", %group, node = %self.own, %view).entered()
    }

    /// Enters the span in which the member ends, the application's upcall included.
    pub(crate) fn enter_end_span(&self) -> EnteredSpan {
        let group = &self.description.name;
        tracing::info_span!("end", %group, node = %self.own).entered()
    }

    pub(crate) fn failure_timeout(&self) -> Duration {
        Duration::from_millis(self.description.failure_timeout_ms)
    }

    /// Returns the time for which a member may hold others back, or `None` if unlimited.
    pub(crate) fn eviction_bound(&self) -> Option<Duration> {
        let bound = self.description.evict_slow_after_ms;
        (bound > 0).then(|| Duration::from_millis(bound))
    }

    pub(crate) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.description.heartbeat_ms)
    }
}
