//! The scenarios, from calm to hostile.
//!
//! | file | contents |
//! |---|---|
//! | `calm` | one group without faults |
//! | `groups` | several groups, and senders that are not members |
//! | `shards` | disjoint groups of replicas, and clients |
//! | `membership` | members join and leave on request |
//! | `crashes` | members are killed, and come back |
//! | `random` | random faults |
//! | `troubles` | members are suspended or partitioned |

mod calm;
mod crashes;
mod groups;
mod membership;
mod random;
mod shards;
mod troubles;

use crate::random::Random;

use super::feature::Feature;
use super::plan::{Draft, RunPlan, Terms};

/// A scenario: its actions, its requirements, and the condition that it must reach for a verdict to
/// be meaningful.
#[derive(Clone, Copy, Debug)]
pub struct Scenario {
    /// The scenario's name, on the command line and in reports.
    pub name: &'static str,
    /// The actions, in one sentence.
    pub sentence: &'static str,
    /// The features that an implementation must claim.
    pub needs: &'static [Feature],
    /// The smallest useful number of nodes.
    pub nodes_min: usize,
    /// The condition that must be reached, in one sentence.
    pub reaches: &'static str,
    draft: fn(&mut Draft),
    rounds: fn(usize) -> usize,
}

impl Scenario {
    /// Returns the number of rounds, each with new members. There is one round, unless something is
    /// done to each node in turn.
    pub(super) fn rounds(&self, nodes: usize) -> usize {
        (self.rounds)(nodes)
    }

    /// Returns the plan for these terms.
    pub(super) fn plan(&self, terms: Terms<'_>) -> RunPlan {
        // Each scenario has its own stream of random numbers, so that its plan does not change when
        // other scenarios are added or removed.
        let mut draft = Draft::new(Random::stream(terms.seed, self.name), terms);
        (self.draft)(&mut draft);
        draft.finish()
    }
}

/// The number of rounds of a scenario; one by default.
macro_rules! rounds {
    () => {
        |_| 1
    };
    ($rounds:path) => {
        $rounds
    };
}

macro_rules! scenarios {
    ($(
        $name:literal, $nodes_min:literal, [$($needs:ident),*], $draft:path $({ $rounds:path })?,
        $sentence:literal, $reaches:literal;
    )*) => {
        /// All scenarios, in the order in which they are run.
        pub const SCENARIOS: &[Scenario] = &[$(Scenario {
            name: $name,
            sentence: $sentence,
            needs: &[$(Feature::$needs),*],
            nodes_min: $nodes_min,
            reaches: $reaches,
            draft: $draft,
            rounds: rounds!($($rounds)?),
        },)*];
    };
}

scenarios! {
    "one-sender", 1, [], calm::one_sender,
        "One member sends.",
        "all members delivered at least half of the messages";
    "all-senders", 2, [], calm::all_senders,
        "All members send at once.",
        "all members delivered at least half of the messages, alternating between senders";
    "bursts", 1, [], calm::bursts,
        "Some members send a burst at once and then pause, repeatedly.",
        "many messages were in flight at once";
    "long-stream", 1, [], calm::long_stream,
        "Up to three members send more than 5,000 messages each.",
        "all members delivered more than 5,000 messages from each of these members";
    "silent-senders", 3, [], calm::silent_senders,
        "Some senders never send, and one begins late.",
        "the silent senders sent nothing, and the late one first sent after delivering other messages";
    "slow-consumer", 2, [Pause], calm::slow_consumer,
        "While all members send, one member's application is slow several times.",
        "messages waited for the slow member while it delivered nothing";
    "large-messages", 1, [LargeMessages], calm::large_messages,
        "Members send messages of all sizes, up to the largest.",
        "all members delivered a message of the largest size";
    "huge-messages", 1, [HugeMessages], calm::huge_messages,
        "Members send messages of several megabytes, alternating with small ones.",
        "all members delivered a message of the largest size";
    "empty-messages", 1, [EmptyMessages], calm::empty_messages,
        "Some messages have no bytes.",
        "all members delivered an empty message";
    "boundary-sizes", 1, [], calm::boundary_sizes,
        "Messages have sizes at each power of two and each limit, one byte below and one byte above.",
        "all members delivered a message of the largest size that the claims allow";
    "quiet", 1, [Stats], calm::quiet,
        "All members send and then stop, and the posts during the silence are counted.",
        "a member counted its posts twice, with silence before and in between";
    "overlapping-groups", 3, [SeveralGroups], groups::overlapping,
        "Three groups have members in common, and each member sends to all of its groups.",
        "two members delivered messages of several groups alternately";
    "across-groups", 3, [SeveralGroups, OrderAcrossGroups], groups::across,
        "Messages are addressed to one, two or three groups, and the orders of all groups must agree.",
        "messages for several groups were delivered in all of them";
    "across-groups-kill", 4, [SeveralGroups, OrderAcrossGroups, Crash], groups::across_kill,
        "A node that sends to several groups at once is killed in mid-stream, and the orders must still agree.",
        "messages from the killed node to several groups were not yet delivered everywhere";
    "outside-sender", 3, [OutsideSenders], groups::outside_sender,
        "A node that is not a member sends to a group, and members send too.",
        "all members delivered messages of the sender that is not a member";
    "outside-sender-kill", 4, [OutsideSenders, Crash], groups::outside_sender_kill,
        "A sender that is not a member is killed in mid-stream, comes back, and sends again.",
        "the sender's messages were in flight at the kill, and all members delivered later ones";
    "leave", 3, [Leave], membership::leave,
        "A member leaves while all members send.",
        "the member left while messages were in flight";
    "join", 3, [Join], membership::join,
        "A member joins while all others send.",
        "other members sent while the member joined, and the member delivered messages";
    "stop-continue", 2, [Suspension], troubles::stop_continue,
        "A member is suspended for some time in mid-stream, and then resumed.",
        "other members sent while the member was suspended";
    "stop-until-removed", 3, [Suspension], troubles::stop_until_removed { troubles::each_node },
        "Each member in turn is suspended until the others have a view without it, and resumed.",
        "other members sent while the member was suspended";
    "kill-alone", 3, [Crash, Suspension], crashes::kill_alone { troubles::each_node },
        "Each member in turn sends while all others are suspended, and is then killed.",
        "the member was asked to send while all others were suspended";
    "kill-sender", 3, [Crash], crashes::kill_sender,
        "The busiest sender is killed in mid-stream.",
        "the member's own messages were not yet delivered everywhere when it was killed";
    "kill-huge", 3, [Crash, HugeMessages], crashes::kill_huge,
        "While all members send messages of several megabytes, one of them is killed.",
        "the member's own messages were not yet delivered everywhere when it was killed";
    "kill-receiver", 3, [Crash], crashes::kill_receiver,
        "A member that only receives is killed in mid-stream.",
        "messages were not yet delivered everywhere when the member was killed";
    "rolling-kills", 5, [Crash], crashes::rolling_kills,
        "Members are killed one after the other, as many as the others can tolerate.",
        "messages were not yet delivered everywhere at each of the kills";
    "kill-twice", 5, [Crash], crashes::kill_twice,
        "A second member is killed before the others have recovered from the loss of the first.",
        "the second was killed before all others had recovered from the loss of the first";
    "kill-during-leave", 4, [Crash, Leave], membership::kill_during_leave,
        "A member leaves, and another is killed at the same time.",
        "a member was killed before all others had the view without the member that left";
    "kill-during-join", 4, [Crash, Join], membership::kill_during_join,
        "A member joins, and another is killed at the same time.",
        "a member was killed before all others had the view with the member that joined";
    "restart", 3, [Crash, Restart], crashes::restart,
        "A member is killed, and comes back with its storage folder while the others send.",
        "the member delivered before its kill and after its restart, and others delivered in between";
    "restart-all", 1, [Restart], crashes::restart_all,
        "All members are killed at once in mid-stream, and all come back.",
        "each member delivered before and after, and messages were in flight at the kill";
    "restart-all-again", 1, [Restart], crashes::restart_all_again,
        "All members are killed in mid-stream and come back, first at once and then one after the other.",
        "each member delivered before and after, and messages were in flight at the kill";
    "power-loss", 1, [Durable, Restart], crashes::power_loss { crashes::power_losses },
        "All members and then a single one lose power and unsynced data in mid-stream, and come back.",
        "each node that lost power delivered before and after, and messages were in flight at the kill";
    "full-disk", 3, [FullDisk, Restart], troubles::full_disk,
        "A member's disk is full for some time in mid-stream; then the member is killed and comes back.",
        "other members sent while the disk was full, and the member delivered after its restart";
    "partition", 3, [Network], troubles::partition { troubles::each_minority },
        "Each node in turn is in a minority that is cut off in mid-stream, both sides continue to send, and the partition heals.",
        "both sides were asked to send during the partition";
    "random-faults", 3, [Crash], random::faults,
        "Random faults of all kinds that the claims allow; played only if the scenario is named.",
        "all remaining members delivered messages";
    "shards", 7, [OrderAcrossGroups, OutsideSenders], shards::across,
        "Clients send to two or more of several disjoint groups at once.",
        "messages for several groups were delivered in all of them";
    "shards-mixed", 7, [OrderAcrossGroups, OutsideSenders], shards::mixed,
        "Clients send to one group and to several.",
        "in each group, messages for that group only and for several groups alternated";
    "shards-kill-follower", 7, [OrderAcrossGroups, OutsideSenders, Crash, Leaders],
        shards::kill_follower,
        "Clients send, and a group's member that is not the leader is killed in mid-stream.",
        "messages to the group were not yet delivered everywhere when the member was killed";
    "shards-kill-leader", 7, [OrderAcrossGroups, OutsideSenders, Crash, Leaders],
        shards::kill_leader,
        "Clients send, and the leader of a group is killed in mid-stream.",
        "the group had messages in flight at the kill, and continued with another leader";
    "shards-kill-client", 8, [OrderAcrossGroups, OutsideSenders, Crash], shards::kill_client,
        "A client is killed in the middle of its multicasts to several groups.",
        "messages from the killed node to several groups were not yet delivered everywhere";
    "shards-kill-leaders", 7, [OrderAcrossGroups, OutsideSenders, Crash, Leaders],
        shards::kill_leaders,
        "Clients send, and the leaders of all groups are killed at once in mid-stream.",
        "each group had messages in flight at the kill, and continued with another leader";
    "shards-pause-leader", 7, [OrderAcrossGroups, OutsideSenders, Leaders, Suspension],
        shards::pause_leader,
        "The leader of a group is suspended until another leads, and then resumed.",
        "another member led, and messages to the group were sent, before the leader was resumed";
    "shards-restart", 8, [OrderAcrossGroups, OutsideSenders, Crash, Rejoin], shards::restart,
        "A member of a group and a client are killed, and come back while others send.",
        "both came back, the member delivered new messages, and all members delivered those that the client sent";
    "shards-each-leader", 7, [OrderAcrossGroups, OutsideSenders, Crash, Leaders, Rejoin],
        shards::each_leader,
        "The leader of each group in turn is killed and comes back, while clients send.",
        "each group continued with another leader, and each killed leader delivered again";
    "shards-restart-all", 7, [OrderAcrossGroups, OutsideSenders, Restart], shards::restart_all,
        "All members of all groups are killed at once in mid-stream and come back, while the clients stay.",
        "all members came back and delivered new messages";
    "shards-power-loss", 7, [OrderAcrossGroups, OutsideSenders, PowerLoss, Restart],
        shards::power_loss,
        "All members of all groups lose power and unsynced data in mid-stream and come back, while the clients stay.",
        "all members came back and delivered new messages";
    "shards-partition", 8, [OrderAcrossGroups, OutsideSenders, Network], shards::partition,
        "A member of each group and a client are cut off, clients on both sides continue to send, and the partition heals.",
        "clients on both sides sent during the partition, and the groups continued without the members that were cut off";
}

/// The scenario with random faults, which runs only if the scenario is named.
pub(super) const RANDOM: &str = "random-faults";

/// Returns the scenario of this name.
pub(super) fn named(name: &str) -> Option<&'static Scenario> {
    SCENARIOS.iter().find(|scenario| scenario.name == name)
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;

    use super::*;
    use crate::drive::plan::{Deed, PlannedGroup, Step};
    use crate::drive::protocol;
    use crate::history::GroupOrder;

    /// Returns every plan with up to this number of nodes.
    fn plans(
        nodes_max: usize,
        seed: u64,
    ) -> impl Iterator<Item = (&'static Scenario, usize, RunPlan)> {
        SCENARIOS.iter().flat_map(move |scenario| {
            (scenario.nodes_min..=nodes_max)
                .flat_map(move |nodes| (0..scenario.rounds(nodes)).map(move |round| (nodes, round)))
                .map(move |(nodes, round)| {
                    (scenario, nodes, scenario.plan(terms(seed, nodes, round)))
                })
        })
    }

    const CLAIMS: &[Feature] = &[
        Feature::Crash,
        Feature::Leave,
        Feature::Join,
        Feature::Network,
        Feature::Suspension,
        Feature::FullDisk,
        Feature::Durable,
    ];

    fn terms(seed: u64, nodes: usize, round: usize) -> Terms<'static> {
        Terms { seed, nodes, scale: 50, claims: CLAIMS, round, faults: None }
    }

    #[test]
    fn plan_is_determined_by_its_seed() {
        for scenario in SCENARIOS {
            for nodes in scenario.nodes_min..=7 {
                let plan = |seed| scenario.plan(terms(seed, nodes, 0));
                assert_eq!(plan(3), plan(3), "{}", scenario.name);
                assert_ne!(plan(3), plan(4), "{}", scenario.name);
            }
        }
    }

    #[test]
    fn overlapping_groups_require_common_order_if_claimed() {
        let overlapping = named("overlapping-groups").expect("there is one");
        let across = [Feature::OrderAcrossGroups];
        for (claims, order) in [(&across[..], GroupOrder::Total), (&[], GroupOrder::Group)] {
            let plan = overlapping.plan(Terms { claims, ..terms(1, 4, 0) });
            assert!(plan.groups.iter().all(|group| group.order == order));
        }
    }

    #[test]
    fn successive_rounds_inject_each_fault_at_every_node() {
        for nodes in 3..9 {
            let done = |name: &str, to: fn(&Step) -> Vec<usize>| -> HashSet<usize> {
                let scenario = named(name).expect("there is one");
                let plans =
                    (0..scenario.rounds(nodes)).map(|round| scenario.plan(terms(3, nodes, round)));
                plans.flat_map(|plan| plan.steps.iter().flat_map(to).collect::<Vec<_>>()).collect()
            };
            let cut = done("partition", |step| match step {
                Step::Part(side) => side.clone(),
                _ => Vec::new(),
            });
            let stopped = done("stop-until-removed", |step| match step {
                Step::Stop(node) => vec![*node],
                _ => Vec::new(),
            });
            let killed = done("kill-alone", |step| match step {
                Step::Kill { nodes, .. } => nodes.clone(),
                _ => Vec::new(),
            });
            for nodes_done in [cut, stopped, killed] {
                assert_eq!(nodes_done.len(), nodes);
            }
        }
    }

    #[test]
    fn scenario_names_are_unique_and_sentences_well_formed() {
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
    fn plans_use_only_senders_and_claimed_sizes() {
        for (scenario, nodes, plan) in plans(8, 11) {
            let large = scenario.needs.contains(&Feature::LargeMessages);
            let huge = scenario.needs.contains(&Feature::HugeMessages);
            let empty = scenario.needs.contains(&Feature::EmptyMessages);
            let several = scenario.needs.contains(&Feature::SeveralGroups)
                || scenario.needs.contains(&Feature::OrderAcrossGroups);
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
    fn ordinary_scenarios_also_send_larger_messages() {
        let claims = [CLAIMS, &[Feature::LargeMessages]].concat();
        for name in ["all-senders", "kill-sender", "leave", "join", "restart", "power-loss"] {
            let plan = |claims| {
                let plan =
                    named(name).expect("there is one").plan(Terms { claims, ..terms(3, 3, 0) });
                let lists = plan.steps.into_iter().filter_map(|step| match step {
                    Step::Send(list) => Some(list),
                    _ => None,
                });
                lists.flatten().map(|sending| sending.bytes).collect::<Vec<u64>>()
            };
            let (large, ordinary) = (plan(&claims[..]), plan(CLAIMS));
            let larger = |sizes: &[u64]| sizes.iter().filter(|bytes| **bytes > 512).count();
            let many = 1..=large.len() / 5;
            assert!(many.contains(&larger(&large)) && many.contains(&larger(&ordinary)), "{name}");
            let most = |sizes: &[u64]| sizes.iter().max().copied();
            assert!(most(&large) > Some(protocol::ORDINARY_BYTES_MAX), "{name}");
            assert!(most(&ordinary) <= Some(protocol::ORDINARY_BYTES_MAX), "{name}");
        }
    }

    /// The nodes that are down or cut off at each step of a plan.
    #[derive(Default)]
    struct Away {
        down: HashSet<usize>,
        parted: HashSet<usize>,
        /// Groups with a chosen node, and groups whose chosen node is down.
        chosen: Vec<usize>,
        chosen_down: HashSet<usize>,
    }

    impl Away {
        fn take(&mut self, step: &Step) {
            match step {
                Step::Kill { nodes, .. } => self.down.extend(nodes),
                Step::Start(starting) => self.down.retain(|node| !starting.contains(node)),
                Step::Part(side) => self.parted.extend(side),
                // The first node of the link is the one that may be lost.
                Step::Cut(links) => self.parted.extend(links.first().map(|(from, _)| *from)),
                Step::Heal => self.parted.clear(),
                // The node may halt, and then stays down until it is started again.
                Step::Fill(node) => drop(self.down.insert(*node)),
                Step::Choose { groups, .. } => self.chosen.clone_from(groups),
                Step::ToChosen(Deed::Kill | Deed::Stop) => {
                    for group in &self.chosen {
                        assert!(self.chosen_down.insert(*group), "two of one group");
                    }
                }
                Step::ToChosen(Deed::Start | Deed::Continue) => {
                    self.chosen_down.retain(|group| !self.chosen.contains(group));
                }
                _ => {}
            }
        }

        /// Returns the number of a group's members that are down or cut off.
        fn of(&self, place: usize, group: &PlannedGroup) -> usize {
            let named = self.down.union(&self.parted).filter(|node| group.members.contains(node));
            named.count() + usize::from(self.chosen_down.contains(&place))
        }
    }

    #[test]
    fn plans_keep_a_majority_of_each_group() {
        for (scenario, nodes, plan) in plans(14, 5) {
            let mut away = Away::default();
            for step in &plan.steps {
                away.take(step);
                // Only a full restart takes all members down, and all of them come back.
                let mut members = plan.groups.iter().flat_map(|group| &group.members);
                if !members.all(|member| away.down.contains(member)) {
                    for (place, group) in plan.groups.iter().enumerate() {
                        let size = group.members.len();
                        assert!(2 * away.of(place, group) < size, "{}", scenario.name);
                    }
                }
            }
            assert!(away.down.len() < nodes && away.parted.is_empty(), "{}", scenario.name);
        }
    }

    #[test]
    fn omitting_some_random_faults_keeps_the_others() {
        let random = named(RANDOM).expect("there is one");
        let mut kinds = HashSet::new();
        for seed in 0..200 {
            let whole = random.plan(terms(seed, 5, 0));
            let kept: Vec<usize> = whole.faults.iter().map(|fault| fault.number).skip(1).collect();
            let fewer = random.plan(Terms { faults: Some(&kept), ..terms(seed, 5, 0) });
            let told = |plan: &RunPlan| -> Vec<String> {
                plan.faults.iter().map(|fault| fault.what.clone()).collect()
            };
            assert_eq!(told(&whole), told(&fewer));
            assert!(whole.faults.iter().all(|fault| fault.is_kept));
            if whole.faults.len() > 1 {
                assert!(fewer.steps.len() < whole.steps.len());
            }
            kinds.extend(whole.steps.iter().map(std::mem::discriminant));
        }
        // Start, send, wait, await, await at most, kill, leave, stop, continue, part, cut, slow,
        // lose, heal, fill, make room, and the end.
        assert!(kinds.len() >= 17, "{}", kinds.len());
    }

    #[test]
    fn shards_are_disjoint_and_clients_are_not_members() {
        for (scenario, nodes, plan) in plans(28, 6) {
            if !scenario.name.starts_with("shards") {
                continue;
            }
            let members: Vec<usize> =
                plan.groups.iter().flat_map(|group| group.members.clone()).collect();
            let distinct: HashSet<&usize> = members.iter().collect();
            assert_eq!(distinct.len(), members.len(), "{}", scenario.name);
            assert!(plan.groups.len() >= 2 && members.len() == plan.groups.len() * 3);
            for group in &plan.groups {
                assert!(group.senders.iter().all(|client| !distinct.contains(client)));
                assert_eq!(group.senders.len(), nodes - members.len(), "{}", scenario.name);
            }
            let several = plan.steps.iter().any(|step| match step {
                Step::Send(list) => list.iter().any(|sending| sending.groups.len() > 1),
                _ => false,
            });
            assert!(several, "{}", scenario.name);
        }
    }
}
