//! What checks add to a layout: a slot has one more cell, and the numbers of cells are smaller.
//!
//! Requirement: LAY-1.

use super::configuration::LayoutError;
use super::map::Layout;
use crate::check::Checks;

impl Layout<'_> {
    /// The same where cells and slots carry checks. It is part of the digest: all members have it,
    /// or none. Counts have 48 bits then, places of messages 46: enough for two years at a million
    /// messages a second in one view.
    ///
    /// Call it last: it measures what the layout has by then.
    ///
    /// # Errors
    /// A row would be larger than this machine can address.
    pub const fn with_checks(self) -> Result<Self, LayoutError> {
        let checked = Self { checks: Checks::On, ..self };
        #[cfg(feature = "views")]
        let checked = checked.with_measured_columns();
        checked.measured()
    }

    /// Whether cells and slots carry checks.
    #[must_use]
    pub const fn checks(&self) -> Checks {
        self.checks
    }

    /// Whether there is one view for ever.
    #[must_use]
    pub const fn is_fixed(&self) -> bool {
        self.view_columns == 0
    }
}
