//! What a member does, step by step.

use crate::wire::Entry;

/// What the member does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// A stable entry.
    Entry(Entry),
    /// One from before the member came: it is a part of the state that it takes over.
    State(Entry),
    /// The member has all of that state.
    Current,
    /// The member leads the group.
    Leads { group: String, term: u64 },
    /// The member gives up.
    Halt(String),
}
