//! Histories of campaigns: when a replica begins one, and what it waits for before it leads.

use tramontane_core::ids::Rank;
use tramontane_core::tram::{LinkId, ReplicaId, Timestamp};

use super::script::{P, Script, here};
use crate::world::World;

/// TRM-3: of five replicas, four have decided A. Leader 0's write of A to replica 4 is in flight,
/// and is read from leader 0's log as it lands: the header has landed, but the payload has not. The
/// others fill the log once around under leader 1. Then replica 0 campaigns, and copies the entries
/// that it lacks over A. Replica 4 must not deliver A with the bytes of another message.
#[test]
fn candidate_does_not_overwrite_sources_of_pending_writes() {
    let mut script = Script::of(&[None], 5);
    let [three, last] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let four = [P[0], P[1], P[2], three];
    script.world.network.borrow_mut().reads_late = true;
    let place = script.world.replicas[&P[0]].replica.delivered();
    let a = script.multicast(0, here());
    four.iter().for_each(|id| script.delivers(*id, a, &four, &[0]));
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.ordered_at(last, place) != Some(a) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can(), "its header comes there");
    }
    assert!(!script.world.has_bytes(last, a), "its payload has not landed");
    script.leads(P[1], &four[1..]);
    let around = script.world.settings.log_entries;
    let other = script.go_on(&four[1..], 1, around);
    script.among(&[P[0], P[2], three], &[], |world| world.has_bytes(P[0], other));
    assert!(!script.world.has_bytes(P[0], a), "the last entry has its place");
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    script.does_come(&[last], &[], 10, |_| false);
    script.end();
}

/// TRM-4: a candidate without writes in flight waits only for a quorum.
#[test]
fn candidate_without_writes_in_flight_leads_immediately() {
    let mut script = Script::new(&[None]);
    let before = script.world.replicas[&P[1]].replica.promised();
    script.among(&P[1..], &[], |world| world.replicas[&P[1]].replica.promised() > before);
    let begun = script.world.now;
    for _ in 0..20 {
        script.moves(&P[1..], &P[1..], 1);
        script.world.now = begun;
    }
    assert!(script.world.replicas[&P[1]].replica.is_leader());
    script.end();
}

/// TRM-8: others depose a leader repeatedly before it decides anything. It waits before each new
/// campaign, longer each time, up to 64 heartbeats; otherwise two such replicas could depose each
/// other indefinitely. Once it has decided something, it no longer waits.
#[test]
fn repeatedly_deposed_leader_waits_longer_before_campaigning() {
    const PROMISED: usize = 32;
    let mut script = Script::new(&[None]);
    let message = script.multicast(0, here());
    script.delivers(P[0], message, &P, &[0]);
    let heartbeat_ns = 3 * script.world.settings.heartbeat_ns;
    let promised = |world: &World| world.replicas[&P[0]].replica.promised();
    let pause_ns = |script: &mut Script| {
        let (begun, before) = (script.world.now, promised(&script.world));
        while promised(&script.world) == before {
            assert!(script.world.now - begun < 100 * heartbeat_ns);
            if script.world.replicas[&P[0]].replica.is_leader() {
                let higher = Timestamp::new(before.round() + 1, 1, Rank(1)).cell();
                script.world.poke(P[0], LinkId(1), PROMISED, higher);
            }
            script.moves(&P, &P, 1);
        }
        script.world.now - begun
    };
    let heartbeats = [0, 1, 2, 4, 8, 16, 32, 64, 64].map(|count| count * heartbeat_ns);
    for at_least in heartbeats {
        let waited = pause_ns(&mut script);
        assert!(waited >= at_least && waited < at_least + 2_000, "{waited} for {at_least}");
    }
    script.among(&P, &[], |world| world.replicas[&P[0]].replica.is_leader());
    let message = script.multicast(0, here());
    script.delivers(P[0], message, &P, &[0]);
    assert!(pause_ns(&mut script) < 2_000);
    script.end();
}
