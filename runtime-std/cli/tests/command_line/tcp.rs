//! `--fabric tcp`: the same commands between hosts without RDMA. In these tests, the hosts are the
//! same machine.

use std::net::TcpListener;
use std::os::unix::fs::PermissionsExt as _;

use crate::support::{ProgramEnd, RunningProgram, TestFolder, free_addresses, wait_for};
use rustix::process::Signal;
use serde_json::Value;

#[track_caller]
fn cast(place: &TestFolder, addresses: &str, id: usize, more: &[&str]) -> RunningProgram {
    let id = id.to_string();
    place.start(
        &[&["cast", "--fabric", "tcp", "--addresses", addresses, "--id", &id], more].concat(),
    )
}

fn key(place: &TestFolder, byte: &str) -> String {
    let path = place.file("key", byte.repeat(32).as_bytes());
    std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o600)).expect("its owner's");
    path.to_str().expect("a path").to_owned()
}

fn numbered(id: usize, count: usize) -> Vec<u8> {
    (0..count).map(|number| format!("{id} {number}\n")).collect::<String>().into_bytes()
}

#[test]
fn tcp_demo_delivers_identically_at_all_members() {
    let place = TestFolder::new();
    let output = place.run(&["demo", "--fabric", "tcp", "--nodes", "3", "--json"]).succeeded();
    let report: Value = serde_json::from_slice(&output).expect("JSON");
    assert_eq!(report["agree"], true, "{report}");
    place.assert_empty();
}

#[test]
fn merged_output_does_not_depend_on_the_key() {
    let place = TestFolder::new();
    let key = key(&place, "7f");
    for more in [&[][..], &["--key-file", &key], &["--window", "4"]] {
        let addresses = free_addresses(3).join(",");
        let feeders: Vec<_> = (0..3)
            .map(|id| {
                let mut member = cast(&place, &addresses, id, more);
                std::thread::spawn(move || {
                    member.write(&numbered(id, [3_000, 2, 500][id]));
                    member.wait()
                })
            })
            .collect();
        let ended: Vec<ProgramEnd> =
            feeders.into_iter().map(|feeder| feeder.join().expect("no panic")).collect();
        let outputs: Vec<Vec<u8>> = ended.into_iter().map(ProgramEnd::succeeded).collect();
        assert!(outputs[1] == outputs[0] && outputs[2] == outputs[0], "the outputs differ");
        assert_eq!(outputs[0].split(|byte| *byte == b'\n').count(), 3_503);
    }
}

#[test]
fn survivors_name_killed_tcp_member() {
    let place = TestFolder::new();
    let addresses = free_addresses(3).join(",");
    let mut members: Vec<RunningProgram> =
        (0..3).map(|id| cast(&place, &addresses, id, &[])).collect();
    let seen = place.path().join("seen");
    let mut watched =
        place.command(&["cast", "--fabric", "tcp", "--addresses", &addresses, "--id", "0"]);
    // Member 0 is restarted with an output that can be read while it runs.
    drop(members.remove(0));
    let file = std::fs::File::create(&seen).expect("a file");
    let mut first =
        watched.stdin(std::process::Stdio::piped()).stdout(file).spawn().expect("a process");
    members[0].write(b"hello\n");
    wait_for("the record", || {
        std::fs::read(&seen).is_ok_and(|seen| seen == b"hello\n").then_some(())
    });
    members[1].signal(Signal::KILL);
    let survivor = members.remove(0).wait();
    survivor.failed(6, &["member 2"]);
    assert_eq!(first.wait().expect("an end").code(), Some(6));
}

#[test]
fn members_report_mismatched_tcp_options() {
    let place = TestFolder::new();
    let run = |more: &[&str]| place.run(&[&["cast", "--fabric", "tcp"], more].concat());
    run(&["--id", "0"]).failed(2, &["--addresses is missing"]);
    run(&["--id", "0", "--addresses", "10.9.0.1:7000,10.9.0.2:7000"]).failed(2, &["key"]);
    run(&["--id", "0", "--addresses", "127.0.0.1:1,127.0.0.1:2", "--device", "rxe0"])
        .failed(2, &["--device", "--fabric verbs"]);
    let taken = TcpListener::bind("127.0.0.1:0").expect("a port");
    let taken = format!("{},127.0.0.1:9", taken.local_addr().expect("an address"));
    run(&["--id", "0", "--addresses", &taken]).failed(5, &["127.0.0.1"]);
    let addresses = free_addresses(2).join(",");
    run(&["--id", "0", "--addresses", &addresses, "--join-timeout", "1"]).failed(5, &["member"]);
}
