//! Whether all that was sent has been delivered: a loose count, which decides when to go on, and
//! judges nothing.

use super::ledger::{Fate, Message, NodeSet, only, set};
use super::member::{Member, Phase};
use super::stage::{Stage, node_name};

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
        let all = |message: &Message| {
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
        let awaited = |place: usize, message: &Message| {
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

    /// Says which message is missing, for a note.
    pub(super) fn missing(&mut self) -> Option<String> {
        let live = self.live();
        let (place, lacking) = self.first_lacking(live)?;
        let nodes = (0..self.members.len()).filter(|node| only(*node) & lacking != 0);
        let names: Vec<String> = nodes.map(node_name).collect();
        Some(format!(
            "{} was not delivered by {}",
            self.ledger.message(place).name,
            names.join(", ")
        ))
    }
}
