//! Detects members that hold the others back, in which subgroup, and for how long (EXT-2).
//!
//! A member that has received less than others holds back delivery, because nothing is delivered
//! before all members have it. A member that has delivered less holds back senders, because their
//! slots become free only when all members have delivered. When all others wait for one member,
//! they are as far ahead as it lets them be. So a member is behind if another member has received,
//! or delivered, something that it has not.
//!
//! A member's *lag* is the time since another member first was at a position that this member has
//! not reached yet. A member that is always slightly behind, but keeps up, lags only briefly. In a
//! busy group, the slowest member sets the pace, and lags by no more than the duration of one
//! window. So a member that repeatedly lags by [`NAMED_AFTER`] counts as slow since the first such
//! lag.
//!
//! # Invariants
//! - This is only one member's view: a peer that is partitioned from this member appears to be
//!   behind.

use std::time::{Duration, Instant};

use tramontane_core::ids::{NodeId, SubgroupId};
use tramontane_core::node::Frontiers;

use super::group_status::{SlowMember, SubgroupStatus};

/// A member with a shorter lag is not named, because it may be in an upcall, or briefly without a
/// processor.
const NAMED_AFTER: Duration = Duration::from_millis(250);

/// The time without such a lag after which a member is no longer slow.
const FORGIVEN_AFTER: Duration = Duration::from_secs(2);

/// A member that holds others back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Slow {
    pub(crate) node: NodeId,
    pub(crate) subgroup: SubgroupId,
    /// The members that are ahead of the slow one.
    pub(crate) holds: Vec<NodeId>,
    /// The time since the slow member was first seen to lag.
    pub(crate) lasts: Duration,
}

impl Slow {
    /// Returns the form used in a status.
    pub(crate) fn shown(&self, subgroups: &[SubgroupStatus]) -> SlowMember {
        let subgroup = subgroups.get(self.subgroup.index()).map(|subgroup| subgroup.name.clone());
        SlowMember {
            node: self.node.get(),
            subgroup: subgroup.unwrap_or_default(),
            holds: self.holds.iter().map(|node| node.get()).collect(),
            lasts_ms: u64::try_from(self.lasts.as_millis()).unwrap_or(u64::MAX),
        }
    }
}

/// The progress of one member in one frontier, compared with that of the other members.
#[derive(Clone, Copy, Debug)]
struct Race {
    /// The others' frontier at the time when the member last caught up, which the member has not
    /// reached since then.
    mark: u64,
    since: Instant,
}

impl Race {
    /// Returns the lag of a member whose frontier is `own`, if the most advanced member's frontier
    /// is `first`.
    fn look(&mut self, own: u64, first: u64, now: Instant) -> Duration {
        if own >= first || own >= self.mark {
            *self = Self { mark: first, since: now };
        }
        if own >= first { Duration::ZERO } else { now.duration_since(self.since) }
    }
}

/// A member of a subgroup.
#[derive(Debug)]
struct Racer {
    subgroup: SubgroupId,
    node: NodeId,
    receiving: Race,
    delivering: Race,
    /// The time since when the member is slow, and the last time at which it lagged too much.
    slow: Option<(Instant, Instant)>,
}

impl Racer {
    /// Returns the time for which the member has been slow, if its current lag is `lag`.
    fn lasts(&mut self, lag: Duration, now: Instant) -> Option<Duration> {
        if lag >= NAMED_AFTER {
            let since =
                self.slow.map_or_else(|| now.checked_sub(lag).unwrap_or(now), |(since, _)| since);
            self.slow = Some((since, now));
        }
        self.slow = self.slow.filter(|(_, last)| now.duration_since(*last) < FORGIVEN_AFTER);
        self.slow.map(|(since, _)| now.duration_since(since))
    }
}

/// All members of all subgroups, in one view.
#[derive(Debug, Default)]
pub(crate) struct SlowMembers {
    racers: Vec<Racer>,
    seen: Vec<(NodeId, Frontiers)>,
}

impl SlowMembers {
    /// Starts over for another view.
    pub(crate) fn clear(&mut self) {
        self.racers.clear();
    }

    /// Checks the members of a subgroup, and adds those that hold others back.
    pub(crate) fn look(
        &mut self,
        subgroup: SubgroupId,
        members: impl Iterator<Item = (NodeId, Frontiers)>,
        now: Instant,
        slow: &mut Vec<Slow>,
    ) {
        let Self { racers, seen } = self;
        seen.clear();
        seen.extend(members);
        let received = seen.iter().map(|(_, of)| of.received.0).max().unwrap_or(0);
        let delivered = seen.iter().map(|(_, of)| of.delivered.0).max().unwrap_or(0);
        for (node, own) in &*seen {
            let is_it = |racer: &Racer| racer.subgroup == subgroup && racer.node == *node;
            let place = racers.iter().position(is_it).unwrap_or_else(|| {
                let race = Race { mark: 0, since: now };
                let (receiving, delivering) = (race, race);
                racers.push(Racer { subgroup, node: *node, receiving, delivering, slow: None });
                racers.len() - 1
            });
            let racer = &mut racers[place];
            let lag = racer.receiving.look(own.received.0, received, now);
            let lag = lag.max(racer.delivering.look(own.delivered.0, delivered, now));
            if let Some(lasts) = racer.lasts(lag, now) {
                let is_ahead =
                    |of: &Frontiers| of.received > own.received || of.delivered > own.delivered;
                let ahead = seen.iter().filter(|(_, of)| is_ahead(of));
                let holds = ahead.map(|(node, _)| *node).collect();
                slow.push(Slow { node: *node, subgroup, holds, lasts });
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use tramontane_core::ids::Frontier;

    use super::*;

    const SUBGROUP: SubgroupId = SubgroupId(3);

    /// Checks members every 100 ms. `at` returns the received and delivered counts of each member.
    fn named(looks: u64, at: impl Fn(u64) -> Vec<(u64, u64)>) -> Vec<(u64, Slow)> {
        let (start, mut members, mut all) = (Instant::now(), SlowMembers::default(), Vec::new());
        for look in 0..looks {
            let mut slow = Vec::new();
            let frontiers = |(received, delivered)| Frontiers {
                received: Frontier(received),
                delivered: Frontier(delivered),
            };
            let seen = (0..).map(NodeId).zip(at(look).into_iter().map(frontiers));
            members.look(SUBGROUP, seen, start + Duration::from_millis(100 * look), &mut slow);
            all.extend(slow.into_iter().map(|slow| (look, slow)));
        }
        all
    }

    fn slow(node: u32, holds: &[u32], tenths: u64) -> Slow {
        let holds = holds.iter().copied().map(NodeId).collect();
        let lasts = Duration::from_millis(100 * tenths);
        Slow { node: NodeId(node), subgroup: SUBGROUP, holds, lasts }
    }

    #[test]
    fn member_that_keeps_up_is_not_slow() {
        let always_behind =
            |look: u64| vec![(100 * look, 100 * look), (100 * look, 100 * look - look.min(1) * 90)];
        assert_eq!(named(20, always_behind), []);
        assert_eq!(named(20, |_| vec![(7, 7), (7, 7)]), [], "a group that rests");
    }

    #[test]
    fn member_without_deliveries_is_named_as_slow() {
        let stuck = |look: u64| vec![(50, 5 * look), (50, 3), (50, 5 * look)];
        let named = named(5, stuck);
        assert_eq!(named, [(4, slow(1, &[0, 2], 3))]);
    }

    /// Nothing can be delivered, so all members have delivered the same. The slow member is the one
    /// that has not received anything.
    #[test]
    fn member_that_receives_nothing_is_slow() {
        let stuck = |look: u64| vec![(10 * look, 0), (10 * look, 0), (0, 0)];
        assert_eq!(named(5, stuck), [(4, slow(2, &[0, 1], 3))]);
    }

    /// A member is slow as long as it lags repeatedly, and for a while afterwards.
    #[test]
    fn repeatedly_lagging_member_stays_slow_for_grace_period() {
        let in_turns = |look: u64| {
            let first = 10 * look;
            // Repeatedly five checks without a message, and then all messages, until the member is
            // as fast as the others.
            vec![(first, first), (first, if look < 20 { first / 50 * 50 } else { first })]
        };
        let looks: Vec<(u64, Duration)> =
            named(50, in_turns).into_iter().map(|(look, slow)| (look, slow.lasts)).collect();
        // The member was level with the others at check 0, and lagged at checks 1 to 19.
        let lasts = (4..39).map(|look| (look, Duration::from_millis(100 * (look - 1))));
        assert_eq!(looks, lasts.collect::<Vec<_>>());
    }

    #[test]
    fn catching_up_with_earlier_mark_restarts_lag() {
        let late = |look: u64| {
            let first = 10 * look;
            vec![(100, first), (100, if look < 3 { 0 } else { first.min(30) })]
        };
        // At check 3, the member reached 30, which the others had not reached before: that is its
        // mark.
        let looks: Vec<u64> = named(8, late).into_iter().map(|(look, _)| look).collect();
        assert_eq!(looks, [7]);
    }
}
