//! Histories of counts that a replica publishes so that others can reuse memory. They need not be
//! sent at once, but must be sent before that memory is full; otherwise all would wait for the next
//! heartbeat.

use tramontane_core::ids::GroupId;
use tramontane_core::tram::Destinations;

use super::script::{C, P, Script, here};

/// TRM-6: followers free entries in the log.
#[test]
fn followers_free_log_entries_without_a_heartbeat() {
    let mut script = Script::new(&[None]);
    script.does_come(&P, &[0, 1], 400, |_| false);
    let mut last = None;
    for _ in 0..2 * script.world.settings.log_entries {
        last = Some(script.multicast(0, here()));
        script.at_one_moment(0, 6);
    }
    assert!(script.world.has_delivered(P[0], last.expect("some")));
    script.end();
}

/// TRM-7: a group orders messages that only its children deliver, so it does not reply to them. It
/// still makes room in its client's ring.
#[test]
fn non_delivering_group_still_frees_ring_slots() {
    let mut script = Script::new(&[None, Some(0), Some(0)]);
    let all = script.world.ids();
    script.does_come(&all, &[0, 1], 400, |_| false);
    let to = Destinations::of(GroupId(1)).with(GroupId(2));
    let mut last = None;
    for _ in 0..3 * script.world.settings.window {
        last = Some(script.multicast(0, to));
        script.at_one_moment(0, 20);
    }
    assert!(script.world.has_delivered(C[0], last.expect("some")));
    script.end();
}
