//! The counterexamples of DUR-6 and DUR-7, and cases that broke earlier forms of the rules.

use super::answers::{Ballot, Disk, OwnedLog, note, with_restart};
use tramontane_core::ids::{DurableCount, NodeId, ViewId};
use tramontane_core::restart::{Restart, Verdict, Wait, Want};

/// The ballots of the leaders of rank zero and one.
const FIRST: Ballot = (0, 1);
const SECOND: Ballot = (0, 2);

const ALL: [u32; 5] = [1, 2, 3, 4, 5];

/// Returns the reason why the restart waits: the kind, the view, and the missing nodes.
fn waits(disks: &[(u32, &Disk)], subgroups: &[Vec<u32>]) -> Option<(Want, u64, Vec<u32>)> {
    with_restart(disks, subgroups, |restart| match restart.verdict() {
        Verdict::Wait(wait) => Some(waits_for(&restart, wait)),
        Verdict::Go(_) | Verdict::NoGroup => None,
    })
}

fn waits_for<'a>(restart: &Restart<'a>, wait: Wait<'a>) -> (Want, u64, Vec<u32>) {
    (wait.want, wait.view.id.0, restart.missing(wait).map(|node| node.0).collect())
}

/// The way in which a group continues: the members of the next view, whether the view is adopted,
/// and for each subgroup the node with the log and its end.
type GoesOn = (Vec<u32>, bool, Vec<Option<(u32, u64)>>);

fn goes_on(disks: &[(u32, &Disk)], subgroups: &[Vec<u32>]) -> GoesOn {
    with_restart(disks, subgroups, |restart| {
        let plan = match restart.verdict() {
            Verdict::Go(plan) => plan,
            other => panic!("{other:?}"),
        };
        let log = |subgroup| {
            let taken = restart.log_of(&plan, subgroup).expect("intact")?;
            Some((taken.node.0, taken.end.end.0))
        };
        let members = restart.next_members(&plan).map(|node| node.0).collect();
        (members, plan.adopted.is_some(), (0..subgroups.len()).map(log).collect())
    })
}

#[test]
fn restart_waits_for_majority_of_known_promise() {
    // View {1..5}; the next view, {3, 4, 5}, is decided at 3 and 4. Node 5 has promised it.
    let old = Disk::of(1, &ALL, &[Some((1, 3))]);
    let promised = old.clone().promising(FIRST, 2, &[3, 4, 5], &[Some(4)]);
    let decided = Disk { decided: Some((2, vec![3, 4, 5])), ..promised.clone() };
    let subgroups = [ALL.to_vec()];
    let waited = waits(&[(1, &old), (2, &old), (5, &promised)], &subgroups);
    assert_eq!(waited, Some((Want::Majority, 2, vec![3, 4])));
    // One of the two returns, and knows more than was needed.
    let with_four = [(1, &old), (2, &old), (5, &promised), (4, &decided)];
    assert_eq!(goes_on(&with_four, &subgroups).0, [4, 5]);
}

#[test]
fn restarted_members_have_all_messages_before_seal() {
    // The fourth message, m, is at nodes 1, 2 and 3. Nodes 4 and 5 promised {3, 4, 5}, so they have
    // it.
    let old = Disk::of(1, &ALL, &[Some((1, 4))]);
    let promised = old.promising(FIRST, 2, &[3, 4, 5], &[Some(4)]);
    let decided = Disk { decided: Some((2, vec![3, 4, 5])), ..promised };
    let (members, is_adopted, logs) = goes_on(&[(4, &decided), (5, &decided)], &[ALL.to_vec()]);
    assert_eq!((members, is_adopted, logs[0].map(|log| log.1)), (vec![4, 5], false, Some(4)));
}

#[test]
fn restart_waits_for_each_subgroups_majority() {
    // Subgroup {3, 4, 5}, m at 3 and 4; {1, 2, 5} return.
    let outside = Disk::of(1, &ALL, &[None]);
    let five = Disk::of(1, &ALL, &[Some((1, 0))]);
    let waited = waits(&[(1, &outside), (2, &outside), (5, &five)], &[vec![3, 4, 5]]);
    assert_eq!(waited, Some((Want::SubgroupMajority(0), 1, vec![3, 4])));
    let four = Disk::of(1, &ALL, &[Some((1, 1))]);
    let come = [(1, &outside), (2, &outside), (5, &five), (4, &four)];
    assert_eq!(goes_on(&come, &[vec![3, 4, 5]]).2, [Some((4, 1))]);
}

#[test]
fn empty_disk_does_not_count_toward_majority() {
    // m at 1 and 2; 1 has a new disk, and {1, 3} return.
    let new = Disk { logs: vec![None], ..Disk::default() };
    let three = Disk::of(1, &[1, 2, 3], &[Some((1, 0))]);
    let subgroups = [vec![1, 2, 3]];
    let waited = waits(&[(1, &new), (3, &three)], &subgroups);
    assert_eq!(waited, Some((Want::Majority, 1, vec![1, 2])));
    // An operator accepts fewer nodes.
    with_restart(&[(1, &new), (3, &three)], &subgroups, |restart| {
        let Verdict::Go(plan) = restart.with_less().verdict() else { panic!("it is enough") };
        assert_eq!(restart.with_less().next_members(&plan).collect::<Vec<_>>(), [NodeId(3)]);
    });
    let nobody = with_restart(&[(1, &new)], &subgroups, |restart| {
        matches!(restart.verdict(), Verdict::NoGroup)
    });
    assert!(nobody, "a group that never was");
}

#[test]
fn latest_promise_wins_and_longer_log_is_truncated() {
    // Node 1 sealed {1, 2} with a trim after the sixth message, and died. Node 2 sealed {2, 3} with
    // a trim after the fourth.
    let old = Disk::of(1, &[1, 2, 3], &[Some((1, 6))]);
    let first = old.promising(FIRST, 2, &[1, 2], &[Some(6)]);
    let second = Disk::of(1, &[1, 2, 3], &[Some((1, 4))]).promising(SECOND, 2, &[2, 3], &[Some(4)]);
    let subgroups = [vec![1, 2, 3]];
    let come = [(1, &first), (2, &second)];
    // Node 3 must answer too, because the view {2, 3} may have continued.
    assert_eq!(waits(&come, &subgroups), Some((Want::Majority, 2, vec![3])));
    let come = [(1, &first), (2, &second), (3, &second)];
    let (members, is_adopted, logs) = goes_on(&come, &subgroups);
    assert_eq!((members, is_adopted, logs[0].map(|log| log.1)), (vec![2, 3], true, Some(4)));
    // Node 1's records after that are set aside.
    with_restart(&come, &subgroups, |restart| {
        let Verdict::Go(plan) = restart.verdict() else { panic!("all are there") };
        let taken = restart.log_of(&plan, 0).expect("intact").expect("a log");
        assert_eq!(restart.cut_of(&taken, NodeId(1), 0), Some(DurableCount(4)));
        assert_eq!(restart.cut_of(&taken, NodeId(3), 0), None);
        assert_eq!((plan.next_id(), plan.attempt), (ViewId(2), 1));
        assert_eq!(restart.participants(&plan).count(), 3);
    });
}

/// DUR-12: earlier versions promised a view without members if all members left at once.
#[test]
fn promise_without_members_does_not_block_restart() {
    // Node 1 leads, and seals {2, 3} at the fourth message. Node 2 takes over, and finds that all
    // members leave.
    let old = Disk::of(1, &[1, 2, 3], &[Some((1, 6))]);
    let first = old.clone().promising(FIRST, 2, &[2, 3], &[Some(4)]);
    let nobody = old.promising(SECOND, 2, &[], &[Some(6)]);
    let subgroups = [vec![1, 2, 3]];
    for (come, next) in [
        (vec![(1, &nobody), (2, &nobody), (3, &nobody)], vec![1, 2, 3]),
        // The earlier list was not decided, and may end earlier.
        (vec![(1, &first), (3, &nobody)], vec![1, 3]),
    ] {
        let (members, is_adopted, logs) = goes_on(&come, &subgroups);
        assert_eq!((members, is_adopted, logs[0].map(|log| log.1)), (next, false, Some(6)));
    }
}

#[test]
fn log_of_member_excluded_from_view_is_unused() {
    // A restart has adopted {2, 3, 4} without node 3, which has the tail of a failed proposal.
    let knows = Disk::of(2, &[2, 3, 4], &[Some((1, 4))]);
    let three = Disk::of(1, &[1, 2, 3], &[Some((1, 6))]);
    let subgroups = [vec![1, 2, 3, 4]];
    // Node 3 still counts, because any message delivered in view 2 would be at node 2 or node 4.
    for (come, next) in [
        (vec![(2, &knows), (3, &three)], vec![2, 3]),
        (vec![(2, &knows), (3, &three), (4, &knows)], vec![2, 3, 4]),
    ] {
        let (members, _, logs) = goes_on(&come, &subgroups);
        assert_eq!((members, logs), (next, vec![Some((2, 4))]));
    }
}

#[test]
fn new_members_without_state_wait_for_state() {
    // The view is {1, 2}; node 2 leaves, and nodes 3 and 4 join. The first message, m, was at nodes
    // 1 and 2. Nodes 3 and 4 were admitted, but their state is incomplete.
    let joining = Disk { logs: vec![Some(OwnedLog::new(1, 0))], ..Disk::default() };
    let leaver =
        Disk::of(2, &[1, 3, 4], &[Some((1, 1))]).promising(FIRST, 2, &[1, 3, 4], &[Some(1)]);
    let subgroups = [vec![1, 2, 3, 4]];
    let waited = waits(&[(2, &leaver), (3, &joining), (4, &joining)], &subgroups);
    assert_eq!(waited, Some((Want::WholeLog(0), 2, vec![1])));
    // Node 1 has promised the view, so it had everything that the first view ended with.
    let promised = Disk { decided: Some((1, vec![1, 2])), ..leaver.clone() };
    let come = [(2, &leaver), (1, &promised), (3, &joining)];
    let (members, _, logs) = goes_on(&come, &subgroups);
    assert_eq!((members, logs), (vec![1, 3], vec![Some((1, 1))]));
    let stays = Disk { promise: None, ..leaver };
    let come = [(1, &stays), (3, &joining)];
    let (members, _, logs) = goes_on(&come, &subgroups);
    assert_eq!((members, logs), (vec![1, 3], vec![Some((1, 1))]));
}

#[test]
fn decision_known_to_one_member_needs_a_majority() {
    // View {1, 2} admitted nodes 3, 4 and 5. Node 1 noted the decision; then power was lost. Only
    // two of the five nodes have promised the view; the others count as well, and node 1 or 2 lends
    // its log.
    let two = Disk::of(1, &[1, 2], &[Some((1, 4))]).promising(FIRST, 2, &ALL, &[Some(4)]);
    let one = Disk { decided: Some((2, ALL.to_vec())), ..two.clone() };
    let joining = Disk { logs: vec![Some(OwnedLog::new(1, 4))], ..Disk::default() };
    let subgroups = [ALL.to_vec()];
    let waited = waits(&[(1, &one), (2, &two)], &subgroups);
    assert_eq!(waited, Some((Want::Majority, 2, vec![3, 4, 5])));
    let (members, _, logs) = goes_on(&[(1, &one), (3, &joining), (4, &joining)], &subgroups);
    assert_eq!((members, logs), (vec![1, 3, 4], vec![Some((1, 4))]));
}

#[test]
fn first_view_restarts_from_one_members_record() {
    // Power was lost just after the group was formed. Nodes 2 and 3 have noted that it was formed,
    // and have empty logs: they are not new nodes.
    let knows = Disk::of(1, &[1, 2, 3], &[Some((1, 0))]);
    let noted = Disk { logs: vec![Some(OwnedLog::new(0, 0))], ..Disk::default() };
    let subgroups = [vec![1, 2, 3]];
    let alone = waits(&[(1, &knows)], &subgroups);
    assert_eq!(alone, Some((Want::Majority, 1, vec![2, 3])));
    let (members, is_adopted, logs) = goes_on(&[(1, &knows), (3, &noted)], &subgroups);
    assert_eq!((members, is_adopted, logs), (vec![1, 3], false, vec![Some((1, 0))]));
    // Without node 1 they cannot know of the view: the group is still to be formed, with all
    // initial nodes.
    let unknown = with_restart(&[(2, &noted), (3, &noted)], &subgroups, |restart| {
        matches!(restart.verdict(), Verdict::NoGroup)
    });
    assert!(unknown);
}

#[test]
fn damaged_record_is_copied_from_another_or_awaited() {
    let members = [1, 2, 3];
    let subgroups = [members.to_vec()];
    let whole = Disk::of(1, &members, &[Some((1, 8))]);
    let damaged = |runs: &[(u64, u64)]| {
        let mut disk = whole.clone();
        disk.logs[0].as_mut().expect("a log").damaged = runs.to_vec();
        disk
    };
    let (one, two) = (damaged(&[(2, 4), (6, 8)]), damaged(&[(4, 6)]));
    assert_eq!(goes_on(&[(1, &one), (2, &two)], &subgroups).2[0].map(|log| log.1), Some(8));
    // No node that answers has the fourth record; the third member may have it.
    let two = damaged(&[(3, 6)]);
    let waited = waits(&[(1, &one), (2, &two)], &subgroups);
    assert_eq!(waited, Some((Want::Record(0, DurableCount(3)), 1, vec![3])));
    // The third member never had the record. All nodes have returned, and the record may have been
    // durable at the first two.
    let short = Disk::of(1, &members, &[Some((1, 3))]);
    let come = [(1, &one), (2, &two), (3, &short)];
    assert_eq!(waits(&come, &subgroups), Some((Want::Record(0, DurableCount(3)), 1, vec![])));
    // Two members never had the record, so it was never durable at a majority, and is dropped.
    let come = [(1, &one), (2, &short), (3, &short)];
    let mut bad = come;
    let unread = damaged(&[(3, 8)]);
    bad[0].1 = &unread;
    assert_eq!(goes_on(&bad, &subgroups).2, [Some((1, 3))]);
    let come = [(1, &one), (2, &two), (3, &short)];
    // Each record is available only from the members that have it intact, up to their next damaged
    // one.
    with_restart(&come, &subgroups, |restart| {
        let restart = restart.with_less();
        let Verdict::Go(plan) = restart.verdict() else { panic!("it goes on") };
        let has = |at| {
            let (node, up_to) = restart.has_intact(&plan, 0, DurableCount(at))?;
            Some((node.0, up_to.0))
        };
        let all: Vec<_> = (0..9).map(has).collect();
        let (one, two) = (Some((1, 6)), Some((2, 8)));
        let first = Some((3, 3));
        assert_eq!(all, [first, first, first, None, one, one, two, two, None]);
    });
    // Half of the members' intact logs lack a record, so the others are not a majority.
    let four = Disk::of(1, &[1, 2, 3, 4], &[Some((1, 3))]);
    let mut bad = Disk::of(1, &[1, 2, 3, 4], &[Some((1, 5))]);
    bad.logs[0].as_mut().expect("a log").damaged = vec![(3, 4)];
    let come = [(1, &four), (2, &four), (3, &bad)];
    assert_eq!(goes_on(&come, &[vec![1, 2, 3, 4]]).2[0].map(|log| log.1), Some(3));
    // The intact logs of a majority lack the record, so no node is awaited.
    let five = Disk::of(1, &ALL, &[Some((1, 3))]);
    let mut bad = Disk::of(1, &ALL, &[Some((1, 5))]);
    bad.logs[0].as_mut().expect("a log").damaged = vec![(3, 4)];
    let come = [(1, &five), (2, &five), (3, &five), (4, &bad)];
    assert_eq!(goes_on(&come, &[ALL.to_vec()]).2[0].map(|log| log.1), Some(3));
    // A damaged log still shows where it ends. If power is lost at all members, one of them may
    // have lost part of its last record, and another part of the next.
    let mut torn = five.clone();
    torn.logs[0].as_mut().expect("a log").damaged = vec![(2, 3)];
    let come = [(1, &five), (2, &five), (3, &torn), (4, &bad)];
    assert_eq!(goes_on(&come, &[ALL.to_vec()]).2[0].map(|log| log.1), Some(3));
    // Logs of less than half do not decide it.
    let come = [(1, &five), (2, &five), (3, &bad), (4, &bad)];
    let waited = waits(&come, &[ALL.to_vec()]);
    assert_eq!(waited, Some((Want::Record(0, DurableCount(3)), 1, vec![5])));
}

/// Otherwise such a node would be awaited although it can add nothing, and it may never return.
#[test]
fn irrelevant_node_is_not_asked_or_awaited() {
    let members = [1, 2, 3];
    // Node 4 was removed earlier, and still knows only the first view. Node 5 may belong to the
    // subgroup, but has never appeared.
    let subgroups = [ALL.to_vec()];
    let knows = Disk::of(2, &members, &[Some((1, 4))]);
    let removed = Disk::of(1, &[1, 2, 3, 4], &[Some((1, 4))]);
    let promise_of = |come: &[(u32, &Disk)]| {
        with_restart(come, &subgroups, |restart| {
            let Verdict::Go(plan) = restart.verdict() else { panic!("a majority is there") };
            restart.participants(&plan).map(|node| node.0).collect::<Vec<_>>()
        })
    };
    assert_eq!(promise_of(&[(1, &knows), (2, &knows), (4, &removed)]), [1, 2]);
    // An adopted view counts as well: it readmits node 4.
    let adopts = knows.clone().promising(FIRST, 3, &[1, 2, 4], &[Some(4)]);
    assert_eq!(promise_of(&[(1, &adopts), (2, &adopts), (4, &removed)]), [1, 2, 4]);
    // Neither node 4 nor node 5 is awaited for a record that all members of the view have lost.
    let mut damaged = knows;
    damaged.logs[0].as_mut().expect("a log").damaged = vec![(3, 4)];
    let come = [(1, &damaged), (2, &damaged), (3, &damaged)];
    assert_eq!(waits(&come, &subgroups), Some((Want::Record(0, DurableCount(3)), 2, vec![])));
}

/// DUR-7: otherwise a group could never continue although its operator says that the others will
/// not return.
#[test]
fn restart_with_less_abandons_a_damaged_record() {
    let members = [1, 2, 3];
    let mut one = Disk::of(1, &members, &[Some((1, 8))]);
    one.logs[0].as_mut().expect("a log").damaged = vec![(2, 4)];
    let subgroups = [members.to_vec()];
    assert_eq!(waits(&[(1, &one)], &subgroups), Some((Want::Majority, 1, vec![2, 3])));
    let two = one.clone();
    let come = [(1, &one), (2, &two)];
    assert_eq!(
        waits(&come, &subgroups),
        Some((Want::Record(0, DurableCount(2)), 1, vec![3])),
        "3 may have it"
    );
    for come in [&come[..1], &come[..]] {
        with_restart(come, &subgroups, |restart| {
            let restart = restart.with_less();
            let Verdict::Go(plan) = restart.verdict() else { panic!("it is enough") };
            let taken = restart.log_of(&plan, 0).expect("no record is waited for");
            assert_eq!(taken.map(|taken| taken.end.end), Some(DurableCount(2)));
        });
    }
}

/// DUR-7: an operator cannot waive records that no returned node ever had.
#[test]
fn restart_with_less_still_needs_every_subgroup() {
    let disk = Disk::of(1, &[1, 2, 3], &[None]);
    let subgroups = [vec![2, 3]];
    for (node, want) in [(4, Want::Majority), (1, Want::SubgroupMajority(0))] {
        let waited = with_restart(&[(node, &disk)], &subgroups, |restart| {
            let restart = restart.with_less();
            let Verdict::Wait(wait) = restart.verdict() else { panic!("{node} goes on") };
            wait.want
        });
        assert_eq!(waited, want, "{node} alone");
    }
}

/// Returns what the restart waits for, which nodes are missing, and which nodes have answered but
/// do not count.
fn waits_beside(disks: &[(u32, &Disk)]) -> (Want, Vec<u32>, Vec<u32>) {
    with_restart(disks, &[vec![1, 2, 3]], |restart| {
        let Verdict::Wait(wait) = restart.verdict() else { panic!("{:?}", restart.verdict()) };
        let uncounted = restart.uncounted(wait).map(|node| node.0).collect();
        (wait.want, restart.missing(wait).map(|node| node.0).collect(), uncounted)
    })
}

/// All messages were durable everywhere; the logs of nodes 1 and 2 are lost, but their notes are
/// not.
#[test]
fn lost_log_does_not_count_and_is_unused() {
    let members = [1, 2, 3];
    let whole = Disk::of(1, &members, &[Some((1, 6))]).noting(note(6, 6, 6));
    let emptied = Disk::of(1, &members, &[Some((0, 0))]).noting(note(6, 6, 6));
    let short = Disk::of(1, &members, &[Some((1, 4))]).noting(note(6, 6, 6));
    let mut other = whole.clone();
    other.logs[0].as_mut().expect("a log").note.is_of_another = true;
    for lost in [&emptied, &short, &other] {
        let waited = waits_beside(&[(1, lost), (2, lost)]);
        assert_eq!(waited, (Want::Majority, vec![3], vec![1, 2]));
        let waited = waits_beside(&[(1, lost), (2, lost), (3, &whole)]);
        assert_eq!(waited, (Want::Majority, vec![], vec![1, 2]));
        let (next, _, logs) = goes_on(&[(1, lost), (2, &whole), (3, &whole)], &[members.to_vec()]);
        assert_eq!((next, logs), (vec![2, 3], vec![Some((2, 6))]), "two of three are as they were");
    }
    // If an operator lets fewer nodes restart the group, the best log is chosen. A log that is not
    // the one that its node noted is chosen only if there is no other.
    for (come, best) in [
        ([(1, &emptied), (2, &short), (3, &other)], (2, 4)),
        ([(1, &emptied), (2, &short), (3, &whole)], (3, 6)),
        ([(1, &other), (2, &other), (3, &other)], (1, 6)),
    ] {
        with_restart(&come, &[members.to_vec()], |restart| {
            let restart = restart.with_less();
            let Verdict::Go(plan) = restart.verdict() else { panic!("it is enough") };
            let taken = restart.log_of(&plan, 0).expect("intact").expect("a log");
            assert_eq!((taken.node.0, taken.end.end.0), best);
        });
    }
}

#[test]
fn outdated_disk_does_not_count_toward_majority() {
    let members = [1, 2, 3];
    let seen = Disk::of(2, &members, &[Some((2, 6))]).noting(note(6, 6, 5));
    // A copy from an earlier time, either in the same view or in the view before it.
    let older = Disk::of(2, &members, &[Some((2, 4))]).noting(note(4, 4, 4));
    let before = Disk::of(1, &members, &[Some((1, 3))]).noting(note(3, 3, 3));
    for copy in [&older, &before] {
        assert_eq!(waits_beside(&[(1, copy), (2, &seen)]), (Want::Majority, vec![3], vec![1]));
        let come = [(1, copy), (2, &seen), (3, &seen)];
        let (next, _, logs) = goes_on(&come, &[members.to_vec()]);
        assert_eq!((next, logs), (vec![2, 3], vec![Some((2, 6))]));
    }
    // A restart that the node promised may have cut its log.
    let cut = older.promising((1, 2), 3, &members, &[Some(4)]);
    let come = [(1, &cut), (2, &seen.clone().promising((1, 2), 3, &members, &[Some(4)]))];
    assert_eq!(
        waits(&come, &[members.to_vec()]),
        Some((Want::Durable(0, DurableCount(6)), 2, vec![3]))
    );
}

/// The end of a log looks torn, but others had seen that it was durable at a majority.
#[test]
fn restart_waits_for_records_durable_at_majority() {
    let members = [1, 2, 3];
    let behind = Disk::of(1, &members, &[Some((1, 4))]).noting(note(4, 6, 4));
    let torn = Disk::of(1, &members, &[Some((1, 5))]).noting(note(5, 5, 4));
    let whole = Disk::of(1, &members, &[Some((1, 6))]).noting(note(6, 6, 4));
    let waited = waits_beside(&[(1, &torn), (2, &behind)]);
    assert_eq!(waited, (Want::Durable(0, DurableCount(6)), vec![3], vec![]));
    let come = [(1, &torn), (2, &behind), (3, &whole)];
    assert_eq!(goes_on(&come, &[members.to_vec()]).2, [Some((3, 6))]);
}

#[test]
fn view_known_to_one_node_is_not_restored() {
    let members = [1, 2, 3];
    // Node 1 was removed; its note of view 1 now says view 9.
    let removed = Disk::of(9, &members, &[Some((1, 2))]);
    let stays = Disk::of(2, &[2, 3], &[Some((2, 6))]);
    let come = [(1, &removed), (2, &stays), (3, &stays)];
    assert_eq!(waits_beside(&come), (Want::Support(NodeId(1)), vec![], vec![]));
    // Without this node the others restart.
    assert_eq!(goes_on(&come[1..], &[members.to_vec()]).2, [Some((2, 6))]);
    // Others have promised to continue from view 2, or an operator has accepted fewer nodes.
    let promised = stays.clone().promising(FIRST, 3, &members, &[Some(6)]);
    let forced = Disk { with_less: Some(ViewId(4).get()), ..removed.clone() };
    let of_one = Disk { decided: Some((9, vec![1])), ..forced };
    for come in
        [[(1, &removed), (2, &promised), (3, &stays)], [(1, &of_one), (2, &stays), (3, &stays)]]
    {
        let is_supported = with_restart(&come, &[members.to_vec()], |restart| {
            !matches!(restart.verdict(), Verdict::Wait(Wait { want: Want::Support(_), .. }))
        });
        assert!(is_supported);
    }
}
