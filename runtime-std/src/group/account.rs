//! What a member counts of itself, and hangs out for whoever looks.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::ids::SubgroupId;
use tramontane_core::node::Progress;
use tramontane_core::view::Status;

use super::membership::Membership;
use super::open_view::OpenView;
use super::status::{Board, GroupStatus, SubgroupStatus};
use super::view::View;

/// Over how long a rate is taken.
const RATE_OVER: Duration = Duration::from_secs(1);

/// The counts of one member, through all its views.
#[derive(Debug)]
pub(super) struct Account {
    board: Board,
    started: Instant,
    views_installed: u64,
    total: Total,
    /// When the rate was last taken, what had been delivered then, and the rate.
    rate_from: (Instant, u64),
    delivered_per_second: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Total {
    sent: u64,
    delivered: u64,
    nulls: u64,
    writes: u64,
    heartbeats: u64,
}

impl Account {
    pub(super) fn new(board: Board) -> Self {
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

    /// Takes in what a step did.
    #[inline]
    pub(super) fn add(&mut self, progress: &Progress) {
        self.total.sent += u64::from(progress.sent);
        self.total.delivered += progress.delivered;
        self.total.nulls += progress.nulls;
        self.total.writes += u64::from(progress.writes);
        self.total.heartbeats += u64::from(progress.heartbeats);
    }

    pub(super) fn installed(&mut self) {
        self.views_installed += 1;
    }

    pub(super) const fn writes(&self) -> u64 {
        self.total.writes
    }

    /// Hangs out how things stand.
    pub(super) fn hang(
        &mut self,
        membership: &Membership,
        present: &mut OpenView,
        view: &Arc<View>,
        joining: Vec<u32>,
        is_leaving: bool,
    ) {
        self.take_rate();
        let state = match present.status() {
            Status::Halted(_) => "halted",
            Status::Left => "left",
            _ if is_leaving => "leaving",
            Status::Steady => "steady",
            Status::Wedged | Status::Decided | Status::Installed => "changing",
        };
        let description = &membership.description;
        let subgroups = (0..).map(SubgroupId).zip(&description.subgroups).map(|(id, subgroup)| {
            let frontiers = present.frontiers(id).unwrap_or_default();
            let members =
                view.subgroup_members(description, id).into_iter().map(|node| node.get()).collect();
            SubgroupStatus {
                name: subgroup.name.clone(),
                members,
                received: frontiers.received.0,
                delivered: frontiers.delivered.0,
                closed: view.is_closed(id),
            }
        });
        let subgroups = subgroups.collect();
        let status = GroupStatus {
            group: description.name.clone(),
            node: membership.own.get(),
            view: view.id.0,
            members: view.members.iter().map(|node| node.get()).collect(),
            suspected: present.suspected().into_iter().map(|node| node.get()).collect(),
            state: state.to_owned(),
            joining,
            subgroups,
            uptime_ms: u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX),
            views_installed: self.views_installed,
            delivered: self.total.delivered,
            sent: self.total.sent,
            nulls: self.total.nulls,
            writes: self.total.writes,
            heartbeats: self.total.heartbeats,
            delivered_per_second: self.delivered_per_second,
        };
        self.board.put(status, view);
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
