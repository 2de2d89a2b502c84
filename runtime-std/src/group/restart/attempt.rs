//! One attempt of a total restart, made by its leader. See [`tramontane_core::restart`].

use tramontane_core::ids::{DurableCount, NodeId};
use tramontane_core::restart::{Plan, Restart, TakenLog};

use super::error::RestartError;
use super::messages::{DamagedRange, NodeAnswer, Order, RestartReply, RestartRequest};
use super::node::RestartingNode;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::view::{View, WireView};
use crate::session_messages::ask_each;

/// The inputs of an attempt.
pub(super) struct Attempt<'a> {
    pub(super) node: &'a RestartingNode<'a>,
    /// The answers as received.
    pub(super) answers: &'a [NodeAnswer],
    /// The answers, with members added to views that have none.
    pub(super) known: &'a [NodeAnswer],
    pub(super) restart: Restart<'a>,
    pub(super) plan: Plan<'a>,
    pub(super) with_less: bool,
}

impl Attempt<'_> {
    /// Runs the whole attempt. After it, the next view has been decided, and the participants have
    /// been informed.
    pub(super) fn make(&self) -> Result<(), RestartError> {
        let participants: Vec<NodeId> = self.restart.participants(&self.plan).collect();
        let ballot = (self.plan.attempt, self.node.own.get());
        for node in &participants {
            let answer = self.answers.iter().find(|answer| answer.node == node.get());
            let answered = Box::new(answer.ok_or(RestartError::Malformed)?.clone());
            self.must(*node, RestartRequest::Hear { ballot, answered })?;
        }
        for node in &participants {
            let runs = self.runs_of(*node);
            if !runs.is_empty() {
                self.must(*node, RestartRequest::Repair { runs })?;
            }
        }
        let logs = self.logs()?;
        let (base, next) = self.views()?;
        let (base, next) = (WireView::from(&base), WireView::from(&next));
        let taken = logs.iter().map(|log| log.map(|log| (log.node.get(), log.end.end.0)));
        let order = Order { ballot, base, next: next.clone(), logs: taken.collect() };
        // The nodes whose logs are used must first cut them if necessary, because the others
        // receive the result.
        let is_source = |node: &NodeId| logs.iter().flatten().any(|log| log.node == *node);
        let (sources, others): (Vec<_>, Vec<_>) = participants.iter().copied().partition(is_source);
        for node in sources {
            self.must(node, RestartRequest::Take(Box::new(order.clone())))?;
        }
        self.must_all(&others, &RestartRequest::Take(Box::new(order)))?;
        // The view is decided now. This node records the decision first, so that it cannot forget
        // it. A node that misses the decision learns of it when it asks.
        let (begins, with_less) = (self.plan.adopted.is_none(), self.with_less);
        let decided = RestartRequest::Decided { view: next, begins, with_less };
        self.must(self.node.own, decided.clone())?;
        let others: Vec<NodeId> =
            participants.into_iter().filter(|node| *node != self.node.own).collect();
        if let Err(error) = self.must_all(&others, &decided) {
            tracing::info!(%error, "a node was not told of a decision");
        }
        Ok(())
    }

    /// Returns the base and the view that follows it.
    fn views(&self) -> Result<(View, View), RestartError> {
        let known = self.known.iter().filter_map(|answer| answer.decided.as_ref());
        let base = known.max_by_key(|view| view.id()).ok_or(RestartError::Malformed)?;
        let base = View::from(base.clone());
        let members: Vec<NodeId> = self.restart.next_members(&self.plan).collect();
        // The content of reserved subgroups was kept only in memory.
        let next = base.next(self.node.description, &members);
        let next = next.without_reserved(self.node.description);
        Ok((base, next))
    }

    fn logs(&self) -> Result<Vec<Option<TakenLog>>, RestartError> {
        let count = logged_subgroups(self.node.description).count();
        let log = |at| self.restart.log_of(&self.plan, at).map_err(|_| RestartError::Changed);
        (0..count).map(log).collect()
    }

    /// Returns a node's damaged records that are intact on another node.
    fn runs_of(&self, node: NodeId) -> Vec<DamagedRange> {
        let mut runs = Vec::new();
        let Some(answer) = self.answers.iter().find(|answer| answer.node == node.get()) else {
            return runs;
        };
        let logs = logged_subgroups(self.node.description).zip(&answer.logs).enumerate();
        for (at, (subgroup, log)) in logs {
            for (from, to) in log.iter().flat_map(|log| &log.damaged) {
                let mut from = *from;
                while from < *to {
                    let has = self.restart.has_intact(&self.plan, at, DurableCount(from));
                    let Some((other, end)) = has.filter(|(other, _)| *other != node) else { break };
                    let end = end.0.min(*to);
                    runs.push(DamagedRange {
                        subgroup: subgroup.0,
                        from,
                        to: end,
                        node: other.get(),
                    });
                    from = end;
                }
            }
        }
        runs
    }

    fn must(&self, node: NodeId, request: RestartRequest) -> Result<(), RestartError> {
        let reply = if node == self.node.own {
            self.node.reply(request)
        } else {
            self.node.calls.ask(node, &request)?
        };
        match reply {
            RestartReply::Done => Ok(()),
            RestartReply::Refused(why) => Err(RestartError::Refused { node, why }),
            _ => Err(RestartError::Malformed),
        }
    }

    /// Sends the request to several nodes at once.
    fn must_all(&self, nodes: &[NodeId], request: &RestartRequest) -> Result<(), RestartError> {
        let must = |node| self.must(node, request.clone());
        let done = ask_each(nodes.iter().copied(), must, || Err(RestartError::Malformed));
        done.into_iter().try_for_each(|(_, done)| done)
    }
}
