//! The nodes that this member helps to join: what it sends to each of them, and which of them it
//! asks the group to admit.
//!
//! # Invariants
//! - Only one request is made at a time, because the core's cell for requests holds one, and a
//!   later request would replace it.
//! - A lagging joining node holds this member back between two steps, and the group through the
//!   member's frontier, but never for as long as a failure timeout.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId, ViewId};

use super::queue::{Content, HELD_MAX, QueueId, Sink, States, Supplied, SuppliedState};
use super::wanted::{ReadyJoiner, Wanted};
use crate::group::delivery::application::Application;
use crate::group::delivery::message::Message;
use crate::group::description::subgroup_change::SubgroupChange;
use crate::group::description::terms::Description;
use crate::group::durable::Logs;
use crate::group::durable::delivered::SharedMessage;
use crate::group::engine::open_view::OpenView;
use crate::group::join::admission::{Admission, SentCount};

/// The interval between checks of whether a joining node has caught up.
const HOLD_PAUSE: Duration = Duration::from_micros(200);

/// A node that is being supplied.
struct Joiner {
    node: NodeId,
    /// The subgroups with which the node is supplied, and the number of messages sent to it in
    /// each.
    subgroups: Vec<(SubgroupId, u64)>,
    sink: Sink,
    /// The time for which the node has held this member back.
    held: Duration,
}

/// The request to the group that is in progress. There is at most one at a time.
#[derive(Debug)]
enum Wished {
    Node(ReadyJoiner),
    Change(SubgroupChange),
}

/// All joiners of a member.
#[derive(Default)]
pub(crate) struct Joiners {
    supplied: Vec<Joiner>,
    /// Nodes that have caught up and wait for their turn.
    waiting: VecDeque<ReadyJoiner>,
    /// Changes of subgroups that wait for their turn, ahead of all nodes.
    changes: VecDeque<SubgroupChange>,
    /// The request to the group that is in progress.
    wished: Option<Wished>,
    /// Nodes that the current view has admitted, but that may not know it yet.
    let_in: Vec<(NodeId, Sink)>,
}

/// Returns the current states in a view. Calls `between` after each state, because each may take a
/// while.
pub(crate) fn states_of<A: Application>(
    wanted: &Wanted,
    view: ViewId,
    logs: &Logs,
    application: &mut A,
    mut between: impl FnMut(),
) -> States {
    let state_of = |subgroup: &SubgroupId| {
        let records = logs.records(*subgroup).unwrap_or_default().0;
        let from = wanted.records.iter().find(|(of, _)| of == subgroup).map(|(_, from)| *from);
        let content = match from.zip(logs.shared(*subgroup)) {
            Some((from, log)) => Content::Records { log, from },
            None => Content::State(application.snapshot(*subgroup)),
        };
        between();
        SuppliedState { subgroup: *subgroup, view, records, content }
    };
    wanted.subgroups.iter().map(state_of).collect()
}

impl Joiners {
    /// Returns whether no joining node needs the messages that are delivered.
    pub(crate) fn is_empty(&self) -> bool {
        self.supplied.is_empty()
    }

    /// Returns the nodes that are being supplied.
    pub(crate) fn nodes(&self) -> impl Iterator<Item = NodeId> {
        self.supplied.iter().map(|joiner| joiner.node)
    }

    /// Returns whether any node is joining, or has been admitted but not been sent everything yet.
    pub(crate) fn are_under_way(&self) -> bool {
        !self.supplied.is_empty() || !self.are_told()
    }

    /// Returns whether all nodes admitted by the current view have received what they need from
    /// this member, or have been lost.
    pub(crate) fn are_told(&self) -> bool {
        self.let_in.iter().all(|(_, sink)| sink.is_over())
    }

    /// Returns whether a joining node is supplied with a subgroup that the predicate accepts.
    pub(crate) fn any_supplied(&self, is_it: impl Fn(SubgroupId) -> bool) -> bool {
        self.supplied
            .iter()
            .flat_map(|joiner| &joiner.subgroups)
            .any(|(subgroup, _)| is_it(*subgroup))
    }

    /// Begins to supply a node with the current states and everything after them. The caller has
    /// checked that this is possible, and has discarded the node's earlier attempt.
    pub(crate) fn begin(&mut self, node: NodeId, states: States, sink: Sink) {
        let subgroups = states.iter().map(|state| (state.subgroup, 0)).collect();
        if sink.put(Supplied::States(states)) {
            self.supplied.push(Joiner { node, subgroups, sink, held: Duration::ZERO });
        }
    }

    /// Supplies a node that the current view has admitted with the states at the view's beginning,
    /// because the member that was supposed to do so has been lost. The caller has checked that
    /// this is possible.
    pub(crate) fn supply_late(
        &mut self,
        node: NodeId,
        states: States,
        sink: Sink,
        admission: &Arc<Admission>,
    ) {
        let view = admission.view.id.0;
        let sent = |state: &SuppliedState| SentCount {
            subgroup: state.subgroup.0,
            messages: 0,
            view,
            place: 0,
        };
        let sent = states.iter().map(sent).collect();
        if sink.put(Supplied::Late(states, Arc::clone(admission), sent)) {
            self.let_in.retain(|(let_in, sink)| *let_in != node || !sink.is_over());
            self.let_in.push((node, sink));
        }
    }

    /// Passes a delivered message to the joining nodes that are supplied with its subgroup.
    pub(crate) fn tap(&mut self, message: &Message<'_>) {
        let mut shared = None;
        self.supplied.retain_mut(|joiner| {
            let of =
                joiner.subgroups.iter_mut().find(|(subgroup, _)| *subgroup == message.subgroup);
            let Some((_, messages)) = of else { return true };
            *messages += 1;
            joiner.sink.put_message(shared.get_or_insert_with(|| SharedMessage::of(message)))
        });
    }

    /// Waits for lagging joining nodes, for at most `most`. Returns whether there were any.
    pub(crate) fn hold_back(&mut self, most: Duration) -> bool {
        let is_behind = |joiner: &Joiner| joiner.sink.is_behind();
        if !self.supplied.iter().any(is_behind) {
            return false;
        }
        let began = Instant::now();
        while began.elapsed() < most && self.supplied.iter().any(is_behind) {
            std::thread::sleep(HOLD_PAUSE);
        }
        for joiner in self.supplied.iter_mut().filter(|joiner| joiner.sink.is_behind()) {
            joiner.held += began.elapsed();
        }
        self.supplied.retain(|joiner| {
            let is_too_slow = joiner.held > HELD_MAX;
            if is_too_slow {
                joiner.sink.put(Supplied::GivenUp);
            }
            !is_too_slow
        });
        true
    }

    /// Requests the admission of a node that has caught up with all of its sources.
    pub(crate) fn wish(
        &mut self,
        ready: ReadyJoiner,
        description: &Description,
        view: &mut OpenView,
    ) {
        self.waiting.push_back(ready);
        self.ask_next(description, view);
    }

    /// Requests a change of a subgroup. Replaces an earlier request for the same that is still
    /// waiting, but not one that the group has already been asked for.
    pub(crate) fn change(
        &mut self,
        change: SubgroupChange,
        description: &Description,
        view: &mut OpenView,
    ) {
        self.changes.retain(|other| !change.replaces(other));
        self.changes.push_back(change);
        self.ask_next(description, view);
    }

    /// Asks the group to admit the next node that has everything it needs. A node may no longer
    /// match the view, because a source of the node has been lost or the view has new members; it
    /// is first told so.
    fn ask_next(&mut self, description: &Description, view: &mut OpenView) {
        let Self { supplied, waiting, .. } = self;
        waiting.retain(|ready| {
            let matches = ready.matches(description, view.view());
            let lacks = supplied.iter().find(|joiner| joiner.node == ready.node && !matches);
            if let Some(joiner) = lacks {
                tracing::info!(node = %ready.node, view = %view.view().id, "a joining node does not match the view yet");
                joiner.sink.put(Supplied::Choose(view.view().clone()));
            }
            matches
        });
        let asked = match &self.wished {
            Some(Wished::Change(change)) => Some(*change),
            _ => None,
        };
        self.changes.retain(|change| {
            asked.is_some_and(|asked| change.replaces(&asked))
                || view.view().would_change(description, *change)
        });
        while self.wished.is_none() {
            if let Some(change) = self.changes.pop_front() {
                match view.change(|node| node.request_join(change.id())) {
                    Ok(()) => self.wished = Some(Wished::Change(change)),
                    Err(error) => {
                        tracing::warn!(?change, %error, "a subgroup is not changed");
                    }
                }
                continue;
            }
            let Some(ready) = self.waiting.pop_front() else { return };
            match view.change(|node| node.request_join(ready.node)) {
                Ok(()) => self.wished = Some(Wished::Node(ready)),
                Err(error) => tracing::warn!(node = %ready.node, %error, "a node cannot be \
                                                                          admitted"),
            }
        }
    }

    /// Handles a node that has been lost or given up. Returns whether the current view admitted it.
    /// The node may have returned already; its new attempt then continues.
    pub(crate) fn gone(
        &mut self,
        node: NodeId,
        queue: &QueueId,
        description: &Description,
        view: &mut OpenView,
    ) -> bool {
        let has_come_again =
            self.supplied.iter().any(|joiner| joiner.node == node && !joiner.sink.leads_to(queue));
        if !has_come_again {
            self.give_up(node, description, view);
        }
        self.let_in.iter().any(|(let_in, sink)| *let_in == node && sink.leads_to(queue))
    }

    /// Discards a node's earlier attempt.
    pub(crate) fn give_up(&mut self, node: NodeId, description: &Description, view: &mut OpenView) {
        self.forget(node);
        self.waiting.retain(|waiting| waiting.node != node);
        if matches!(&self.wished, Some(Wished::Node(ready)) if ready.node == node) {
            self.wished = None;
            // There may be no request left to withdraw.
            let _ = view.change(|node| node.withdraw_join());
            self.ask_next(description, view);
        }
    }

    fn forget(&mut self, node: NodeId) {
        self.supplied.retain(|joiner| joiner.node != node);
    }

    /// Handles the end of a view, in which nothing more is delivered. Informs the nodes that the
    /// next view admits.
    pub(crate) fn view_ends(&mut self, ended: &OpenView, admission: &Arc<Admission>) {
        let next = &admission.view;
        let let_in = &mut self.let_in;
        let_in.retain(|(node, _)| next.members.contains(node));
        self.supplied.retain(|joiner| {
            let is_in = next.members.contains(&joiner.node);
            if is_in {
                let sent = joiner.subgroups.iter().map(|(subgroup, messages)| SentCount {
                    subgroup: subgroup.0,
                    messages: *messages,
                    view: ended.view().id.0,
                    place: ended
                        .read(|node| node.node().frontiers(*subgroup))
                        .unwrap_or_default()
                        .delivered
                        .0,
                });
                joiner.sink.put(Supplied::Member(Arc::clone(admission), sent.collect()));
                let_in.push((joiner.node, joiner.sink.clone()));
            }
            !is_in
        });
        // A node that was not admitted is requested again, because a request is valid for one view
        // only.
        match self.wished.take() {
            Some(Wished::Node(ready)) => self.waiting.push_front(ready),
            Some(Wished::Change(change)) => {
                // A later request for the same takes its place.
                let is_replaced = self.changes.iter().any(|later| later.replaces(&change));
                if !is_replaced {
                    self.changes.push_front(change);
                }
            }
            None => {}
        }
        self.waiting.retain(|ready| !next.members.contains(&ready.node));
    }

    /// Handles the beginning of the next view.
    pub(crate) fn view_begins(&mut self, description: &Description, view: &mut OpenView) {
        self.ask_next(description, view);
    }
}
