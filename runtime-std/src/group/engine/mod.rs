//! A running member: the parts that its polling thread steps.
//!
//! | file | subject |
//! |---|---|
//! | `fixed` | a member whose membership is fixed |
//! | `changing` | a member whose membership changes, from view to view |
//! | `parts` | what both have |
//! | `participant` | what stays the same |
//! | `request` | what other threads ask of the member |
//! | `view_memory` | where the memory of each view comes from |
//! | `open_view` | one view |
//! | `prepared` | the next view |
//! | `promising` | what is written down before a view may end |
//! | `leaving` | when a member may leave those that it supplies |
//! | `early_losses` | nodes that were lost soon after their admission, and wait |
//! | `lost_peers` | which members were lost in a view that is still to come |
//! | `reserved_subgroups` | the handle of reserved subgroups |

pub(crate) mod changing;
pub(crate) mod early_losses;
pub(crate) mod fixed;
pub(crate) mod leaving;
pub(crate) mod lost_peers;
pub(crate) mod open_view;
pub(crate) mod participant;
pub(crate) mod parts;
pub(crate) mod prepared;
pub(crate) mod promising;
pub(crate) mod request;
pub(crate) mod reserved_subgroups;
pub(crate) mod view_memory;
