//! Rights to write to regions, each with a number.
//!
//! An owner gives each right a number that it never reuses, and informs its peer. The peer sends
//! the number with each list, and the owner accepts the list only as long as that right exists. So
//! a list posted under a right that has since been revoked is not stored, even if another right has
//! been granted in the meantime.

use std::num::NonZeroU64;

use tramontane_core::fabric::Region;
use tramontane_core::ids::ViewId;

/// The number of a right.
pub(crate) type Right = NonZeroU64;

/// Assigns numbers to rights.
#[derive(Debug, Default)]
pub(crate) struct RightNumbers(u64);

impl RightNumbers {
    /// Returns a number that has never been assigned.
    pub(crate) fn next(&mut self) -> Option<Right> {
        self.0 = self.0.checked_add(1)?;
        NonZeroU64::new(self.0)
    }
}

/// The rights of one end of a connection at the other, at most one for each view and region.
#[derive(Debug, Default)]
pub(crate) struct Rights(Vec<(ViewId, Region, Right)>);

impl Rights {
    pub(crate) fn get(&self, view: ViewId, region: Region) -> Option<Right> {
        let mut all = self.0.iter();
        all.find(|(of, to, _)| (*of, *to) == (view, region)).map(|(_, _, right)| *right)
    }

    /// Adds a right. There must be none for that view and region yet.
    pub(crate) fn add(&mut self, view: ViewId, region: Region, right: Right) {
        self.0.push((view, region, right));
    }

    /// Removes a right. Returns true if there was one.
    pub(crate) fn remove(&mut self, view: ViewId, region: Region) -> bool {
        let count = self.0.len();
        self.0.retain(|(of, to, _)| (*of, *to) != (view, region));
        self.0.len() < count
    }

    pub(crate) fn retire(&mut self, view: ViewId) {
        self.0.retain(|(of, ..)| *of != view);
    }

    pub(crate) fn clear(&mut self) {
        self.0.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn permissions_have_unique_numbers() {
        let (mut numbers, mut rights) = (RightNumbers::default(), Rights::default());
        let places = [(1, 1), (1, 2), (2, 1)].map(|(view, to)| (ViewId(view), Region(to)));
        let given = places.map(|(view, region)| {
            let right = numbers.next().expect("a number");
            rights.add(view, region, right);
            right
        });
        assert!(given[0] < given[1] && given[1] < given[2]);
        assert_eq!(places.map(|(view, region)| rights.get(view, region)), given.map(Some));
        assert!(rights.remove(ViewId(1), Region(2)) && !rights.remove(ViewId(1), Region(2)));
        rights.retire(ViewId(2));
        let left = places.map(|(view, region)| rights.get(view, region));
        assert_eq!(left, [Some(given[0]), None, None]);
        assert_eq!(RightNumbers(u64::MAX).next(), None);
    }
}
