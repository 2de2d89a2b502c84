//! A restarting node's side: it answers requests about its data, and follows the leader of an
//! attempt.
//!
//! # Invariants
//! - Everything that the node promises or learns is on disk before the reply confirms it.
//! - The node's logs contain everything that a promise covers before the promise is written.
//! - The node makes no call to another node while its data is locked, so that it can serve others
//!   at the same time.

use std::sync::{Mutex, MutexGuard, PoisonError};

use tramontane_control::Session;
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::calls::Calls;
use super::error::RestartError;
use super::messages::{
    DamagedRange, LogAnswer, MESSAGE_BYTES_MAX, NodeAnswer, Order, PATIENCE, RestartReply,
    RestartRequest,
};
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::{FIRST_VIEW, View, WireView};
use crate::group::durable::comparison::LogPlace;
use crate::group::durable::data::DataFolder;
use crate::group::durable::delivered::Delivered;
use crate::group::durable::taking_over::LogTakenOver;
use crate::group::engine::promising::Promised;
use crate::group::state::folder::StateFolder;
use crate::group::state::last_membership::LastMembership;
use crate::session_messages::{receive_message, send_message};

/// A node's data on disk.
pub(super) struct OnDisk {
    pub(super) state: StateFolder,
    pub(super) data: DataFolder,
}

/// A node that restarts.
pub(super) struct RestartingNode<'d> {
    pub(super) own: NodeId,
    pub(super) description: &'d Description,
    pub(super) calls: Calls,
    /// `None` once the node continues.
    disk: Mutex<Option<OnDisk>>,
    /// The view in which the group begins, once decided.
    begins: Mutex<Option<View>>,
    /// The failure of the node's disk, if there was one.
    disk_failure: Mutex<Option<RestartError>>,
}

impl<'d> RestartingNode<'d> {
    pub(super) fn new(
        own: NodeId,
        description: &'d Description,
        calls: Calls,
        disk: OnDisk,
    ) -> Self {
        let (disk, begins) = (Mutex::new(Some(disk)), Mutex::default());
        Self { own, description, calls, disk, begins, disk_failure: Mutex::default() }
    }

    /// Returns the view in which the group begins, once it has been decided.
    pub(super) fn begins(&self) -> Option<View> {
        lock(&self.begins).take()
    }

    /// Returns the failure of the node's disk, during any node's request.
    pub(super) fn disk_failure(&self) -> Option<RestartError> {
        lock(&self.disk_failure).take()
    }

    /// Takes the node's data on disk. Nodes that still ask are refused.
    pub(super) fn take_disk(&self) -> Option<OnDisk> {
        lock(&self.disk).take()
    }

    /// Serves a node that calls, until it disconnects.
    pub(super) fn serve(&self, mut session: Session) {
        while let Ok(request) = receive_message(&mut session, MESSAGE_BYTES_MAX, PATIENCE) {
            let reply = self.reply(request);
            if send_message(&mut session, &reply, PATIENCE).is_err() {
                return;
            }
        }
    }

    /// Returns this node's reply to a request, which may come from this node itself.
    pub(super) fn reply(&self, request: RestartRequest) -> RestartReply {
        let replied = match request {
            RestartRequest::Answer => {
                self.answer().map(|answer| RestartReply::Answer(answer.into()))
            }
            RestartRequest::Hear { ballot, answered } => self.hear(ballot, &answered),
            RestartRequest::Repair { runs } => self.repair(&runs),
            RestartRequest::Take(order) => self.take(&order),
            RestartRequest::Decided { view, begins, with_less } => {
                self.decided(&view, begins, with_less)
            }
            RestartRequest::Compare { subgroup, last } => self.compare(SubgroupId(subgroup), last),
            RestartRequest::Fetch { subgroup, from, to } => {
                self.read(SubgroupId(subgroup), from, to)
            }
            RestartRequest::State { subgroup } => self.state(SubgroupId(subgroup)),
        };
        replied.unwrap_or_else(|error| {
            let refused = RestartReply::Refused(error.to_string());
            if error.is_of_disk() {
                lock(&self.disk_failure).get_or_insert(error);
            }
            refused
        })
    }

    fn with_disk<T>(
        &self,
        work: impl FnOnce(&mut OnDisk) -> Result<T, RestartError>,
    ) -> Result<T, RestartError> {
        work(lock(&self.disk).as_mut().ok_or(RestartError::GoesOn)?)
    }

    /// Returns what this node has.
    pub(super) fn answer(&self) -> Result<NodeAnswer, RestartError> {
        self.with_disk(|disk| {
            let last = disk.state.last_membership();
            let mut logs = Vec::new();
            for subgroup in logged_subgroups(self.description) {
                // If a node has lost its membership record, its log cannot be identified.
                let log = disk.data.log(subgroup).filter(|_| last.is_some());
                logs.push(log.map(|log| log_answer(log, last)).transpose()?);
            }
            Ok(NodeAnswer {
                node: self.own.get(),
                decided: last.filter(|last| !last.is_note()).map(LastMembership::wire_view),
                promise: last.and_then(|last| last.promise.clone()),
                heard: last.map_or((0, 0), |last| last.heard),
                logs,
                with_less: last.and_then(|last| last.with_less.last().copied()),
                forgotten: if last.is_none() { disk.data.records() } else { 0 },
            })
        })
    }

    /// Takes part in an attempt, unless something has changed since this node answered.
    fn hear(
        &self,
        ballot: (u32, u32),
        answered: &NodeAnswer,
    ) -> Result<RestartReply, RestartError> {
        if self.answer()? != *answered || ballot <= answered.heard {
            return Err(RestartError::Changed);
        }
        self.note(|last| last.heard = ballot)
    }

    /// Changes the node's record on disk.
    fn note(&self, change: impl FnOnce(&mut LastMembership)) -> Result<RestartReply, RestartError> {
        self.with_disk(|disk| {
            let mut last = match disk.state.last_membership() {
                Some(last) => last.clone(),
                None => LastMembership::empty(self.description, self.own),
            };
            change(&mut last);
            disk.state.keep(last)?;
            Ok(RestartReply::Done)
        })
    }

    fn repair(&self, runs: &[DamagedRange]) -> Result<RestartReply, RestartError> {
        for run in runs {
            let (subgroup, mut from) = (SubgroupId(run.subgroup), run.from);
            while from < run.to {
                let records = self.fetch(NodeId(run.node), subgroup, from, run.to)?;
                let to = from.saturating_add(count(&records));
                let repaired = self.with_disk(|disk| {
                    Ok(!records.is_empty() && disk.data.repair(subgroup, from, to, &records)?)
                })?;
                if !repaired {
                    return Err(RestartError::NotRepaired { subgroup, from });
                }
                from = to;
            }
        }
        Ok(RestartReply::Done)
    }

    /// Fetches the chosen logs, and then promises the next view.
    fn take(&self, order: &Order) -> Result<RestartReply, RestartError> {
        let is_heard = |disk: &mut OnDisk| {
            let heard = disk.state.last_membership().map(|last| last.heard);
            if heard == Some(order.ballot) { Ok(()) } else { Err(RestartError::Changed) }
        };
        self.with_disk(is_heard)?;
        let next = View::from(order.next.clone());
        let mut ends = Vec::new();
        for (subgroup, log) in logged_subgroups(self.description).zip(&order.logs) {
            let is_ours = self.with_disk(|disk| Ok(disk.data.log(subgroup).is_some()))?;
            let (true, Some((node, end))) = (is_ours, *log) else {
                ends.push(None);
                continue;
            };
            if next.members.contains(&self.own) {
                self.bring(subgroup, NodeId(node), end)?;
            }
            ends.push(Some(end));
        }
        self.with_disk(is_heard)?;
        let (base, ballot) = (View::from(order.base.clone()), order.ballot);
        let members = next.members.iter().map(|node| node.get()).collect();
        let promise = Promised { ballot, view: next.id.0, members, ends };
        let logs = self.with_disk(|disk| {
            disk.data.logs.iter_mut().for_each(|log| log.is_of_another = false);
            Ok(disk.data.notes())
        })?;
        self.note(|last| {
            last.set_view(&base);
            last.promise = Some(promise);
            last.logs = logs;
        })
    }

    /// Lowers the note about a log before the end of that log is cut off.
    fn lower(&self, subgroup: SubgroupId, records: u64) -> Result<(), RestartError> {
        self.with_disk(|disk| {
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            let name = &log.log.identity().subgroup;
            let Some(mut last) = disk.state.last_membership().cloned() else { return Ok(()) };
            let noted = last.logs.iter_mut().find(|noted| noted.subgroup == *name);
            if let Some(noted) = noted.filter(|noted| noted.end > records) {
                noted.end = records;
                disk.state.keep(last)?;
            }
            Ok(())
        })
    }

    /// Continues with this node's logs although the membership record is lost, because an operator
    /// decided so. The node then assumes a view of its own, above the views that others know.
    pub(super) fn remember_logs(&self, known: u64) -> Result<(), RestartError> {
        let (newest, notes) = self.with_disk(|disk| {
            let mut newest = FIRST_VIEW.0.max(known);
            for log in &disk.data.logs {
                newest = newest.max(log.last_place()?.map_or(0, |last| last.view));
            }
            Ok((newest, disk.data.notes()))
        })?;
        let members = vec![self.own];
        let view = View::with_all_senders(ViewId(newest).next(), members, Vec::new());
        self.note(|last| {
            last.set_view(&view);
            last.with_less.push(view.id.0);
            last.logs = notes;
        })?;
        Ok(())
    }

    /// Makes the log of a subgroup equal to the given node's log, up to an end.
    fn bring(&self, subgroup: SubgroupId, node: NodeId, end: u64) -> Result<(), RestartError> {
        if node == self.own {
            self.lower(subgroup, end)?;
            return self.with_disk(|disk| Ok(disk.data.cut(subgroup, end)?));
        }
        self.with_disk(|disk| Ok(disk.data.set_other_aside(subgroup)?))?;
        let last = self.with_disk(|disk| {
            Ok(disk.data.log(subgroup).ok_or(RestartError::Malformed)?.last_place()?)
        })?;
        let request = RestartRequest::Compare { subgroup: subgroup.0, last };
        let common = match self.calls.ask(node, &request)? {
            RestartReply::Common { records } => records.map(|records| records.min(end)),
            _ => return Err(RestartError::Malformed),
        };
        let goes_on = match common {
            Some(common) => self.go_on_behind(subgroup, node, common)?,
            None => false,
        };
        if !goes_on {
            self.fetch_state(subgroup, node)?;
        }
        loop {
            let from = self.with_disk(|disk| {
                Ok(disk.data.log(subgroup).ok_or(RestartError::Malformed)?.next().0)
            })?;
            if from >= end {
                break;
            }
            let records = self.fetch(node, subgroup, from, end)?;
            if records.is_empty() {
                return Err(RestartError::Malformed);
            }
            self.with_disk(|disk| {
                let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
                Ok(records.iter().try_for_each(|record| log.take(record))?)
            })?;
        }
        self.with_disk(|disk| {
            Ok(disk.data.log(subgroup).ok_or(RestartError::Malformed)?.commit()?)
        })
    }

    /// Repairs the records that both have, and sets aside later ones. Returns false if that is
    /// impossible.
    fn go_on_behind(
        &self,
        subgroup: SubgroupId,
        node: NodeId,
        common: u64,
    ) -> Result<bool, RestartError> {
        let (has_place, damaged) = self.with_disk(|disk| {
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            Ok((log.has_place_for(common), log.damaged_before(common)))
        })?;
        if !has_place {
            return Ok(false);
        }
        let run = |(from, to)| DamagedRange { subgroup: subgroup.0, from, to, node: node.get() };
        self.repair(&damaged.into_iter().map(run).collect::<Vec<_>>())?;
        self.lower(subgroup, common)?;
        self.with_disk(|disk| Ok(disk.data.cut(subgroup, common)?))?;
        Ok(true)
    }

    /// Restarts a log with the state at the beginning of another log.
    fn fetch_state(&self, subgroup: SubgroupId, node: NodeId) -> Result<(), RestartError> {
        let request = RestartRequest::State { subgroup: subgroup.0 };
        let (view, records, bytes) = match self.calls.ask(node, &request)? {
            RestartReply::State { view, records, bytes } => (view, records, bytes),
            _ => return Err(RestartError::Malformed),
        };
        self.with_disk(|disk| {
            disk.data.begin_anew_in(subgroup)?;
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            let mut state = log.begin_state(records, ViewId(view))?;
            state.write(&bytes)?;
            Ok(log.install(state.finish()?, records)?)
        })
    }

    fn fetch(
        &self,
        node: NodeId,
        subgroup: SubgroupId,
        from: u64,
        to: u64,
    ) -> Result<Vec<Delivered>, RestartError> {
        let request = RestartRequest::Fetch { subgroup: subgroup.0, from, to };
        match self.calls.ask(node, &request)? {
            RestartReply::Records(records)
                if records.iter().all(|record| record.subgroup == subgroup.0)
                    && count(&records) <= to.saturating_sub(from) =>
            {
                Ok(records)
            }
            _ => Err(RestartError::Malformed),
        }
    }

    /// Records that a view has been decided.
    fn decided(
        &self,
        view: &WireView,
        begins: bool,
        with_less: bool,
    ) -> Result<RestartReply, RestartError> {
        let view = View::from(view.clone());
        let known =
            self.with_disk(|disk| Ok(disk.state.last_membership().map(|last| last.view)))?;
        if known.is_some_and(|known| known >= view.id.0) {
            return Err(RestartError::Changed);
        }
        self.note(|last| {
            last.set_view(&view);
            last.promise = None;
            if with_less {
                last.with_less.push(view.id.0);
            }
        })?;
        if begins {
            *lock(&self.begins) = Some(view);
        }
        Ok(RestartReply::Done)
    }

    fn compare(
        &self,
        subgroup: SubgroupId,
        last: Option<LogPlace>,
    ) -> Result<RestartReply, RestartError> {
        self.with_disk(|disk| {
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            Ok(RestartReply::Common { records: log.common(last)? })
        })
    }

    fn read(&self, subgroup: SubgroupId, from: u64, to: u64) -> Result<RestartReply, RestartError> {
        self.with_disk(|disk| {
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            Ok(RestartReply::Records(log.read(from, to)?))
        })
    }

    fn state(&self, subgroup: SubgroupId) -> Result<RestartReply, RestartError> {
        self.with_disk(|disk| {
            let log = disk.data.log(subgroup).ok_or(RestartError::Malformed)?;
            let place = log.log.snapshot().ok_or(RestartError::NoState(subgroup))?;
            let bytes = log.state()?.unwrap_or_default();
            Ok(RestartReply::State { view: place.view.0, records: place.sequence.0, bytes })
        })
    }
}

/// Describes a log and the node's notes about it.
fn log_answer(
    log: &LogTakenOver,
    last: Option<&LastMembership>,
) -> Result<LogAnswer, RestartError> {
    let place = log.last_place()?;
    let noted = last.and_then(|last| last.log(&log.log.identity().subgroup));
    let is_same = noted.is_none_or(|noted| noted.log == log.log.note().log);
    Ok(LogAnswer {
        first: log.log.first().0,
        view: place.map_or(0, |place| place.view),
        end: log.log.end().0,
        damaged: log.log.damaged().map(|run| (run.0.0, run.1.0)).collect(),
        is_of_another: log.is_of_another || !is_same,
        noted: noted.map_or([0; 3], |noted| [noted.end, noted.majority, noted.everywhere]),
    })
}

fn count(records: &[Delivered]) -> u64 {
    u64::try_from(records.len()).unwrap_or(u64::MAX)
}

pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
