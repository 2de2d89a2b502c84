//! The trial at the start detects what a device does not deny.

use tramontane_verbs::fake::{
    Clock, CommandKind, Keys, Network, Placement, Profile, ResetMeans, Windows,
};
use tramontane_verbs::{JoinError, Limits, RightsWay, Site, Verdict, WriteKeys};

fn verdicts(profile: Profile) -> Vec<Verdict> {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    let site = Site::open(&device.wanted(), &Limits::default(), None).expect("it opens");
    let verdict = |way| site.try_rights(way, 4096, 3).expect("it can be tried").verdict;
    RightsWay::ALL.into_iter().map(verdict).collect()
}

#[test]
fn trial_detects_methods_that_deny_nothing() {
    use Verdict::{Denied, LetThrough};
    assert_eq!(verdicts(Profile::strict()), [Denied, Denied, Denied, Denied]);
    let profile = Profile { ignores_access_flags: true, ..Profile::strict() };
    assert_eq!(verdicts(profile), [Denied, Denied, LetThrough, LetThrough]);
    let profile = Profile { reset: ResetMeans::NothingRevoked, ..Profile::strict() };
    assert_eq!(verdicts(profile), [Denied, Denied, Denied, LetThrough]);
    let profile = Profile { reset: ResetMeans::Error, ..Profile::strict() };
    assert_eq!(verdicts(profile), [Denied, Denied, Denied, Denied]);
    let profile = Profile { keys: Keys::Reused, ..Profile::strict() };
    assert_eq!(verdicts(profile), [Denied, Denied, Denied, Denied]);
}

#[test]
fn ended_keys_are_denied_on_every_device() {
    for seed in 0..100 {
        let found = verdicts(Profile::drawn(seed));
        assert_eq!(found[..2], [Verdict::Denied, Verdict::Denied], "seed {seed}");
    }
}

#[test]
fn trial_makes_the_reported_number_of_commands() {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(Profile::strict());
    let site = Site::open(&device.wanted(), &Limits::default(), None).expect("it opens");
    let context = *network.contexts(&device).last().expect("open");
    let count = |kind| -> u64 {
        let commands = network.commands(context).into_iter();
        commands.filter(|count| count.kind == kind).map(|count| count.count).sum()
    };
    let before = (count(CommandKind::Register), count(CommandKind::Deregister));
    let trial = site.try_rights(RightsWay::Registration, 4096, 1).expect("it can be tried");
    assert_eq!((trial.grant.commands, trial.revoke.commands), (1, 1));
    // One for the writer's memory, and one for each of two keys.
    assert_eq!(count(CommandKind::Register) - before.0, 3);
    assert_eq!(count(CommandKind::Deregister) - before.1, 3);
    let all = || -> u64 { network.commands(context).iter().map(|count| count.count).sum() };
    for (rounds, commands) in [(1, 24), (2, 24)] {
        // Each round takes three connections more, of eight commands, and windows take none.
        let before = all();
        let trial = site.try_rights(RightsWay::Window, 4096, rounds).expect("it can be tried");
        assert_eq!((trial.grant.commands, trial.revoke.commands), (0, 0));
        let fixed = all() - before - u64::from(rounds) * commands;
        assert_eq!(fixed, 22, "objects made and ended, and the first connection");
    }
}

#[test]
fn late_placement_is_not_mistaken_for_denial() {
    let profile = Profile {
        placement: Placement::BytesReordered,
        completes_before_visible: true,
        placement_delay_ns: 1_000_000,
        ..Profile::strict()
    };
    // With flags, writes in flight land late.
    use Verdict::{Denied, LetThrough};
    assert_eq!(verdicts(profile), [Denied, Denied, LetThrough, Denied]);
}

/// What keys are on a device, where windows were asked for.
fn keys_on(profile: Profile) -> Result<WriteKeys, JoinError> {
    let network = Network::new(1, Clock::Virtual);
    let device = network.add_device(profile);
    let limits = Limits { write_keys: WriteKeys::Windows, ..Limits::default() };
    let site = Site::open(&device.wanted(), &limits, None).expect("it opens");
    let context = *network.contexts(&device).last().expect("open");
    let commands = || -> u64 { network.commands(context).iter().map(|count| count.count).sum() };
    let before = commands();
    let found = site.write_keys()?;
    assert!(commands() - before < 120, "{} commands", commands() - before);
    let before = commands();
    assert_eq!(site.write_keys()?, found);
    assert_eq!(commands(), before, "tried once");
    Ok(found)
}

#[test]
fn windows_that_a_device_does_not_keep_are_left_for_registrations() {
    let with = |windows| keys_on(Profile { windows, ..Profile::strict() }).expect("it keeps some");
    assert_eq!(with(Windows::Kept), WriteKeys::Windows);
    assert_eq!(with(Windows::None), WriteKeys::Registrations);
    assert_eq!(with(Windows::NotTakenBack), WriteKeys::Registrations);
}

#[test]
fn device_with_working_ended_keys_is_refused() {
    let profile = Profile { keeps_ended_keys: true, windows: Windows::None, ..Profile::strict() };
    let refused = keys_on(profile).expect_err("no way is safe there");
    assert!(matches!(refused, JoinError::NotDenied { .. }), "{refused}");
    println!("{refused}");
}
