//! The scenarios, from calm to hostile.
//!
//! | file | what it holds |
//! |---|---|
//! | `calm` | one group, and nothing goes wrong |
//! | `groups` | several groups, and senders from outside |
//! | `membership` | members come and go as they are asked to |
//! | `crashes` | members are killed, and come back |
//! | `troubles` | members are suspended or parted |

mod calm;
mod crashes;
mod groups;
mod membership;
mod troubles;

use crate::random::Random;

use super::feature::Feature;
use super::plan::{Draft, Plan};

/// A scenario: what it does, what it needs, and what it must have reached, for a verdict to mean
/// anything.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// Its name, on the command line and in reports.
    pub name: &'static str,
    /// What it does, in one sentence.
    pub sentence: &'static str,
    /// The features that an implementation must claim.
    pub needs: &'static [Feature],
    /// The fewest nodes with which it makes sense.
    pub nodes_min: usize,
    /// What it must have reached, in one sentence.
    pub reaches: &'static str,
    draft: fn(&mut Draft),
}

impl Scenario {
    /// The plan for that seed and so many nodes, of which each sends about so many messages.
    pub(super) fn plan(&self, seed: u64, nodes: usize, scale: u64) -> Plan {
        // A stream of its own: a scenario's plan stays when others are added or left out.
        let mut draft = Draft::new(Random::stream(seed, self.name), nodes, scale);
        (self.draft)(&mut draft);
        draft.finish()
    }
}

/// All scenarios, in the order in which they are run.
pub const SCENARIOS: &[Scenario] = &[
    Scenario {
        name: "one-sender",
        sentence: "One member sends.",
        needs: &[],
        nodes_min: 1,
        reaches: "half of the messages were delivered by all members",
        draft: calm::one_sender,
    },
    Scenario {
        name: "all-senders",
        sentence: "All members send at once.",
        needs: &[],
        nodes_min: 2,
        reaches: "half of the messages were delivered by all members, those of different senders in turns",
        draft: calm::all_senders,
    },
    Scenario {
        name: "bursts",
        sentence: "Some members send a burst at once, then all is quiet, and again.",
        needs: &[],
        nodes_min: 1,
        reaches: "many messages were under way at once",
        draft: calm::bursts,
    },
    Scenario {
        name: "silent-senders",
        sentence: "Members that may send never do, and one begins late.",
        needs: &[],
        nodes_min: 3,
        reaches: "the silent sent nothing, and the late one's first message came after deliveries of others'",
        draft: calm::silent_senders,
    },
    Scenario {
        name: "slow-consumer",
        sentence: "While all send, one member's application takes its time, again and again.",
        needs: &[Feature::Pause],
        nodes_min: 2,
        reaches: "messages waited for the slow member while it delivered nothing",
        draft: calm::slow_consumer,
    },
    Scenario {
        name: "large-messages",
        sentence: "Messages of all sizes, up to the largest.",
        needs: &[Feature::LargeMessages],
        nodes_min: 1,
        reaches: "one of the largest size was delivered by all members",
        draft: calm::large_messages,
    },
    Scenario {
        name: "huge-messages",
        sentence: "Messages of megabytes from all, and small ones between them.",
        needs: &[Feature::HugeMessages],
        nodes_min: 1,
        reaches: "one of the largest size was delivered by all members",
        draft: calm::huge_messages,
    },
    Scenario {
        name: "empty-messages",
        sentence: "Messages without bytes between others.",
        needs: &[Feature::EmptyMessages],
        nodes_min: 1,
        reaches: "an empty message was delivered by all members",
        draft: calm::empty_messages,
    },
    Scenario {
        name: "quiet",
        sentence: "All send; then nobody does, and what is posted meanwhile is counted.",
        needs: &[Feature::Stats],
        nodes_min: 1,
        reaches: "a member counted twice, and nothing happened before and between",
        draft: calm::quiet,
    },
    Scenario {
        name: "overlapping-groups",
        sentence: "Three groups have members in common, and all send in all of theirs.",
        needs: &[Feature::SeveralGroups],
        nodes_min: 3,
        reaches: "two members delivered messages of several groups in turns",
        draft: groups::overlapping,
    },
    Scenario {
        name: "across-groups",
        sentence: "Messages are for one, two or three groups at once, and each order must fit the others.",
        needs: &[Feature::SeveralGroups, Feature::OrderAcrossGroups],
        nodes_min: 3,
        reaches: "messages for several groups were delivered in all of them",
        draft: groups::across,
    },
    Scenario {
        name: "outside-sender",
        sentence: "A node that is no member sends to a group, and members send too.",
        needs: &[Feature::OutsideSenders],
        nodes_min: 3,
        reaches: "messages of the outsider were delivered by all members",
        draft: groups::outside_sender,
    },
    Scenario {
        name: "leave",
        sentence: "A member leaves while all send.",
        needs: &[Feature::Leave],
        nodes_min: 3,
        reaches: "it left, and messages were under way",
        draft: membership::leave,
    },
    Scenario {
        name: "join",
        sentence: "A member joins while all others send.",
        needs: &[Feature::Join],
        nodes_min: 3,
        reaches: "others sent while it joined, and it delivered messages",
        draft: membership::join,
    },
    Scenario {
        name: "stop-continue",
        sentence: "A member is suspended for a while in mid-stream, and then resumed.",
        needs: &[Feature::Suspension],
        nodes_min: 2,
        reaches: "others sent while it was suspended",
        draft: troubles::stop_continue,
    },
    Scenario {
        name: "kill-sender",
        sentence: "The busiest sender is killed in mid-stream.",
        needs: &[Feature::Crash],
        nodes_min: 3,
        reaches: "messages of its own were not yet delivered everywhere when it was killed",
        draft: crashes::kill_sender,
    },
    Scenario {
        name: "kill-huge",
        sentence: "A sender of messages of megabytes is killed in mid-stream, and all others send such too.",
        needs: &[Feature::Crash, Feature::HugeMessages],
        nodes_min: 3,
        reaches: "messages of its own were not yet delivered everywhere when it was killed",
        draft: crashes::kill_huge,
    },
    Scenario {
        name: "kill-receiver",
        sentence: "A member that only receives is killed in mid-stream.",
        needs: &[Feature::Crash],
        nodes_min: 3,
        reaches: "messages were not yet delivered everywhere when it was killed",
        draft: crashes::kill_receiver,
    },
    Scenario {
        name: "rolling-kills",
        sentence: "Members are killed one after the other, as many as the rest can bear.",
        needs: &[Feature::Crash],
        nodes_min: 5,
        reaches: "messages were not yet delivered everywhere at each of the kills",
        draft: crashes::rolling_kills,
    },
    Scenario {
        name: "kill-twice",
        sentence: "Before the others can get over a killed member, a second one is killed.",
        needs: &[Feature::Crash],
        nodes_min: 5,
        reaches: "the second was killed before all others had got over the first",
        draft: crashes::kill_twice,
    },
    Scenario {
        name: "kill-during-leave",
        sentence: "A member leaves, and another is killed meanwhile.",
        needs: &[Feature::Crash, Feature::Leave],
        nodes_min: 4,
        reaches: "one was killed before all others had the view without the one that left",
        draft: membership::kill_during_leave,
    },
    Scenario {
        name: "kill-during-join",
        sentence: "A member joins, and another is killed meanwhile.",
        needs: &[Feature::Crash, Feature::Join],
        nodes_min: 4,
        reaches: "one was killed before all others had the view with the one that joined",
        draft: membership::kill_during_join,
    },
    Scenario {
        name: "restart",
        sentence: "A member is killed, and comes back on its storage folder while the others send.",
        needs: &[Feature::Crash, Feature::Restart],
        nodes_min: 3,
        reaches: "it delivered before its kill and after its restart, and others delivered in between",
        draft: crashes::restart,
    },
    Scenario {
        name: "restart-all",
        sentence: "All members are killed at once in mid-stream, and all come back.",
        needs: &[Feature::Restart],
        nodes_min: 1,
        reaches: "each delivered before and after, and messages were under way at the kill",
        draft: crashes::restart_all,
    },
    Scenario {
        name: "partition",
        sentence: "A minority is cut off in mid-stream, both sides go on sending, and the cut is healed.",
        needs: &[Feature::Network],
        nodes_min: 3,
        reaches: "both sides were asked to send while they were parted",
        draft: troubles::partition,
    },
];

/// The scenario of that name.
pub(super) fn named(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::drive::plan::Step;
    use crate::drive::protocol;

    /// Every plan with up to that many nodes.
    fn plans(
        nodes_max: usize,
        seed: u64,
    ) -> impl Iterator<Item = (&'static Scenario, usize, Plan)> {
        SCENARIOS.iter().flat_map(move |scenario| {
            (scenario.nodes_min..=nodes_max)
                .map(move |nodes| (scenario, nodes, scenario.plan(seed, nodes, 50)))
        })
    }

    #[test]
    fn a_seed_repeats_its_plan_and_another_makes_another() {
        for (scenario, nodes, plan) in plans(7, 3) {
            assert_eq!(plan, scenario.plan(3, nodes, 50), "{}", scenario.name);
            assert_ne!(plan, scenario.plan(4, nodes, 50), "{}", scenario.name);
        }
    }

    #[test]
    fn names_are_unique_and_sentences_are_sentences() {
        let names: HashSet<_> = SCENARIOS.iter().map(|scenario| scenario.name).collect();
        assert_eq!(names.len(), SCENARIOS.len());
        for scenario in SCENARIOS {
            assert!(
                scenario.sentence.ends_with('.') && scenario.sentence.matches(". ").count() == 0
            );
            assert!(!scenario.reaches.is_empty() && !scenario.reaches.ends_with('.'));
            assert_eq!(named(scenario.name).map(|found| found.name), Some(scenario.name));
        }
    }

    #[test]
    fn only_senders_send_and_only_with_the_sizes_that_are_claimed() {
        for (scenario, nodes, plan) in plans(8, 11) {
            let large = scenario.needs.contains(&Feature::LargeMessages);
            let huge = scenario.needs.contains(&Feature::HugeMessages);
            let empty = scenario.needs.contains(&Feature::EmptyMessages);
            let several = scenario.needs.contains(&Feature::SeveralGroups);
            let outside = scenario.needs.contains(&Feature::OutsideSenders);
            assert!(several || plan.groups.len() == 1, "{}", scenario.name);
            for group in &plan.groups {
                let members = |node: &usize| group.members.contains(node);
                assert!(outside || group.senders.iter().all(members), "{}", scenario.name);
                assert!(group.senders.iter().chain(&group.members).all(|node| *node < nodes));
            }
            let sendings = plan.steps.iter().filter_map(|step| match step {
                Step::Send(list) => Some(list),
                _ => None,
            });
            for sending in sendings.flatten() {
                let max = match (huge, large) {
                    (true, _) => protocol::HUGE_BYTES_MAX,
                    (false, true) => protocol::MESSAGE_BYTES_MAX,
                    (false, false) => protocol::ORDINARY_BYTES_MAX,
                };
                assert!(
                    sending.bytes <= max && (sending.bytes >= 32 || empty && sending.bytes == 0)
                );
                assert!(!sending.groups.is_empty());
                for group in &sending.groups {
                    assert!(
                        plan.groups[*group].senders.contains(&sending.sender),
                        "{}",
                        scenario.name
                    );
                }
            }
        }
    }

    #[test]
    fn a_majority_is_never_taken_away_for_good() {
        for (scenario, nodes, plan) in plans(9, 5) {
            let mut down = HashSet::new();
            let mut parted = 0;
            for step in &plan.steps {
                match step {
                    Step::Kill { nodes, .. } => down.extend(nodes.iter().copied()),
                    Step::Start(starting) => down.retain(|node| !starting.contains(node)),
                    Step::Part(side) => parted = side.len(),
                    Step::Heal => parted = 0,
                    _ => {}
                }
                // A full restart is the one thing that takes everyone down, and everyone comes
                // back.
                let everyone = down.len() == nodes;
                assert!(everyone || 2 * (down.len() + parted) < nodes, "{}", scenario.name);
            }
            assert!(2 * down.len() < nodes && parted == 0, "{}", scenario.name);
        }
    }
}
