//! The description of a group, from a file or a program, and everything derived from it.
//!
//! | file | subject |
//! |---|---|
//! | `terms` | the description itself |
//! | `error` | what is wrong with one |
//! | `builder` | the same from a program |
//! | `digest` | what nodes compare of it |
//! | `view` | the members of one view |
//! | `layout` | a view's layout, the same at all members |
//! | `subgroup_change` | how views open and close reserved subgroups |
//! | `check` | reading it, completing it, and what is refused |
//! | `subgroups` | which subgroups there are |

pub(crate) mod builder;
pub(crate) mod check;
pub(crate) mod digest;
pub(crate) mod error;
pub(crate) mod layout;
pub(crate) mod subgroup_change;
pub(crate) mod subgroups;
pub(crate) mod terms;
pub(crate) mod view;
