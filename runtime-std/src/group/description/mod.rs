//! The description of a group, from a file or a program, and everything derived from it.
//!
//! | file | subject |
//! |---|---|
//! | `terms` | the description itself |
//! | `error` | errors in a description |
//! | `builder` | descriptions built by a program |
//! | `digest` | the digests that nodes compare |
//! | `view` | the members of one view |
//! | `layout` | a view's layout, the same at all members |
//! | `subgroup_change` | how views open and close reserved subgroups |
//! | `check` | reading, completing and checking |
//! | `subgroups` | selections of subgroups |

pub(crate) mod builder;
pub(crate) mod check;
pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod subgroup_change;
pub(crate) mod subgroups;
pub(crate) mod terms;
pub(crate) mod view;
