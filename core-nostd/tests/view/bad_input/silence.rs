//! Members that publish no more heartbeats, and the times at which they are suspected (VIE-2).

use super::*;

const HEARTBEAT: u64 = 1;
const TIMEOUT: u64 = 10;

fn timed() -> Victim {
    let mut victim = Victim::new();
    let options = ViewOptions {
        heartbeat_interval_ns: HEARTBEAT,
        failure_timeout_ns: TIMEOUT,
        first_timeout_ns: TIMEOUT,
        members_max: 8,
        ..timeless()
    };
    victim.state = ViewState::new(ViewId(1), Rank(1), options);
    victim
}

/// A member counts as silent from the time when its next heartbeat was due. A reader that steps
/// rarely has read none meanwhile: of a pause longer than half a timeout, only a quarter of a
/// timeout counts.
#[test]
fn member_is_suspected_once_its_heartbeat_is_overdue() {
    for (pause, missed_at) in [
        (1, 1 + HEARTBEAT + TIMEOUT + 1),
        // Half a timeout is not a pause yet.
        (5, 1 + 3 * 5),
        // Two of the six units count.
        (6, 1 + 6 * 6),
    ] {
        let mut victim = timed();
        let mut missed = None;
        for turn in 0..60 {
            let now = 1 + turn * pause;
            victim.put(0, ViewColumn::Heartbeat, now);
            victim.step_at(now);
            if !victim.host.causes.is_empty() {
                missed.get_or_insert(now);
            }
        }
        assert_eq!(
            (missed, &victim.host.causes[..]),
            (Some(missed_at), &[(Rank(2), Cause::Silent)][..])
        );
    }
}

/// A member that knows the decision and falls silent before installing the next view will never
/// install it. A leaving member must not wait for it forever.
#[test]
fn silent_member_that_knows_decision_is_suspected() {
    let mut victim = timed();
    let own = Ballot(1);
    let accepted = Accepted { ballot: own, count: 2 };
    let decided = Committed { decided: true, accepted }.encode();
    let entries = [Change::Leave(Rank(1)), Change::Seal];
    for owner in [0, 2] {
        for (index, change) in (0..).zip(entries) {
            victim.put(owner, ViewColumn::Entry(index), change.encode(own));
        }
        victim.put(owner, ViewColumn::Trim(SubgroupId(0)), 6);
        victim.put(owner, ViewColumn::Committed, decided);
        victim.put_stance(owner, 0, 1, 2);
    }
    victim.put(0, ViewColumn::Installed, 3);
    victim.put(2, ViewColumn::Installed, 2);
    let left = (1..40).find(|now| victim.step_at(*now) == Status::Left);
    assert_eq!(left, Some(1 + HEARTBEAT + TIMEOUT + 1));
    assert_eq!(victim.host.causes, [], "the view is over, and accuses nobody");
}
