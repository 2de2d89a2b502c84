//! Errors at the start, each distinguishable from the others.

use std::time::Duration;

use tramontane_core::fabric::Region;
use tramontane_verbs::devices::{ChoiceError, GidChoice, Wanted};
use tramontane_verbs::{JoinError, Limits};

use super::group::{GroupShape, device, try_join_all};

#[track_caller]
fn error(shape: &GroupShape) -> JoinError {
    let alone = GroupShape { members: 1, ..shape.clone() };
    let error = try_join_all(&alone).remove(0).expect_err("it must not join");
    println!("{error}");
    error
}

#[test]
fn startup_error_names_missing_device_or_address() {
    let ask = |wanted| error(&GroupShape { wanted, ..GroupShape::default() });
    let unknown = ask(Wanted { device: Some("mlx5_7".into()), ..device::wanted() });
    // A fake device is never listed, so without a real one there may be no device and no library at
    // all.
    let has_none = device::real().is_none();
    assert!(match unknown {
        JoinError::Choice(ChoiceError::NoSuchDevice { .. }) => true,
        JoinError::Choice(ChoiceError::NoDevice) | JoinError::NoLibrary(_) => has_none,
        _ => false,
    });
    let port = ask(Wanted { port: Some(9), ..device::wanted() });
    assert!(matches!(port, JoinError::Choice(ChoiceError::NoSuchPort { .. })));
    let gid = ask(Wanted { gid: GidChoice::Index(77), ..device::wanted() });
    assert!(matches!(gid, JoinError::Choice(ChoiceError::NoSuchGid { .. })));
    let address = GidChoice::Address("192.0.2.1".parse().expect("an address"));
    let address = ask(Wanted { gid: address, ..device::wanted() });
    assert!(matches!(address, JoinError::Choice(ChoiceError::NoGidFor { .. })));
}

/// One member is on IPv4 and the other on IPv6: both addresses exist, but no path leads from one to
/// the other.
#[test]
fn unreachable_path_is_reported_before_first_message() {
    let at = |index| Wanted { gid: GidChoice::Index(index), ..device::wanted() };
    let limits = Limits { loss_time: Duration::from_millis(300), ..Limits::default() };
    let shape = GroupShape {
        members: 2,
        wanted: at(1),
        last_wanted: Some(at(0)),
        limits,
        ..GroupShape::default()
    };
    let errors: Vec<JoinError> = try_join_all(&shape)
        .into_iter()
        .map(|joined| joined.expect_err("no write arrives"))
        .collect();
    errors.iter().for_each(|error| println!("{error}"));
    assert!(errors.iter().all(|error| matches!(error, JoinError::NoAnswer { .. })));
}

/// Root may open every device, so run this as another user, after `chmod 600
/// /dev/infiniband/uverbs0`.
#[test]
#[ignore = "needs a user who may not open the device"]
fn unopenable_device_error_names_remedy() {
    let error = error(&GroupShape::default());
    assert!(matches!(error, JoinError::NotPermitted { .. }));
    assert!(error.to_string().contains("/dev/infiniband"));
}

#[test]
fn regions_require_distinct_numbers() {
    let memory = |id| (Region(id), 4096);
    for regions in [vec![memory(0)], vec![memory(3), memory(3)]] {
        let error = error(&GroupShape { regions, ..GroupShape::default() });
        assert!(matches!(error, JoinError::BadOptions(_)));
    }
}

/// Root may lock any amount of memory, so run this without that capability, for example with
/// `setpriv --bounding-set=-ipc_lock --inh-caps=-ipc_lock bash -c 'ulimit -l 64; device-test
/// --ignored ...'`.
#[test]
#[ignore = "needs a process that may lock little"]
fn unlockable_memory_error_names_remedy() {
    let error = error(&GroupShape { row_bytes: 16 << 20, ..GroupShape::default() });
    let JoinError::LockedMemory { needed, limit: Some(_), .. } = &error else { panic!("{error}") };
    assert!(*needed >= Some(16 << 20), "the row, and what lies behind it: {error}");
    assert!(error.to_string().contains("ulimit -l"));
}
