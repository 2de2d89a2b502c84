//! Defects of the sequencer.

use super::mutation::{Mutant, Mutation};

impl Mutation {
    /// MUTANT `view-minority`: only the first of the survivors of a crash continues.
    pub fn break_up(&self, rest: &mut Vec<String>) -> Vec<String> {
        if self.mutant == Mutant::ViewMinority {
            rest.split_off(rest.len().min(1))
        } else {
            Vec::new()
        }
    }

    /// MUTANT `view-without-self`: the members get views that lack one of them.
    pub fn forget_member(&self, members: &mut Vec<String>) {
        if self.mutant == Mutant::ViewWithoutSelf {
            members.retain(|member| self.at.as_ref() != Some(member));
        }
    }

    /// MUTANT `wrong-addressee`: messages go to all nodes.
    pub fn goes_astray(&self) -> bool {
        self.mutant == Mutant::WrongAddressee
    }
}
