//! The trial before the first view with regions detects a device that does not deny.

use tramontane_verbs::fake::{Clock, Network, Placement, Profile};
use tramontane_verbs::{JoinError, Limits, Site};

/// Tries whether a device denies writes with ended keys.
fn try_denial(profile: Profile) -> Result<(), JoinError> {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    let (write_order, completion_visible) = (Some(true), Some(true));
    let limits = Limits { write_order, completion_visible, ..Limits::default() };
    let site = Site::open(&device.wanted(), &limits, None).expect("it opens");
    let context = *network.contexts(&device).last().expect("open");
    let commands = || -> u64 { network.commands(context).iter().map(|count| count.count).sum() };
    let before = commands();
    site.check_regions()?;
    let count = commands() - before;
    assert!((1..120).contains(&count), "{count} commands");
    let before = commands();
    site.check_regions()?;
    assert_eq!(commands(), before, "tried once");
    Ok(())
}

#[test]
fn revoked_keys_are_denied_on_every_device() {
    for seed in 0..100 {
        try_denial(Profile::drawn(seed)).unwrap_or_else(|error| panic!("seed {seed}: {error}"));
    }
}

#[test]
fn device_with_late_placement_is_accepted() {
    let profile = Profile {
        placement: Placement::BytesReordered,
        completes_before_visible: true,
        placement_delay_ns: 1_000_000,
        ..Profile::strict()
    };
    try_denial(profile).expect("what was acknowledged lands before a key ends");
}

#[test]
fn device_that_honours_revoked_keys_is_refused() {
    let profile = Profile { keeps_ended_keys: true, ..Profile::strict() };
    let refused = try_denial(profile).expect_err("no way is safe there");
    assert!(matches!(refused, JoinError::NotDenied { .. }), "{refused}");
    println!("{refused}");
}
