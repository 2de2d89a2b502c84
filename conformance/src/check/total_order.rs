//! Checks whether two members of a group deliver two messages in different orders.
//!
//! For each pair of incarnations, the search walks through one log and checks that the positions of
//! the same messages in the other log rise. It first searches near the beginnings, where the first
//! contradiction usually is, and then everywhere. After it finds a contradiction, it ends within a
//! bounded number of steps. So the count of contradictions may be too low, but it is never 0.

use super::groups::GroupId;
use super::mixing::MixedTable;
use super::tally::{Tally, finding};
use super::tangle::Tangle;
use super::verdict::{Finding, Witness};

/// Depth of the first search in each log.
const DEPTH_NEAR: usize = 1024;

/// Maximum number of steps of a search that has found a contradiction.
const STEPS_MAX: u64 = 50_000_000;

/// Two messages that one incarnation delivered in this order and another in the opposite order.
#[derive(Clone, Copy, Debug)]
struct Contradiction {
    group: GroupId,
    first: u32,
    second: u32,
    /// The log that has the two messages in this order.
    log: u32,
    /// The log that has the two messages in the opposite order.
    other: u32,
}

/// Judges the messages that could not be popped.
pub(super) fn judge(tangle: &Tangle<'_>) -> Tally {
    let near = search(tangle, DEPTH_NEAR);
    let mut tally = search(tangle, usize::MAX);
    tally.prefer(near);
    tally
}

fn search(tangle: &Tangle<'_>, depth: usize) -> Tally {
    let (mut tally, mut steps) = (Tally::default(), 0_u64);
    for (log, walked) in (0..).zip(&tangle.logs) {
        // The last message of the group that is also in the other log, and its position there.
        let mut last: MixedTable<(u32, GroupId), (u32, u32)> = MixedTable::default();
        for item in walked.items.iter().take(depth).copied() {
            for group in
                tangle.ordered_groups(item).filter(|group| tangle.is_of_member(log, *group))
            {
                for (other, place) in
                    tangle.places(item).iter().copied().filter(|(other, _)| *other > log)
                {
                    steps += 1;
                    if !tangle.is_of_member(other, group) {
                        continue;
                    }
                    let before = last.insert((other, group), (place, item));
                    if let Some((_, first)) = before.filter(|(before, _)| *before > place) {
                        let found = Contradiction { group, first, second: item, log, other };
                        found.count(tangle, &mut tally);
                    }
                }
            }
            if steps > STEPS_MAX && tally.is_broken() {
                return tally;
            }
        }
    }
    tally
}

impl Contradiction {
    fn count(self, tangle: &Tangle<'_>, tally: &mut Tally) {
        let lines = [self.log, self.other]
            .map(|log| tangle.line(self.first, log).max(tangle.line(self.second, log)));
        tally.breach(1, lines[0].max(lines[1]), || self.shown(tangle));
    }

    fn shown(self, tangle: &Tangle<'_>) -> Finding {
        let alone = self.is_alone(tangle);
        // The majority's order is reported first; the incarnation with the other order is the
        // culprit.
        let (right, wrong, first, second) = if alone {
            (self.other, self.log, self.second, self.first)
        } else {
            (self.log, self.other, self.first, self.second)
        };
        let what = format!(
            "{} delivered {} before {}, but {} delivered them in the opposite order, in {}",
            tangle.called(right),
            tangle.name(first),
            tangle.name(second),
            tangle.called(wrong),
            tangle.naming().groups.name(self.group)
        );
        let witness =
            |item, log, role, culprit| Witness { line: tangle.line(item, log), role, culprit };
        finding(
            what,
            [
                witness(first, right, "delivered first", false),
                witness(second, right, "delivered second", false),
                witness(second, wrong, "the second, delivered first", false),
                witness(first, wrong, "the first, delivered second", true),
            ],
        )
    }

    /// Returns whether fewer of the group's incarnations have this order than the opposite one.
    fn is_alone(self, tangle: &Tangle<'_>) -> bool {
        let members = tangle
            .places(self.first)
            .iter()
            .filter(|(log, _)| tangle.is_of_member(*log, self.group));
        let both =
            members.filter_map(|(log, first)| Some((*first, tangle.place_in(self.second, *log)?)));
        let (mut same, mut different) = (0_u32, 0_u32);
        both.for_each(|(first, second)| if first < second { same += 1 } else { different += 1 });
        same < different
    }
}

#[cfg(test)]
mod tests {
    use crate::check::CheckId;
    use crate::check::testing::{Play, broken, held};

    #[test]
    fn same_order_with_gaps_satisfies_total_order() {
        let mut play = Play::new(&["a", "b", "c"]);
        for sender in ["a", "b"] {
            play.sends(sender, 2);
        }
        play.deliver("a", &["b/1/0", "a/1/0", "a/1/1", "b/1/1"]);
        play.deliver("b", &["b/1/0", "a/1/0", "a/1/1", "b/1/1"]);
        play.deliver("c", &["a/1/0", "b/1/1"]);
        let verdict = play.verdict();
        assert!(held(&verdict, CheckId::TotalOrder) && held(&verdict, CheckId::AcyclicOrder));
    }

    #[test]
    fn single_deviating_member_is_named_as_culprit() {
        for culprit in ["a", "b", "c"] {
            let mut play = Play::new(&["a", "b", "c"]);
            play.sends("a", 1);
            play.sends("b", 1);
            let mut last = Vec::new();
            for node in ["a", "b", "c"] {
                let order = if node == culprit { ["a/1/0", "b/1/0"] } else { ["b/1/0", "a/1/0"] };
                let lines = play.deliver(node, &order);
                if node == culprit {
                    last = lines;
                }
            }
            let verdict = play.verdict();
            let found = broken(&verdict);
            assert_eq!(found.len(), 1, "{found:?}");
            assert_eq!((found[0].0, &found[0].1[2..]), (CheckId::TotalOrder, &last[..]));
        }
    }

    #[test]
    fn groups_without_order_are_ignored() {
        let mut play = Play::of(
            r#"{"ev":"group","group":"g","members":["a","b"],"senders":["a","b"],"order":"sender"}"#,
            &["a", "b"],
        );
        play.sends("a", 1);
        play.sends("b", 1);
        play.deliver("a", &["a/1/0", "b/1/0"]);
        play.deliver("b", &["b/1/0", "a/1/0"]);
        assert_eq!(broken(&play.verdict()), []);
    }

    #[test]
    fn contradiction_far_into_a_log_is_found() {
        let mut play = Play::new(&["a", "b"]);
        let far = 3000;
        play.sends("a", far);
        play.sends("b", 1);
        let names: Vec<String> = (0..far).map(|number| format!("a/1/{number}")).collect();
        let mut names: Vec<&str> = names.iter().map(String::as_str).collect();
        names.push("b/1/0");
        play.deliver("a", &names);
        names.swap(0, far as usize);
        names[..far as usize].rotate_left(1);
        names.rotate_right(1);
        let last = names.len() - 1;
        names.swap(last - 1, last);
        play.deliver("b", &names);
        assert!(broken(&play.verdict()).iter().any(|(check, _)| *check == CheckId::TotalOrder));
    }
}
