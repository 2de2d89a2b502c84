//! Values that a member takes from a peer's row without being able to compare them with its own,
//! and those that it must refuse.

use super::victim::{MEMBERS, SUBGROUPS};
use super::*;

/// VIE-4: a member that is about to be suspected may have shown a list under another member's
/// ballot. If that were accepted, a list could count that no leader proposed, or one of a leader
/// that this member has promised not to follow.
#[test]
fn only_the_current_leaders_own_list_is_accepted() {
    let join = Change::Join(NodeId(8));
    // This member, as the leader's successor, begins with the leader's own list. It must not accept
    // it if the list was proposed without a member that is not suspected here.
    for (owner, suspects, ballot, first) in
        [(0, 0, 1, Some(join)), (0, 0b100, 1, None), (0, 0, 3, None), (2, 0, 3, None)]
    {
        let mut victim = Victim::new();
        victim.step();
        victim.put(owner, ViewColumn::Suspicions(0), suspects);
        victim.put(owner, ViewColumn::Entry(0), join.encode(Ballot(ballot)));
        victim.put_stance(owner, 0, ballot, 1);
        victim.lose(owner);
        victim.step();
        assert_eq!(victim.host.causes, [(Rank(owner), Cause::Lost)]);
        let own = Change::decode(victim.own(ViewColumn::Entry(0)));
        assert_eq!(own, first, "{owner} shows a list of {ballot}, and suspects {suspects:b}");
        assert_eq!(victim.stance().accepted.count == 0, first.is_none());
    }
}

/// VIE-6: a member outside a subgroup has received nothing there, but still copies its trim for the
/// subgroup's members. It does not pass on a value that cannot be a sequence position.
#[test]
fn impossible_trim_of_foreign_subgroup_is_not_copied() {
    const OTHERS: [Rank; 2] = [Rank(0), Rank(2)];
    const TWO: [Subgroup<'static>; 2] =
        [SUBGROUPS[0], Subgroup { members: &OTHERS, senders: &OTHERS, ..SUBGROUPS[0] }];
    const LAST: u64 = u64::MAX >> 2;
    for (cell, is_possible) in [
        (0, false),
        (1, true),
        (LAST + 1, true),
        (LAST + 2, false),
        (LAST + 3, false),
        (u64::MAX - 1, false),
        // No member of the subgroup remains.
        (u64::MAX, true),
    ] {
        let mut victim = Victim::of(Group { members: &MEMBERS, subgroups: &TWO });
        victim.step();
        victim.put(0, ViewColumn::Trim(SubgroupId(1)), cell);
        victim.is_shown_a_sealed_list();
        victim.step();
        let is_accused = victim.host.causes.contains(&(Rank(0), Cause::Misbehaved));
        let is_accepted = victim.stance().accepted == Accepted { ballot: Ballot(1), count: 2 };
        assert_eq!((is_accepted, is_accused), (is_possible, !is_possible), "{cell:x}");
        if is_accepted {
            let shown = [0, 1].map(|id| victim.own(ViewColumn::Wedged(SubgroupId(id))));
            assert_eq!(shown, [1 + 10, 0], "it has a final count where it is a member alone");
        }
    }
}

/// HAL-1: values that a guard covers are read after a barrier, or they may be older than the guard.
/// The table of these tests refuses earlier reads.
#[test]
fn barrier_follows_every_guard_read() {
    let mut victim = Victim::new();
    victim.step();
    let steady = victim.host.barriers.get();
    assert!(steady >= 4, "each peer says whether it is in the view, and what is decided: {steady}");
    victim.is_shown_a_sealed_list();
    victim.step();
    victim.is_shown_its_decision();
    assert_eq!(victim.step(), Status::Installed);
    assert!(victim.host.barriers.get() > 2 * steady, "{}", victim.host.barriers.get());
}
