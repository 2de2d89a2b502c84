//! The notices that followers receive between messages: views, and clients that the group has
//! forgotten.
//!
//! # Invariants
//! - A notice has the sequence position of the message after it. All members that were present at
//!   that time hold the same notices between the same messages.
//! - Repeating a notice has no effect as long as no message comes between. Therefore, a client that
//!   resumes at a position receives all notices at that position, including any that it already
//!   has.
//! - The number of notices kept is bounded.

use std::collections::VecDeque;

use tramontane_control::client_messages::{ClientId, ClientReply, ViewBegun};

/// The maximum number of notices kept.
const KEPT_MAX: usize = 1_024;

/// One notice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Notice {
    View(ViewBegun),
    Forgotten(ClientId),
    /// The subgroup closed with this view.
    Closed,
}

impl Notice {
    /// Returns the notice as sent to a follower.
    pub(crate) fn reply(&self) -> ClientReply<'static> {
        match self {
            Self::View(view) => ClientReply::View(view.clone()),
            Self::Forgotten(client) => ClientReply::Forgotten(*client),
            Self::Closed => ClientReply::Closed,
        }
    }
}

/// The latest notices of a subgroup, each with its sequence position.
#[derive(Debug, Default)]
pub(crate) struct Notices {
    kept: VecDeque<(u64, Notice)>,
    /// The number of notices before the ones kept.
    before: u64,
    /// The position from which all notices are kept.
    complete_from: u64,
}

impl Notices {
    /// Starts at this position, with no knowledge of earlier messages or of notices at the position
    /// itself.
    pub(crate) fn begin_at(&mut self, place: u64) {
        self.before = self.end();
        self.kept.clear();
        // There are no notices before the first message.
        self.complete_from = if place == 0 { 0 } else { place.saturating_add(1) };
    }

    /// Adds a notice before the message at this position.
    pub(crate) fn add(&mut self, place: u64, notice: Notice) {
        self.kept.push_back((place, notice));
        if self.kept.len() > KEPT_MAX
            && let Some((gone, _)) = self.kept.pop_front()
        {
            self.before = self.before.saturating_add(1);
            self.complete_from = self.complete_from.max(gone.saturating_add(1));
        }
    }

    /// Returns whether all notices at or after this position are kept.
    pub(crate) const fn are_complete_from(&self, place: u64) -> bool {
        place >= self.complete_from
    }

    /// Returns the number of the first notice at or after this position.
    pub(crate) fn first_from(&self, place: u64) -> u64 {
        let earlier = self.kept.partition_point(|(of, _)| *of < place);
        self.before.saturating_add(count(earlier))
    }

    /// Returns the notice with this number, and its position. Fails if the notice is no longer
    /// kept.
    pub(crate) fn get(&self, number: u64) -> Result<Option<&(u64, Notice)>, Gone> {
        let at = number.checked_sub(self.before).ok_or(Gone)?;
        Ok(usize::try_from(at).ok().and_then(|at| self.kept.get(at)))
    }

    fn end(&self) -> u64 {
        self.before.saturating_add(count(self.kept.len()))
    }
}

/// The error for a notice that is no longer kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Gone;

fn count(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn told(notices: &Notices, place: u64) -> Vec<(u64, u64)> {
        (notices.first_from(place)..)
            .map_while(|number| notices.get(number).expect("it is kept").cloned())
            .map(|(place, notice)| match notice {
                Notice::Forgotten(client) => (place, client.0),
                Notice::View(view) => (place, view.view),
                Notice::Closed => (place, 0),
            })
            .collect()
    }

    #[test]
    fn resuming_follower_receives_notices_after_its_position() {
        let mut notices = Notices::default();
        for (place, client) in [(0, 1), (3, 2), (3, 3), (7, 4)] {
            notices.add(place, Notice::Forgotten(ClientId(client)));
        }
        assert_eq!(told(&notices, 0), [(0, 1), (3, 2), (3, 3), (7, 4)]);
        assert_eq!(told(&notices, 3), [(3, 2), (3, 3), (7, 4)]);
        assert_eq!(told(&notices, 4), [(7, 4)]);
        assert_eq!(told(&notices, 8), []);
        assert!(notices.are_complete_from(0));
    }

    /// A member that has just joined does not know the views that began just before its first
    /// message.
    #[test]
    fn unknown_and_discarded_notices_are_distinguished() {
        let mut notices = Notices::default();
        notices.begin_at(0);
        assert!(notices.are_complete_from(0));
        notices.begin_at(5);
        notices.add(5, Notice::View(ViewBegun { view: 9, ..ViewBegun::default() }));
        assert!(!notices.are_complete_from(5) && notices.are_complete_from(6));
        let first = notices.first_from(6);
        for place in 0..count(KEPT_MAX) {
            notices.add(6 + place, Notice::Forgotten(ClientId(place)));
        }
        assert!(notices.are_complete_from(6), "the one of place 5 is gone");
        notices.add(2_000, Notice::Forgotten(ClientId(0)));
        assert!(!notices.are_complete_from(6) && notices.are_complete_from(7));
        assert_eq!(notices.get(first), Err(Gone));
        notices.begin_at(3_000);
        assert_eq!(told(&notices, 0), []);
    }
}
