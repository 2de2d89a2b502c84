//! Events that affect a group: members crash, pause, leave, join or are cut off.

use tramontane_core::ids::NodeId;

use super::plan::{PHASES, PlannedEvent};
use super::{Chain, TIMEOUT};

impl Chain {
    pub(super) fn happen(&mut self) {
        let event = match self.random.below(100) {
            0..22 => PlannedEvent::Crash,
            22..42 => PlannedEvent::CrashLeader(PHASES[self.random.below(5) as usize]),
            42..58 => PlannedEvent::Pause(self.random.below(3 * TIMEOUT)),
            58..69 => PlannedEvent::Leave,
            69..72 => PlannedEvent::LeaveAll,
            72..86 => PlannedEvent::Join,
            86..93 => PlannedEvent::JoinerDies,
            _ => PlannedEvent::Part(self.random.below(3 * TIMEOUT)),
        };
        let inside: Vec<u32> = self
            .nodes
            .iter()
            .filter(|(_, n)| n.alive && !n.out && n.at.is_some())
            .map(|(id, _)| *id)
            .collect();
        // Sometimes several events happen at once.
        let times = if self.random.chance(25) { 2 } else { 1 };
        for _ in 0..times {
            match event {
                PlannedEvent::Crash => {
                    if let Some(node) = self.random.pick(&inside) {
                        self.crash(node);
                    }
                }
                PlannedEvent::CrashLeader(phase) => {
                    self.crash_at = Some(phase);
                    // The membership has to change for the leader to act.
                    if let Some(node) = self.random.pick(&inside) {
                        if self.random.chance(50) { self.leave(node) } else { self.crash(node) }
                    }
                }
                PlannedEvent::Pause(length) => {
                    if let Some(node) = self.random.pick(&inside) {
                        self.mistaken = true;
                        self.nodes.get_mut(&node).expect("known").wakes_at = self.now + length;
                    }
                }
                PlannedEvent::Leave => {
                    if let Some(node) = self.random.pick(&inside) {
                        self.leave(node);
                    }
                }
                PlannedEvent::LeaveAll => inside.iter().for_each(|node| self.leave(*node)),
                PlannedEvent::Join | PlannedEvent::JoinerDies => {
                    let node = self.nodes.keys().max().expect("some") + 1;
                    self.add_node(node);
                    self.waiting.insert(node);
                    if matches!(event, PlannedEvent::JoinerDies) {
                        self.ask_for(node);
                        self.nodes.get_mut(&node).expect("added").alive = false;
                    }
                }
                PlannedEvent::Part(length) => {
                    let side = inside.iter().copied().filter(|_| self.random.chance(40)).collect();
                    self.mistaken = true;
                    self.parted = Some((self.now + length, side));
                }
            }
        }
    }

    /// Crashes a node: each other member sees some prefix of its last writes.
    pub(super) fn crash(&mut self, node: u32) {
        let traveller = self.nodes.get_mut(&node).expect("known");
        traveller.alive = false;
        let Some((view, rank)) = traveller.at else { return };
        let arena = &mut self.arenas[view];
        let length = arena.members[rank].log.len();
        let visible: Vec<usize> = (0..arena.members.len())
            .map(|reader| {
                length
                    - self
                        .random
                        .below(12)
                        .min((length - arena.members[reader].seen[rank].min(length)) as u64)
                        as usize
            })
            .collect();
        arena.crash(rank, length, &visible);
        // The node's writes of earlier views have all landed.
    }

    pub(super) fn leave(&mut self, node: u32) {
        let traveller = self.nodes.get_mut(&node).expect("known");
        traveller.leaving = true;
        if let Some((view, rank)) = traveller.at {
            self.arenas[view].leave(rank);
        }
    }

    /// Lets some member of the newest view request a node's join, or withdraw the request if the
    /// node has died.
    pub(super) fn ask_for(&mut self, node: u32) {
        let newest = self.arenas.len() - 1;
        let members = self.arenas[newest].setting.layout.group().members;
        if members.contains(&NodeId(node)) {
            return;
        }
        let ready: Vec<usize> =
            (0..members.len()).filter(|rank| self.arenas[newest].is_active(*rank)).collect();
        if let Some(rank) = self.random.pick(&ready) {
            self.arenas[newest].wish(rank, NodeId(node));
            if !self.nodes[&node].alive {
                self.arenas[newest].take_back(rank);
                self.reached.withdrawn += 1;
            }
        }
    }
}
