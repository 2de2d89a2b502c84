//! What one process brings into its group, the same through all its views.

use std::sync::Arc;
use std::time::Duration;

use tramontane_core::ids::NodeId;
use tramontane_core::node::Options;
use tramontane_core::view::ViewOptions;

use super::description::Description;
use crate::poll::Ending;

/// A process's part in a group.
pub(super) struct Membership {
    pub(super) description: Description,
    /// This node.
    pub(super) own: NodeId,
    pub(super) options: Options,
    pub(super) ending: Arc<Ending>,
}

/// The least time that a member may take to be first seen in a view.
const FIRST_TIMEOUT_MIN: Duration = Duration::from_secs(2);

impl Membership {
    /// How this member takes part in views.
    pub(super) fn view_options(&self) -> ViewOptions {
        let failure_timeout = self.failure_timeout();
        ViewOptions {
            heartbeat_interval_ns: nanoseconds(self.heartbeat()),
            failure_timeout_ns: nanoseconds(failure_timeout),
            first_timeout_ns: nanoseconds((failure_timeout * 2).max(FIRST_TIMEOUT_MIN)),
            members_max: self.description.nodes.len(),
            majority: self.description.majority,
        }
    }

    pub(super) fn failure_timeout(&self) -> Duration {
        Duration::from_millis(self.description.failure_timeout_ms)
    }

    pub(super) fn heartbeat(&self) -> Duration {
        Duration::from_millis(self.description.heartbeat_ms)
    }
}

/// A duration as the core counts it.
pub(super) fn nanoseconds(duration: Duration) -> u64 {
    u64::try_from(duration.as_nanos()).unwrap_or(u64::MAX)
}
