//! The views that nodes installed, and the promises about views themselves.
//!
//! Invariants: a seat is one incarnation in one group; its records are in line order; equal lists
//! of members share an id.

use super::groups::{GroupId, Groups, NodeSet};
use super::mixing::MixedTable;
use super::roster::{Fate, Moment, NodeId, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use crate::history::EndReason;

/// The id of a list of members, in order of appearance.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub(super) struct ListId(u32);

/// A list of a view's members.
#[derive(Debug)]
pub(super) struct MemberList {
    /// The members in the view's own order; a faulty list may name a node twice.
    pub(super) nodes: Vec<NodeId>,
    /// The members as a set.
    pub(super) set: NodeSet,
}

/// A `view` record.
#[derive(Clone, Copy, Debug)]
pub(super) struct Installed {
    /// The view's id.
    pub(super) view: u64,
    /// Its members.
    pub(super) list: ListId,
    /// The time and line of the installation.
    pub(super) at: Moment,
}

/// One incarnation in one group.
#[derive(Debug)]
pub(super) struct ViewedIncarnation {
    /// The incarnation.
    pub(super) start: StartId,
    /// The group.
    pub(super) group: GroupId,
    /// The views that the incarnation installed.
    pub(super) records: Vec<Installed>,
}

/// All view records.
#[derive(Debug, Default)]
pub(super) struct Views {
    list_ids: MixedTable<Vec<NodeId>, ListId>,
    lists: Vec<MemberList>,
    seat_ids: MixedTable<(StartId, GroupId), u32>,
    /// The seats that installed at least one view.
    pub(super) seats: Vec<ViewedIncarnation>,
    /// The first record of each view.
    first: MixedTable<(GroupId, u64), Installed>,
    last: MixedTable<(NodeId, GroupId), Installed>,
    /// `view-unique`.
    pub(super) unique: Tally,
    /// `view-rising`.
    pub(super) rising: Tally,
    /// `view-self`.
    pub(super) own: Tally,
}

impl Views {
    /// Takes a `view`.
    pub(super) fn install(
        &mut self,
        (roster, groups): (&mut Roster, &Groups),
        (start, group): (StartId, GroupId),
        (at, view): (Moment, u64),
        members: &[impl AsRef<str>],
    ) {
        let nodes = members.iter().map(|name| roster.node(name.as_ref())).collect();
        let record = Installed { view, list: self.list(nodes), at };
        self.judge_unique(roster, groups, group, record);
        self.judge_rising(roster, groups, (start, group), record);
        self.judge_own(roster, groups, (start, group), record);
        let next = self.seats.len();
        let seat =
            *self.seat_ids.entry((start, group)).or_insert(u32::try_from(next).unwrap_or(u32::MAX))
                as usize;
        if seat == next {
            self.seats.push(ViewedIncarnation { start, group, records: Vec::new() });
        }
        self.seats[seat].records.push(record);
    }

    fn list(&mut self, nodes: Vec<NodeId>) -> ListId {
        if let Some(known) = self.list_ids.get(&nodes) {
            return *known;
        }
        let mut set = NodeSet::default();
        for node in &nodes {
            set.insert(*node);
        }
        let new = ListId(u32::try_from(self.lists.len()).unwrap_or(u32::MAX));
        self.list_ids.insert(nodes.clone(), new);
        self.lists.push(MemberList { nodes, set });
        new
    }

    /// Returns the members of a list.
    pub(super) fn members(&self, list: ListId) -> &MemberList {
        &self.lists[list.0 as usize]
    }

    /// Returns the last view that an incarnation has installed in a group.
    pub(super) fn current(&self, start: StartId, group: GroupId) -> Option<u64> {
        let seat = self.seat_ids.get(&(start, group))?;
        self.seats[*seat as usize].records.last().map(|record| record.view)
    }

    /// Returns the last view that an incarnation had installed in a group before this line.
    pub(super) fn before(&self, start: StartId, group: GroupId, line: u64) -> Option<u64> {
        let records = &self.seats[*self.seat_ids.get(&(start, group))? as usize].records;
        let before = records.partition_point(|record| record.at.line < line);
        before.checked_sub(1).map(|last| records[last].view)
    }

    /// Returns the members of a view, according to its first record.
    pub(super) fn members_of(&self, group: GroupId, view: u64) -> Option<&NodeSet> {
        self.first.get(&(group, view)).map(|first| &self.members(first.list).set)
    }

    fn judge_unique(
        &mut self,
        roster: &Roster,
        groups: &Groups,
        group: GroupId,
        record: Installed,
    ) {
        self.unique.cases(1);
        let first = *self.first.entry((group, record.view)).or_insert(record);
        if first.list == record.list {
            return;
        }
        let (one, other) =
            (&self.lists[first.list.0 as usize].nodes, &self.lists[record.list.0 as usize].nodes);
        self.unique.breach(1, record.at.line, || {
            let what = format!(
                "view {} of {} has members {} at one node and {} at another",
                record.view,
                groups.name(group),
                roster.listed(one),
                roster.listed(other)
            );
            finding(
                what,
                [
                    shows(first.at.line, "the view"),
                    blames(record.at.line, "the same view, with other members"),
                ],
            )
        });
    }

    /// Judges the lists of members, at the end of the history.
    pub(super) fn judge_lists(&mut self, roster: &Roster, groups: &Groups) {
        let of = |seat: &ViewedIncarnation| {
            seat.records.iter().map(|record| (seat.group, *record)).collect::<Vec<_>>()
        };
        let records: Vec<_> = self.seats.iter().flat_map(of).collect();
        for (group, record) in records {
            self.judge_members(roster, groups, group, record);
        }
    }

    /// Judges that a view names only members of any group or nodes that start, each of them once.
    /// The views of a group may be those of a larger membership.
    fn judge_members(
        &mut self,
        roster: &Roster,
        groups: &Groups,
        group: GroupId,
        record: Installed,
    ) {
        let nodes = &self.lists[record.list.0 as usize].nodes;
        let mut seen = NodeSet::default();
        let wrong = nodes.iter().find_map(|node| {
            let is_known = groups.is_member(*node) || roster.last_start(*node).is_some();
            let why = if !is_known {
                ", which is in no group and never starts"
            } else if !seen.insert(*node) {
                " twice"
            } else {
                return None;
            };
            Some((*node, why))
        });
        let Some((node, why)) = wrong else { return };
        self.unique.breach(1, record.at.line, || {
            let what = format!(
                "view {} of {} with members {} names {}{why}",
                record.view,
                groups.name(group),
                roster.listed(nodes),
                roster.nodes[node.index()].name
            );
            finding(what, [blames(record.at.line, "a view with an impossible list of members")])
        });
    }

    fn judge_rising(
        &mut self,
        roster: &Roster,
        groups: &Groups,
        (start, group): (StartId, GroupId),
        record: Installed,
    ) {
        self.rising.cases(1);
        let before = self.last.insert((roster.node_of(start), group), record);
        if let Some(before) = before.filter(|before| record.view <= before.view) {
            self.rising.breach(1, record.at.line, || {
                let what = format!(
                    "{} installed view {} of {} after view {}",
                    roster.called(start),
                    record.view,
                    groups.name(group),
                    before.view
                );
                finding(
                    what,
                    [
                        shows(before.at.line, "the view before"),
                        blames(record.at.line, "a view that is not higher"),
                    ],
                )
            });
        }
    }

    fn judge_own(
        &mut self,
        roster: &Roster,
        groups: &Groups,
        (start, group): (StartId, GroupId),
        record: Installed,
    ) {
        self.own.cases(1);
        let list = &self.lists[record.list.0 as usize];
        if !list.set.has(roster.node_of(start)) {
            self.own.breach(1, record.at.line, || {
                let what = format!(
                    "{} installed view {} of {}, which has only the members {}",
                    roster.called(start),
                    record.view,
                    groups.name(group),
                    roster.listed(&list.nodes)
                );
                finding(what, [blames(record.at.line, "a view without the node that installed it")])
            });
        }
    }

    /// Judges `view-majority`, once all fates are known.
    pub(super) fn judge_majority(&self, roster: &Roster, groups: &Groups) -> Tally {
        let gone = self.gone(roster);
        let mut pairs: MixedTable<(GroupId, u64, u64), bool> = MixedTable::default();
        let mut tally = Tally::default();
        for seat in &self.seats {
            for pair in seat.records.windows(2) {
                let [from, to] = [pair[0], pair[1]];
                let broken = pairs.entry((seat.group, from.view, to.view)).or_insert_with(|| {
                    tally.cases(1);
                    false
                });
                if self.keeps_majority(&gone, seat.group, from, to) {
                    continue;
                }
                // The same pair of views counts once, but this record may have a lower line number.
                let times = u64::from(!std::mem::replace(broken, true));
                tally.breach(times, to.at.line, || {
                    self.lost_majority(roster, groups, seat, from, to)
                });
            }
        }
        tally
    }

    /// Returns the times at which members of views left or stopped on request. A leaver counts from
    /// the beginning, because the others continue without it before it ends. A member that was
    /// asked to stop counts from that moment.
    fn gone(&self, roster: &Roster) -> MixedTable<(GroupId, u64, NodeId), Moment> {
        let mut gone: MixedTable<(GroupId, u64, NodeId), Moment> = MixedTable::default();
        for seat in &self.seats {
            let start = &roster.starts[seat.start.index()];
            let left = start.fate() == Fate::Ended(EndReason::Left);
            let Some(at) = left.then(Moment::default).or_else(|| start.stopped()) else { continue };
            for record in &seat.records {
                let gone = gone.entry((seat.group, record.view, start.node)).or_insert(at);
                *gone = at.min(*gone);
            }
        }
        gone
    }

    fn keeps_majority(
        &self,
        gone: &MixedTable<(GroupId, u64, NodeId), Moment>,
        group: GroupId,
        from: Installed,
        to: Installed,
    ) -> bool {
        let next = &self.members(to.list).set;
        let (mut counted, mut all, mut kept) = (NodeSet::default(), 0_u64, 0_u64);
        for node in &self.members(from.list).nodes {
            if counted.insert(*node) {
                all += 1;
                let gone = gone.get(&(group, from.view, *node)).is_some_and(|gone| *gone < to.at);
                kept += u64::from(next.has(*node) || gone);
            }
        }
        2 * kept > all
    }

    fn lost_majority(
        &self,
        roster: &Roster,
        groups: &Groups,
        seat: &ViewedIncarnation,
        from: Installed,
        to: Installed,
    ) -> super::verdict::Finding {
        let what = format!(
            "{} moved from view {} of {} with members {} to view {} with members {}, which is not \
             a majority of the former members",
            roster.called(seat.start),
            from.view,
            groups.name(seat.group),
            roster.listed(&self.members(from.list).nodes),
            to.view,
            roster.listed(&self.members(to.list).nodes)
        );
        finding(
            what,
            [
                shows(from.at.line, "the view before"),
                blames(to.at.line, "a view without a majority of the view before"),
            ],
        )
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{broken, held, judged_by};

    const HEAD: &str = r#"{"ev":"group","group":"g","members":["a","b","c"],"senders":[]}
{"ev":"start","t_ns":0,"node":"a","inc":1}
{"ev":"start","t_ns":0,"node":"b","inc":1}
"#;

    fn view(node: &str, view: u64, members: &str) -> String {
        format!(
            r#"{{"ev":"view","t_ns":1,"node":"{node}","inc":1,"group":"g","view":{view},"members":[{members}]}}
"#
        )
    }

    const ALL: &str = r#""a","b","c""#;

    #[test]
    fn increasing_consistent_views_pass() {
        let text = [
            HEAD,
            &view("a", 1, ALL),
            &view("b", 1, ALL),
            &view("a", 4, r#""a","b""#),
            &view("b", 4, r#""a","b""#),
        ]
        .concat();
        let verdict = judged_by(&text);
        for check in
            [CheckId::ViewUnique, CheckId::ViewRising, CheckId::ViewSelf, CheckId::ViewMajority]
        {
            assert!(held(&verdict, check), "{check}");
        }
    }

    #[test]
    fn member_order_distinguishes_views() {
        let text = [HEAD, &view("a", 1, ALL), &view("b", 1, r#""b","a","c""#)].concat();
        assert_eq!(broken(&judged_by(&text)), [(CheckId::ViewUnique, vec![4, 5])]);
    }

    #[test]
    fn view_names_each_member_once_and_no_others() {
        for members in [r#""a","b","x""#, r#""a","b","a""#] {
            let text = [HEAD, &view("a", 1, members)].concat();
            assert_eq!(broken(&judged_by(&text)), [(CheckId::ViewUnique, vec![4])]);
        }
    }

    #[test]
    fn repeated_view_id_is_a_violation() {
        let text = [HEAD, &view("a", 2, ALL), &view("a", 2, ALL)].concat();
        assert_eq!(broken(&judged_by(&text)), [(CheckId::ViewRising, vec![4, 5])]);
    }

    #[test]
    fn view_excluding_its_installer_is_a_violation() {
        let text = [HEAD, &view("a", 2, r#""b""#)].concat();
        assert_eq!(broken(&judged_by(&text)), [(CheckId::ViewSelf, vec![4])]);
    }

    #[test]
    fn half_of_view_continues_only_after_a_leave() {
        let text = [HEAD, &view("a", 1, r#""a","b""#), &view("a", 2, r#""a""#)].concat();
        assert_eq!(broken(&judged_by(&text)), [(CheckId::ViewMajority, vec![4, 5])]);
        let left = [
            &text,
            &view("b", 1, r#""a","b""#),
            r#"{"ev":"end","t_ns":9,"node":"b","inc":1,"reason":"left"}"#,
        ]
        .concat();
        assert_eq!(broken(&judged_by(&left)), []);
    }
}
