//! A running member: the state that its polling thread steps.
//!
//! | file | subject |
//! |---|---|
//! | `fixed` | a member with fixed membership |
//! | `changing` | a member with changing membership, from view to view |
//! | `parts` | the parts that both have |
//! | `participant` | the parts that stay the same |
//! | `request` | requests of other threads to the member |
//! | `view_memory` | the memory of each view |
//! | `open_view` | one view |
//! | `prepared` | the next view |
//! | `promising` | the promises written before a view may end |
//! | `leaving` | when a member may leave the nodes that it supplies |
//! | `early_losses` | nodes that were lost soon after their admission, and have to wait |
//! | `lost_peers` | members lost in a view that has not begun yet |
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
