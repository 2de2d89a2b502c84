//! Finds the shortest cycle in the delivery order, if there is a cycle that crosses groups.
//!
//! A message precedes everything that the same incarnation delivered later. So the search needs to
//! visit each position of each log only once: everything after the first visited position has been
//! visited too. Going back from head to head finds one cycle. The search then looks for shorter
//! cycles from every message until it reaches its step limit.

use std::collections::VecDeque;

use super::mixing::MixedTable;
use super::tally::{Tally, finding};
use super::tangle::Tangle;
use super::verdict::{Finding, Witness};

/// Limit of steps in the search for a shorter cycle.
const STEPS_MAX: u64 = 20_000_000;

/// A message, and the log in which it precedes the next message of the cycle.
type CycleStep = (u32, u32);

/// Judges the messages that could not be popped, in orders where no group's own order is broken.
pub(super) fn judge(tangle: &Tangle<'_>) -> Tally {
    let mut tally = Tally::default();
    let Some(mut shortest) = cycle_of_heads(tangle) else { return tally };
    let mut search = Search { tangle, steps: 0 };
    let near: Vec<u32> = shortest.iter().map(|(item, _)| *item).collect();
    for item in near.into_iter().chain(0..tangle.len() as u32) {
        // A cycle has at least two messages.
        if shortest.len() == 2 || search.steps > STEPS_MAX {
            break;
        }
        if let Some(shorter) = search.cycle(item, shortest.len() - 1) {
            shortest = shorter;
        }
    }
    let last = shortest.iter().map(|(item, log)| tangle.line(*item, *log)).max().unwrap_or(0);
    tally.breach(1, last, || shown(tangle, &shortest));
    tally
}

/// Returns a cycle of log heads. Each of them follows the head of another log, because it could not
/// be popped.
fn cycle_of_heads(tangle: &Tangle<'_>) -> Option<Vec<CycleStep>> {
    let mut seen: MixedTable<u32, usize> = MixedTable::default();
    let mut back: Vec<CycleStep> = Vec::new();
    let mut item = *tangle.logs.first()?.items.first()?;
    loop {
        if let Some(from) = seen.get(&item) {
            let mut cycle = back.split_off(*from);
            // The steps were visited backwards.
            cycle.reverse();
            return Some(cycle);
        }
        seen.insert(item, back.len());
        let (log, _) = *tangle.places(item).iter().find(|(_, place)| *place > 0)?;
        item = *tangle.logs[log as usize].items.first()?;
        back.push((item, log));
    }
}

struct Search<'a> {
    tangle: &'a Tangle<'a>,
    steps: u64,
}

impl Search<'_> {
    /// Returns the shortest cycle through a message, if it has at most `longest` messages.
    fn cycle(&mut self, from: u32, longest: usize) -> Option<Vec<CycleStep>> {
        // For each visited message, the step that led to it and its distance from the beginning.
        let mut met: MixedTable<u32, (CycleStep, usize)> = MixedTable::default();
        // For each log, the position from which everything has been visited.
        let mut met_from: MixedTable<u32, usize> = MixedTable::default();
        let mut next = VecDeque::from([(from, 1)]);
        while let Some((item, length)) = next.pop_front() {
            if length > longest {
                return None;
            }
            for (log, place) in self.tangle.places(item).iter().copied() {
                let items = &self.tangle.logs[log as usize].items;
                let end = met_from.entry(log).or_insert(items.len());
                let begin = (place as usize + 1).min(*end);
                for later in &items[begin..*end] {
                    self.steps += 1;
                    if *later == from {
                        return Some(way_back(&met, from, (item, log)));
                    }
                    if met.contains_key(later) {
                        continue;
                    }
                    met.insert(*later, ((item, log), length));
                    next.push_back((*later, length + 1));
                }
                *end = begin;
            }
        }
        None
    }
}

/// Returns the cycle that ends with this step, from its beginning.
fn way_back(
    met: &MixedTable<u32, (CycleStep, usize)>,
    from: u32,
    last: CycleStep,
) -> Vec<CycleStep> {
    let mut cycle = vec![last];
    let mut item = last.0;
    while item != from {
        let Some((step, _)) = met.get(&item) else { break };
        cycle.push(*step);
        item = step.0;
    }
    cycle.reverse();
    cycle
}

fn shown(tangle: &Tangle<'_>, cycle: &[CycleStep]) -> Finding {
    let nexts = cycle.iter().cycle().skip(1);
    let mut parts = Vec::new();
    let mut witness = Vec::new();
    for (place, ((item, log), (next, _))) in cycle.iter().zip(nexts).enumerate() {
        parts.push(format!(
            "{} before {} at {}",
            tangle.name(*item),
            tangle.name(*next),
            tangle.called(*log)
        ));
        let is_last = place + 1 == cycle.len();
        let one = |item, role, culprit| Witness { line: tangle.line(item, *log), role, culprit };
        witness.push(one(*item, "delivered first", false));
        witness.push(one(*next, "delivered second", is_last));
    }
    finding(format!("messages were delivered in a cycle: {}", parts.join(", ")), witness)
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held};

    /// Three groups of two nodes; each node is in two groups, and every node may send to every
    /// group.
    fn triangle() -> Play {
        let mut play = Play::of(
            r#"{"ev":"group","group":"ab","members":["a","b"],"senders":["a","b","c"]}
{"ev":"group","group":"bc","members":["b","c"],"senders":["a","b","c"]}
{"ev":"group","group":"ca","members":["c","a"],"senders":["a","b","c"]}"#,
            &["a", "b", "c"],
        );
        for (msg, group) in [("x", "ab"), ("y", "bc"), ("z", "ca")] {
            play.line(&format!(
                r#"{{"ev":"multicast","t_ns":1,"node":"a","inc":1,"msg":"{msg}","groups":["{group}"]}}"#
            ));
        }
        play
    }

    #[test]
    fn cycle_report_cites_every_delivery_involved() {
        let mut play = triangle();
        let lines = [
            play.deliver_in("a", &[("ca", "z"), ("ab", "x")]),
            play.deliver_in("b", &[("ab", "x"), ("bc", "y")]),
            play.deliver_in("c", &[("bc", "y"), ("ca", "z")]),
        ];
        let found = broken(&play.verdict());
        assert_eq!(found.len(), 1, "{found:?}");
        assert_eq!(found[0].0, CheckId::AcyclicOrder);
        let mut shown = found[0].1.clone();
        shown.sort_unstable();
        assert_eq!(shown, lines.concat());
    }

    #[test]
    fn consistent_orders_violate_no_check() {
        let mut play = triangle();
        play.deliver_in("a", &[("ab", "x"), ("ca", "z")]);
        play.deliver_in("b", &[("ab", "x"), ("bc", "y")]);
        play.deliver_in("c", &[("bc", "y"), ("ca", "z")]);
        assert!(held(&play.verdict(), CheckId::AcyclicOrder));
    }

    #[test]
    fn shortest_of_two_cycles_is_reported() {
        let mut play = triangle();
        // "a" delivers "p" through one group and "c" delivers it through another, so no two nodes
        // contradict each other within a group.
        for msg in ["p", "q"] {
            play.line(&format!(
                r#"{{"ev":"multicast","t_ns":1,"node":"b","inc":1,"msg":"{msg}","groups":["ab","bc"]}}"#
            ));
        }
        let a = play.deliver_in("a", &[("ab", "p"), ("ab", "q"), ("ca", "z"), ("ab", "x")]);
        play.deliver_in("b", &[("ab", "x"), ("bc", "y")]);
        let c = play.deliver_in("c", &[("bc", "q"), ("bc", "p"), ("bc", "y"), ("ca", "z")]);
        let found = broken(&play.verdict());
        let (_, shown) =
            found.iter().find(|(check, _)| *check == CheckId::AcyclicOrder).expect("it is broken");
        let mut shown = shown.clone();
        shown.sort_unstable();
        assert_eq!(shown, [a[0], a[1], c[0], c[1]]);
    }
}
