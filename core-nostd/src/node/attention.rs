//! The subgroups that a step looks at (Spindle III-B: a node with many subgroups spends its time on
//! those that have messages).
//!
//! Subgroups that had work lately are looked at in every step, the others in turns. A step that
//! finds no work looks at all of them before it ends, so a node never sleeps while one of them has
//! work.
//!
//! Requirement: BAT-5.

use crate::ids::index_from_u32;

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

/// A set of subgroups. Those whose indices differ by a multiple of 64 are in it together.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Chosen(u64);

impl Chosen {
    /// Every subgroup.
    pub(super) const ALL: Self = Self(u64::MAX);

    /// Returns the first subgroup of the set from `index` on. An empty set returns a larger index.
    pub(super) fn next(self, index: usize) -> usize {
        let from_index = self.0.rotate_right(u32::try_from(index % 64).unwrap_or(0));
        index.saturating_add(index_from_u32(from_index.trailing_zeros()))
    }

    /// Returns the set of all other subgroups.
    pub(super) const fn others(self) -> Self {
        Self(!self.0)
    }

    /// Returns whether the set contains no subgroup.
    pub(super) const fn is_empty(self) -> bool {
        self.0 == 0
    }
}

/// The choice of subgroups for each step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Attention {
    step: u32,
    /// Subgroups that have had work in the present generation of steps.
    recent: u64,
    /// Those that had work in the generation before.
    earlier: u64,
}

impl Attention {
    /// Starts with an equal share for each subgroup.
    pub(super) const fn new() -> Self {
        Self { step: 0, recent: 0, earlier: 0 }
    }

    /// Returns the subgroups that the next step looks at first, of as many as there are.
    pub(super) const fn choose(&mut self, subgroups: usize) -> Chosen {
        if subgroups <= ALWAYS {
            return Chosen::ALL;
        }
        self.step = self.step.wrapping_add(1);
        if self.step.is_multiple_of(GENERATION) {
            self.earlier = self.recent;
            self.recent = 0;
        }
        Chosen(self.recent | self.earlier | FIRST_TURN << (self.step % TURNS))
    }

    /// Notes that a subgroup had work in this step.
    pub(super) const fn note_work(&mut self, index: usize) {
        self.recent |= bit(index);
    }
}

/// Returns the bit of a subgroup.
const fn bit(index: usize) -> u64 {
    1_u64 << (index % 64)
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
            assert_eq!(attention.choose(ALWAYS), Chosen::ALL);
        }
        assert!(Chosen::ALL.others().is_empty());
    }
}
