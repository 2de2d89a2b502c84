//! Messages in blocks, from the one member of a channel that sends to the others: what large
//! messages of a group and [groups of blocks](crate::blocks) have in common.

pub(crate) mod buffer;
pub(crate) mod options;
pub(crate) mod transfer;
