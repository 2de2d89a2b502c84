//! A member's status as metrics.

use std::time::Duration;

use super::group_status::{GroupStatus, MemberState, SubgroupStatus};
use crate::metrics::MetricsPage;

/// A function that reads one figure of a subgroup's status.
type OfSubgroup = fn(&SubgroupStatus) -> u64;

impl GroupStatus {
    /// Adds this member's metrics to a page. All names begin with `tramontane_`.
    pub fn add_metrics(&self, page: &mut MetricsPage) {
        for (name, help, value) in [
            (
                "tramontane_views_installed",
                "Views that this process has installed",
                self.views_installed,
            ),
            ("tramontane_delivered_messages", "Messages delivered", self.delivered),
            (
                "tramontane_sent_messages",
                "Messages sent; a message resent in a later view counts again",
                self.sent,
            ),
            ("tramontane_null_rounds", "Rounds of this node without a message", self.nulls),
            (
                "tramontane_posted_writes",
                "Writes posted to other members, without heartbeats",
                self.writes,
            ),
            ("tramontane_posted_heartbeats", "Heartbeats posted to other members", self.heartbeats),
        ] {
            page.counter(name, help, value);
        }
        let uptime = Duration::from_millis(self.uptime_ms).as_secs_f64();
        let since = "Time since this process became a member";
        page.gauge("tramontane_uptime_seconds", since, uptime);
        let suspected = "Members that this member suspects";
        let joining = "Nodes that are receiving state from this node";
        for (name, help, value) in [
            ("tramontane_view", "The view that is installed", self.view),
            ("tramontane_view_members", "Members of the view", count(&self.members)),
            ("tramontane_suspected_members", suspected, count(&self.suspected)),
            ("tramontane_joining_nodes", joining, count(&self.joining)),
        ] {
            page.gauge(name, help, value);
        }
        let states = MemberState::ALL
            .map(|state| ([("state", state.name())], u64::from(self.state == state)));
        page.gauges("tramontane_state", "1 for the state that this member is in", &states);
        self.add_subgroups(page);
    }

    fn add_subgroups(&self, page: &mut MetricsPage) {
        let figures: [(_, _, OfSubgroup); 4] = [
            ("tramontane_received_places", "Positions received in this view", |one| one.received),
            ("tramontane_delivered_places", "Positions delivered in this view", |one| {
                one.delivered
            }),
            ("tramontane_subgroup_members", "Members in this view", |one| count(&one.members)),
            ("tramontane_subgroup_closed", "1 if the subgroup has lost its state", |one| {
                one.closed.into()
            }),
        ];
        for (name, help, figure) in figures {
            let subgroups = self.subgroups.iter();
            let values = subgroups.map(|one| ([("subgroup", one.name.as_str())], figure(one)));
            page.gauges(name, help, &values.collect::<Vec<_>>());
        }
    }
}

fn count(nodes: &[u32]) -> u64 {
    u64::try_from(nodes.len()).unwrap_or(u64::MAX)
}
