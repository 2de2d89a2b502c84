//! Devices that ignore access flags, that do not revoke anything on a reset, that reuse keys, and
//! that place writes late. On each of them, a different method of revoking rights fails.

use tramontane_core::fabric::{ErrorKind, Event, Kind, PermissionEvent, Token, Write};
use tramontane_core::fabric::{Fabric as _, ViewRows as _};
use tramontane_core::ids::Rank;
use tramontane_verbs::fake::{Keys, Placement, Profile, ResetMeans};

use super::world::{LOG, RightsRun, VIEW};

const A: Rank = Rank(0);
const B: Rank = Rank(1);
const C: Rank = Rank(2);

/// The freedoms that a seed may draw, one at a time and all together.
fn profiles() -> [(&'static str, Profile); 8] {
    let late = Profile {
        placement: Placement::BytesReordered,
        placement_delay_ns: 500_000,
        completes_before_visible: true,
        ..Profile::strict()
    };
    [
        ("strict", Profile::strict()),
        ("flags ignored", Profile { ignores_access_flags: true, ..Profile::strict() }),
        (
            "a reset revokes nothing",
            Profile { reset: ResetMeans::NothingRevoked, ..Profile::strict() },
        ),
        ("a reset is an error", Profile { reset: ResetMeans::Error, ..Profile::strict() }),
        ("keys come again", Profile { keys: Keys::Reused, ..Profile::strict() }),
        ("keys come again at once", Profile { keys: Keys::ReusedAtOnce, ..Profile::strict() }),
        ("late placement", late.clone()),
        (
            "all of it",
            Profile {
                ignores_access_flags: true,
                reset: ResetMeans::NothingRevoked,
                keys: Keys::ReusedAtOnce,
                late_read_ns: 50_000,
                keeps_completions: true,
                jitter_ns: 20_000,
                ..late
            },
        ),
    ]
}

/// B grants A the right, and a write by A lands.
#[track_caller]
fn ensure_write(world: &mut RightsRun, value: u8) {
    world.grant(B, A);
    world.fill(A, 0, &[value; 256]);
    world.run_until(|world| world.post(A, B, 0, 256, None).is_ok());
    world.run_until(|world| world.look(B, 0, 256) == [value; 256]);
}

#[test]
fn write_without_permission_is_denied_on_every_device() {
    for (what, profile) in profiles() {
        println!("{what}");
        let mut world = RightsRun::new(2, 1, &profile);
        assert_eq!(world.post(A, B, 0, 8, None), Err(ErrorKind::Revoked), "nothing was granted");
        for value in 1..20 {
            ensure_write(&mut world, value);
            world.settle();
            world.revoke(B, A);
            world.fill(A, 0, &[0xee; 256]);
            // The notice has not arrived.
            world.post(A, B, 0, 256, Some(Token(9))).expect("it is not known yet");
            world.settle();
            assert_eq!(world.look(B, 0, 256), [value; 256], "{what}: a write landed");
            let told = world.told(A);
            assert!(
                told.contains(&PermissionEvent::Denied { view: VIEW, peer: B, region: LOG }),
                "{told:?}"
            );
            assert!(
                told.contains(&PermissionEvent::Restored { view: VIEW, peer: B, region: LOG }),
                "{told:?}"
            );
            assert!(!world.events(A).contains(&Event::Completed(Token(9))));
        }
    }
}

#[test]
fn writes_in_flight_never_land_after_revocation() {
    for (what, profile) in profiles() {
        for passed_ns in [0, 500, 1_900, 2_100, 3_000, 5_000, 50_000, 200_000] {
            let mut world = RightsRun::new(2, passed_ns, &profile);
            ensure_write(&mut world, 1);
            world.settle();
            world.fill(A, 0, &[2; 4096]);
            for _ in 0..4 {
                world.post(A, B, 0, 4096, None).expect("granted");
            }
            world.pass_ns(passed_ns);
            world.revoke(B, A);
            let at_once = world.look(B, 0, 4096);
            world.settle();
            assert_eq!(world.look(B, 0, 4096), at_once, "{what}, after {passed_ns} ns");
        }
    }
}

#[test]
fn late_write_never_lands_under_next_permission() {
    for (what, profile) in profiles() {
        let mut world = RightsRun::new(3, 3, &profile);
        // More often than a device has keys that differ in their lowest byte.
        for round in 0..600_u16 {
            let value = [u8::try_from(round % 200).expect("small") + 1; 64];
            world.grant(B, A);
            world.fill(A, 0, &value);
            world.run_until(|world| world.post(A, B, 0, 64, None).is_ok());
            world.run_until(|world| world.look(B, 0, 64) == value);
            world.fill(A, 0, &[0xee; 64]);
            world.post(A, B, 0, 64, None).expect("granted");
            world.revoke(B, A);
            let at_once = world.look(B, 0, 64);
            // Another peer gets the key, and then the peer whose write is in flight gets it back.
            world.grant(B, C);
            world.revoke(B, C);
            world.grant(B, A);
            world.settle();
            assert_eq!(world.look(B, 0, 64), at_once, "{what}, round {round}");
            world.revoke(B, A);
            world.settle();
        }
    }
}

#[test]
fn denied_write_does_not_affect_rows_or_peers() {
    for (what, profile) in profiles() {
        let mut world = RightsRun::new(3, 4, &profile);
        world.grant(B, C);
        ensure_write(&mut world, 1);
        world.settle();
        world.revoke(B, A);
        world.post(A, B, 0, 8, None).expect("it is not known yet");
        world.fill(C, 512, &[7; 64]);
        world.post(C, B, 512, 64, None).expect("granted");
        world.fabrics[A.index()].rows().row().apply(64, &[5; 8]).expect("inside");
        let row = [Write::of_row(64, 8, Kind::Guard)];
        world.fabrics[A.index()].post(VIEW, B, &row, None).expect("rows are not concerned");
        world.settle();
        assert_eq!(world.look(B, 512, 64), [7; 64], "{what}");
        let mut seen = [0; 8];
        world.fabrics[B.index()].rows().rows()[A.index()].read(64, &mut seen).expect("inside");
        assert_eq!(seen, [5; 8], "{what}");
    }
}

#[test]
fn connection_is_renewed_after_many_revoked_keys() {
    let mut world = RightsRun::new(2, 7, &Profile::strict());
    world.grant(A, B);
    world.run_until(|world| world.post(B, A, 512, 8, None).is_ok());
    let (mut restored, mut given_up, mut completed) = (0, 0, 0);
    for _ in 0..200 {
        // The owner's own writes in flight on that connection are given up and reported.
        world.post(B, A, 512, 8, Some(Token(3))).expect("granted");
        world.grant(B, A);
        world.settle();
        world.revoke(B, A);
        world.settle();
        for event in world.told(A) {
            assert_eq!(event, PermissionEvent::Restored { view: VIEW, peer: B, region: LOG });
            restored += 1;
        }
        let is_denial = |it: &PermissionEvent| matches!(it, PermissionEvent::Denied { .. });
        given_up += world.told(B).iter().filter(|it| is_denial(it)).count();
        let is_done = |it: &Event| *it == Event::Completed(Token(3));
        completed += world.events(B).iter().filter(|it| is_done(it)).count();
    }
    // 64 keys are remembered.
    assert_eq!((restored, given_up, completed), (3, 3, 197));
    ensure_write(&mut world, 1);
}

#[test]
fn permission_outlives_its_connection() {
    for (what, profile) in profiles() {
        let mut world = RightsRun::new(2, 6, &profile);
        for value in 1..20 {
            ensure_write(&mut world, value);
            world.grant(A, B);
            world.run_until(|world| world.post(B, A, 512, 8, None).is_ok());
            world.settle();
            world.told(A);
            world.revoke(A, B);
            // The denial breaks the connection, over which the other member has a right.
            world.post(B, A, 512, 8, None).expect("it is not known yet");
            world.run_until(|world| {
                let told = world.told(A);
                told.contains(&PermissionEvent::Restored { view: VIEW, peer: B, region: LOG })
            });
            world.fill(A, 0, &[100 + value; 256]);
            world.run_until(|world| world.post(A, B, 0, 256, None).is_ok());
            world.settle();
            assert_eq!(world.look(B, 0, 256), [100 + value; 256], "{what}");
            let is_denial = |it: &PermissionEvent| matches!(it, PermissionEvent::Denied { .. });
            assert!(!world.told(A).iter().any(is_denial), "{what}");
            world.revoke(B, A);
            world.settle();
        }
    }
}

#[test]
fn disconnected_peer_cannot_write_to_region() {
    for (what, profile) in profiles() {
        let mut world = RightsRun::new(2, 5, &profile);
        ensure_write(&mut world, 1);
        world.settle();
        world.fill(A, 0, &[2; 64]);
        world.post(A, B, 0, 64, None).expect("granted");
        world.fabrics[B.index()].cut(VIEW, A);
        let at_once = world.look(B, 0, 64);
        for _ in 0..1000 {
            world.pass();
            world.fabrics[A.index()].collect();
        }
        assert_eq!(world.look(B, 0, 64), at_once, "{what}");
    }
}
