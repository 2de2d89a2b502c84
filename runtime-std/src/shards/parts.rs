//! The parts of a running replica, and its status.

use std::sync::Arc;
use std::sync::mpsc::Receiver;
use std::time::Duration;

use tramontane_core::ids::Time;
use tramontane_core::tram::{LinkId, LinkRole, Progress, ReplicaId, Stage};

use super::calls::Calls;
use super::durable::Journal;
use super::lent::ReplicaCell;
use super::links::Links;
use super::request::Request;
use super::service::Service;
use super::snapshot::SnapshotSources;
use super::status::{ReplicaState, ReplicaStatus};
use crate::fabric::peers::PeerFabric;
use crate::poll::Ending;

/// The components from which a replica's engine is created.
pub(super) struct Parts<F: PeerFabric, A> {
    pub(super) cell: ReplicaCell,
    pub(super) links: Links<F>,
    pub(super) fabric: F,
    pub(super) application: A,
    pub(super) journal: Option<Journal>,
    pub(super) incarnation: u16,
    pub(super) calls: Arc<Calls<Request>>,
    pub(super) service: Arc<Service>,
    pub(super) requests: Receiver<Request>,
    pub(super) source: Arc<SnapshotSources>,
    pub(super) ending: Arc<Ending>,
    pub(super) heartbeat: Duration,
}

/// The counters of a replica.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct ReplicaCounters {
    pub(super) delivered: u64,
    delivered_before: u64,
    delivered_per_second: u64,
    rated_at: Time,
    pub(super) writes: u64,
    pub(super) granted: u64,
    pub(super) campaigns: u64,
}

impl ReplicaCounters {
    /// Adds what a step has done.
    pub(super) fn count(&mut self, progress: &Progress) {
        let Self { delivered, writes, granted, campaigns, .. } = self;
        *delivered += u64::from(progress.delivered);
        *writes += u64::from(progress.writes);
        *granted += u64::from(progress.granted);
        *campaigns += u64::from(progress.campaigns);
    }

    /// Updates the rate once a second.
    pub(super) fn rate(&mut self, now: Time) {
        let elapsed = now.since(self.rated_at);
        if elapsed >= 1_000_000_000 {
            let delivered = self.delivered - self.delivered_before;
            self.delivered_per_second =
                delivered.saturating_mul(1_000_000_000).checked_div(elapsed).unwrap_or(0);
            self.delivered_before = self.delivered;
            self.rated_at = now;
        }
    }
}

impl<F: PeerFabric, A> Parts<F, A> {
    /// Returns the replica's status.
    pub(super) fn status(&self, counts: &ReplicaCounters, now: Time) -> ReplicaStatus {
        let Self { cell, links, service, incarnation, ending, fabric, journal, .. } = self;
        let Service { own, places, .. } = &**service;
        let (mut clients, mut replicas) = (0, 0);
        let notice = journal.as_ref().and_then(Journal::notice);
        cell.with_dependent(|_, replica| {
            let count = u16::try_from(replica.links().len()).unwrap_or(u16::MAX);
            for link in (0..count).map(LinkId) {
                match (replica.stage(link), replica.links().role(link)) {
                    (Stage::Ready, Some(LinkRole::Client(_))) => clients += 1,
                    (Stage::Ready, Some(_)) => replicas += 1,
                    _ => {}
                }
            }
            let log = replica.log_counts(links).unwrap_or_default();
            let promised = replica.promised();
            let stopped = ending.stopped().map(|why| why.to_string());
            // After a crash, the disk decides.
            let is_saved = journal.as_ref().is_none_or(|journal| journal.saved().is_voter());
            let is_voter = replica.is_voter() && is_saved;
            let state = match (&stopped, replica.is_leader(), is_voter) {
                (Some(_), ..) => ReplicaState::Halted,
                (None, true, _) => ReplicaState::Leading,
                (None, false, true) => ReplicaState::Following,
                (None, false, false) => ReplicaState::Returning,
            };
            let leader =
                promised.rank().map(|rank| places.name(ReplicaId { group: own.group, rank }));
            ReplicaStatus {
                replica: places.name(*own),
                group: places.group_name(own.group).to_owned(),
                incarnation: *incarnation,
                state,
                leader,
                round: promised.round(),
                timestamp: promised.cell(),
                tail: log.tail,
                decided: log.decided,
                processed: log.delivered,
                saved: journal.as_ref().map(|journal| journal.saved().tail()),
                delivered: counts.delivered,
                delivered_per_second: counts.delivered_per_second,
                clients,
                replicas,
                granted: counts.granted,
                campaigns: counts.campaigns,
                uptime_ms: now.0 / 1_000_000,
                stopped,
                notice: fabric.notice().or_else(|| notice.map(str::to_owned)),
            }
        })
    }
}
