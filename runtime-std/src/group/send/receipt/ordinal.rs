//! A message's number among those of its sender.

/// A message's number among all messages that this node has sent in the subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(pub u64);
