//! The input of `tramontane node`, and output that nobody reads.

use std::fs::File;
use std::io::Read as _;
use std::net::TcpListener;
use std::process::{Child, Stdio};
use std::time::Duration;

use crate::node_durable::logged_group;
use crate::support::group::{GroupFile, Transport, lines};
use crate::support::wait_for;
use rustix::process::Signal;

#[test]
fn node_continues_after_too_long_line() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    group.write(&(group.text() + "\n[[subgroups]]\nname = \"log\"\nmessage_max = 8\n"));
    let mut nodes = [group.node(0, &[]), group.node(1, &["--leave-at-end"])];
    nodes[0].write("first\n123456789\nthird\n");
    group.await_same(&[0, 1], 2);
    nodes[0].await_errors(
        "line 2 of the input was not sent: it is longer than 8 bytes; raise message_max",
    );
    // The input is far larger than a buffer, and ends with an incomplete line.
    nodes[1].write(&format!("{}\nx\n123456789", "long".repeat(100_000)));
    nodes[1].end_input();
    let (code, errors) = nodes[1].ended();
    assert_eq!(code, Some(3), "{errors}");
    assert!(
        errors.contains("line 1 of the input") && errors.contains("line 3 of the input"),
        "{errors}"
    );
    nodes[0].write("fourth\n");
    assert_eq!(group.await_same(&[0], 4), "first\nthird\nx\nfourth\n");
    nodes[0].signal(Signal::TERM);
    nodes[0].assert_left();
}

#[test]
fn node_without_sender_refuses_lines_and_continues() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    group.write(&(group.text() + "\n[[subgroups]]\nname = \"log\"\nsenders = [0]\n"));
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    nodes[1].write("unwanted\n");
    nodes[1].await_errors("line 1 of the input was not sent: this node sends in no subgroup");
    nodes[0].write("wanted\n");
    assert_eq!(group.await_same(&[0, 1], 1), "wanted\n");
}

#[test]
fn node_reports_unsent_input_lines() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    group.write(&group.text().replace("= 3000", "= 600000"));
    group
        .write(&(group.text() + "\n[[subgroups]]\nname = \"log\"\nwindow = 10\nmessage_max = 8\n"));
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    group.await_members(&[0, 1]);
    nodes[0].write("before\n");
    group.await_same(&[0, 1], 1);
    // From now on, nothing is delivered, and ten slots fill.
    nodes[1].signal(Signal::STOP);
    nodes[0].write(&format!("123456789\n{}in part", lines(0, 0..300)));
    nodes[0].await_errors("line 2 of the input was not sent");
    let sent = || (group.status()["nodes"][0]["status"]["sent"] == 11).then_some(());
    wait_for("all slots are full", sent);
    nodes[0].signal(Signal::TERM);
    // A signal that follows immediately would count as the same request.
    std::thread::sleep(Duration::from_millis(900));
    nodes[0].signal(Signal::TERM);
    let (code, errors) = nodes[0].ended();
    assert_eq!(code, Some(143), "{errors}");
    let kept =
        "input lines that were read but not sent: 13 to 303 (line 303 in part); send them again\n";
    assert!(errors.contains(kept), "{errors}");
    let sent =
        "input lines that were sent, and that others may have delivered: 3 to 12; check a log";
    assert!(errors.contains(sent), "{errors}");
}

#[test]
fn leave_command_returns_after_resources_are_free() {
    let group = GroupFile::of(Transport::TcpWithKey, 2);
    let text = group.text();
    let address = text
        .lines()
        .filter_map(|line| line.strip_prefix("address = "))
        .nth(1)
        .expect("two addresses");
    let address = address.trim_matches('"');
    let _first = group.node(0, &[]);
    for _ in 0..8 {
        let mut second = group.node(1, &[]);
        group.await_members(&[0, 1]);
        second.write("a line\n");
        group.run("leave", &["--id", "1", "--time-limit", "60"]).succeeded();
        let log = File::open(group.log_path(1)).expect("it is there");
        log.try_lock().expect("nobody has it");
        // The system refuses connections a moment before it frees the port.
        wait_for("an address that is free", || TcpListener::bind(address).ok());
        second.assert_left();
    }
}

/// Starts a node whose output is a pipe that nobody reads.
fn unread(group: &GroupFile, id: &str) -> Child {
    let mut command = group.place.command(&["node", "--config", &group.config, "--id", id]);
    command
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("a process")
}

#[track_caller]
fn ended(mut child: Child) -> (Option<i32>, String) {
    let status = wait_for("the end of a node", || child.try_wait().expect("a status"));
    let mut errors = String::new();
    child.stderr.take().expect("piped").read_to_string(&mut errors).expect("text");
    (status.code(), errors)
}

#[test]
fn node_with_unread_output_can_leave() {
    let group = logged_group(Transport::SharedMemory, 3);
    // The timeout is so long that a node waiting to be removed would not exit in time.
    group.write(&group.text().replace("= 3000", "= 40000"));
    let child = unread(&group, "2");
    let mut nodes = [group.node(0, &[]), group.node(1, &[])];
    nodes[0].await_errors("view 1: 0 1 2");
    let line = format!("{}\n", "x".repeat(5_000));
    let mut input = nodes[0].take_input();
    // The lines are more than a pipe and all buffers hold.
    let feeder = std::thread::spawn(move || {
        for _ in 0..2_000 {
            std::io::Write::write_all(&mut input, line.as_bytes()).expect("it reads");
        }
        input
    });
    let (code, errors) = ended(child);
    assert_eq!(code, Some(141), "{errors}");
    assert!(errors.contains("the output is not read") && errors.contains("--quiet"), "{errors}");
    nodes[1].await_errors("view 2: 0 1; gone 2\n");
    let _input = feeder.join().expect("no panic");
    group.await_same(&[0, 1], 2_000);
}

#[test]
fn node_with_unread_output_ends_on_sigterm() {
    let group = logged_group(Transport::SharedMemory, 2);
    let child = unread(&group, "1");
    let mut node = group.node(0, &[]);
    node.await_errors("view 1: 0 1");
    // The lines are more than a pipe holds, and less than all buffers hold.
    for _ in 0..200 {
        node.write(&format!("{}\n", "x".repeat(5_000)));
    }
    group.await_same(&[0], 200);
    crate::support::send(child.id(), Signal::TERM);
    let (code, errors) = ended(child);
    assert_eq!(code, Some(141), "{errors}");
    assert!(errors.contains("the output was not read for 5 s"), "{errors}");
    node.await_errors("view 2: 0; gone 1\n");
}
