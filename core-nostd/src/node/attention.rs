//! The subgroups that a step looks at (Spindle III-B: a node with many subgroups spends its time on
//! those that have messages).
//!
//! Subgroups that had work lately are looked at in every step, the others in turns. A step that
//! finds no work looks at all of them before it ends, so a node never sleeps while one of them has
//! work.
//!
//! Requirement: BAT-5.

use crate::multicast::SubgroupSet;

/// Number of subgroups up to which every step looks at all: fewer cost less than the choice.
const ALWAYS: usize = 4;

/// Number of steps in which every subgroup has its turn. While others are busy, a message of a
/// subgroup that had none waits for up to that many steps. A smaller number would cost the busy
/// subgroups more: with 32, `core-nostd/benches/count` shows the cost of 50 idle subgroups.
const TURNS: u32 = 32;

/// The subgroups that have their turn first: one in 32.
const FIRST_TURN: u64 = 0x0000_0001_0000_0001;

/// Number of steps after which a subgroup's work is forgotten. It is forgotten a generation later,
/// because `recent` and `earlier` each record the work of one generation.
const GENERATION: u32 = 64;

/// The choice of subgroups for each step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    step: u32,
    /// Subgroups that have had work in the present generation of steps.
    recent: SubgroupSet,
    /// Those that had work in the generation before.
    earlier: SubgroupSet,
}

impl Attention {
    /// Starts with an equal share for each subgroup.
    pub(super) const fn new() -> Self {
        Self { step: 0, recent: SubgroupSet::NONE, earlier: SubgroupSet::NONE }
    }

    /// Returns the subgroups that the next step looks at first, of as many as there are.
    pub(super) const fn choose(&mut self, subgroups: usize) -> SubgroupSet {
        if subgroups <= ALWAYS {
            return SubgroupSet::ALL;
        }
        self.step = self.step.wrapping_add(1);
        if self.step.is_multiple_of(GENERATION) {
            self.earlier = self.recent;
            self.recent = SubgroupSet::NONE;
        }
        let in_turn = SubgroupSet::from_bits(FIRST_TURN << (self.step % TURNS));
        self.recent.with(self.earlier).with(in_turn)
    }

    /// Notes that a subgroup had work in this step.
    pub(super) const fn note_work(&mut self, index: usize) {
        self.recent = self.recent.with(SubgroupSet::only(index));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_subgroup_is_chosen_in_its_turn() {
        let mut attention = Attention::new();
        attention.note_work(7);
        for _ in 0..100 {
            let mut chosen = [false; 130];
            for _ in 0..TURNS {
                let of_step = attention.choose(130);
                let mut index = of_step.next(0);
                while let Some(chosen) = chosen.get_mut(index) {
                    *chosen = true;
                    index = of_step.next(index + 1);
                }
            }
            assert_eq!(chosen, [true; 130]);
        }
    }

    #[test]
    fn busy_subgroup_is_chosen_until_long_idle() {
        let mut attention = Attention::new();
        attention.choose(51);
        attention.note_work(20);
        let chosen = (0..200).map(|_| attention.choose(51).next(20) == 20);
        let steps = chosen.take_while(|chosen| *chosen).count();
        assert!((64..=128).contains(&steps), "{steps}");
        // Forgotten, but still chosen in its turn.
        assert_eq!((0..160).filter(|_| attention.choose(51).next(20) == 20).count(), 5);
    }

    #[test]
    fn few_subgroups_are_all_chosen() {
        let mut attention = Attention::new();
        for _ in 0..200 {
            assert_eq!(attention.choose(ALWAYS), SubgroupSet::ALL);
        }
        assert!(SubgroupSet::ALL.others().is_empty());
    }
}
