//! Successive views under a random plan: which members crash, pause, leave, join or are cut off,
//! and when. One seed decides everything.
//!
//! Time is virtual. A member steps about every 200 µs, and before each step it pulls a random part
//! of the writes that it has not seen. A node that has installed a view continues in the next one,
//! and first resends there, in order, the messages that the trim dropped.

mod deeds;
mod judge;
mod plan;

pub use plan::{ChainReached, SplitMix};

use std::collections::{BTreeMap, BTreeSet, VecDeque};

use tramontane_core::ids::{NodeId, Rank, Time};
use tramontane_core::view::{Ballot, Status, ViewOptions};

use crate::arena::{Arena, ArenaSetting, setting};
use crate::oracle::{check, is_sealed};
use plan::ChangePhase;

/// One node through all its views.
#[derive(Default)]
struct Traveller {
    /// The current view and the node's rank there; `None` before it is admitted.
    at: Option<(usize, usize)>,
    alive: bool,
    /// Whether the node has halted or left.
    out: bool,
    wakes_at: u64,
    leaving: bool,
    /// For each rule's subgroup: messages still to be sent, and those delivered.
    to_send: Vec<VecDeque<u64>>,
    delivered: Vec<Vec<u64>>,
    /// The first view that the node was in.
    since: Option<usize>,
    sent: u64,
}

/// A group through all its views.
pub struct Chain {
    random: SplitMix,
    now: u64,
    arenas: Vec<Arena>,
    /// For each view: the rule of each of its subgroups.
    rules: Vec<Vec<usize>>,
    nodes: BTreeMap<u32, Traveller>,
    rule_count: usize,
    options: ViewOptions,
    /// Nodes that wait to be admitted.
    waiting: BTreeSet<u32>,
    crash_at: Option<ChangePhase>,
    parted: Option<(u64, BTreeSet<u32>)>,
    mistaken: bool,
    pub reached: ChainReached,
    /// The schedule of row changes during a step; `None` if rows do not change during steps.
    live: Option<SplitMix>,
}

const MS: u64 = 1_000_000;
const TIMEOUT: u64 = 20 * MS;

/// Returns whether a node belongs to the subgroups of a rule.
fn belongs(node: u32, rule: usize) -> bool {
    match rule {
        0 => true,
        1 => node.is_multiple_of(2),
        _ => node.is_multiple_of(3),
    }
}

/// Returns the number of a member's writes that arrive between two reads: usually none, and
/// sometimes all available.
fn writes_between_looks(random: &mut SplitMix) -> usize {
    match random.below(100) {
        0..3 => 1 + random.below(4) as usize,
        3 => usize::MAX,
        _ => 0,
    }
}

impl Chain {
    pub fn new(seed: u64) -> Self {
        let mut random = SplitMix::new(seed);
        let sizes = if random.chance(60) { 15 } else { 5 };
        let count = 2 + random.below(sizes) as u32;
        let options = ViewOptions {
            heartbeat_interval_ns: MS,
            failure_timeout_ns: TIMEOUT,
            first_timeout_ns: 5 * TIMEOUT,
            members_max: 16,
            majority: true,
        };
        let rule_count = 1 + random.below(3) as usize;
        let mut chain = Self {
            random,
            now: 0,
            arenas: Vec::new(),
            rules: Vec::new(),
            nodes: BTreeMap::new(),
            rule_count,
            options,
            waiting: BTreeSet::new(),
            crash_at: None,
            parted: None,
            mistaken: false,
            reached: ChainReached::default(),
            live: None,
        };
        let members: Vec<NodeId> = (1..=count).map(NodeId).collect();
        for node in 1..=count {
            chain.add_node(node);
        }
        chain.open_view(&members);
        for (rank, node) in (1..=count).enumerate() {
            chain.arenas[0].members[rank].open = true;
            let traveller = chain.nodes.get_mut(&node).expect("just added");
            traveller.at = Some((0, rank));
            traveller.since = Some(0);
            traveller.wakes_at = chain.random.below(3 * MS);
        }
        chain
    }

    /// Runs the same plans with rows that also change during a step, as they do in shared memory.
    pub fn with_live_rows(seed: u64) -> Self {
        Self { live: Some(SplitMix::new(!seed)), ..Self::new(seed) }
    }

    fn add_node(&mut self, node: u32) {
        let lists = self.rule_count;
        let traveller = Traveller {
            alive: true,
            to_send: vec![VecDeque::new(); lists],
            delivered: vec![Vec::new(); lists],
            ..Traveller::default()
        };
        self.nodes.insert(node, traveller);
    }

    fn open_view(&mut self, members: &[NodeId]) {
        let (mut rules, mut subgroups) = (Vec::new(), Vec::new());
        for rule in 0..self.rule_count {
            let ranks = (0..members.len()).filter(|rank| belongs(members[*rank].0, rule));
            let ranks: Vec<Rank> = ranks.map(|rank| Rank(rank as u16)).collect();
            if !ranks.is_empty() {
                rules.push(rule);
                subgroups.push(ranks);
            }
        }
        let id = self.arenas.len() as u64 + 1;
        let made = setting(id, members, &subgroups, self.options);
        let made = ArenaSetting {
            prepare_calls: 1 + self.random.below(6) as u8,
            deliver_calls: 1 + self.random.below(6) as u8,
            ..made
        };
        let mut arena = Arena::new(Box::leak(made.into()));
        arena.members.iter_mut().for_each(|member| member.open = false);
        self.arenas.push(arena);
        self.rules.push(rules);
        self.reached.views += 1;
    }

    fn node_of(&self, view: usize, rank: usize) -> u32 {
        self.arenas[view].setting.layout.group().members[rank].0
    }

    /// Runs a plan to its end, lets the group settle, and judges the result.
    pub fn run(mut self) -> Result<ChainReached, String> {
        let events = 1 + self.random.below(5);
        for _ in 0..events {
            let until = self.now + self.random.below(30 * MS);
            self.run_until(until)?;
            self.happen();
        }
        let until = self.now + self.random.below(40 * MS);
        self.run_until(until)?;
        // All faults end.
        self.crash_at = None;
        self.parted = None;
        self.waiting.retain(|node| self.nodes[node].alive);
        let quiet_for = 14 * TIMEOUT;
        for node in self.nodes.values_mut() {
            node.wakes_at = node.wakes_at.min(self.now + TIMEOUT);
        }
        self.run_until(self.now + quiet_for)?;
        self.judge()?;
        Ok(self.reached)
    }

    fn run_until(&mut self, until: u64) -> Result<(), String> {
        while self.now < until {
            let ready: Vec<u32> = self
                .nodes
                .iter()
                .filter(|(_, n)| n.alive && !n.out && n.at.is_some() && n.wakes_at <= self.now)
                .map(|(node, _)| *node)
                .collect();
            let members = ready.len().max(1) as u64;
            self.now += 200_000 / members;
            if self.parted.as_ref().is_some_and(|(end, _)| *end <= self.now) {
                self.parted = None;
            }
            if self.random.chance(2) {
                let waiting: Vec<u32> = self.waiting.iter().copied().collect();
                if let Some(node) = self.random.pick(&waiting) {
                    self.ask_for(node);
                }
            }
            if let Some(node) = self.random.pick(&ready) {
                self.step(node)?;
            }
        }
        Ok(())
    }

    fn step(&mut self, node: u32) -> Result<(), String> {
        let (view, rank) = self.nodes[&node].at.expect("inside");
        let writers = self.arenas[view].members.len();
        let apart: Vec<bool> =
            (0..writers).map(|writer| self.is_apart(node, self.node_of(view, writer))).collect();
        for (writer, apart) in apart.iter().enumerate() {
            if writer == rank || *apart {
                continue;
            }
            let unseen = self.arenas[view].unseen(rank, writer) as u64;
            let writes = match self.random.below(10) {
                0..2 => 0,
                2..5 => self.random.below(unseen + 1),
                _ => unseen,
            };
            self.arenas[view].pull(rank, writer, writes as usize);
        }
        let before = self.arenas[view].accepted(rank).accepted;
        let traveller = self.nodes.get_mut(&node).expect("known");
        // New messages are sent only early in the run; dropped messages are always sent first.
        let rules = &self.rules[view];
        for rule in rules.iter().filter(|rule| belongs(node, **rule)) {
            if traveller.sent < 40 && self.random.chance(15) {
                traveller.sent += 1;
                traveller.to_send[*rule].push_back(u64::from(node) << 32 | traveller.sent);
            }
        }
        let sends: Vec<Option<u64>> = rules
            .iter()
            .map(|rule| {
                let mine = belongs(node, *rule) && !self.arenas[view].members[rank].around.wedged;
                if mine && self.random.chance(60) {
                    traveller.to_send[*rule].front().copied()
                } else {
                    None
                }
            })
            .collect();
        let rounds = |arena: &Arena| -> Vec<usize> {
            arena.members[rank].around.parts.iter().map(|part| part.rounds.len()).collect()
        };
        let rounds_before = rounds(&self.arenas[view]);
        let (arena, now) = (&mut self.arenas[view], Time(self.now));
        let status = match &mut self.live {
            None => arena.step(rank, now, |id| sends[id]),
            Some(random) => {
                let arrive =
                    |_, writer: usize| if apart[writer] { 0 } else { writes_between_looks(random) };
                arena.step_live(rank, now, |id| sends[id], arrive)
            }
        };
        for (id, rule) in rules.iter().enumerate() {
            let new = &self.arenas[view].members[rank].around.parts[id].rounds[rounds_before[id]..];
            if new.iter().any(Option::is_some) {
                traveller.to_send[*rule].pop_front();
            }
        }
        check(&mut self.arenas[view], rank)
            .map_err(|wrong| format!("view {}: {wrong}", view + 1))?;
        self.note_takeover(view, rank, before.ballot);
        if self.reaches_crash(view, rank) {
            self.crash(node);
            return Ok(());
        }
        match status {
            Status::Halted(_) => {
                self.reached.halted += 1;
                self.nodes.get_mut(&node).expect("known").out = true;
                self.collect(node, view, rank);
            }
            Status::Left => {
                self.reached.left += 1;
                self.collect(node, view, rank);
                self.nodes.get_mut(&node).expect("known").out = true;
                self.enter_next(node, view, rank, false)?;
            }
            Status::Installed => {
                self.collect(node, view, rank);
                self.enter_next(node, view, rank, true)?;
            }
            Status::Steady | Status::Wedged | Status::Decided => {}
        }
        Ok(())
    }

    fn is_apart(&self, one: u32, other: u32) -> bool {
        self.parted.as_ref().is_some_and(|(_, side)| side.contains(&one) != side.contains(&other))
    }

    fn note_takeover(&mut self, view: usize, rank: usize, before: Ballot) {
        let arena = &self.arenas[view];
        let accepted = arena.accepted(rank).accepted;
        if rank > 0 && accepted.ballot == Ballot::of(Rank(rank as u16)) && before != accepted.ballot
        {
            self.reached.takeovers += 1;
            if is_sealed(arena.setting, &arena.members[rank].row, accepted.count) {
                self.reached.adopted_seals += 1;
            }
        }
    }

    /// Returns whether this member leads, and has reached the phase in which the plan crashes its
    /// leader.
    fn reaches_crash(&mut self, view: usize, rank: usize) -> bool {
        let Some(phase) = self.crash_at else { return false };
        let arena = &mut self.arenas[view];
        if arena.leader(rank) != rank {
            return false;
        }
        let own = arena.accepted(rank).accepted;
        if own.ballot != Ballot::of(Rank(rank as u16)) {
            return false;
        }
        let row = &arena.members[rank].row;
        let sealed = is_sealed(arena.setting, row, own.count);
        let committed = row
            [arena.setting.cell(tramontane_core::layout::ViewColumn::Committed).expect("a column")]
            != 0;
        let there = match phase {
            ChangePhase::Proposed => true,
            ChangePhase::Committed => committed,
            ChangePhase::Sealed => sealed,
            ChangePhase::Decided => {
                matches!(arena.status(rank), Status::Decided | Status::Installed | Status::Left)
            }
            ChangePhase::Installed => arena.status(rank) == Status::Installed,
        };
        if there {
            self.reached.crashed_at.insert(phase);
            self.crash_at = None;
        }
        there
    }

    /// Records a node's deliveries in a view, and puts the dropped messages before those still to
    /// be sent.
    fn collect(&mut self, node: u32, view: usize, rank: usize) {
        for id in 0..self.rules[view].len() {
            let rule = self.rules[view][id];
            let delivered = self.delivered_in(view, rank, id);
            self.reached.delivered += delivered.len() as u64;
            let own: BTreeSet<u64> = delivered.iter().copied().collect();
            let traveller = self.nodes.get_mut(&node).expect("known");
            traveller.delivered[rule].extend(&delivered);
            let rounds = &self.arenas[view].members[rank].around.parts[id].rounds;
            for message in rounds.iter().rev().flatten().filter(|message| !own.contains(message)) {
                traveller.to_send[rule].push_front(*message);
                self.reached.resent += 1;
            }
        }
    }

    /// Returns the messages that a member delivered in a subgroup of a view, in order.
    fn delivered_in(&self, view: usize, rank: usize, id: usize) -> Vec<u64> {
        let arena = &self.arenas[view];
        let senders = arena.setting.subgroups()[id].members;
        if !senders.iter().any(|sender| sender.index() == rank) {
            return Vec::new();
        }
        let delivered = arena.members[rank].around.parts[id].delivered as usize;
        (0..delivered)
            .filter_map(|place| {
                let sender = senders[place % senders.len()].index();
                arena.members[sender].around.parts[id].rounds[place / senders.len()]
            })
            .collect()
    }

    fn enter_next(
        &mut self,
        node: u32,
        view: usize,
        rank: usize,
        stays: bool,
    ) -> Result<(), String> {
        let members: Vec<NodeId> =
            self.arenas[view].next_view(rank).ok_or("no next view").map_err(String::from)?;
        if !stays && members.contains(&NodeId(node)) {
            self.reached.all_left += 1;
            return Ok(());
        }
        if self.arenas.len() == view + 1 {
            let old = self.arenas[view].setting.layout.group().members;
            self.reached.removed +=
                old.iter().filter(|node| !members.contains(node)).count() as u64;
            self.open_view(&members);
            // Joining nodes are informed, and enter when they are ready.
            for (rank, joiner) in
                members.iter().enumerate().filter(|(_, member)| !old.contains(member))
            {
                self.reached.joined += 1;
                self.waiting.remove(&joiner.0);
                let delay = self.random.below(5 * MS);
                let traveller = self.nodes.get_mut(&joiner.0).ok_or("a stranger joins")?;
                if traveller.alive {
                    traveller.wakes_at = self.now + delay;
                    self.enter(joiner.0, view + 1, rank);
                } else {
                    self.arenas[view + 1].members[rank].alive = false;
                }
            }
        }
        let next = self.arenas[view + 1].setting.layout.group().members;
        if next != members {
            return Err(format!("{node} goes on to {members:?}, others to {next:?}"));
        }
        if stays {
            let rank =
                members.iter().position(|member| member.0 == node).ok_or("not in its own view")?;
            self.enter(node, view + 1, rank);
        }
        Ok(())
    }

    fn enter(&mut self, node: u32, view: usize, rank: usize) {
        let traveller = self.nodes.get_mut(&node).expect("known");
        traveller.at = Some((view, rank));
        traveller.since.get_or_insert(view);
        self.arenas[view].members[rank].open = true;
        if traveller.leaving {
            self.arenas[view].leave(rank);
        }
    }
}
