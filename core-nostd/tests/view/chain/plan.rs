//! Choices made by a seed: numbers, the events of a group, and the situations that a run has
//! reached.

use std::collections::BTreeSet;

/// Numbers determined by a seed (SplitMix64).
pub struct SplitMix(u64);

impl SplitMix {
    pub fn new(seed: u64) -> Self {
        Self(seed)
    }

    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ mixed >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ mixed >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        ((u128::from(mixed ^ mixed >> 31) * u128::from(bound)) >> 64) as u64
    }

    pub fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    pub fn pick<T: Copy>(&mut self, from: &[T]) -> Option<T> {
        if from.is_empty() { None } else { Some(from[self.below(from.len() as u64) as usize]) }
    }
}

/// A phase of a change in which its leader may crash.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ChangePhase {
    Proposed,
    Committed,
    Sealed,
    Decided,
    Installed,
}

pub const PHASES: [ChangePhase; 5] = [
    ChangePhase::Proposed,
    ChangePhase::Committed,
    ChangePhase::Sealed,
    ChangePhase::Decided,
    ChangePhase::Installed,
];

/// An event of a plan.
#[derive(Clone, Copy, Debug)]
pub enum PlannedEvent {
    Crash,
    /// The leader crashes when it next reaches this phase.
    CrashLeader(ChangePhase),
    /// One node, or several, pause for this time.
    Pause(u64),
    Leave,
    LeaveAll,
    Join,
    /// A node asks to join, and dies before it is admitted.
    JoinerDies,
    /// Two sides are partitioned for this time.
    Part(u64),
}

/// Counts of the situations that a run has reached.
#[derive(Clone, Debug, Default)]
pub struct ChainReached {
    pub views: u64,
    pub removed: u64,
    pub left: u64,
    /// Members that left together with all others.
    pub all_left: u64,
    pub joined: u64,
    pub withdrawn: u64,
    pub halted: u64,
    pub takeovers: u64,
    pub adopted_seals: u64,
    pub crashed_at: BTreeSet<ChangePhase>,
    pub resent: u64,
    pub delivered: u64,
    pub stopped_groups: u64,
}

impl ChainReached {
    pub fn add(&mut self, other: &Self) {
        self.views += other.views;
        self.removed += other.removed;
        self.left += other.left;
        self.all_left += other.all_left;
        self.joined += other.joined;
        self.withdrawn += other.withdrawn;
        self.halted += other.halted;
        self.takeovers += other.takeovers;
        self.adopted_seals += other.adopted_seals;
        self.crashed_at.extend(&other.crashed_at);
        self.resent += other.resent;
        self.delivered += other.delivered;
        self.stopped_groups += other.stopped_groups;
    }
}
