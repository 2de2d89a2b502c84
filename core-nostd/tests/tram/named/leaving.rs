//! Histories of replicas that a client loses, of clients that restart, and of clients that leave.

use tramontane_core::ids::ClientNumber;
use tramontane_core::tram::{Answers, LinkId, Stage};

use super::script::{P, Script, here};

const NUMBER: ClientNumber = ClientNumber(0);

/// TRM-7: a client that waits for all replicas waits only for those to which it is connected.
#[test]
fn client_does_not_wait_for_lost_replicas() {
    let mut script = Script::new(&[None]);
    script.world.crash_replica(P[2]);
    let message = script.multicast_for(0, here(), Answers::All);
    script.among(&P[..2], &[0], |world| world.sent[&message].answered);
    let client = &script.world.clients[&NUMBER].client;
    let stages = [0, 1, 2].map(|link| client.stage(LinkId(link)));
    assert_eq!(stages, [Stage::Ready, Stage::Ready, Stage::Absent]);
    script.world.start_replica(P[2], false);
    script.end();
}

/// TRM-7: a client stays registered until it announces that it leaves, whichever incarnation it is.
#[test]
fn restarted_client_stays_registered_until_it_leaves() {
    let mut script = Script::new(&[None]);
    for _ in 2..=4 {
        script.world.crash_client(NUMBER);
        script.world.start_client(NUMBER);
        for _ in 0..2 {
            let message = script.multicast(0, here());
            script.among(&P, &[0], |world| world.sent[&message].answered);
            script.does_come(&P, &[0], 100, |_| false);
            assert!(!script.world.clients[&NUMBER].client.is_closed());
        }
    }
    script.end();
}

/// TRM-7: a client has left once its own registration is closed. An earlier closed registration
/// under the same number does not count.
#[test]
fn departure_of_earlier_incarnation_does_not_count() {
    const OPENED: usize = 8;
    let mut script = Script::new(&[None]);
    for _ in 0..3 {
        script.world.crash_client(NUMBER);
        script.world.start_client(NUMBER);
    }
    let message = script.multicast(0, here());
    script.among(&P, &[0], |world| world.sent[&message].answered);
    script.world.leave(NUMBER);
    let own = u64::from(script.world.clients[&NUMBER].incarnation);
    for (shown, has_left) in [(own - 1, false), (own, true), (own + 1, true)] {
        (0..3).for_each(|link| script.world.poke_client(NUMBER, LinkId(link), OPENED, shown << 1));
        assert_eq!(script.world.has_left(NUMBER), has_left, "{shown} of {own}");
    }
}
