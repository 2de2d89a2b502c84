//! Whether all that was sent has been delivered: a loose count, which decides when to go on, and
//! judges nothing.

use super::ledger::{Fate, LedgerMessage, NodeSet, only, set};
use super::member::{Member, Phase};
use super::names::node_name;
use super::stage::Stage;

impl Stage<'_> {
    /// The nodes that run and take messages.
    fn live(&self) -> NodeSet {
        let ready = |node: &usize| self.members[*node].phase == Phase::Ready;
        (0..self.members.len()).filter(ready).fold(0, |set, node| set | only(node))
    }

    /// Whether all others that run have a view of each group that is without these.
    pub(super) fn have_views_without(&self, nodes: NodeSet) -> bool {
        let others = self.members.iter().enumerate().filter(|(node, _)| only(*node) & nodes == 0);
        let mut running = others.map(|(_, member)| member).filter(|member| member.runs());
        running.all(|member| member.views.iter().flatten().all(|view| view & nodes == 0))
            && self.highest.iter().any(Option::is_some)
    }

    /// Whether each of these nodes, which were suspended or cut off, has ended, or installed a view
    /// since, or is a member as before that has delivered all.
    pub(super) fn are_resolved(&mut self, nodes: &[usize]) -> bool {
        let open = |node: &&usize| self.members[**node].runs() && !self.members[**node].moved_on;
        let open = nodes.iter().filter(open).fold(0, |set, node| set | only(*node));
        open == 0 || open & !self.present(self.live()) == 0 && self.is_delivered()
    }

    /// The members of a group now, as far as can be told: all but those that its highest view has
    /// removed.
    fn members_now(&self, group: usize, live: NodeSet) -> NodeSet {
        let members = set(&self.plan.groups[group].members) & live;
        // One that no view has named is still about to get in.
        self.highest[group].map_or(members, |(_, view)| (view | !self.seen[group]) & members)
    }

    /// Whether no order is open, all that run agree on a view, and each message was delivered by
    /// each node that should. A loose count: it decides when to go on, and judges nothing.
    pub(super) fn is_delivered(&mut self) -> bool {
        let live = self.live();
        let present = self.present(live);
        let busy = |(node, member): (usize, &Member)| {
            let waits = !member.orders.is_empty() || !member.unanswered.is_empty();
            // One that was removed may wait for an answer for ever.
            member.phase == Phase::Starting || only(node) & present != 0 && waits
        };
        !self.members.iter().enumerate().any(busy)
            && self.views_agree(live)
            && self.first_lacking(live).is_none()
    }

    /// The live nodes that no group has removed.
    fn present(&self, live: NodeSet) -> NodeSet {
        (0..self.plan.groups.len()).fold(live, |present, group| {
            let members = set(&self.plan.groups[group].members);
            present & (self.members_now(group, live) | !members)
        })
    }

    /// Whether the highest view of each group holds all nodes that are in and no node that is gone,
    /// and its members have all installed it.
    fn views_agree(&self, live: NodeSet) -> bool {
        self.highest.iter().enumerate().all(|(group, highest)| {
            let Some((_, view)) = highest else { return true };
            let installed = |node: usize| self.members[node].views[group] == Some(*view);
            (0..self.members.len()).filter(|node| only(*node) & view != 0).all(installed)
                && view & !live == 0
                && self.members_now(group, live) & !view == 0
        })
    }

    /// The first message that some node still has to deliver.
    fn first_lacking(&mut self, live: NodeSet) -> Option<(usize, NodeSet)> {
        let now: Vec<NodeSet> =
            (0..self.plan.groups.len()).map(|group| self.members_now(group, live)).collect();
        let has_views: Vec<bool> = self.highest.iter().map(Option::is_some).collect();
        let present = self.present(live);
        let (plan, members) = (self.plan, &self.members);
        let all = |message: &LedgerMessage| {
            message.groups.iter().fold(0, |all, group| all | set(&plan.groups[*group].members))
        };
        // In a group with views a joiner, or one that came back, owes only what was sent after
        // that.
        let late = |place: usize| {
            let late =
                |member: &Member| (member.joined || member.inc > 1) && member.ready_at > place;
            (0..members.len())
                .filter(|node| late(&members[*node]))
                .fold(0, |set, node| set | only(node))
        };
        let awaited = |place: usize, message: &LedgerMessage| {
            let sender = &members[message.sender];
            let groups = &message.groups;
            let stands = sender.inc == message.inc && only(message.sender) & present != 0;
            if message.delivered == 0 && (message.fate == Fate::Unsure || !stands) {
                return 0;
            }
            let due = groups.iter().fold(0, |due, group| {
                due | now[*group] & !if has_views[*group] { late(place) } else { 0 }
            });
            due & !message.delivered
        };
        self.ledger.first_open(all, awaited)
    }

    /// Says what is missing, for a note: deliveries, else answers, else views.
    pub(super) fn missing(&mut self) -> Option<String> {
        let live = self.live();
        if let Some((place, lacking)) = self.first_lacking(live) {
            let name = &self.ledger.message(place).name;
            return Some(format!("{name} was not delivered by {}", names(lacking)));
        }
        let present = self.present(live);
        let here = |node: &usize| only(*node) & present != 0;
        let nodes: Vec<usize> = (0..self.members.len()).filter(here).collect();
        let silent = nodes.iter().find_map(|node| self.unanswered(*node));
        silent.or_else(|| self.missing_view(live))
    }

    /// Which message a member has not answered, and how many there are.
    fn unanswered(&self, node: usize) -> Option<String> {
        let member = &self.members[node];
        let oldest = *member.unanswered.iter().min()?;
        let more = match member.unanswered.len() - 1 {
            0 => String::new(),
            more => format!(", nor {more} others"),
        };
        let name = &self.ledger.message(oldest).name;
        Some(format!("{} had not answered the multicast of {name}{more}", member.name))
    }

    /// Which group has no view that its members agree on.
    fn missing_view(&self, live: NodeSet) -> Option<String> {
        let (group, (view, members)) =
            self.highest.iter().enumerate().find_map(|(group, highest)| {
                let (view, members) = (*highest)?;
                let gone = members & !live;
                let missing = self.members_now(group, live) & !members;
                let behind = (0..self.members.len()).filter(|node| {
                    only(*node) & members & live != 0
                        && self.members[*node].views[group] != Some(members)
                });
                let behind = behind.fold(0, |set, node| set | only(node));
                (gone | missing | behind != 0).then_some((group, (view, gone | missing | behind)))
            })?;
        Some(format!("view {view} of g{group} and {} did not fit together", names(members)))
    }
}

/// The names of a set of nodes.
fn names(nodes: NodeSet) -> String {
    let names: Vec<String> = (0..super::ledger::NODES_MAX)
        .filter(|node| only(*node) & nodes != 0)
        .map(node_name)
        .collect();
    names.join(", ")
}
