//! The command line over RDMA, used correctly and incorrectly by an operator. These tests need a
//! device: run them in the lab, with `hal-verbs/lab/ci operator`.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;
use std::path::PathBuf;
use std::time::Duration;

use crate::support::{
    ProgramEnd, RunningProgram, TestFolder, children_of, free_addresses, is_alive, wait_for,
};
use rustix::process::Signal;
use serde_json::Value;

#[track_caller]
fn cast(place: &TestFolder, addresses: &str, id: usize, more: &[&str]) -> RunningProgram {
    let id = id.to_string();
    let base = ["cast", "--fabric", "verbs", "--addresses", addresses, "--id", &id];
    place.start(&[&base[..], more].concat())
}

fn key(place: &TestFolder, name: &str, digit: &str, mode: u32) -> String {
    let path: PathBuf = place.file(name, digit.repeat(64).as_bytes());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(mode)).expect("a mode");
    path.to_str().expect("UTF-8").to_owned()
}

fn numbered(id: usize, count: usize) -> Vec<u8> {
    (0..count).map(|number| format!("{id} {number}\n")).collect::<String>().into_bytes()
}

/// Starts members that have all joined, with their inputs open. Each has delivered a record by
/// then.
#[track_caller]
fn running(place: &TestFolder, count: usize) -> Vec<RunningProgram> {
    let addresses = free_addresses(count).join(",");
    let outputs: Vec<PathBuf> =
        (0..count).map(|id| place.path().join(format!("output-{id}"))).collect();
    let start = |id: usize| {
        let own = id.to_string();
        let base = ["cast", "--fabric", "verbs", "--addresses", &addresses, "--id", &own];
        let mut command = std::process::Command::new("sh");
        // The output goes to a file that a test can read while the member runs.
        command
            .args(["-c", "exec \"$0\" \"$@\" >$OUTPUT", env!("CARGO_BIN_EXE_tramontane")])
            .args(base);
        command.env("OUTPUT", &outputs[id]);
        RunningProgram::start(command)
    };
    let mut members: Vec<RunningProgram> = (0..count).map(start).collect();
    members[0].write(b"hello\n");
    for output in &outputs {
        wait_for("the first record", || {
            std::fs::read(output).is_ok_and(|text| text == b"hello\n").then_some(())
        });
    }
    members
}

#[test]
fn rdma_members_print_the_same_merged_output() {
    let place = TestFolder::new();
    let addresses = free_addresses(3).join(",");
    let key = key(&place, "key", "a", 0o600);
    let inputs = [numbered(0, 500), numbered(1, 3), numbered(2, 200)];
    let members: Vec<RunningProgram> = (0..3)
        .map(|id| {
            cast(&place, &addresses, id, &["--key-file", &key, "--allow-clear", "--window", "16"])
        })
        .collect();
    let feeders = members.into_iter().zip(inputs.clone()).map(|(mut member, input)| {
        std::thread::spawn(move || {
            member.write(&input);
            member.wait()
        })
    });
    let feeders: Vec<_> = feeders.collect();
    let ended = feeders.into_iter().map(|feeder| feeder.join().expect("no panic"));
    let outputs: Vec<Vec<u8>> = ended.map(ProgramEnd::succeeded).collect();
    assert!(outputs[1] == outputs[0] && outputs[2] == outputs[0], "the outputs differ");
    assert_eq!(outputs[0].len(), inputs.iter().map(Vec::len).sum::<usize>());
}

#[test]
fn unusable_key_file_is_refused_over_rdma() {
    let place = TestFolder::new();
    let (one, other) = (key(&place, "one", "a", 0o600), key(&place, "other", "b", 0o600));
    let addresses_of_two = free_addresses(2).join(",");
    let mut first = cast(
        &place,
        &addresses_of_two,
        0,
        &["--key-file", &one, "--allow-clear", "--join-timeout", "15"],
    );
    let mut second = cast(
        &place,
        &addresses_of_two,
        1,
        &["--key-file", &other, "--allow-clear", "--join-timeout", "15"],
    );
    // Another program may be listening at the address of member 0, so the second keeps trying.
    second.wait_with_input().failed_at_last(5, &["member 0", "a different key"]);
    first.wait_with_input().failed(5, &["member 1", "a different key"]);

    let exposed = key(&place, "exposed", "a", 0o644);
    let alone = |file: &str| {
        cast(&place, &free_addresses(2).join(","), 0, &["--key-file", file, "--allow-clear"]).wait()
    };
    alone(&exposed).failed(2, &["600"]);
    let garbled = key(&place, "garbled", "x", 0o600);
    alone(&garbled).failed(2, &["64 hexadecimal digits"]);
    alone("/nowhere/key").failed(2, &["/nowhere/key", "No such file"]);
    cast(&place, "10.9.0.1:7000,10.9.0.2:7000", 0, &[])
        .wait()
        .failed(2, &["10.9.0.1:7000", "no key"]);
}

#[test]
fn error_names_missing_rdma_member() {
    let place = TestFolder::new();
    let addresses = free_addresses(3).join(",");
    let mut first = cast(&place, &addresses, 0, &["--join-timeout", "2"]);
    let mut second = cast(&place, &addresses, 1, &["--join-timeout", "2"]);
    first.wait_with_input().failed(5, &["member 2 could not be reached"]);
    second.wait_with_input().failed(5, &["member 2 could not be reached"]);
}

#[test]
fn error_names_unusable_rdma_address() {
    let place = TestFolder::new();
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = taken.local_addr().map(|address| (taken, address)).expect("an address");
    let own = format!("{},{}", taken.1, free_addresses(1).join(","));
    cast(&place, &own, 0, &[]).wait().failed(5, &[&taken.1.to_string(), "in use"]);
    // A warning that no device has this address precedes the error.
    let mut foreign = cast(&place, "192.0.2.1:7000,127.0.0.1:7001", 0, &["--allow-clear"]).wait();
    let errors = foreign.errors.split_inclusive('\n').filter(|line| !line.contains(" WARN "));
    foreign.errors = errors.collect();
    foreign.failed(2, &["192.0.2.1"]);
    cast(&place, "no.such.host.invalid:1,127.0.0.1:7001", 0, &[])
        .wait()
        .failed(2, &["no.such.host.invalid"]);
    // The process at this address speaks another protocol.
    let stranger = format!("{},{}", taken.1, free_addresses(1).join(","));
    cast(&place, &stranger, 1, &["--join-timeout", "2"]).wait().failed(5, &["member 0"]);
}

#[test]
fn members_with_mismatched_options_cannot_connect() {
    let place = TestFolder::new();
    let addresses = free_addresses(2).join(",");
    let mut first = cast(&place, &addresses, 0, &["--window", "8"]);
    let mut second = cast(&place, &addresses, 1, &["--window", "9"]);
    first.wait_with_input().failed(5, &["member 1", "a different configuration"]);
    second.wait_with_input().failed(5, &["member 0", "a different configuration"]);
}

#[test]
fn error_names_unsupported_device_option() {
    let place = TestFolder::new();
    for (option, words) in [
        (["--device", "mlx5_7"], "mlx5_7"),
        (["--port", "9"], "no port 9"),
        (["--gid", "77"], "no GID 77"),
        (["--gid", "192.0.2.9"], "192.0.2.9"),
        (["--mtu", "1000"], "1000 B is not a valid packet size"),
    ] {
        for command in [&["demo", "--fabric", "verbs"][..], &["verbs", "devices", "--json"]] {
            place.run(&[command, &option].concat()).failed(2, &[words]);
        }
    }
    place.assert_empty();
}

/// One address is IPv4 and the other IPv6: both exist, but no path connects them.
#[test]
fn error_names_unreachable_rdma_address() {
    let place = TestFolder::new();
    let addresses = free_addresses(2).join(",");
    let at = |id, gid| cast(&place, &addresses, id, &["--gid", gid, "--loss-timeout", "1"]);
    let mut members = [at(0, "1"), at(1, "0")];
    let ended = members.each_mut().map(RunningProgram::wait_with_input);
    // The member that notices later may only see that the other has gone.
    let first = ended.iter().find(|ended| ended.status.code() == Some(5));
    let first = first.unwrap_or_else(|| panic!("{ended:?}"));
    first.failed_at_last(
        5,
        &["cannot be reached over rxe0", "addresses (GIDs) on the same network"],
    );
}

#[test]
fn interrupt_ends_waiting_and_running_member() {
    let place = TestFolder::new();
    let waiting = cast(&place, &free_addresses(2).join(","), 0, &[]);
    std::thread::sleep(Duration::from_millis(1500));
    waiting.signal(Signal::INT);
    let ended = waiting.wait();
    assert_eq!((ended.status.code(), ended.errors.as_str()), (Some(130), ""), "{ended:?}");

    let mut members = running(&place, 2);
    members[0].signal(Signal::INT);
    let ended = members.remove(0).wait_with_input();
    assert_eq!((ended.status.code(), ended.errors.as_str()), (Some(130), ""), "{ended:?}");
    members[0].wait_with_input().failed(6, &["member 0 is lost"]);
}

#[test]
fn survivors_name_killed_rdma_member() {
    let place = TestFolder::new();
    let mut members = running(&place, 3);
    members[1].signal(Signal::KILL);
    for id in [0, 2] {
        members[id].wait_with_input().failed(6, &["member 1 is lost"]);
    }
}

#[test]
fn rdma_demo_cleans_up_after_member_loss() {
    let place = TestFolder::new();
    let mut demo =
        place.start(&["demo", "--fabric", "verbs", "--nodes", "3", "--repeat", "1000000"]);
    let members =
        wait_for("three members", || Some(children_of(demo.pid())).filter(|all| all.len() == 3));
    std::thread::sleep(Duration::from_secs(3));
    crate::support::send(members[2], Signal::KILL);
    demo.wait_with_input().failed(6, &["killed by signal 9"]);
    assert!(!members.into_iter().any(is_alive), "a member outlived the demo");
    place.assert_empty();
}

#[test]
fn device_list_reports_the_chosen_device() {
    let place = TestFolder::new();
    let text = String::from_utf8(place.run(&["verbs", "devices"]).succeeded()).expect("text");
    for words in [
        "software RoCE",
        "order between writes: yes",
        "uses rxe0 port 1 GID 1",
        "only device",
        "declared lost",
    ] {
        assert!(text.contains(words), "{words:?} is not in {text}");
    }
    let json = place.run(&["verbs", "devices", "--json", "--loss-timeout", "2"]).succeeded();
    let listing: Value = serde_json::from_slice(&json).expect("JSON");
    assert_eq!(
        (&listing["choice"]["device"], &listing["choice"]["port"]),
        (&"rxe0".into(), &1.into())
    );
    assert!(listing["loss_time_ms"].as_u64() >= Some(2000), "{listing}");
}

/// Simulates `rdma link delete rxe0; over_rdma-... --ignored`.
#[test]
#[ignore = "takes a machine without a device"]
fn missing_rdma_device_is_reported_with_remedy() {
    let place = TestFolder::new();
    let advice = ["no RDMA device", "rdma link add"];
    place.run(&["demo", "--fabric", "verbs"]).failed(8, &advice);
    cast(&place, &free_addresses(2).join(","), 0, &[]).wait().failed(8, &advice);
    place.run(&["verbs", "devices"]).failed(8, &advice);
}
