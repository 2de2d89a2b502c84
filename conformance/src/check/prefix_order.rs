//! Checks whether a node left a gap: it delivered a message, but skipped one that another node
//! delivered before it.
//!
//! Prefix order is judged only if no order or delivery check is broken. Then all messages have
//! positions in one order that agrees with every incarnation's deliveries, and whole classes can be
//! compared by the positions of their first and last messages.
//!
//! For a node p and an incarnation s of another node, the **gap** is the first message that s
//! delivered and p did not. Then p must not deliver any message that s delivered after the gap, nor
//! any message that the node of s did not deliver.

use std::collections::BTreeMap;

use super::class::{Class, Example};
use super::due::Due;
use super::groups::{GroupId, Groups, Lane, NodeSet};
use super::message::{MessageView, SenderAnswer};
use super::mixing::MixedTable;
use super::name::Names;
use super::roster::{NodeId, Roster, StartId};
use super::tally::{Tally, blames, finding, shows};
use super::verdict::Finding;

/// A set of messages in which there must be no gaps.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Scope {
    /// The messages of one view of a group.
    View(GroupId, u64),
    /// The messages without views in one order.
    Without(Lane),
}

/// A class in a scope: the nodes to which its messages are addressed, the nodes that delivered
/// them, and the incarnations of both.
struct ScopedClass<'a> {
    class: &'a Class,
    places: (u64, u64),
    addressed: Vec<NodeId>,
    starts: Vec<StartId>,
    nodes: NodeSet,
}

/// Judges classes that have positions.
pub(super) struct PrefixOrder<'a> {
    pub(super) roster: &'a Roster,
    pub(super) groups: &'a Groups,
    pub(super) names: &'a Names,
    pub(super) due: &'a Due<'a>,
}

/// A message that a node delivered although it had left a gap.
struct Breach<'a> {
    node: NodeId,
    start: StartId,
    gap: &'a Class,
    beyond: &'a Class,
}

impl PrefixOrder<'_> {
    /// Judges all.
    pub(super) fn judge<'a>(&self, classes: impl Iterator<Item = &'a Class>) -> Tally {
        let mut scopes: BTreeMap<Scope, Vec<ScopedClass<'a>>> = BTreeMap::new();
        for class in classes {
            for (scope, row) in self.rows(class) {
                scopes.entry(scope).or_default().push(row);
            }
        }
        let mut tally = Tally::default();
        scopes.values().for_each(|rows| self.judge_scope(&mut tally, rows));
        tally
    }

    /// Returns the scopes in which a class is judged.
    fn rows<'a>(&self, class: &'a Class) -> Vec<(Scope, ScopedClass<'a>)> {
        let Some(places) = class.places.filter(|_| class.key.answer != SenderAnswer::Refused)
        else {
            return Vec::new();
        };
        let set = self.groups.of(class.key.groups);
        let ordered = set
            .groups
            .iter()
            .zip(&class.key.views)
            .filter(|(group, _)| self.groups.groups[group.index()].order.is_ordered());
        let (mut rows, mut without) = (Vec::new(), Vec::new());
        for (group, view) in ordered {
            match view {
                _ if !self.due.has_views(*group) => {
                    without.extend(&self.groups.groups[group.index()].members)
                }
                Some(MessageView { view, .. }) => {
                    let addressed = self.due.installers(*group, *view).collect();
                    rows.push((Scope::View(*group, *view), self.row(class, places, addressed)));
                }
                None => {}
            }
        }
        if !without.is_empty() {
            rows.push((Scope::Without(set.lane), self.row(class, places, without)));
        }
        rows
    }

    fn row<'a>(
        &self,
        class: &'a Class,
        places: (u64, u64),
        mut addressed: Vec<NodeId>,
    ) -> ScopedClass<'a> {
        addressed.sort_unstable();
        addressed.dedup();
        let is_addressed = |node: &NodeId| addressed.binary_search(node).is_ok();
        let starts: Vec<StartId> = class
            .key
            .deliverers()
            .filter(|start| is_addressed(&self.roster.node_of(*start)))
            .collect();
        let mut nodes = NodeSet::default();
        for start in &starts {
            nodes.insert(self.roster.node_of(*start));
        }
        ScopedClass { class, places, addressed, starts, nodes }
    }

    fn judge_scope(&self, tally: &mut Tally, rows: &[ScopedClass<'_>]) {
        let gaps = self.gaps(rows);
        if gaps.is_empty() {
            return;
        }
        let mut seen: MixedTable<(NodeId, StartId), ()> = MixedTable::default();
        for row in rows {
            for node in row.addressed.iter().copied().filter(|node| row.nodes.has(*node)) {
                let Some(gaps) = gaps.get(&node) else { continue };
                for (start, (place, gap)) in gaps {
                    let other = self.roster.node_of(*start);
                    let is_addressed = row.addressed.binary_search(&other).is_ok();
                    let is_beyond = if row.nodes.has(other) {
                        row.starts.contains(start) && row.places.1 > *place
                    } else {
                        true
                    };
                    if is_addressed && is_beyond {
                        let times = u64::from(seen.insert((node, *start), ()).is_none());
                        let breach = Breach { node, start: *start, gap, beyond: row.class };
                        tally.breach(times, self.line(&breach), || self.shown(&breach));
                    }
                }
            }
        }
    }

    /// Returns, for each node that lacks a message and each incarnation of another node that has
    /// it, the position and class of the first such message.
    fn gaps<'a>(
        &self,
        rows: &[ScopedClass<'a>],
    ) -> MixedTable<NodeId, BTreeMap<StartId, (u64, &'a Class)>> {
        let mut gaps: MixedTable<NodeId, BTreeMap<StartId, (u64, &'a Class)>> =
            MixedTable::default();
        for row in rows {
            for node in row.addressed.iter().filter(|node| !row.nodes.has(**node)) {
                for start in &row.starts {
                    let first = (row.places.0, row.class);
                    let gap = gaps.entry(*node).or_default().entry(*start).or_insert(first);
                    if first.0 < gap.0 {
                        *gap = first;
                    }
                }
            }
        }
        gaps
    }

    fn line(&self, breach: &Breach<'_>) -> u64 {
        line_of(breach.beyond, breach.beyond.last.as_ref(), |start| {
            self.roster.node_of(start) == breach.node
        })
    }

    fn shown(&self, breach: &Breach<'_>) -> Finding {
        let Breach { node, start, gap, beyond } = breach;
        let is_node = |start| self.roster.node_of(start) == *node;
        let (missed, later) = (gap.first.as_ref(), beyond.last.as_ref());
        let name = |example: Option<&Example>| {
            example.map_or_else(|| "a message".to_owned(), |example| example.shown(self.names))
        };
        let what = format!(
            "{} delivered {} but not {}, whereas {} delivered the latter first, or did not deliver \
             the former",
            self.roster.nodes[node.index()].name,
            name(later),
            name(missed),
            self.roster.called(*start)
        );
        let other = line_of(beyond, later, |by| by == *start);
        finding(
            what,
            [
                shows(
                    line_of(gap, missed, |by| by == *start),
                    "delivered, and missed by the other",
                ),
                shows(other, "delivered after it"),
                blames(line_of(beyond, later, is_node), "delivered without the missing message"),
            ],
        )
    }
}

/// Returns the line at which one of these incarnations delivered an example message, or 0 if the
/// line was forgotten.
fn line_of(class: &Class, example: Option<&Example>, by: impl Fn(StartId) -> bool) -> u64 {
    let place = class.key.delivered.iter().position(|(start, _)| by(*start));
    let line = place.and_then(|place| example.and_then(|example| example.deliveries.get(place)));
    line.copied().unwrap_or(0)
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held};

    fn crash(first: &[&str], second: &[&str]) -> Vec<(CheckId, Vec<u64>)> {
        let mut play = Play::new(&["a", "b"]);
        play.sends("a", 2);
        play.sends("b", 1);
        play.deliver("a", first);
        play.deliver("b", second);
        play.fault("kill", "b");
        play.end("a");
        let verdict = play.verdict();
        assert!(held(&verdict, CheckId::TotalOrder) || second.len() < 2);
        broken(&verdict)
    }

    const ALL: &[&str] = &["a/1/0", "b/1/0", "a/1/1"];

    #[test]
    fn crashed_node_may_stop_delivering_at_any_message() {
        for end in 0..ALL.len() {
            assert_eq!(crash(ALL, &ALL[..end]), []);
        }
    }

    #[test]
    fn gap_in_crashed_nodes_deliveries_is_a_violation() {
        // The lines are a group, two starts, three multicasts, and then the deliveries of a and b.
        assert_eq!(crash(ALL, &["a/1/0", "a/1/1"]), [(CheckId::PrefixOrder, vec![8, 9, 11])]);
    }
}
