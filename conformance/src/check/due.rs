//! Computes the incarnations that must deliver a message, once all views and fates are known.
//!
//! In a group with views these are the incarnations that installed the message's view, and then
//! either installed a later one or stayed until the end. In a group without views they are nodes,
//! represented by their last incarnation.

use std::cell::RefCell;
use std::rc::Rc;

use super::groups::{GroupId, GroupSetId, Groups, NodeSet};
use super::message::MessageView;
use super::mixing::MixedTable;
use super::roster::{AssumedEnds, Fate, Moment, NodeId, Roster, StartId};
use super::views::{Installed, ListId, ViewedIncarnation, Views};
use crate::history::EndReason;

/// An incarnation that must deliver a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Goer {
    /// The incarnation.
    pub(super) start: StartId,
    /// The id and line of the next view that the incarnation installed after the message's view.
    pub(super) next: Option<(u64, u64)>,
}

/// The incarnations that must deliver a message in one of its groups that has views, or in all of
/// its groups that have none.
#[derive(Clone, Debug)]
pub(super) struct DuePart {
    /// The group, if it has views.
    pub(super) group: Option<GroupId>,
    /// The incarnations that must deliver.
    pub(super) due: Rc<[Goer]>,
}

/// A group with views.
#[derive(Debug, Default)]
struct Viewed {
    /// The members' incarnations that installed each view.
    by_view: MixedTable<u64, Vec<Goer>>,
    /// The members' incarnations that installed any view.
    members: Vec<StartId>,
    /// The incarnations that were removed.
    removed: MixedTable<StartId, ()>,
    /// The incarnations that had been removed before they were asked to leave.
    removed_before_leaving: MixedTable<StartId, ()>,
}

type DueAnswer = Rc<[Goer]>;

/// Maximum number of cached answers, because there may be as many sets of groups as messages.
const ANSWERS_MAX: usize = 1024;

type DueQuestion = (GroupId, Option<u64>, AssumedEnds);

/// Answers which incarnations must deliver a message.
pub(super) struct Due<'a> {
    roster: &'a Roster,
    groups: &'a Groups,
    viewed: MixedTable<GroupId, Viewed>,
    with_views: RefCell<MixedTable<DueQuestion, DueAnswer>>,
    without_views: RefCell<MixedTable<(GroupSetId, AssumedEnds), DueAnswer>>,
}

impl<'a> Due<'a> {
    /// Collects the views and removals of a whole history.
    pub(super) fn new(roster: &'a Roster, groups: &'a Groups, views: &Views) -> Self {
        let listed = Listed::of(roster, views);
        let mut viewed: MixedTable<GroupId, Viewed> = MixedTable::default();
        for seat in &views.seats {
            let of = viewed.entry(seat.group).or_default();
            let start = &roster.starts[seat.start.index()];
            // Views that others install after the stop request do not show a removal.
            if start.is_correct(AssumedEnds::AsIfDone)
                && listed.has_passed_by(seat, start.node, start.stopped())
            {
                of.removed.insert(seat.start, ());
            }
            if start.leave.is_some() && listed.has_passed_by(seat, start.node, start.leave) {
                of.removed_before_leaving.insert(seat.start, ());
            }
            if groups.has_member(seat.group, start.node) {
                of.members.push(seat.start);
                of.note(seat.start, &seat.records);
            }
        }
        Self {
            roster,
            groups,
            viewed,
            with_views: RefCell::default(),
            without_views: RefCell::default(),
        }
    }

    /// Returns whether a group has views.
    pub(super) fn has_views(&self, group: GroupId) -> bool {
        self.viewed.contains_key(&group)
    }

    /// Returns whether an incarnation was removed from a group.
    pub(super) fn is_removed(&self, start: StartId, group: GroupId) -> bool {
        self.viewed.get(&group).is_some_and(|viewed| viewed.removed.contains_key(&start))
    }

    /// Returns whether an incarnation was removed from any group of a set.
    pub(super) fn is_removed_from_any(&self, start: StartId, set: GroupSetId) -> bool {
        self.groups.of(set).groups.iter().any(|group| self.is_removed(start, *group))
    }

    /// Returns whether an incarnation left on request before any group of the set had removed it.
    pub(super) fn left_as_a_member(&self, start: StartId, set: GroupSetId) -> bool {
        let had_removed = |group: &GroupId| {
            self.viewed
                .get(group)
                .is_some_and(|viewed| viewed.removed_before_leaving.contains_key(&start))
        };
        let of = &self.roster.starts[start.index()];
        of.fate() == Fate::Ended(EndReason::Left)
            && of.leave.is_some()
            && !self.groups.of(set).groups.iter().any(had_removed)
    }

    /// Iterates over the nodes that installed a view as members of its group.
    pub(super) fn installers(&self, group: GroupId, view: u64) -> impl Iterator<Item = NodeId> {
        let goers = self.viewed.get(&group).and_then(|viewed| viewed.by_view.get(&view));
        goers.into_iter().flatten().map(|goer| self.roster.node_of(goer.start))
    }

    /// Returns the incarnations that must deliver a message with these groups and views, one part
    /// per group with views.
    pub(super) fn parts(
        &self,
        set: GroupSetId,
        views: &[Option<MessageView>],
        world: AssumedEnds,
    ) -> Vec<DuePart> {
        let groups = &self.groups.of(set).groups;
        let mut parts: Vec<DuePart> = groups
            .iter()
            .zip(views)
            .filter(|(group, _)| self.has_views(**group))
            .map(|(group, of)| DuePart {
                group: Some(*group),
                due: self.in_view(*group, of.map(|of| of.view), world),
            })
            .collect();
        if parts.len() < groups.len() {
            parts.push(DuePart { group: None, due: self.without_views(set, world) });
        }
        parts
    }

    fn in_view(&self, group: GroupId, view: Option<u64>, world: AssumedEnds) -> DueAnswer {
        let mut asked = self.with_views.borrow_mut();
        if asked.len() > ANSWERS_MAX {
            asked.clear();
        }
        let answer = asked
            .entry((group, view, world))
            .or_insert_with(|| self.find_in_view(group, view, world));
        Rc::clone(answer)
    }

    fn find_in_view(&self, group: GroupId, view: Option<u64>, world: AssumedEnds) -> DueAnswer {
        let Some(viewed) = self.viewed.get(&group) else { return Rc::new([]) };
        let stays = |start: StartId| {
            self.roster.starts[start.index()].is_correct(world)
                && !viewed.removed.contains_key(&start)
        };
        match view {
            Some(view) => {
                let goers = viewed.by_view.get(&view).into_iter().flatten();
                goers.filter(|goer| goer.next.is_some() || stays(goer.start)).copied().collect()
            }
            None => {
                let stayed = viewed.members.iter().filter(|start| stays(**start));
                stayed.map(|start| Goer { start: *start, next: None }).collect()
            }
        }
    }

    fn without_views(&self, set: GroupSetId, world: AssumedEnds) -> DueAnswer {
        let mut asked = self.without_views.borrow_mut();
        if asked.len() > ANSWERS_MAX {
            asked.clear();
        }
        let answer =
            asked.entry((set, world)).or_insert_with(|| self.find_without_views(set, world));
        Rc::clone(answer)
    }

    fn find_without_views(&self, set: GroupSetId, world: AssumedEnds) -> DueAnswer {
        let mut seen = NodeSet::default();
        let groups = self.groups.of(set).groups.iter().filter(|group| !self.has_views(**group));
        let members = groups.flat_map(|group| &self.groups.groups[group.index()].members);
        let starts = members
            .filter(|node| seen.insert(**node))
            .filter_map(|node| self.roster.last_start(*node));
        let correct = starts.filter(|start| self.roster.starts[start.index()].is_correct(world));
        correct.map(|start| Goer { start, next: None }).collect()
    }
}

impl Viewed {
    /// Stores the first record of each view of an incarnation, with the record that followed it.
    fn note(&mut self, start: StartId, records: &[Installed]) {
        let mut seen: MixedTable<u64, ()> = MixedTable::default();
        for (place, record) in records.iter().enumerate() {
            if seen.insert(record.view, ()).is_none() {
                let next = records.get(place + 1).map(|next| (next.view, next.at.line));
                self.by_view.entry(record.view).or_default().push(Goer { start, next });
            }
        }
    }
}

/// The installations of a view.
#[derive(Clone, Copy)]
struct SeenView {
    view: u64,
    list: ListId,
    /// The node that installed the view first, and the time of that installation.
    first: (Moment, NodeId),
    /// The time at which a second node installed it.
    other: Option<Moment>,
}

/// The views of each group, from the highest to the lowest.
struct Listed<'v> {
    views: &'v Views,
    by_group: MixedTable<GroupId, Vec<SeenView>>,
}

impl<'v> Listed<'v> {
    fn of(roster: &Roster, views: &'v Views) -> Self {
        let mut seen: MixedTable<(GroupId, u64, ListId), Vec<(Moment, NodeId)>> =
            MixedTable::default();
        for seat in &views.seats {
            let node = roster.node_of(seat.start);
            for Installed { view, list, at } in &seat.records {
                seen.entry((seat.group, *view, *list)).or_default().push((*at, node));
            }
        }
        let mut by_group: MixedTable<GroupId, Vec<SeenView>> = MixedTable::default();
        for ((group, view, list), mut installers) in seen {
            installers.sort_unstable();
            let first = installers[0];
            let other = installers.iter().find(|(_, node)| *node != first.1).map(|(at, _)| *at);
            by_group.entry(group).or_default().push(SeenView { view, list, first, other });
        }
        for seen in by_group.values_mut() {
            seen.sort_unstable_by_key(|seen| std::cmp::Reverse((seen.view, seen.list)));
        }
        Self { views, by_group }
    }

    /// Returns whether another node had installed a higher view of the seat's group that excludes
    /// this seat's node, before `until` if given.
    fn has_passed_by(&self, seat: &ViewedIncarnation, node: NodeId, until: Option<Moment>) -> bool {
        let last = seat.records.last().map_or(0, |record| record.view);
        let seen = self.by_group.get(&seat.group).into_iter().flatten();
        seen.take_while(|seen| seen.view > last).any(|seen| {
            let (at, installer) = seen.first;
            let at = if installer == node { seen.other } else { Some(at) };
            at.is_some_and(|at| until.is_none_or(|until| at < until))
                && !self.views.members(seen.list).set.has(node)
        })
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken};

    const GROUP: &str = r#"{"ev":"group","group":"g","members":["a","b","c"],"senders":["a"]}"#;

    fn view(play: &mut Play, node: &str, view: u64, members: &str) -> u64 {
        play.line(&format!(
            r#"{{"ev":"view","t_ns":1,"node":"{node}","inc":1,"group":"g","view":{view},"members":[{members}]}}"#
        ))
    }

    /// All three nodes are in view 1, and "a" and "b" deliver in it; then "a" and "b" continue
    /// without "c".
    fn removal(delivered_by_c: bool, c_goes_on: bool) -> (Play, u64) {
        let mut play = Play::of(GROUP, &["a", "b", "c"]);
        for node in ["a", "b", "c"] {
            view(&mut play, node, 1, r#""a","b","c""#);
        }
        play.sends("a", 1);
        let by: &[&str] = if delivered_by_c { &["a", "b", "c"] } else { &["a", "b"] };
        for node in by {
            play.deliver(node, &["a/1/0"]);
        }
        let next = if c_goes_on { r#""a","b","c""# } else { r#""a","b""# };
        view(&mut play, "a", 2, next);
        view(&mut play, "b", 2, next);
        let last = if c_goes_on { view(&mut play, "c", 2, next) } else { 0 };
        for node in ["a", "b", "c"] {
            play.end(node);
        }
        (play, last)
    }

    #[test]
    fn removed_member_owes_no_delivery() {
        assert_eq!(broken(&removal(false, false).0.verdict()), []);
    }

    #[test]
    fn members_in_same_next_view_deliver_same_messages() {
        let (play, last) = removal(false, true);
        assert_eq!(broken(&play.verdict()), [(CheckId::ViewSameSet, vec![8, 9, last])]);
        assert_eq!(broken(&removal(true, true).0.verdict()), []);
    }
}
