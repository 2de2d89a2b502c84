//! Addition to a layout for logging: a cell in the control block of each logged subgroup. This cell
//! shares the cache line and the write of the other cells, so rows do not grow.
//!
//! Requirements: DUR-9, LAY-1.

use super::configuration::{Delivery, LayoutError, each};
use super::map::Layout;
use crate::ids::SubgroupId;

impl<'c> Layout<'c> {
    /// Marks the subgroups whose members log delivered messages (DUR-1).
    ///
    /// # Errors
    /// Fails if a subgroup is unknown, listed twice, or unordered: an unordered subgroup has no
    /// sequence to log (DUR-2).
    pub const fn with_logged(self, logged: &'c [SubgroupId]) -> Result<Self, LayoutError> {
        let mut rest = logged;
        // bound: the listed subgroups
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
