//! Scenarios with disjoint groups of replicas, and clients: nodes that are members of no group and
//! send to any set of groups. One replica of each group may be down at a time.

use crate::drive::plan::{Condition, Deed, Draft, GroupRole, PlannedSend, Step};
use crate::drive::protocol::WINDOW;
use crate::drive::reach::Reach;

/// Number of replicas per group: the minimum that tolerates the loss of one.
const REPLICAS: usize = 3;

/// The shortest suspension of a leader.
const SUSPENDED_MS: u64 = 400;

/// Time limit for a group to get a new leader; after that the plan continues anyway.
const OTHER_LEADER_MS_MAX: u64 = 4000;

/// The duration of a partition: long enough for the other replicas to elect leaders and continue.
const PARTED_MS: u64 = 1500;

/// Number of rounds in which messages are sent if the load has to last.
const PACED_ROUNDS: u64 = 10;

/// Time between two paced rounds.
const PACED_MS: u64 = 15;

/// The number of groups that a message is addressed to.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Mix {
    /// Two groups or more.
    Several,
    /// One or more nodes.
    Any,
}

/// The groups and the clients of a plan.
struct Shards {
    /// The members of each group.
    groups: Vec<Vec<usize>>,
    clients: Vec<usize>,
}

impl Shards {
    /// Creates as many groups as the nodes allow, with at least one client, and starts all nodes.
    fn begin(draft: &mut Draft) -> Self {
        let shuffled = draft.shuffled();
        let replicas = (draft.nodes - 1) / REPLICAS * REPLICAS;
        let (replicas, clients) = shuffled.split_at(replicas);
        let groups: Vec<Vec<usize>> = replicas.chunks(REPLICAS).map(<[usize]>::to_vec).collect();
        for members in &groups {
            draft.group(members.clone(), clients.to_vec());
        }
        draft.start(draft.everyone());
        Self { groups, clients: clients.to_vec() }
    }

    /// Creates the groups and clients, and waits until each group has reported a leader.
    fn begin_led(draft: &mut Draft) -> Self {
        let shards = Self::begin(draft);
        draft.then(Step::Await(Condition::Led(shards.all())));
        shards
    }

    /// All groups.
    fn all(&self) -> Vec<usize> {
        (0..self.groups.len()).collect()
    }

    /// Has each of these clients send `each` messages.
    fn send(&self, draft: &mut Draft, clients: &[usize], each: u64, mix: Mix) {
        let mut list = Vec::new();
        for _ in 0..each {
            for &sender in clients {
                let groups = self.some(draft, mix);
                list.push(PlannedSend { sender, groups, bytes: draft.bytes() });
            }
        }
        draft.then(Step::Send(list));
    }

    /// Has each client send `each` messages in rounds with short pauses between them.
    fn send_paced(&self, draft: &mut Draft, clients: &[usize], each: u64) {
        for _ in 0..PACED_ROUNDS {
            self.send(draft, clients, each.div_ceil(PACED_ROUNDS), Mix::Any);
            draft.then(Step::Wait { ms: PACED_MS });
        }
    }

    /// Has each client send enough messages at once that most are in flight when the first client
    /// has received some answers.
    fn send_burst(&self, draft: &mut Draft, before: u64) {
        self.send(draft, &self.clients, WINDOW as u64, Mix::Any);
        let count = before + draft.chance.between(1, WINDOW as u64 / 4);
        draft.then(Step::Await(Condition::Answered { node: self.clients[0], count }));
    }

    /// Returns some of the groups.
    fn some(&self, draft: &mut Draft, mix: Mix) -> Vec<usize> {
        let mut groups = self.all();
        draft.chance.shuffle(&mut groups);
        let least = if mix == Mix::Several { 2 } else { 1 };
        // Small sets are frequent, because rings of groups consist of pairs, and each group should
        // also receive messages for itself only.
        let most = if draft.chance.chance(60) { least } else { groups.len() };
        groups.truncate(least + draft.chance.index(most - least + 1));
        groups.sort_unstable();
        groups
    }
}

pub(super) fn across(draft: &mut Draft) {
    let shards = Shards::begin(draft);
    let count = draft.scale;
    shards.send(draft, &shards.clients, count, Mix::Several);
    draft.must_reach(Reach::AcrossGroups { count: count.div_ceil(2) });
}

pub(super) fn mixed(draft: &mut Draft) {
    let shards = Shards::begin(draft);
    let count = draft.scale;
    shards.send(draft, &shards.clients, count, Mix::Any);
    draft.must_reach(Reach::AcrossGroups { count: count.div_ceil(8) });
    draft.must_reach(Reach::AloneAndAcross);
}

pub(super) fn kill_follower(draft: &mut Draft) {
    let place = draft.chance.index(REPLICAS - 1);
    let (shards, group) = kill_one(draft, GroupRole::Follower { place });
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(2));
    draft.must_reach(Reach::FollowerKilled { group });
}

pub(super) fn kill_leader(draft: &mut Draft) {
    let (shards, group) = kill_one(draft, GroupRole::Leader);
    await_other_leaders(draft);
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(2));
    draft.must_reach(Reach::LeaderKilled { group });
}

/// Kills a node of some group in the middle of a burst.
fn kill_one(draft: &mut Draft, part: GroupRole) -> (Shards, usize) {
    let shards = Shards::begin_led(draft);
    let group = draft.chance.index(shards.groups.len());
    let few = draft.few();
    shards.send(draft, &shards.clients, few, Mix::Any);
    shards.send_burst(draft, few);
    choose(draft, part, vec![group], few);
    draft.then(Step::ToChosen(Deed::Kill));
    (shards, group)
}

/// Chooses nodes that have delivered some of the `sent` messages from each client.
fn choose(draft: &mut Draft, part: GroupRole, groups: Vec<usize>, sent: u64) {
    draft.then(Step::Choose { part, groups });
    let condition = Condition::ChosenDelivered { count: sent / 4 };
    draft.then(Step::Await(condition));
}

/// Waits until the groups of the chosen nodes have other leaders, up to the time limit.
fn await_other_leaders(draft: &mut Draft) {
    draft.then(Step::AwaitAtMost { condition: Condition::OthersLead, ms: OTHER_LEADER_MS_MAX });
}

pub(super) fn kill_client(draft: &mut Draft) {
    let shards = Shards::begin(draft);
    let (victim, others) = (shards.clients[0], &shards.clients[1..]);
    let few = draft.few();
    shards.send(draft, &shards.clients, few, Mix::Any);
    // The other nodes' output must not delay the victim's answers.
    shards.send(draft, &[victim], WINDOW as u64, Mix::Several);
    let answered = few + draft.chance.between(1, WINDOW as u64 / 4);
    draft.then(Step::Await(Condition::Answered { node: victim, count: answered }));
    draft.kill(victim);
    shards.send_paced(draft, others, draft.scale.div_ceil(2));
    draft.must_reach(Reach::KilledAcross { node: victim });
}

pub(super) fn kill_leaders(draft: &mut Draft) {
    let shards = Shards::begin_led(draft);
    let few = draft.few();
    shards.send(draft, &shards.clients, few, Mix::Any);
    shards.send_burst(draft, few);
    choose(draft, GroupRole::Leader, shards.all(), few);
    draft.then(Step::ToChosen(Deed::Kill));
    await_other_leaders(draft);
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(2));
    for group in shards.all() {
        draft.must_reach(Reach::LeaderKilled { group });
    }
}

pub(super) fn pause_leader(draft: &mut Draft) {
    let shards = Shards::begin_led(draft);
    let group = draft.chance.index(shards.groups.len());
    let few = draft.few();
    shards.send(draft, &shards.clients, few, Mix::Any);
    shards.send_burst(draft, few);
    choose(draft, GroupRole::Leader, vec![group], few);
    draft.then(Step::ToChosen(Deed::Stop));
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(2));
    draft.then(Step::Wait { ms: SUSPENDED_MS });
    await_other_leaders(draft);
    shards.send(draft, &shards.clients, few, Mix::Any);
    draft.then(Step::ToChosen(Deed::Continue));
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(4));
    draft.must_reach(Reach::LeaderPaused { group });
}

pub(super) fn restart(draft: &mut Draft) {
    let shards = Shards::begin(draft);
    let group = draft.chance.index(shards.groups.len());
    let replica = shards.groups[group][draft.chance.index(REPLICAS)];
    let client = shards.clients[0];
    let (count, few) = (draft.scale, draft.few());
    shards.send(draft, &shards.clients, few, Mix::Any);
    shards.send_burst(draft, few);
    draft.await_delivered(replica, 1);
    draft.then(Step::Kill { nodes: vec![replica, client], gap_us: 0 });
    shards.send_paced(draft, &shards.clients[1..], count.div_ceil(2));
    draft.then(Step::Start(vec![replica, client]));
    shards.send_paced(draft, &shards.clients[1..], count.div_ceil(2));
    draft.then(Step::Await(Condition::Ready(vec![replica, client])));
    shards.send(draft, &shards.clients, count.div_ceil(4), Mix::Any);
    draft.must_reach(Reach::Restarted { nodes: vec![replica] });
    draft.must_reach(Reach::SentAgain { node: client });
}

pub(super) fn restart_all(draft: &mut Draft) {
    end_replicas(draft, |replicas| Step::Kill { nodes: replicas, gap_us: 0 });
}

pub(super) fn power_loss(draft: &mut Draft) {
    end_replicas(draft, Step::CutPower);
}

/// Ends all replicas in the middle of a burst, and starts them again. The clients stay.
fn end_replicas(draft: &mut Draft, end: impl FnOnce(Vec<usize>) -> Step) {
    let shards = Shards::begin(draft);
    let few = draft.few();
    shards.send(draft, &shards.clients, few, Mix::Any);
    shards.send_burst(draft, few);
    let replicas: Vec<usize> = shards.groups.concat();
    let count = replicas.len();
    draft.then(end(replicas.clone()));
    draft.start(replicas);
    shards.send_paced(draft, &shards.clients, draft.scale.div_ceil(4));
    draft.must_reach(Reach::CameBack { count });
}

pub(super) fn each_leader(draft: &mut Draft) {
    let shards = Shards::begin_led(draft);
    let each = draft.scale.div_ceil(4);
    let mut order = shards.all();
    draft.chance.shuffle(&mut order);
    for group in order {
        shards.send(draft, &shards.clients, each, Mix::Any);
        draft.then(Step::Await(Condition::Led(vec![group])));
        draft.then(Step::Choose { part: GroupRole::Leader, groups: vec![group] });
        draft.then(Step::ToChosen(Deed::Kill));
        await_other_leaders(draft);
        shards.send(draft, &shards.clients, each, Mix::Any);
        draft.then(Step::ToChosen(Deed::Start));
        // The next node is killed only when this one has recovered, so that no group loses two.
        draft.then(Step::Await(Condition::ChosenReady));
        draft.must_reach(Reach::LeaderKilled { group });
    }
    shards.send_paced(draft, &shards.clients, each);
    draft.must_reach(Reach::CameBack { count: shards.groups.len() });
}

pub(super) fn partition(draft: &mut Draft) {
    let shards = Shards::begin(draft);
    let mut side: Vec<usize> = Vec::new();
    for members in &shards.groups {
        side.push(members[draft.chance.index(REPLICAS)]);
    }
    side.push(shards.clients[0]);
    let (count, few) = (draft.scale, draft.few());
    shards.send(draft, &shards.clients, few, Mix::Any);
    draft.then(Step::Await(Condition::Answered { node: shards.clients[0], count: few }));
    draft.then(Step::Part(side.clone()));
    shards.send(draft, &shards.clients, few, Mix::Any);
    draft.then(Step::Wait { ms: PARTED_MS });
    draft.then(Step::Heal);
    shards.send_paced(draft, &shards.clients, count.div_ceil(4));
    draft.must_reach(Reach::SentWhileParted { side: side.clone() });
    draft.must_reach(Reach::WentOnWhileParted { side });
}
