//! Decides whether everything sent has been delivered. This is an approximation that determines
//! when to continue, and does not judge.

use super::feature::Feature;
use super::ledger::{Fate, LedgerMessage, NodeSet, only, set};
use super::member::{Member, MemberPhase};
use super::names::node_name;
use super::stage::{Introduction, Stage};

impl Stage<'_> {
    /// Returns the nodes that run and accept messages.
    fn live(&self) -> NodeSet {
        let ready = |node: &usize| self.members[*node].phase == MemberPhase::Ready;
        (0..self.members.len()).filter(ready).fold(0, |set, node| set | only(node))
    }

    /// Returns whether all other running nodes have a view of each group without these nodes.
    pub(super) fn have_views_without(&self, nodes: NodeSet) -> bool {
        let others = self.members.iter().enumerate().filter(|(node, _)| only(*node) & nodes == 0);
        let mut running = others.map(|(_, member)| member).filter(|member| member.runs());
        running.all(|member| member.views.iter().flatten().all(|(_, view)| view & nodes == 0))
            && self.highest.iter().any(Option::is_some)
    }

    /// Returns whether each of these nodes, which were suspended or cut off, has since ended or
    /// installed a view, or is a member as before and has delivered everything.
    pub(super) fn are_resolved(&mut self, nodes: &[usize]) -> bool {
        let open = |node: &&usize| self.members[**node].runs() && !self.members[**node].moved_on;
        let open = nodes.iter().filter(open).fold(0, |set, node| set | only(*node));
        open == 0 || open & !self.present(self.live()) == 0 && self.is_delivered()
    }

    /// Returns the known current members of a group: all except those that its highest view has
    /// removed.
    fn members_now(&self, group: usize, live: NodeSet) -> NodeSet {
        let members = set(&self.plan.groups[group].members) & live;
        // A node that no view has named is still joining.
        self.highest[group].map_or(members, |(_, view)| (view | !self.seen[group]) & members)
    }

    /// Returns whether no request is open, all running nodes agree on a view, and each message has
    /// been delivered by every node that should deliver it. This is an approximation that
    /// determines when to continue, and does not judge.
    pub(super) fn is_delivered(&mut self) -> bool {
        let live = self.live();
        let present = self.present(live);
        let busy = |(node, member): (usize, &Member)| {
            let waits = !member.orders.is_empty() || !member.unanswered.is_empty();
            // A removed node may wait for an answer indefinitely.
            member.phase == MemberPhase::Starting || only(node) & present != 0 && waits
        };
        !self.members.iter().enumerate().any(busy)
            && self.views_agree(live)
            && self.first_lacking(live).is_none()
    }

    /// Returns the live nodes that no group has removed.
    fn present(&self, live: NodeSet) -> NodeSet {
        (0..self.plan.groups.len()).fold(live, |present, group| {
            let members = set(&self.plan.groups[group].members);
            present & (self.members_now(group, live) | !members)
        })
    }

    /// Returns whether the highest view of each group contains all current members and no lost
    /// node, and all its members have installed it.
    fn views_agree(&self, live: NodeSet) -> bool {
        self.highest.iter().enumerate().all(|(group, highest)| {
            let Some((id, view)) = highest else { return true };
            // An earlier view may have had the same members.
            let installed = |node: usize| self.members[node].views[group] == Some((*id, *view));
            (0..self.members.len()).filter(|node| only(*node) & view != 0).all(installed)
                && view & !live == 0
                && self.members_now(group, live) & !view == 0
        })
    }

    /// Returns the members that have delivered something, but never reported that deliveries are
    /// durable although the implementation claims that its members do.
    pub(super) fn without_durable(&self) -> NodeSet {
        let claims = |introduction: &Introduction| {
            introduction.features.iter().any(|name| name == Feature::Durable.name())
        };
        if !self.introduction.as_ref().is_some_and(claims) {
            return 0;
        }
        let delivered = |node: &usize| self.members[*node].delivered > 0;
        let nodes = (0..self.members.len()).filter(delivered).fold(0, |set, node| set | only(node));
        nodes & self.present(self.live()) & !self.durable
    }

    /// Returns the first message that some nodes still have to deliver, and these nodes.
    fn first_lacking(&mut self, live: NodeSet) -> Option<(usize, NodeSet)> {
        let now: Vec<NodeSet> =
            (0..self.plan.groups.len()).map(|group| self.members_now(group, live)).collect();
        let has_views: Vec<bool> = self.highest.iter().map(Option::is_some).collect();
        let present = self.present(live);
        let (plan, members) = (self.plan, &self.members);
        let all = |message: &LedgerMessage| {
            message.groups.iter().fold(0, |all, group| all | set(&plan.groups[*group].members))
        };
        // In a group with views, a node that joined or came back must deliver only messages that
        // were sent after that.
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

    /// Describes what is missing, for a note: deliveries or, if there are none, answers or views.
    pub(super) fn missing(&mut self) -> Option<String> {
        let live = self.live();
        if let Some((place, lacking)) = self.first_lacking(live) {
            let name = &self.ledger.message(place).name;
            return Some(format!("{} had not delivered {name}", nodes_of(lacking)));
        }
        let present = self.present(live);
        let here = |node: &usize| only(*node) & present != 0;
        let nodes: Vec<usize> = (0..self.members.len()).filter(here).collect();
        let silent = nodes.iter().find_map(|node| self.unanswered(*node));
        silent.or_else(|| self.missing_view(live))
    }

    /// Describes the messages that a member has not answered: the first one, and the number of
    /// them.
    fn unanswered(&self, node: usize) -> Option<String> {
        let member = &self.members[node];
        let oldest = *member.unanswered.iter().min()?;
        let more = match member.unanswered.len() - 1 {
            0 => String::new(),
            more => format!(" or {more} others"),
        };
        let name = &self.ledger.message(oldest).name;
        Some(format!("{} had not answered the multicast of {name}{more}", member.name))
    }

    /// Names a group without a view that its members agree on.
    fn missing_view(&self, live: NodeSet) -> Option<String> {
        let (group, (view, members)) =
            self.highest.iter().enumerate().find_map(|(group, highest)| {
                let (view, members) = (*highest)?;
                let gone = members & !live;
                let missing = self.members_now(group, live) & !members;
                let behind = (0..self.members.len()).filter(|node| {
                    only(*node) & members & live != 0
                        && self.members[*node].views[group] != Some((view, members))
                });
                let behind = behind.fold(0, |set, node| set | only(node));
                (gone | missing | behind != 0).then_some((group, (view, gone | missing | behind)))
            })?;
        Some(format!("view {view} of g{group} did not match the state of {}", nodes_of(members)))
    }
}

/// Lists the names of a set of nodes.
pub(super) fn nodes_of(nodes: NodeSet) -> String {
    let names: Vec<String> = (0..super::ledger::NODES_MAX)
        .filter(|node| only(*node) & nodes != 0)
        .map(node_name)
        .collect();
    names.join(", ")
}
