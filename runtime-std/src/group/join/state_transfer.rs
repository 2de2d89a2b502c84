//! The transfer of state to a joining node: states, the messages delivered since, and the view that
//! admits the node, each from a member that has it (VIE-10).

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{Purpose, Session, SessionError};
use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::admission::Admission;
use super::attempt_error::{AROUND, AttemptError, PAUSE, STALL};
use super::join_messages::{JoinReply, JoinRequest};
use super::restoring::Restoring;
use super::transfer_progress::TransferProgress;
use crate::group::control::peer_connector::PeerConnector;
use crate::group::control::probe::{LOOK, probe};
use crate::group::delivery::application::Application;
use crate::group::description::subgroups::needed;
use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::supply::queue::TOGETHER_MAX;
use crate::session_messages::{receive_message, send_message};

/// The time for which an admitted node looks for a member that has the missing state.
const LATE_MAX: Duration = Duration::from_secs(10);

/// One member that supplies some subgroups.
pub(crate) struct Supplier {
    node: NodeId,
    pub(crate) session: Session,
    subgroups: Vec<SubgroupId>,
    /// The admission of this node, once this member has sent everything it has.
    let_in: Option<Admission>,
}

impl Supplier {
    pub(crate) const fn new(node: NodeId, session: Session, subgroups: Vec<SubgroupId>) -> Self {
        Self { node, session, subgroups, let_in: None }
    }

    /// Asks for the states, and for everything delivered after them. If the supplier's log
    /// continues a local log, asks for the records instead of a state.
    fn ask<A: Application>(
        &mut self,
        leads: bool,
        restoring: &mut Restoring<'_, A>,
    ) -> Result<(), AttemptError> {
        let records = restoring.catch_up(&mut self.session, &self.subgroups)?;
        let subgroups = self.subgroups.iter().map(|subgroup| subgroup.0).collect();
        let supply = JoinRequest::Supply { subgroups, leads, records };
        Ok(send_message(&mut self.session, &supply, STALL)?)
    }

    fn sources(&self) -> impl Iterator<Item = (u16, u32)> {
        self.subgroups.iter().map(|subgroup| (subgroup.0, self.node.get()))
    }
}

/// The message at which a supplier pauses.
enum Word {
    /// The supplier has nothing more for now.
    CaughtUp,
    /// The sources do not match this view, or it has members that this node has not called.
    Choose(View),
    /// This node is a member.
    Member(Admission),
}

/// A node that restores what it needs to become a member.
pub(crate) struct StateTransfer<'t, A> {
    pub(crate) description: &'t Description,
    pub(crate) own: NodeId,
    pub(crate) connector: &'t PeerConnector,
    pub(crate) stop: &'t Arc<AtomicBool>,
    pub(crate) restoring: Restoring<'t, A>,
    pub(crate) progress: &'t mut TransferProgress,
}

impl<A: Application> StateTransfer<'_, A> {
    /// Returns whether a process answers that it is a member.
    pub(crate) fn has_group_members(&self) -> bool {
        let PeerConnector { identity, addresses, key, .. } = self.connector;
        probe(identity, addresses, key.as_ref(), LOOK).has_members
    }

    /// Checks that this node reaches all members before the group is asked to admit it, by calling
    /// each as a member would. The member that leads the join reports failures to operators.
    fn reach_all(&self, lead: &mut Session, view: &View) -> Result<(), AttemptError> {
        let unreached = self.connector.unreached(&view.members, self.stop);
        if unreached.is_empty() {
            return Ok(());
        }
        let members = unreached.iter().map(|node| node.get()).collect();
        send_message(lead, &JoinRequest::Unreached { members }, STALL)?;
        Err(AttemptError::Unreached(unreached))
    }

    /// Receives the states of all subgroups that have members or acquire some in the meantime, and
    /// asks for admission until a view admits this node.
    pub(crate) fn be_let_in(
        &mut self,
        lead: &mut Supplier,
        view: &View,
    ) -> Result<Admission, AttemptError> {
        let node = lead.node;
        self.reach_all(&mut lead.session, view)?;
        lead.subgroups = needed(self.description, view, self.own);
        lead.subgroups.retain(|id| view.subgroup_members(self.description, *id).contains(&node));
        lead.ask(true, &mut self.restoring)?;
        let mut others = self.choose(view, lead, &[])?;
        self.take_on(lead, &mut others)
    }

    /// Receives the requested states from the suppliers, and everything delivered after them.
    ///
    /// The leader of an earlier attempt may have caused this node to be admitted in the meantime;
    /// then a supplier reports the admission unasked. The other suppliers know of it too, and have
    /// everything that precedes that view.
    fn take_on(
        &mut self,
        lead: &mut Supplier,
        others: &mut Vec<Supplier>,
    ) -> Result<Admission, AttemptError> {
        self.take_states(lead)?;
        for other in &mut *others {
            self.take_states(other)?;
        }
        while lead.let_in.is_none() {
            if others.iter().any(|other| other.let_in.is_none() && !other.session.is_open()) {
                return Err(SessionError::Closed.into());
            }
            let sources = lead.sources().chain(others.iter().flat_map(Supplier::sources)).collect();
            send_message(&mut lead.session, &JoinRequest::Ready { sources }, STALL)?;
            match self.take(lead)? {
                Word::CaughtUp => return Err(AttemptError::Malformed),
                Word::Member(admission) => lead.let_in = Some(admission),
                Word::Choose(view) => {
                    self.reach_all(&mut lead.session, &view)?;
                    let mut new = self.choose(&view, lead, others)?;
                    for other in &mut new {
                        self.take_states(other)?;
                    }
                    others.append(&mut new);
                }
            }
        }
        let admission = lead.let_in.clone().ok_or(AttemptError::Malformed)?;
        for other in &mut *others {
            self.take_rest(other)?;
            if other.let_in.as_ref().is_some_and(|by| *by != admission) {
                return Err(AttemptError::Malformed);
            }
        }
        Ok(admission)
    }

    /// Receives everything that a supplier has before the group is asked to admit this node.
    fn take_states(&mut self, supplier: &mut Supplier) -> Result<(), AttemptError> {
        match self.take(supplier)? {
            Word::CaughtUp => {}
            Word::Member(admission) => supplier.let_in = Some(admission),
            Word::Choose(_) => return Err(AttemptError::Malformed),
        }
        Ok(())
    }

    /// Receives everything that a supplier delivered before the view that admitted this node. If
    /// the supplier is lost, another member has it too.
    fn take_rest(&mut self, supplier: &mut Supplier) -> Result<(), AttemptError> {
        if supplier.let_in.is_some() {
            return Ok(());
        }
        match self.take(supplier) {
            Ok(Word::Member(admission)) => supplier.let_in = Some(admission),
            Ok(Word::CaughtUp | Word::Choose(_)) => return Err(AttemptError::Malformed),
            Err(error) if error.is_of_supplier() => {
                tracing::info!(node = %supplier.node, %error, "a member that was supplying the \
                                                               state has been lost");
            }
            Err(error) => return Err(error),
        }
        Ok(())
    }

    /// Asks a member of a view that contains this node, but that this node has not entered yet, for
    /// the admission.
    pub(crate) fn ask_admission(&mut self, lead: &mut Supplier) -> Result<Admission, AttemptError> {
        lead.ask(true, &mut self.restoring)?;
        match self.take(lead)? {
            Word::Member(admission) => Ok(admission),
            Word::CaughtUp | Word::Choose(_) => {
                Err(AttemptError::NotNow("the view has changed".to_owned()))
            }
        }
    }

    /// Completes the data that the admitting view requires. Every other member of a subgroup has
    /// what is missing, because nothing more is delivered in the subgroup before this node is
    /// ready.
    pub(crate) fn complete(&mut self, admission: &Admission) -> Result<(), AttemptError> {
        let until = Instant::now() + LATE_MAX;
        loop {
            let lacking = self.progress.lacking(self.description, self.own, admission);
            let Some(subgroup) = lacking.first() else {
                return self.begin_anew(admission);
            };
            if self.stop.load(Ordering::Relaxed) {
                return Err(SessionError::Stopped.into());
            }
            if Instant::now() >= until {
                return Err(AttemptError::NoSupplier(*subgroup));
            }
            if !self.take_late(*subgroup, admission)? {
                std::thread::sleep(PAUSE);
            }
        }
    }

    /// Resets subgroups that were restored earlier, but that begin with the view that admitted this
    /// node. This happens only to reserved subgroups that were closed and reopened in the meantime.
    fn begin_anew(&mut self, admission: &Admission) -> Result<(), AttemptError> {
        for subgroup in self.progress.outdated(admission) {
            let of = self.description.subgroups.get(subgroup.index());
            if !of.is_some_and(|of| of.reserved) {
                return Err(AttemptError::Outdated(subgroup));
            }
            let begun = self.restoring.application.restore(subgroup, &mut std::io::empty());
            begun.map_err(AttemptError::Restore)?;
        }
        Ok(())
    }

    /// Receives the state of a subgroup at the beginning of the view that admitted this node.
    /// Returns false if no member has it.
    fn take_late(
        &mut self,
        subgroup: SubgroupId,
        admission: &Admission,
    ) -> Result<bool, AttemptError> {
        let mut members = admission.view.subgroup_members(self.description, subgroup);
        members.retain(|node| *node != self.own);
        for node in members {
            tracing::info!(%node, %subgroup, "this node was admitted, and restores what is missing");
            match self.take_late_from(node, subgroup, admission) {
                Ok(()) => return Ok(true),
                Err(error) if error.is_of_supplier() => {
                    tracing::debug!(%node, %error, "cannot supply")
                }
                Err(error) => return Err(error),
            }
        }
        Ok(false)
    }

    fn take_late_from(
        &mut self,
        node: NodeId,
        subgroup: SubgroupId,
        admission: &Admission,
    ) -> Result<(), AttemptError> {
        let (view, session) = welcome(node, self.connector, self.stop)?;
        if view.id > admission.view.id {
            return Err(AttemptError::ViewOver);
        }
        let mut supplier = Supplier::new(node, session, vec![subgroup]);
        supplier.ask(false, &mut self.restoring)?;
        loop {
            match self.take(&mut supplier)? {
                Word::Member(by) if by == *admission => return Ok(()),
                // That member is still in the previous view, and about to enter this one.
                Word::CaughtUp => {}
                Word::Member(_) | Word::Choose(_) => return Err(AttemptError::Malformed),
            }
        }
    }

    /// Chooses suppliers for the subgroups of a view that have members but no supplier yet, and
    /// asks the suppliers for the states.
    fn choose(
        &mut self,
        view: &View,
        lead: &Supplier,
        others: &[Supplier],
    ) -> Result<Vec<Supplier>, AttemptError> {
        let known: Vec<&Supplier> = std::iter::once(lead).chain(others).collect();
        if let Some(gone) = known.iter().find(|supplier| !view.members.contains(&supplier.node)) {
            return Err(AttemptError::NotNow(format!(
                "node {}, which was supplying the state, has left",
                gone.node
            )));
        }
        let mut new: Vec<Supplier> = Vec::new();
        for id in needed(self.description, view, self.own) {
            if known.iter().any(|supplier| supplier.subgroups.contains(&id)) {
                continue;
            }
            let members = view.subgroup_members(self.description, id);
            if let Some(supplier) = new.iter_mut().find(|supplier| members.contains(&supplier.node))
            {
                supplier.subgroups.push(id);
                continue;
            }
            let mut found = members.iter().filter_map(|node| {
                let (_, session) = welcome(*node, self.connector, self.stop).ok()?;
                Some(Supplier::new(*node, session, vec![id]))
            });
            new.push(found.next().ok_or(AttemptError::NoSupplier(id))?);
        }
        for supplier in &mut new {
            supplier.ask(false, &mut self.restoring)?;
        }
        Ok(new)
    }

    /// Receives everything that a supplier sends until it pauses.
    fn take(&mut self, supplier: &mut Supplier) -> Result<Word, AttemptError> {
        let longest = self
            .description
            .subgroups
            .iter()
            .map(|subgroup| subgroup.large_max.max(subgroup.slot_max().into()))
            .max();
        let together = u64::try_from(TOGETHER_MAX).unwrap_or(u64::MAX);
        let bytes_max = longest.unwrap_or(0) + 2 * together + AROUND * 16;
        loop {
            match receive_message(&mut supplier.session, bytes_max, STALL)? {
                JoinReply::State { subgroup, view, records }
                    if supplier.subgroups.contains(&SubgroupId(subgroup)) =>
                {
                    self.progress.state(SubgroupId(subgroup));
                    let (subgroup, view) = (SubgroupId(subgroup), ViewId(view));
                    self.restoring.restore(&mut supplier.session, subgroup, view, records)?;
                }
                JoinReply::Records { subgroup, first, records, is_last }
                    if supplier.subgroups.contains(&SubgroupId(subgroup)) =>
                {
                    self.restoring.take_records(SubgroupId(subgroup), first, &records)?;
                    if is_last {
                        self.progress.state(SubgroupId(subgroup));
                    }
                }
                JoinReply::Messages(messages) => {
                    for message in &messages {
                        if !self.progress.message(message.subgroup) {
                            return Err(AttemptError::Malformed);
                        }
                        self.restoring.replay(message)?;
                    }
                }
                JoinReply::CaughtUp => return Ok(Word::CaughtUp),
                JoinReply::Choose(view) => return Ok(Word::Choose(view.into())),
                JoinReply::Member { view, ends, sent } => {
                    self.progress.sent(&sent);
                    return Ok(Word::Member(Admission { view: view.into(), ends }));
                }
                JoinReply::NotNow(why) => return Err(AttemptError::NotNow(why)),
                JoinReply::View(_)
                | JoinReply::State { .. }
                | JoinReply::Records { .. }
                | JoinReply::Common { .. } => {
                    return Err(AttemptError::Malformed);
                }
            }
        }
    }
}

pub(crate) fn welcome(
    node: NodeId,
    connector: &PeerConnector,
    stop: &Arc<AtomicBool>,
) -> Result<(View, Session), AttemptError> {
    let mut session = connector.call(node, Purpose::Join, stop)?.session;
    session.stop_with(Arc::clone(stop));
    send_message(&mut session, &JoinRequest::Welcome, STALL)?;
    match receive_message(&mut session, AROUND * 16, STALL)? {
        JoinReply::View(view) => Ok((view.into(), session)),
        JoinReply::NotNow(why) => Err(AttemptError::NotNow(why)),
        _ => Err(AttemptError::Malformed),
    }
}

#[cfg(test)]
mod tests;
