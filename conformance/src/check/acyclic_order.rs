//! The shortest cycle in the order in which messages were delivered, where there is one that
//! crosses groups.
//!
//! A message comes before all that the same start delivered later. So a search need look at each
//! place of each log once: behind the first place that it met in a log, everything is met. One
//! cycle is found by going back from head to head; shorter ones are looked for from every message,
//! as long as steps last.

use std::collections::VecDeque;

use super::mixing::Table;
use super::tally::{Tally, finding};
use super::tangle::Tangle;
use super::verdict::{Finding, Witness};

/// After how many steps the search for a shorter cycle ends.
const STEPS_MAX: u64 = 20_000_000;

/// A message, and the log in which it comes before the next one of the cycle.
type Step = (u32, u32);

/// Judges what could not be popped, and in which no group's own order is broken.
pub(super) fn judge(tangle: &Tangle<'_>) -> Tally {
    let mut tally = Tally::default();
    let Some(mut shortest) = cycle_of_heads(tangle) else { return tally };
    let mut search = Search { tangle, steps: 0 };
    let near: Vec<u32> = shortest.iter().map(|(item, _)| *item).collect();
    for item in near.into_iter().chain(0..tangle.len() as u32) {
        // No cycle has less than two messages.
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

/// A cycle of messages that head logs: each is behind the head of another log, since it could not
/// be popped.
fn cycle_of_heads(tangle: &Tangle<'_>) -> Option<Vec<Step>> {
    let mut seen: Table<u32, usize> = Table::default();
    let mut back: Vec<Step> = Vec::new();
    let mut item = *tangle.logs.first()?.items.first()?;
    loop {
        if let Some(from) = seen.get(&item) {
            let mut cycle = back.split_off(*from);
            // They were met from the later one to the earlier.
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
    /// The shortest cycle through a message, if it has no more than so many.
    fn cycle(&mut self, from: u32, longest: usize) -> Option<Vec<Step>> {
        // The message before each one that was met, with the log; and how many steps from the
        // beginning it is.
        let mut met: Table<u32, (Step, usize)> = Table::default();
        // Of each log, from which place on everything was met.
        let mut met_from: Table<u32, usize> = Table::default();
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

/// The cycle that ends with this step, from its beginning.
fn way_back(met: &Table<u32, (Step, usize)>, from: u32, last: Step) -> Vec<Step> {
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

fn shown(tangle: &Tangle<'_>, cycle: &[Step]) -> Finding {
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

    /// Three groups of two, each node in two of them, and everybody may send everywhere.
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
    fn a_cycle_across_groups_is_shown_whole() {
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
    fn orders_that_fit_together_are_right() {
        let mut play = triangle();
        play.deliver_in("a", &[("ab", "x"), ("ca", "z")]);
        play.deliver_in("b", &[("ab", "x"), ("bc", "y")]);
        play.deliver_in("c", &[("bc", "y"), ("ca", "z")]);
        assert!(held(&play.verdict(), CheckId::AcyclicOrder));
    }

    #[test]
    fn the_shortest_of_two_cycles_is_shown() {
        let mut play = triangle();
        // "p" is for a alone by one group, and for c by another: nobody shares a group in which it
        // contradicts.
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
