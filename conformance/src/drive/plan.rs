//! Plans: what a scenario does, as data.
//!
//! Invariants:
//! - the scenario, the round, the seed, the number of nodes, the scale and what is claimed decide a
//!   plan, and nothing else does;
//! - what each member is asked, and in which order, is decided by the plan: a fault in mid-stream
//!   comes when a member has answered or delivered so many messages, and never takes back what is
//!   still to be sent by a member that was not killed.

use crate::random::Random;

use super::disks::Trouble;
use super::feature::Feature;
use super::protocol::WINDOW;
use super::reach::Reach;
use crate::history::GroupOrder;

/// The shortest message that is not empty: longer than any name.
const BYTES_MIN: u64 = 32;

/// The longest message where sizes do not matter.
const BYTES_USUAL_MAX: u64 = 512;

/// In so many rounds is sent what is to last.
const PACED_ROUNDS: u64 = 10;

/// Between two of those rounds.
const PACED_MS: u64 = 15;

/// What a run of a scenario does. Nodes and groups are numbers, from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct Plan {
    /// The groups, with all nodes that are or may become members.
    pub(super) groups: Vec<Group>,
    /// What is done, in order.
    pub(super) steps: Vec<Step>,
    /// What it must have reached.
    pub(super) reach: Vec<Reach>,
    /// Whether nodes must be parted, and so need networks of their own.
    pub(super) parts: bool,
    /// What disks go through, if nodes need some of their own for it.
    pub(super) disks: Option<Trouble>,
    /// The faults that chance drew, each with its number and whether it is left out.
    pub(super) faults: Vec<PlannedFault>,
}

/// A fault that chance drew.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFault {
    pub(super) number: usize,
    pub(super) what: String,
    pub(super) is_kept: bool,
}

/// A group of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Group {
    pub(super) members: Vec<usize>,
    pub(super) senders: Vec<usize>,
    pub(super) order: GroupOrder,
}

/// A message to be sent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Sending {
    pub(super) sender: usize,
    pub(super) groups: Vec<usize>,
    pub(super) bytes: u64,
}

/// One thing to do. What is for a member waits in line behind what it was asked before; what is
/// done to a member is done at once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Start these nodes' processes: together the first time, into running groups later.
    Start(Vec<usize>),
    /// Have these messages sent.
    Send(Vec<Sending>),
    /// Make one delivery of a member slow.
    Pause { node: usize, ms: u64 },
    /// Ask members what they posted.
    Stats(Vec<usize>),
    /// Have a member leave.
    Leave(usize),
    /// Suspend a member's process.
    Stop(usize),
    /// Resume it.
    Continue(usize),
    /// End members' processes without warning, one after the other with so much time between them.
    Kill { nodes: Vec<usize>, gap_us: u64 },
    /// The same, with the power of their disks: what they had not synced is lost.
    CutPower(Vec<usize>),
    /// Choose a node of each of these groups by its part in it, for deeds.
    Choose { part: Part, groups: Vec<usize> },
    /// Do this to the nodes that were chosen last.
    ToChosen(Deed),
    /// Cut these nodes off from the others.
    Part(Vec<usize>),
    /// Lose what goes from the first of each of these pairs to the second.
    Cut(Vec<(usize, usize)>),
    /// Delay what a node sends.
    Slow { node: usize, delay_ms: u64 },
    /// Lose so much of what a node sends.
    Lose { node: usize, percent: u64 },
    /// Leave no room on a node's disk.
    Fill(usize),
    /// Make room on it again.
    MakeRoom(usize),
    /// Join all nodes again; nothing is lost or late any more.
    Heal,
    /// End all faults that last.
    EndFaults,
    /// Wait for something that must come about: without it the rest of the plan makes no sense.
    Await(Condition),
    /// Wait for something that may come about, so long at most.
    AwaitAtMost { condition: Condition, ms: u64 },
    /// Let time pass.
    Wait { ms: u64 },
    /// Wait until all that should be delivered is, and nothing more happens; the deadline ends it.
    Settle,
    /// Have all members stop.
    StopAll,
}

/// The part of a member in its group. The system decides who has it, and members tell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Part {
    /// It leads the group.
    Leader,
    /// It runs and does not lead: the one in this place, counted round, of those.
    Follower { place: usize },
}

/// What is done to nodes that were chosen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// End their processes without warning, all at once.
    Kill,
    /// Start them again.
    Start,
    /// Suspend their processes.
    Stop,
    /// Resume them.
    Continue,
}

/// Something to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// These nodes can take messages.
    Ready(Vec<usize>),
    /// The node has answered so many multicasts since its start.
    Answered { node: usize, count: u64 },
    /// The node has delivered so many messages since its start.
    Delivered { node: usize, count: u64 },
    /// All that was sent is delivered by all nodes that should.
    AllDelivered,
    /// The node has left, or ended otherwise.
    Ended(usize),
    /// All others that still run have a view without these nodes.
    ViewWithout(Vec<usize>),
    /// Each of these nodes, which were suspended or cut off, has ended, or installed a view since,
    /// or is a member as before and has delivered all.
    Resolved(Vec<usize>),
    /// The node has delivered a message that no other has delivered.
    DeliveredAlone(usize),
    /// Each of these groups has a leader that runs.
    Led(Vec<usize>),
    /// Another member leads each of the groups for which nodes were chosen.
    OthersLead,
    /// The nodes that were chosen can take messages.
    ChosenReady,
    /// Each of the nodes that were chosen has delivered so many messages since its start.
    ChosenDelivered { count: u64 },
}

/// A plan in the making.
pub(super) struct Draft {
    /// Chance, of the plan's own.
    pub(super) chance: Random,
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// How many messages a sender sends where that does not matter.
    pub(super) scale: u64,
    /// Which round of the scenario this is, from 0, where it has several.
    pub(super) round: usize,
    claims: Vec<Feature>,
    faults: Option<Vec<usize>>,
    plan: Plan,
}

/// What a plan is made for.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'t> {
    /// Decides what is left to chance.
    pub(super) seed: u64,
    /// How many nodes there are.
    pub(super) nodes: usize,
    /// How many messages a sender sends where that does not matter.
    pub(super) scale: u64,
    /// What the implementation claims.
    pub(super) claims: &'t [Feature],
    /// Which round of the scenario, from 0.
    pub(super) round: usize,
    /// Of the faults that chance draws, the numbers of those that are to come; all, if not said.
    pub(super) faults: Option<&'t [usize]>,
}

impl Draft {
    /// An empty plan.
    pub(super) fn new(chance: Random, terms: Terms<'_>) -> Self {
        let plan = Plan::default();
        let Terms { nodes, scale, round, claims, .. } = terms;
        let faults = terms.faults.map(<[usize]>::to_vec);
        Self { chance, nodes, scale, round, claims: claims.to_vec(), faults, plan }
    }

    /// Whether the implementation claims it.
    pub(super) fn claims(&self, feature: Feature) -> bool {
        self.claims.contains(&feature)
    }

    /// The plan, with its end, which is the same for all.
    pub(super) fn finish(mut self) -> Plan {
        self.plan.steps.extend([Step::Settle, Step::StopAll]);
        self.plan
    }

    /// All nodes.
    pub(super) fn everyone(&self) -> Vec<usize> {
        (0..self.nodes).collect()
    }

    /// All nodes, in an order that chance decides.
    pub(super) fn shuffled(&mut self) -> Vec<usize> {
        let mut nodes = self.everyone();
        self.chance.shuffle(&mut nodes);
        nodes
    }

    /// Some node.
    pub(super) fn someone(&mut self) -> usize {
        self.chance.index(self.nodes)
    }

    /// All nodes but these.
    pub(super) fn others(&self, without: &[usize]) -> Vec<usize> {
        (0..self.nodes).filter(|node| !without.contains(node)).collect()
    }

    /// Adds a group that has one order with all such groups, and gives its number.
    pub(super) fn group(&mut self, members: Vec<usize>, senders: Vec<usize>) -> usize {
        self.group_of_order(members, senders, GroupOrder::Total)
    }

    /// Adds a group that promises nothing about others, unless the implementation claims that it
    /// does, and gives its number.
    pub(super) fn lone_group(&mut self, members: Vec<usize>, senders: Vec<usize>) -> usize {
        let across = self.claims(Feature::OrderAcrossGroups);
        let order = if across { GroupOrder::Total } else { GroupOrder::Group };
        self.group_of_order(members, senders, order)
    }

    fn group_of_order(
        &mut self,
        members: Vec<usize>,
        senders: Vec<usize>,
        order: GroupOrder,
    ) -> usize {
        self.plan.groups.push(Group { members, senders, order });
        self.plan.groups.len() - 1
    }

    /// One group in which everyone is a member and a sender, and everyone is started.
    pub(super) fn one_group(&mut self) {
        self.group(self.everyone(), self.everyone());
        self.start(self.everyone());
    }

    /// Starts nodes, and waits until they can take messages.
    pub(super) fn start(&mut self, nodes: Vec<usize>) {
        self.then(Step::Start(nodes.clone()));
        self.then(Step::Await(Condition::Ready(nodes)));
    }

    /// Adds a step.
    pub(super) fn then(&mut self, step: Step) {
        self.plan.parts |=
            matches!(step, Step::Part(_) | Step::Cut(_) | Step::Slow { .. } | Step::Lose { .. });
        match step {
            Step::Fill(_) => self.plan.disks = Some(Trouble::Full),
            Step::CutPower(_) => self.plan.disks = Some(Trouble::PowerLoss),
            _ => {}
        }
        self.plan.steps.push(step);
    }

    /// Each of these sends so many messages of usual sizes to the first group.
    pub(super) fn send(&mut self, senders: &[usize], each: u64) {
        self.send_sized(senders, each, BYTES_MIN, BYTES_USUAL_MAX);
    }

    /// The same, with sizes of that range.
    pub(super) fn send_sized(
        &mut self,
        senders: &[usize],
        each: u64,
        bytes_min: u64,
        bytes_max: u64,
    ) {
        let mut list = Vec::new();
        for _ in 0..each {
            for &sender in senders {
                let bytes = self.chance.between(bytes_min, bytes_max);
                list.push(Sending { sender, groups: vec![0], bytes });
            }
        }
        self.then(Step::Send(list));
    }

    /// The same, in rounds with a little time between them, so that it lasts while something else
    /// happens.
    pub(super) fn send_paced(&mut self, senders: &[usize], each: u64) {
        for _ in 0..PACED_ROUNDS {
            self.send(senders, each.div_ceil(PACED_ROUNDS));
            self.then(Step::Wait { ms: PACED_MS });
        }
    }

    /// So few messages that one member's are all under way at once. What a member is asked before
    /// it is killed must be few, so that how many it is asked for is decided here and not by
    /// timing.
    pub(super) fn few(&self) -> u64 {
        self.scale.min(WINDOW as u64 / 2)
    }

    /// A usual size.
    pub(super) fn bytes(&mut self) -> u64 {
        self.chance.between(BYTES_MIN, BYTES_USUAL_MAX)
    }

    /// Kills a member.
    pub(super) fn kill(&mut self, node: usize) {
        self.then(Step::Kill { nodes: vec![node], gap_us: 0 });
    }

    /// Waits until a node has delivered so many messages.
    pub(super) fn await_delivered(&mut self, node: usize, count: u64) {
        self.then(Step::Await(Condition::Delivered { node, count }));
    }

    /// Whether the fault of that number is to come.
    pub(super) fn keeps_fault(&self, number: usize) -> bool {
        self.faults.as_ref().is_none_or(|kept| kept.contains(&number))
    }

    /// Says which fault has that number.
    pub(super) fn tell_fault(&mut self, number: usize, what: String) {
        let is_kept = self.keeps_fault(number);
        self.plan.faults.push(PlannedFault { number, what, is_kept });
    }

    /// Says what must have been reached.
    pub(super) fn must_reach(&mut self, reach: Reach) {
        self.plan.reach.push(reach);
    }
}

impl Plan {
    /// How many messages it sends.
    pub(super) fn messages(&self) -> usize {
        let count = |step: &Step| if let Step::Send(list) = step { list.len() } else { 0 };
        self.steps.iter().map(count).sum()
    }
}
