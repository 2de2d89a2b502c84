//! Effect of checks on a layout: each slot has one more cell, and cells hold smaller numbers.
//!
//! Requirement: LAY-1.

use super::configuration::LayoutError;
use super::map::Layout;
use crate::check::Checks;

impl Layout<'_> {
    /// Adds checks to cells and slots. Checks are part of the digest: either all members use them
    /// or none. Counts then have 48 bits and sequence positions 46, which is enough for two years
    /// at a million messages per second in one view.
    ///
    /// Call this last, because it computes the row sizes from the layout as it is at that time.
    ///
    /// # Errors
    /// Fails if a row would be larger than this machine can address.
    pub const fn with_checks(self) -> Result<Self, LayoutError> {
        let checked = Self { checks: Checks::On, ..self };
        #[cfg(feature = "views")]
        let checked = checked.with_measured_columns();
        checked.measured()
    }

    /// Returns whether cells and slots carry checks.
    #[must_use]
    pub const fn checks(&self) -> Checks {
        self.checks
    }

    /// Returns whether the membership is fixed.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.view_columns == 0
    }
}
