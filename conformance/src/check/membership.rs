//! Checks whether views follow the members, and whether survivors continue after a kill. These are
//! conditions of `liveness`.

use std::cmp::Reverse;

use super::due::Due;
use super::groups::{GroupId, Groups, NodeSet};
use super::roster::{AssumedEnds, Fate, Moment, NodeId, NodeIncarnation, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use super::verdict::Finding;
use super::views::{Installed, ListId, ViewedIncarnation, Views};
use crate::history::EndReason;

/// The time that a member must have had to install a view before it was asked to stop. A driver
/// waits for views before it stops the members, so this time only covers its stop requests.
const INSTALL_NS: u64 = 100_000_000;

/// Judges the views and the survivors of all groups.
pub(super) fn judge(
    tally: &mut Tally,
    (roster, groups): (&Roster, &Groups),
    views: &Views,
    due: &Due<'_>,
) {
    for group in (0..groups.groups.len()).map(|place| GroupId(place as u32)) {
        let seats: Vec<&ViewedIncarnation> =
            views.seats.iter().filter(|seat| seat.group == group).collect();
        for world in [AssumedEnds::AsIs, AssumedEnds::AsIfDone] {
            let of = OneGroup { roster, groups, views, due, group, seats: &seats, world };
            of.missing_installations(tally);
            of.lasting_members(tally);
        }
        let of =
            OneGroup { roster, groups, views, due, group, seats: &seats, world: AssumedEnds::AsIs };
        of.survivors_that_gave_up(tally);
    }
}

/// A group, and the incarnations that installed its views.
struct OneGroup<'a> {
    roster: &'a Roster,
    groups: &'a Groups,
    views: &'a Views,
    due: &'a Due<'a>,
    group: GroupId,
    seats: &'a [&'a ViewedIncarnation],
    world: AssumedEnds,
}

impl OneGroup<'_> {
    fn members(&self) -> &[NodeId] {
        &self.groups.groups[self.group.index()].members
    }

    fn of(&self, start: StartId) -> &NodeIncarnation {
        &self.roster.starts[start.index()]
    }

    fn lists(&self, list: ListId, node: NodeId) -> bool {
        self.views.members(list).set.has(node)
    }

    /// Returns whether an incarnation is correct and was not removed.
    fn remains(&self, start: StartId) -> bool {
        self.of(start).is_correct(self.world) && !self.due.is_removed(start, self.group)
    }

    /// Iterates over the records of views that other nodes installed.
    fn by_others(&self, node: NodeId) -> impl Iterator<Item = &Installed> + Clone {
        let others = self.seats.iter().filter(move |seat| self.roster.node_of(seat.start) != node);
        others.flat_map(|seat| &seat.records)
    }

    /// Returns whether more than half of a view's members meet the condition with their last
    /// incarnations.
    fn is_majority(&self, list: ListId, meets: impl Fn(&NodeIncarnation) -> bool) -> bool {
        let (mut seen, mut all, mut met) = (NodeSet::default(), 0_u64, 0_u64);
        for node in &self.views.members(list).nodes {
            if seen.insert(*node) {
                all += 1;
                let last = self.roster.last_start(*node);
                met += u64::from(last.is_some_and(|start| meets(self.of(start))));
            }
        }
        2 * met > all
    }

    /// Adds a violation, or a doubt if it depends on unfinished incarnations.
    fn report(&self, tally: &mut Tally, line: u64, found: impl FnOnce() -> Finding) {
        match self.world {
            AssumedEnds::AsIs => tally.breach(1, line, found),
            AssumedEnds::AsIfDone => {
                tally.doubt(line, || format!("{}, but the history is not finished", found().what));
            }
        }
    }

    /// Finds members that did not install the last view that others installed with them.
    fn missing_installations(&self, tally: &mut Tally) {
        for node in self.members() {
            for start in &self.roster.nodes[node.index()].starts {
                if self.remains(*start)
                    && let Some(view) = self.not_installed(*node, *start)
                {
                    self.report(tally, view.at.line, || self.lags(*start, view));
                }
            }
        }
    }

    fn not_installed(&self, node: NodeId, start: StartId) -> Option<Installed> {
        let of = self.of(start);
        let (begun, stop) = (Moment { t_ns: of.begun_ns, line: of.line }, of.stopped());
        let meanwhile = self
            .by_others(node)
            .filter(|view| view.at > begun && stop.is_none_or(|stop| view.at < stop));
        let in_time = meanwhile.clone().filter(|view| had_time(view.at, stop));
        let view = *in_time.max_by_key(|view| (view.view, Reverse(view.at)))?;
        let own = self.seats.iter().find(|seat| seat.start == start);
        let own = own.map_or(&[][..], |seat| &seat.records);
        let has_newer = own.iter().any(|own| own.view >= view.view);
        let removed_again = || {
            meanwhile.clone().any(|later| later.view > view.view && !self.lists(later.list, node))
        };
        let is_due = !has_newer
            && self.lists(view.list, node)
            && !(own.is_empty() && removed_again())
            && self.is_majority(view.list, |member| member.is_correct(self.world));
        is_due.then_some(view)
    }

    fn lags(&self, start: StartId, view: Installed) -> Finding {
        let what = format!(
            "{} is a member of view {} of {} but installed neither this view nor a later one",
            self.roster.called(start),
            view.view,
            self.groups.name(self.group)
        );
        let stopped = self.of(start).stopped().map_or(0, |stop| stop.line);
        finding(
            what,
            [
                shows(view.at.line, "another member installs the view"),
                blames(stopped, "asked to stop without having installed it"),
            ],
        )
    }

    /// Finds killed members and leavers that all survivors still have in their views.
    fn lasting_members(&self, tally: &mut Tally) {
        for node in self.members() {
            let Some(last) = self.roster.last_start(*node) else { continue };
            let of = self.of(last);
            let gone = match (of.fate(), of.end) {
                (Fate::Killed, _) => of.kill,
                (Fate::Ended(EndReason::Left), Some(end)) if of.leave.is_some() => {
                    Some(Moment { t_ns: end.t_ns, line: end.line })
                }
                _ => None,
            };
            if let Some(gone) = gone
                && let Some((keeper, view)) = self.kept_by_all(*node, gone)
            {
                self.report(tally, gone.line, || self.keeps(last, keeper, view, gone));
            }
        }
    }

    /// Returns the highest of the survivors' last views, and its installer, if all these views have
    /// the node.
    fn kept_by_all(&self, node: NodeId, gone: Moment) -> Option<(StartId, Installed)> {
        let mut highest: Option<(StartId, Installed)> = None;
        for seat in self.seats {
            let (keeper, stop) = (self.roster.node_of(seat.start), self.of(seat.start).stopped());
            let survives = keeper != node
                && self.groups.has_member(self.group, keeper)
                && self.roster.is_last(seat.start)
                && self.remains(seat.start)
                && had_time(gone, stop);
            let before = |view: &&Installed| stop.is_none_or(|stop| view.at < stop);
            let Some(last) = seat.records.iter().rfind(before).filter(|_| survives) else {
                continue;
            };
            if !self.lists(last.list, node) {
                return None;
            }
            let rank = |view: &Installed| (view.view, Reverse(view.at));
            if highest.is_none_or(|(_, high)| rank(&high) < rank(last)) {
                highest = Some((seat.start, *last));
            }
        }
        highest.filter(|(_, view)| {
            self.is_majority(view.list, |member| {
                member.is_correct(self.world) || member.fate() == Fate::Ended(EndReason::Left)
            })
        })
    }

    fn keeps(&self, node: StartId, keeper: StartId, view: Installed, gone: Moment) -> Finding {
        let how = if self.of(node).is_killed() { "was killed" } else { "left" };
        let what = format!(
            "{} {how}, but no survivor installed a view of {} without it: the last one is view {}",
            self.roster.called(node),
            self.groups.name(self.group),
            view.view
        );
        let stopped = self.of(keeper).stopped().map_or(0, |stop| stop.line);
        finding(
            what,
            [
                shows(view.at.line, "the last view of a survivor"),
                shows(gone.line, "the member is gone"),
                blames(stopped, "asked to stop without a view that excludes the member"),
            ],
        )
    }

    /// Finds members that gave up because others were killed, although a majority lived.
    fn survivors_that_gave_up(&self, tally: &mut Tally) {
        if self.roster.last_fault_ns.is_none() || self.roster.had_other_faults {
            return;
        }
        for node in self.members() {
            let Some(start) = self.roster.last_start(*node) else { continue };
            let of = self.of(start);
            let Some(end) = of.end.filter(|end| end.reason == EndReason::Halted) else { continue };
            let at = Moment { t_ns: end.t_ns, line: end.line };
            let is_on_request =
                of.leave.is_some() || self.roster.first_stop().is_some_and(|stop| stop < at);
            if is_on_request || self.roster.was_killed(*node) {
                continue;
            }
            let is_wrong = if self.seats.is_empty() {
                self.roster.is_founder(start) && self.lives(self.members(), at)
            } else {
                self.gave_up_in_its_view(*node, start, at)
            };
            if is_wrong {
                tally.breach(1, at.line, || {
                    let what = format!(
                        "{} gave up after another member was killed, although a majority of {} lived",
                        self.roster.called(start),
                        self.groups.name(self.group)
                    );
                    finding(what, [blames(at.line, "the survivor gives up")])
                });
            }
        }
    }

    /// Returns whether a member gave up although it belonged to a view with a living majority, and
    /// no other member had removed it.
    fn gave_up_in_its_view(&self, node: NodeId, start: StartId, at: Moment) -> bool {
        let seat = self.seats.iter().find(|seat| seat.start == start);
        let Some(last) = seat.and_then(|seat| seat.records.last()) else { return false };
        let later = || self.by_others(node).filter(|view| view.view > last.view);
        let had_removed = later().any(|view| view.at < at && !self.lists(view.list, node));
        let next = later().min_by_key(|view| (view.view, view.at));
        let members = &self.views.members(last.list).nodes;
        // If the next view excludes this node too, the others may have lost it with those killed,
        // unless it had already installed a view without them.
        let was_kept = next.is_none_or(|next| self.lists(next.list, node))
            || !members.iter().any(|member| self.roster.was_killed(*member));
        was_kept && !had_removed && self.lives(members, at)
    }

    /// Returns whether most of these nodes, not counting those that had left, were never killed and
    /// had not ended at the time.
    fn lives(&self, nodes: &[NodeId], at: Moment) -> bool {
        let (mut seen, mut all, mut living) = (NodeSet::default(), 0_u64, 0_u64);
        for node in nodes.iter().filter(|node| seen.insert(**node)) {
            let last = self.roster.last_start(*node).map(|start| self.of(start));
            let end = last.and_then(|last| last.end);
            let end = end.filter(|end| Moment { t_ns: end.t_ns, line: end.line } < at);
            if end.is_some_and(|end| end.reason == EndReason::Left) {
                continue;
            }
            all += 1;
            let is_up = last.is_some() && end.is_none() && !self.roster.was_killed(*node);
            living += u64::from(is_up);
        }
        2 * living > all
    }
}

/// Returns whether a member that was asked to stop at `stop` had time to react to an event.
fn had_time(event: Moment, stop: Option<Moment>) -> bool {
    stop.is_none_or(|stop| event.t_ns.saturating_add(INSTALL_NS) <= stop.t_ns)
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held, inconclusive};

    const MS: u64 = 1_000_000;
    const ALL: [&str; 3] = ["a", "b", "c"];

    fn view(play: &mut Play, (ms, node): (u64, &str), id: u64, members: &[&str]) -> u64 {
        play.line(&format!(
            r#"{{"ev":"view","t_ns":{},"node":"{node}","inc":1,"group":"g","view":{id},"members":{members:?}}}"#,
            ms * MS
        ))
    }

    fn kill(play: &mut Play, ms: u64, node: &str) -> u64 {
        play.line(&format!(
            r#"{{"ev":"fault","t_ns":{},"kind":"kill","nodes":["{node}"]}}"#,
            ms * MS
        ))
    }

    fn end(play: &mut Play, (ms, node): (u64, &str), reason: &str) -> u64 {
        play.line(&format!(
            r#"{{"ev":"end","t_ns":{},"node":"{node}","inc":1,"reason":"{reason}"}}"#,
            ms * MS
        ))
    }

    /// All nodes of the group are in view 1.
    fn in_view_1(nodes: &[&str]) -> Play {
        let mut play = Play::new(nodes);
        for node in nodes {
            view(&mut play, (1, node), 1, nodes);
        }
        play
    }

    #[test]
    fn survivor_must_install_the_view_after_a_kill() {
        for (installs, ms, fails) in [(false, 500, true), (true, 500, false), (false, 60, false)] {
            let mut play = in_view_1(&ALL);
            kill(&mut play, 10, "c");
            let seen = view(&mut play, (20, "a"), 2, &["a", "b"]);
            if installs {
                view(&mut play, (30, "b"), 2, &["a", "b"]);
            }
            end(&mut play, (ms, "a"), "done");
            let unfinished = play.verdict();
            assert_eq!(inconclusive(&unfinished, CheckId::Liveness), !installs);
            let line = end(&mut play, (ms, "b"), "done");
            let found = broken(&play.verdict());
            let expected = if fails { vec![(CheckId::Liveness, vec![seen, line])] } else { vec![] };
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn member_without_views_must_install_its_first() {
        let mut play = Play::new(&ALL);
        let seen = view(&mut play, (1, "a"), 1, &ALL);
        view(&mut play, (1, "b"), 1, &ALL);
        end(&mut play, (500, "a"), "done");
        end(&mut play, (500, "b"), "done");
        let line = end(&mut play, (500, "c"), "done");
        assert!(broken(&play.verdict()).contains(&(CheckId::Liveness, vec![seen, line])));
    }

    #[test]
    fn removed_member_need_not_install_later_views() {
        let mut play = in_view_1(&ALL);
        for node in ["a", "b"] {
            view(&mut play, (2, node), 2, &["a", "b"]);
        }
        for node in ALL {
            end(&mut play, (500, node), "done");
        }
        assert_eq!(broken(&play.verdict()), []);
    }

    #[test]
    fn minority_need_not_install_the_view() {
        let mut play = in_view_1(&ALL);
        view(&mut play, (2, "a"), 2, &ALL);
        kill(&mut play, 3, "a");
        kill(&mut play, 3, "b");
        end(&mut play, (500, "c"), "done");
        assert_eq!(broken(&play.verdict()), []);
    }

    #[test]
    fn views_must_exclude_a_killed_member() {
        for members in [Some(&ALL[..]), Some(&ALL[..2]), None] {
            let mut play = in_view_1(&ALL);
            let killed = kill(&mut play, 10, "c");
            for node in ["a", "b"] {
                members.map(|members| view(&mut play, (20, node), 2, members));
            }
            let line = end(&mut play, (500, "a"), "done");
            end(&mut play, (500, "b"), "done");
            let found = broken(&play.verdict());
            if members.is_some_and(|members| members.len() == 2) {
                assert_eq!(found, []);
                assert!(held(&play.verdict(), CheckId::Liveness));
            } else {
                let view = if members.is_some() { killed + 1 } else { killed - 3 };
                assert_eq!(found, [(CheckId::Liveness, vec![view, killed, line])]);
            }
        }
    }

    #[test]
    fn views_must_exclude_a_leaver() {
        let mut play = in_view_1(&ALL);
        play.line(&format!(r#"{{"ev":"leave","t_ns":{},"node":"c","inc":1}}"#, 2 * MS));
        end(&mut play, (5, "c"), "left");
        end(&mut play, (500, "a"), "done");
        end(&mut play, (500, "b"), "done");
        assert_eq!(broken(&play.verdict())[0].0, CheckId::Liveness);
    }

    #[test]
    fn minority_and_restarts_keep_their_views() {
        let mut play = in_view_1(&ALL);
        kill(&mut play, 10, "b");
        kill(&mut play, 10, "c");
        end(&mut play, (500, "a"), "done");
        assert_eq!(broken(&play.verdict()), []);
        let mut play = in_view_1(&ALL);
        kill(&mut play, 10, "c");
        play.line(&format!(r#"{{"ev":"start","t_ns":{},"node":"c","inc":2}}"#, 20 * MS));
        for (node, inc) in [("a", 1), ("b", 1), ("c", 2)] {
            play.line(&format!(
                r#"{{"ev":"end","t_ns":{},"node":"{node}","inc":{inc},"reason":"done"}}"#,
                500 * MS
            ));
        }
        assert_eq!(broken(&play.verdict()), []);
    }

    #[test]
    fn survivor_must_not_give_up_after_a_kill() {
        // Whether the survivor installs the view after the kill, whether the others' next view has
        // it, and whether giving up is wrong.
        for (installs, kept, fails) in
            [(false, true, true), (true, false, true), (true, true, true), (false, false, false)]
        {
            let nodes = ["a", "b", "c", "d", "e"];
            let mut play = in_view_1(&nodes);
            kill(&mut play, 10, "e");
            if installs {
                view(&mut play, (20, "d"), 2, &nodes[..4]);
            }
            let line = end(&mut play, (30, "d"), "halted");
            for node in &nodes[..3] {
                if installs || kept {
                    view(&mut play, (35, node), 2, &nodes[..4]);
                }
                view(&mut play, (40, node), 3, &nodes[..3]);
            }
            for node in &nodes[..3] {
                end(&mut play, (500, node), "done");
            }
            let expected = if fails { vec![(CheckId::Liveness, vec![line])] } else { vec![] };
            assert_eq!(broken(&play.verdict()), expected, "{installs} {kept}");
        }
    }

    #[test]
    fn removed_or_minority_member_may_give_up() {
        for (removed, others) in [(true, &["c"][..]), (false, &["b", "c"][..])] {
            let mut play = in_view_1(&ALL);
            for node in others.iter().filter(|_| !removed) {
                kill(&mut play, 10, node);
            }
            if removed {
                view(&mut play, (5, "b"), 2, &["b", "c"]);
                view(&mut play, (5, "c"), 2, &["b", "c"]);
            }
            end(&mut play, (30, "a"), "halted");
            if removed {
                kill(&mut play, 40, "c");
            }
            let found = broken(&play.verdict());
            assert_eq!(found, []);
        }
    }

    #[test]
    fn survivor_without_views_must_not_give_up() {
        for (others, fails) in [(&["c"][..], true), (&["b", "c"][..], false)] {
            let mut play = Play::new(&ALL);
            play.sends("c", 1);
            for node in others {
                kill(&mut play, 10, node);
            }
            let line = end(&mut play, (30, "a"), "halted");
            if fails {
                end(&mut play, (500, "b"), "done");
            }
            let expected = if fails { vec![(CheckId::Liveness, vec![line])] } else { vec![] };
            assert_eq!(broken(&play.verdict()), expected);
        }
    }
}
