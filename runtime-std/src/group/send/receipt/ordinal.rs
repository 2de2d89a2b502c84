//! The number of a message among those of its sender.

/// The number of a message among all that this node sent in its subgroup.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Ordinal(pub u64);
