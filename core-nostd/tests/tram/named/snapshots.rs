//! Histories of replicas that took a snapshot, and whose logs have gaps below it, or entries that
//! were never decided.

use super::script::{P, STAMP, Script};

/// Two followers, one after the other, are away for longer than a log is, and take snapshots. Their
/// leader brings their logs up to date. When it is gone, one of them leads.
#[test]
fn followers_that_took_snapshots_lead_when_their_leader_is_gone() {
    let mut script = Script::new(&[None]);
    let stamp = script.world.log_control(P[0])[STAMP];
    let around = script.world.settings.log_entries + 4;
    for away in [2, 1] {
        let last = script.go_on(&[P[0], P[3 - away]], 0, around);
        let before = script.world.restored;
        let back = [P[0], P[away]];
        script.among(&back, &[], |world| world.has_delivered(P[away], last));
        assert!(script.world.restored > before, "by a snapshot");
        script.does_come(&back, &[], 400, |_| false);
        assert_eq!(script.world.log_control(P[away]), script.world.log_control(P[0]));
    }
    assert_eq!(script.world.log_control(P[0])[STAMP], stamp, "it led all the time");
    script.world.crash_replica(P[0]);
    script.among(&P[1..], &[], |world| world.leader(P[0].group).is_some());
    script.world.start_replica(P[0], false);
    script.end();
}
