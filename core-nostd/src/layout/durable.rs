//! What logging adds to a layout: a cell in the control block of each logged subgroup, which shares
//! the line and the write of the other cells. Rows grow by nothing.
//!
//! Requirements: DUR-9, LAY-1.

use super::configuration::{Delivery, LayoutError, each};
use super::map::Layout;
use crate::ids::SubgroupId;

impl<'c> Layout<'c> {
    /// The same where the members of some subgroups log what they deliver (DUR-1).
    ///
    /// # Errors
    /// A subgroup that there is not, that is named twice, or that has no order: what is logged
    /// there would be no sequence (DUR-2).
    pub const fn with_logged(self, logged: &'c [SubgroupId]) -> Result<Self, LayoutError> {
        let mut rest = logged;
        // bound: the subgroups that are named
        while let [first, tail @ ..] = rest {
            each!(other in tail, {
                if other.0 == first.0 {
                    return Err(LayoutError::BadLoggedSubgroup);
                }
            });
            match self.subgroup(*first) {
                Some(subgroup) if matches!(subgroup.delivery, Delivery::Ordered) => {}
                Some(_) | None => return Err(LayoutError::BadLoggedSubgroup),
            }
            rest = tail;
        }
        Self { logged, ..self }.measured()
    }
}
