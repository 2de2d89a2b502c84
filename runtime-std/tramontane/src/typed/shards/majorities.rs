//! The groups that have had no majority for a while, as far as a client sees.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{Destinations, GroupId};

/// The time between two looks at the connections.
const LOOK_INTERVAL: Duration = Duration::from_millis(20);

/// The groups without a majority, each with the time since which it has lacked one.
pub(super) struct Majorities {
    lease: Duration,
    since: BTreeMap<GroupId, Instant>,
    next_look: Option<Instant>,
}

impl Majorities {
    /// Starts to look. A group counts as down once it has had no majority for the lease.
    pub(super) const fn new(lease: Duration) -> Self {
        Self { lease, since: BTreeMap::new(), next_look: None }
    }

    /// Looks, if that is due, and returns the groups that are down.
    pub(super) fn down(
        &mut self,
        now: Instant,
        without: impl FnOnce() -> Destinations,
    ) -> Destinations {
        if self.next_look.is_none_or(|at| now >= at) {
            self.next_look = Some(now + LOOK_INTERVAL);
            let without = without();
            self.since.retain(|group, _| without.contains(*group));
            for group in without.iter() {
                self.since.entry(group).or_insert(now);
            }
        }
        let is_down = |since: &Instant| now.saturating_duration_since(*since) >= self.lease;
        let down = self.since.iter().filter(|(_, since)| is_down(since));
        down.fold(Destinations::default(), |down, (group, _)| down.with(*group))
    }

    /// Returns the time until which a group without a majority may come to count as down.
    pub(super) fn look_interval(&self) -> Option<Duration> {
        (!self.since.is_empty()).then_some(LOOK_INTERVAL)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn group_is_down_after_lease_without_majority() {
        let (lease, start) = (Duration::from_secs(2), Instant::now());
        let at = |ms| start + Duration::from_millis(ms);
        let (none, second) = (Destinations::default(), Destinations::of(GroupId(1)));
        let mut majorities = Majorities::new(lease);
        assert_eq!(majorities.down(at(0), || none), none);
        assert_eq!(majorities.look_interval(), None);
        assert_eq!(majorities.down(at(20), || second), none);
        assert_eq!(majorities.look_interval(), Some(LOOK_INTERVAL));
        assert_eq!(majorities.down(at(30), || panic!("it looked just before")), none);
        assert_eq!(majorities.down(at(2_019), || second), none);
        assert_eq!(majorities.down(at(2_020), || panic!("it looked just before")), second);
        assert_eq!(majorities.down(at(2_040), || none), none, "it has a majority again");
        assert_eq!(majorities.down(at(4_000), || second), none, "the time starts anew");
    }
}
