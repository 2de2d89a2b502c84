//! What is wrong at the sequencer.

use super::mutation::{Mutant, Mutation};

impl Mutation {
    /// MUTANT `view-minority`: of the members that are left after a crash, only the first goes on.
    pub fn break_up(&self, rest: &mut Vec<String>) -> Vec<String> {
        if self.mutant == Mutant::ViewMinority {
            rest.split_off(rest.len().min(1))
        } else {
            Vec::new()
        }
    }

    /// MUTANT `view-without-self`: the members are told of views that lack one of them.
    pub fn forget_member(&self, members: &mut Vec<String>) {
        if self.mutant == Mutant::ViewWithoutSelf {
            members.retain(|member| self.at.as_ref() != Some(member));
        }
    }

    /// MUTANT `wrong-addressee`: messages go to everyone.
    pub fn goes_astray(&self) -> bool {
        self.mutant == Mutant::WrongAddressee
    }
}
