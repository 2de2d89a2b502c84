//! Decisions that a row publishes, and the promise that a member is about to make when it learns of
//! them.

use super::*;

/// A leader shows a decision on its list before that is sealed, or with other trims or another
/// member than it sealed.
#[test]
fn member_publishing_invalid_decision_is_suspected() {
    let own = Ballot(1);
    let (join, seal) = (Change::Join(NodeId(8)).encode(own), Change::Seal.encode(own));
    for (count, trim, node, decides) in
        [(2, 6, 8, true), (1, 6, 8, false), (1, 0, 8, false), (2, 5, 8, false), (2, 6, 9, false)]
    {
        let mut victim = Victim::new();
        victim.step();
        victim.put(0, ViewColumn::Entry(0), join);
        victim.put(0, ViewColumn::Entry(1), seal);
        victim.put(0, ViewColumn::Trim(SubgroupId(0)), 6);
        victim.put_stance(0, 0, 1, count);
        // The member accepts the list. Member 2 has not, so nothing is decided.
        victim.step();
        let accepted = Accepted { ballot: own, count };
        assert_eq!(victim.stance().accepted, accepted);
        victim.put(0, ViewColumn::Trim(SubgroupId(0)), trim);
        victim.put(0, ViewColumn::Entry(0), Change::Join(NodeId(node)).encode(own));
        let committed = Committed { decided: true, accepted };
        victim.put(0, ViewColumn::Committed, committed.encode());
        let status = victim.step();
        let is_accused = victim.host.causes.contains(&(Rank(0), Cause::Misbehaved));
        assert_eq!(is_accused, !decides, "{count} {trim}");
        assert_eq!(status == Status::Installed, decides, "{count} {trim}: {status:?}");
    }
}

/// A member that learns of a decision before its memory of the next view is ready waits for that
/// memory, and does not accuse the owner.
#[test]
fn installation_waits_for_the_next_views_memory() {
    let mut victim = Victim::new();
    victim.step();
    victim.is_shown_a_sealed_list();
    victim.is_shown_its_decision();
    victim.host.is_unprepared = true;
    for _ in 0..5 {
        assert_eq!(victim.step(), Status::Steady);
        assert_eq!(victim.stance().accepted, Accepted::default());
    }
    victim.host.is_unprepared = false;
    assert_eq!(victim.step(), Status::Installed);
    assert_eq!(victim.host.causes, []);
}

/// A message has changed before the log kept it. A member that therefore cannot promise halts, at
/// whichever call it notices, and has accepted nothing.
#[test]
fn member_halts_if_its_log_cannot_promise() {
    let halted = Status::Halted(Halt::ChangedBy(Rank(2)));
    let mut halts = 0;
    for (is_reported, is_decided) in [(false, false), (false, true), (true, false), (true, true)] {
        for fails_at in 1..5 {
            let mut victim = Victim::new();
            victim.step();
            victim.is_shown_a_sealed_list();
            if is_decided {
                victim.is_shown_its_decision();
            }
            if is_reported {
                // Before it suspects the leader, the member accepts the list that the leader has
                // shown.
                victim.lose(0);
            }
            victim.host.fails_at = Some(fails_at);
            let status = (0..3).map(|_| victim.step()).last().expect("three steps");
            let has_failed = victim.host.promises >= fails_at;
            let is_halted = status == halted;
            assert_eq!(is_halted, has_failed, "{is_reported} {is_decided} {fails_at}: {status:?}");
            if has_failed {
                halts += 1;
                assert_eq!(victim.stance().accepted, Accepted::default());
                assert_eq!(victim.host.causes, [], "it accuses nobody");
                assert_eq!(victim.own(ViewColumn::Suspicions(0)), 0);
            }
        }
    }
    assert!(halts >= 8, "{halts} of 16");
}

/// Here the member has already accepted the seal, which is the decision that it learns. It still
/// halts.
#[test]
fn member_that_halts_on_decision_installs_nothing() {
    let mut victim = Victim::new();
    victim.step();
    victim.is_shown_a_sealed_list();
    assert_eq!(victim.step(), Status::Wedged);
    // Another leader shows the same list as decided.
    let ballot = Ballot(3);
    victim.put(2, ViewColumn::Entry(0), Change::Join(NodeId(8)).encode(ballot));
    victim.put(2, ViewColumn::Entry(1), Change::Seal.encode(ballot));
    victim.put(2, ViewColumn::Trim(SubgroupId(0)), 6);
    let accepted = Accepted { ballot, count: 2 };
    victim.put(2, ViewColumn::Committed, Committed { decided: true, accepted }.encode());
    victim.host.fails_at = Some(2);
    assert_eq!(victim.step(), Status::Halted(Halt::ChangedBy(Rank(2))));
    assert_eq!(victim.host.promises, 2, "the second one fails");
}

/// VIE-9: a leaving member is needed until all members that stay have installed the next view, but
/// by no others. If it waited for a lost member, or for one that leaves too, it would never finish.
#[test]
fn leaver_waits_only_for_remaining_live_members() {
    const LEAVE: [Change; 2] = [Change::Leave(Rank(1)), Change::Leave(Rank(2))];
    for (changes, suspected, is_lost, leaves) in [
        (&LEAVE[..1], 0, false, false),
        (&LEAVE[..1], 0, true, true),
        (&LEAVE[..1], 0b100, false, true),
        (&LEAVE[..], 0, false, true),
    ] {
        let mut victim = Victim::new();
        victim.put(0, ViewColumn::Suspicions(0), suspected);
        victim.step();
        let entries = changes.iter().copied().chain([Change::Seal]);
        for (index, change) in (0..).zip(entries) {
            victim.put(0, ViewColumn::Entry(index), change.encode(Ballot(1)));
        }
        victim.put(0, ViewColumn::Trim(SubgroupId(0)), 6);
        let count = changes.len() as u16 + 1;
        victim.put_stance(0, 0, 1, count);
        let accepted = Accepted { ballot: Ballot(1), count };
        victim.put(0, ViewColumn::Committed, Committed { decided: true, accepted }.encode());
        assert_eq!(victim.step(), Status::Decided, "0 has not gone on");
        victim.put(0, ViewColumn::Installed, 3);
        if is_lost {
            assert_eq!(victim.step(), Status::Decided, "nor has 2");
            victim.lose(2);
        }
        let status = if leaves { Status::Left } else { Status::Decided };
        assert_eq!(victim.step(), status, "{changes:?} {suspected} {is_lost}");
    }
}

/// VIE-5: a list that all have accepted is committed, and closed to new requests even if it cannot
/// be sealed yet. A list that each new request extended might never be sealed.
#[test]
fn committed_list_accepts_no_more_requests() {
    let mut victim = leading();
    victim.host.is_unprepared = true;
    victim.put(2, ViewColumn::Wedged(SubgroupId(0)), 6);
    victim.put_stance(2, 1, 2, 1);
    victim.step();
    let accepted = Accepted { ballot: Ballot(2), count: 1 };
    let committed = Committed { decided: false, accepted };
    assert_eq!(Committed::decode(victim.own(ViewColumn::Committed)), committed);
    victim.put(2, ViewColumn::JoinRequest, 1 << 33 | 9);
    victim.put(2, ViewColumn::Leaving, 1);
    victim.step();
    assert_eq!(victim.stance().accepted, accepted);
    victim.host.is_unprepared = false;
    victim.step();
    assert_eq!(victim.stance().accepted.count, 2);
    let last = Change::decode(victim.own(ViewColumn::Entry(1)));
    assert_eq!(last, Some(Change::Seal));
}
