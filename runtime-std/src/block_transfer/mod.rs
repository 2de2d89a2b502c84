//! Block transfers from one member of a channel to all others: the code that large messages of a
//! group and [groups of blocks](crate::blocks) share.

pub(crate) mod buffer;
pub(crate) mod options;
pub(crate) mod transfer;
