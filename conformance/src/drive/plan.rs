//! Plans: the actions of a scenario, as data.
//!
//! Invariants:
//! - a plan is determined by the scenario, the round, the seed, the number of nodes, the scale and
//!   the claimed features;
//! - the plan decides the requests to each member and their order: a fault in mid-stream occurs
//!   when a member has answered or delivered a given number of messages, and never cancels messages
//!   that a surviving member still has to send.

use crate::random::Random;

use super::disks::Trouble;
use super::feature::Feature;
use super::protocol::{MESSAGE_BYTES_MAX, ORDINARY_BYTES_MAX, WINDOW};
use super::reach::Reach;
use crate::history::GroupOrder;

/// Length of the shortest non-empty message, longer than any name.
const BYTES_MIN: u64 = 32;

/// Length of most messages, at most, if sizes do not matter.
const BYTES_USUAL_MAX: u64 = 512;

/// One of this many messages is larger.
const LARGER_EVERY: u64 = 16;

/// Number of rounds in which messages are sent if the load has to last.
const PACED_ROUNDS: u64 = 10;

/// Time between two paced rounds.
const PACED_MS: u64 = 15;

/// The plan of one run of a scenario. Nodes and groups are numbered from 0.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(super) struct RunPlan {
    /// The groups, with all nodes that are or may become members.
    pub(super) groups: Vec<PlannedGroup>,
    /// The steps, in order.
    pub(super) steps: Vec<Step>,
    /// The conditions that must be reached.
    pub(super) reach: Vec<Reach>,
    /// Whether the plan partitions nodes, so that they need networks.
    pub(super) parts: bool,
    /// The kind of disk fault, if nodes need disks for it.
    pub(super) disks: Option<Trouble>,
    /// The random faults, each with its number and whether it is omitted.
    pub(super) faults: Vec<PlannedFault>,
}

/// A random fault.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedFault {
    pub(super) number: usize,
    pub(super) what: String,
    pub(super) is_kept: bool,
}

/// A group of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedGroup {
    pub(super) members: Vec<usize>,
    pub(super) senders: Vec<usize>,
    pub(super) order: GroupOrder,
}

/// A message to send.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PlannedSend {
    pub(super) sender: usize,
    pub(super) groups: Vec<usize>,
    pub(super) bytes: u64,
}

/// One step. Requests to a member are queued after its earlier requests; faults take effect at
/// once.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Step {
    /// Start these nodes' processes: together the first time, into running groups later.
    Start(Vec<usize>),
    /// Send these messages.
    Send(Vec<PlannedSend>),
    /// Slow down one delivery of a member.
    Pause { node: usize, ms: u64 },
    /// Ask members for their counts of posts.
    Stats(Vec<usize>),
    /// Ask a member to leave.
    Leave(usize),
    /// Suspend a member's process.
    Stop(usize),
    /// Resume a member's process.
    Continue(usize),
    /// Kill members' processes in turn, `gap_us` apart.
    Kill { nodes: Vec<usize>, gap_us: u64 },
    /// Kill members' processes and cut the power of their disks, so that unsynced data is lost.
    CutPower(Vec<usize>),
    /// Choose a node in each of these groups by its role, for later deeds.
    Choose { part: GroupRole, groups: Vec<usize> },
    /// Apply this deed to the nodes that were chosen last.
    ToChosen(Deed),
    /// Cut these nodes off from the others.
    Part(Vec<usize>),
    /// Drop packets from the first node of each pair to the second.
    Cut(Vec<(usize, usize)>),
    /// Delay a node's packets.
    Slow { node: usize, delay_ms: u64 },
    /// Drop `percent` of a node's packets.
    Lose { node: usize, percent: u64 },
    /// Fill a node's disk.
    Fill(usize),
    /// Make room on the disk again.
    MakeRoom(usize),
    /// End all network faults.
    Heal,
    /// End all lasting faults.
    EndFaults,
    /// Wait for a condition that must occur; otherwise the plan cannot continue.
    Await(Condition),
    /// Wait for a condition that may occur, at most `ms`.
    AwaitAtMost { condition: Condition, ms: u64 },
    /// Let time pass.
    Wait { ms: u64 },
    /// Wait until everything due has been delivered and nothing more happens, but at most until the
    /// deadline.
    Settle,
    /// Ask all members to stop.
    StopAll,
}

/// The role of a member in its group. The system assigns it, and members report it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum GroupRole {
    /// The group's leader.
    Leader,
    /// A running member that is not the leader: the member at this index in the list of such
    /// members, modulo its length.
    Follower { place: usize },
}

/// An action on chosen nodes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Deed {
    /// Kill the nodes' processes, all at once.
    Kill,
    /// Restart the nodes' processes.
    Start,
    /// Suspend the nodes' processes.
    Stop,
    /// Resume the nodes' processes.
    Continue,
}

/// A condition to wait for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Condition {
    /// These nodes can accept messages.
    Ready(Vec<usize>),
    /// The node has answered `count` multicasts since its start.
    Answered { node: usize, count: u64 },
    /// The node has delivered `count` messages since its start.
    Delivered { node: usize, count: u64 },
    /// Every message has been delivered by all nodes that should deliver it.
    AllDelivered,
    /// Each of these nodes has reported since its start that deliveries are durable.
    Durable(Vec<usize>),
    /// The node has left, or ended in another way.
    Ended(usize),
    /// All other running nodes have a view without these nodes.
    ViewWithout(Vec<usize>),
    /// Each of these nodes, which were suspended or cut off, has since ended or installed a view,
    /// or is a member as before and has delivered everything.
    Resolved(Vec<usize>),
    /// The node has delivered a message that no other node has delivered.
    DeliveredAlone(usize),
    /// Each of these groups has a running leader.
    Led(Vec<usize>),
    /// Each group for which nodes were chosen has another leader.
    OthersLead,
    /// The chosen nodes can accept messages.
    ChosenReady,
    /// Each of the chosen nodes has delivered `count` messages since it started.
    ChosenDelivered { count: u64 },
}

/// A plan under construction.
pub(super) struct Draft {
    /// The plan's own random numbers.
    pub(super) chance: Random,
    /// The random numbers of larger messages.
    larger: Random,
    /// Number of nodes.
    pub(super) nodes: usize,
    /// Number of messages that a sender sends, if the scenario does not set it.
    pub(super) scale: u64,
    /// The round of the scenario, from 0, if it has several.
    pub(super) round: usize,
    claims: Vec<Feature>,
    faults: Option<Vec<usize>>,
    plan: RunPlan,
}

/// The input from which a plan is made.
#[derive(Clone, Copy, Debug)]
pub(super) struct Terms<'t> {
    /// The seed of random choices.
    pub(super) seed: u64,
    /// Number of nodes.
    pub(super) nodes: usize,
    /// Number of messages that a sender sends, if the scenario does not set it.
    pub(super) scale: u64,
    /// The features that the implementation claims.
    pub(super) claims: &'t [Feature],
    /// The round of the scenario, from 0.
    pub(super) round: usize,
    /// The numbers of the random faults to inject; if absent, all faults are injected.
    pub(super) faults: Option<&'t [usize]>,
}

impl Draft {
    /// Creates an empty plan.
    pub(super) fn new(chance: Random, terms: Terms<'_>) -> Self {
        let plan = RunPlan::default();
        let Terms { nodes, scale, round, claims, .. } = terms;
        let faults = terms.faults.map(<[usize]>::to_vec);
        let larger = Random::stream(terms.seed, "larger messages");
        Self { chance, larger, nodes, scale, round, claims: claims.to_vec(), faults, plan }
    }

    /// Returns whether the implementation claims the feature.
    pub(super) fn claims(&self, feature: Feature) -> bool {
        self.claims.contains(&feature)
    }

    /// Appends the final steps, which are the same for all plans, and returns the plan.
    pub(super) fn finish(mut self) -> RunPlan {
        self.plan.steps.extend([Step::Settle, Step::StopAll]);
        self.plan
    }

    /// Returns all nodes.
    pub(super) fn everyone(&self) -> Vec<usize> {
        (0..self.nodes).collect()
    }

    /// Returns all nodes in random order.
    pub(super) fn shuffled(&mut self) -> Vec<usize> {
        let mut nodes = self.everyone();
        self.chance.shuffle(&mut nodes);
        nodes
    }

    /// Returns a random node.
    pub(super) fn someone(&mut self) -> usize {
        self.chance.index(self.nodes)
    }

    /// Returns all nodes except these.
    pub(super) fn others(&self, without: &[usize]) -> Vec<usize> {
        (0..self.nodes).filter(|node| !without.contains(node)).collect()
    }

    /// Adds a group that shares one order with all such groups, and returns its number.
    pub(super) fn group(&mut self, members: Vec<usize>, senders: Vec<usize>) -> usize {
        self.group_of_order(members, senders, GroupOrder::Total)
    }

    /// Adds a group and returns its number. The group promises nothing about other groups unless
    /// the implementation claims an order across groups.
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
        self.plan.groups.push(PlannedGroup { members, senders, order });
        self.plan.groups.len() - 1
    }

    /// Adds one group in which all nodes are members and senders, and starts all nodes.
    pub(super) fn one_group(&mut self) {
        self.group(self.everyone(), self.everyone());
        self.start(self.everyone());
    }

    /// Starts nodes, and waits until they can accept messages.
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

    /// Has each of these nodes send `each` messages of usual sizes to the first group.
    pub(super) fn send(&mut self, senders: &[usize], each: u64) {
        let mut list = Vec::new();
        for _ in 0..each {
            for &sender in senders {
                list.push(PlannedSend { sender, groups: vec![0], bytes: self.bytes() });
            }
        }
        self.then(Step::Send(list));
    }

    /// Has each of these nodes send `each` messages with sizes from this range.
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
                list.push(PlannedSend { sender, groups: vec![0], bytes });
            }
        }
        self.then(Step::Send(list));
    }

    /// Sends messages in rounds with short pauses between them, so that the load lasts while
    /// something else happens.
    pub(super) fn send_paced(&mut self, senders: &[usize], each: u64) {
        for _ in 0..PACED_ROUNDS {
            self.send(senders, each.div_ceil(PACED_ROUNDS));
            self.then(Step::Wait { ms: PACED_MS });
        }
    }

    /// Returns a number of messages so small that all messages of one member are in flight at once.
    /// A member that will be killed must receive few requests, so that their number is decided here
    /// and not by timing.
    pub(super) fn few(&self) -> u64 {
        self.scale.min(WINDOW as u64 / 2)
    }

    /// Returns a random message size. Most sizes are usual ones; some are larger, up to the limit
    /// that the implementation claims.
    pub(super) fn bytes(&mut self) -> u64 {
        // Larger sizes have their own random numbers, which change nothing else in the plan.
        let usual = self.chance.between(BYTES_MIN, BYTES_USUAL_MAX);
        if self.larger.between(1, LARGER_EVERY) > 1 {
            return usual;
        }
        let large = self.claims(Feature::LargeMessages);
        let most = if large { MESSAGE_BYTES_MAX } else { ORDINARY_BYTES_MAX };
        self.larger.between(BYTES_USUAL_MAX + 1, most)
    }

    /// Kills a member.
    pub(super) fn kill(&mut self, node: usize) {
        self.then(Step::Kill { nodes: vec![node], gap_us: 0 });
    }

    /// Waits until a node has delivered `count` messages.
    pub(super) fn await_delivered(&mut self, node: usize, count: u64) {
        self.then(Step::Await(Condition::Delivered { node, count }));
    }

    /// Waits until each of these nodes has reported durable deliveries, if the implementation
    /// claims that its members do.
    pub(super) fn await_durable(&mut self, nodes: &[usize]) {
        if self.claims(Feature::Durable) {
            self.then(Step::Await(Condition::Durable(nodes.to_vec())));
        }
    }

    /// Returns whether the fault of this number is injected.
    pub(super) fn keeps_fault(&self, number: usize) -> bool {
        self.faults.as_ref().is_none_or(|kept| kept.contains(&number))
    }

    /// Describes the fault of this number.
    pub(super) fn tell_fault(&mut self, number: usize, what: String) {
        let is_kept = self.keeps_fault(number);
        self.plan.faults.push(PlannedFault { number, what, is_kept });
    }

    /// Adds a condition that must be reached.
    pub(super) fn must_reach(&mut self, reach: Reach) {
        self.plan.reach.push(reach);
    }
}

impl RunPlan {
    /// Returns the number of messages that the plan sends.
    pub(super) fn messages(&self) -> usize {
        let count = |step: &Step| if let Step::Send(list) = step { list.len() } else { 0 };
        self.steps.iter().map(count).sum()
    }
}
