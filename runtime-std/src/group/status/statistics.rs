//! The statistics that a member keeps and publishes.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::node::{Frontiers, Progress};

use super::group_status::{DurableStatus, GroupStatus, MemberState, SharedStatus, SubgroupStatus};
use super::slow_members::Slow;
use crate::fabric::AnyFabric;
use crate::group::description::view::View;
use crate::group::engine::participant::Participant;

/// The period over which the rate is measured.
const RATE_OVER: Duration = Duration::from_secs(1);

/// The counters of one member, across all its views.
#[derive(Debug)]
pub(crate) struct Statistics {
    board: SharedStatus,
    started: Instant,
    views_installed: u64,
    total: Total,
    /// The time of the last rate measurement, the deliveries at that time, and the rate.
    rate_from: (Instant, u64),
    delivered_per_second: u64,
}

/// The state of a member in its view, as published.
pub(crate) struct Seen<'s> {
    pub(crate) state: MemberState,
    pub(crate) suspected: Vec<u32>,
    pub(crate) joining: Vec<u32>,
    /// See [`GroupStatus::notices`].
    pub(crate) notices: Vec<String>,
    /// The members that hold others back.
    pub(crate) slow: &'s [Slow],
    pub(crate) frontiers: &'s dyn Fn(SubgroupId) -> Frontiers,
    pub(crate) durable: &'s dyn Fn(SubgroupId) -> Option<DurableStatus>,
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    sent: u64,
    delivered: u64,
    nulls: u64,
    writes: u64,
    heartbeats: u64,
}

impl Statistics {
    pub(crate) fn new(board: SharedStatus) -> Self {
        let started = Instant::now();
        Self {
            board,
            started,
            views_installed: 0,
            total: Total::default(),
            rate_from: (started, 0),
            delivered_per_second: 0,
        }
    }

    /// Adds the results of a step.
    #[inline]
    pub(crate) fn add(&mut self, progress: &Progress) {
        self.total.sent += u64::from(progress.sent);
        self.total.delivered += progress.delivered;
        self.total.nulls += progress.nulls;
        self.total.writes += u64::from(progress.writes);
        self.total.heartbeats += u64::from(progress.heartbeats);
    }

    pub(crate) fn installed(&mut self) {
        self.views_installed += 1;
    }

    pub(crate) const fn writes(&self) -> u64 {
        self.total.writes
    }

    pub(crate) const fn nulls(&self) -> u64 {
        self.total.nulls
    }

    /// Publishes the member's status. If the published view is unchanged, memory is allocated only
    /// when the suspected nodes, the joining nodes or the state change.
    pub(crate) fn show(&mut self, participant: &Participant, view: &Arc<View>, seen: &Seen<'_>) {
        self.take_rate();
        if !self.board.change(view, |status| self.write(status, seen)) {
            let mut status = Self::status_of(participant, view);
            self.write(&mut status, seen);
            self.board.put(status, view);
        }
    }

    /// Publishes the fabric's figures.
    pub(crate) fn show_fabric(&self, fabric: &AnyFabric) {
        self.board.put_fabric(fabric);
    }

    /// Returns the part of the status that is constant throughout a view.
    fn status_of(participant: &Participant, view: &View) -> GroupStatus {
        let description = &participant.description;
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups).map(|(id, subgroup)| {
            let ids = |nodes: Vec<NodeId>| nodes.into_iter().map(NodeId::get).collect();
            SubgroupStatus {
                name: subgroup.name.clone(),
                members: ids(view.subgroup_members(description, id)),
                senders: ids(view.subgroup_senders(description, id)),
                closed: view.is_closed(id) && !subgroup.reserved,
                ..SubgroupStatus::default()
            }
        });
        GroupStatus {
            group: description.name.clone(),
            node: participant.own.get(),
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            subgroups: subgroups.collect(),
            ..GroupStatus::default()
        }
    }

    /// Writes the part of the status that changes within a view.
    fn write(&self, status: &mut GroupStatus, seen: &Seen<'_>) {
        status.state = seen.state;
        status.suspected.clone_from(&seen.suspected);
        status.joining.clone_from(&seen.joining);
        status.notices.clone_from(&seen.notices);
        status.slow.clear();
        status.slow.extend(seen.slow.iter().map(|slow| slow.shown(&status.subgroups)));
        for (id, subgroup) in (0..).map(SubgroupId).zip(&mut status.subgroups) {
            let frontiers = (seen.frontiers)(id);
            subgroup.received = frontiers.received.0;
            subgroup.delivered = frontiers.delivered.0;
            subgroup.durable = (seen.durable)(id);
        }
        status.uptime_ms = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        status.views_installed = self.views_installed;
        status.delivered = self.total.delivered;
        status.sent = self.total.sent;
        status.nulls = self.total.nulls;
        status.writes = self.total.writes;
        status.heartbeats = self.total.heartbeats;
        status.delivered_per_second = self.delivered_per_second;
    }

    fn take_rate(&mut self) {
        let (from, before) = self.rate_from;
        let elapsed = from.elapsed();
        if elapsed >= RATE_OVER {
            let delivered = u128::from(self.total.delivered - before);
            let rate = delivered * 1_000_000_000 / elapsed.as_nanos().max(1);
            self.delivered_per_second = u64::try_from(rate).unwrap_or(u64::MAX);
            self.rate_from = (Instant::now(), self.total.delivered);
        }
    }
}
