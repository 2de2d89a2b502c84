//! The fabric's own declarations, with the paths that they have there.

pub(crate) mod libibverbs;
