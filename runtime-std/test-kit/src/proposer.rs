//! A member's application, as the closure sees it that chooses its commands.

use std::rc::Rc;

use tramontane::StateMachine;
use tramontane_fixtures::random::Random;

/// A member that is about to propose a command.
pub struct Proposer<'r, S: StateMachine> {
    pub(crate) node: u32,
    pub(crate) number: u64,
    pub(crate) state: &'r S,
    pub(crate) answers: &'r [Rc<S::Answer>],
    pub(crate) random: &'r mut Random,
}

impl<S: StateMachine> Proposer<'_, S> {
    /// Returns the id of the node.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Returns the number of commands that this process has proposed before. A node that returns is
    /// another process, and begins at 0.
    #[must_use]
    pub fn number(&self) -> u64 {
        self.number
    }

    /// Returns the copy of the state at this member, as a local query sees it.
    #[must_use]
    pub fn state(&self) -> &S {
        self.state
    }

    /// Returns the answers that this process has received, in the order of its proposals.
    #[must_use]
    pub fn answers(&self) -> impl DoubleEndedIterator<Item = &S::Answer> + ExactSizeIterator {
        self.answers.iter().map(Rc::as_ref)
    }

    /// Returns a random number from 0 to `bound - 1`, or 0 if the bound is 0.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.random.below(bound)
    }

    /// Returns true with a probability of `percent` per cent.
    pub fn chance(&mut self, percent: u64) -> bool {
        self.random.chance(percent)
    }

    /// Returns a random element, or `None` if there is none.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> Option<&'a T> {
        self.random.pick(from)
    }
}
