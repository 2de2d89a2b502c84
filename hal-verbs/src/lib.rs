//! The room of the fabric over RDMA verbs.
//!
//! The crate is empty until that fabric is built: nothing here pretends to be one. It is part of the
//! workspace so that its place, its name and its licence are settled, and so that a build without RDMA
//! packages is known to work.
