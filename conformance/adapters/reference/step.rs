//! The steps of a member.

use crate::wire::Entry;

/// The member's next step.
#[derive(Clone, Debug)]
pub enum Step {
    /// A stable entry.
    Entry(Entry),
    /// Entry from before the member joined, as a part of the state that it takes over.
    State(Entry),
    /// The end of that state.
    Current,
    /// The member's leadership of the group.
    Leads { group: String, term: u64 },
    /// The member's failure.
    Halt(String),
}
