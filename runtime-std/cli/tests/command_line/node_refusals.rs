//! Conditions that keep a `tramontane node` out of its group, and disturbances that a group
//! tolerates.

use std::io::Write as _;
use std::net::TcpStream;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::{RunningProgram, wait_for};
use rustix::process::Signal;

fn short(id: &str) -> Vec<&str> {
    vec!["--id", id, "--time-limit", "3"]
}

#[test]
fn invalid_group_file_error_names_remedy() {
    let group = GroupFile::without_file();
    let nodes = "[[nodes]]\nid = 0\n[[nodes]]\nid = 1\n";
    for (text, words) in [
        ("", &["line 1", "name", "--example-config"][..]),
        ("name = \"g\"\nnodes = []\nfabrik = 1\n", &["line 3", "fabrik"]),
        (&format!("name = \"g\"\n{nodes}{nodes}"), &["node 0", "twice"]),
        (&format!("name = \"g\"\ninitial = [7]\n{nodes}"), &["initial", "node 7"]),
        (&format!("name = \"g\"\nfabric = \"tcp\"\n{nodes}"), &["node 0", "address"]),
        (&format!("name = \"g/h\"\n{nodes}"), &["g/h"]),
        (&format!("name = \"g\"\nheartbeat_ms = 0\n{nodes}"), &["heartbeat_ms"]),
        (&format!("name = \"g\"\nkey_file = \"nokey\"\n{nodes}"), &["nokey", "key_file"]),
        (
            &format!(
                "name = \"g\"\n{nodes}[[subgroups]]\nname = \"s\"\nlarge_max = 9\nmessage_max = 7\n"
            ),
            &["\"s\"", "large_max", "message_max"],
        ),
        (
            &format!("name = \"g\"\n{nodes}[[subgroups]]\nname = \"s\"\nlarge_max = 268435457\n"),
            &["large_max", "268435456"],
        ),
        (
            &format!(
                "name = \"g\"\n{nodes}{}[[subgroups]]\nname = \"s\"\nlarge_max = 9\nlarge_window = 64\n",
                (2..10).map(|id| format!("[[nodes]]\nid = {id}\n")).collect::<String>(),
            ),
            &["660 buffers", "large_window"],
        ),
        (
            "name = \"g\"\n[[nodes]]\nid = 0\nrack = \"a\"\n[[nodes]]\nid = 1\n",
            &["node 1 has no rack", "; "],
        ),
        (
            &format!(
                "name = \"g\"\nmembership = \"fixed\"\n{nodes}[[subgroups]]\nname = \"s\"\n\
                 pause_senders_after_ms = 9\n"
            ),
            &["pause_senders_after_ms", "; "],
        ),
    ] {
        group.write(text);
        group.run("node", &short("0")).failed(2, words);
    }
    let relayed = |fabric, more| {
        let node = |id| format!("[[nodes]]\nid = {id}\naddress = \"127.0.0.1:1{id}\"\n");
        let nodes: String = (0..3).map(node).collect();
        format!(
            "name = \"g\"\nfabric = \"{fabric}\"\nallow_clear = true\n{nodes}\
             [[subgroups]]\nname = \"s\"\nrelayed = true\n{more}\n"
        )
    };
    for (fabric, more, words) in [
        ("shm", "senders = [0]", ["\"s\" cannot be relayed", "shared memory", "; "]),
        ("tcp", "", ["\"s\" cannot be relayed", "exactly one sender", "; "]),
        ("tcp", "senders = [0]\nunordered = true", ["relayed", "unordered", "; "]),
    ] {
        group.write(&relayed(fabric, more));
        group.run("node", &short("0")).failed(2, &words);
    }
    group.write(&format!("name = \"g\"\n{nodes}"));
    group.run("node", &short("9")).failed(2, &["node 9"]);
    group
        .run("node", &[&short("0")[..], &["--subgroup", "x"]].concat())
        .failed(2, &["--subgroup x"]);
    group
        .run("node", &[&short("0")[..], &["--metrics", "0.0.0.0:0"]].concat())
        .failed(2, &["--metrics-exposed"]);
    group
        .run("node", &[&short("0")[..], &["--device", "rxe0"]].concat())
        .failed(2, &["--device", "fabric = \"verbs\""]);
    group
        .run("node", &[&short("0")[..], &["--log", "/nowhere/log"]].concat())
        .failed(2, &["/nowhere/log"]);
    group.place.assert_empty();
}

#[test]
fn error_names_node_with_mismatched_configuration() {
    let group = GroupFile::of(Transport::TcpWithKey, 3);
    group.key("other", "3c");
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    let run =
        |config: &str| group.place.run(&[&["node", "--config", config][..], &short("2")].concat());
    // Another program may be listening at a member's address, so the node keeps trying.
    let other_key = run(&group.variant("key_file = \"key\"", "key_file = \"other\""));
    other_key.failed_at_last(5, &["uses a different key"]);
    assert!(other_key.errors.contains("waiting for 0: the process at"), "{}", other_key.errors);
    let other_name = run(&group.variant("name = \"log\"", "name = \"glo\""));
    other_name.failed(5, &["node ", "a different configuration", "name"]);
    nodes.push(group.node(2, &[]));
    group.await_members(&[0, 1, 2]);
}

#[test]
fn nodes_with_different_files_name_each_other() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 2);
        let other = group.variant("[[nodes]]\nid = 0", "majority = false\n[[nodes]]\nid = 0");
        let mut first = group.node(0, &["--time-limit", "20"]);
        let ended =
            group.place.run(&["node", "--config", &other, "--id", "1", "--time-limit", "20"]);
        ended.failed_at_last(5, &["node 0", "a different configuration", "majority"]);
        let (code, errors) = first.ended();
        assert_eq!(code, Some(5), "{errors}");
        assert!(errors.contains("node 1 has a different configuration"), "{errors}");
    }
}

#[test]
fn waiting_nodes_name_the_missing_node() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    group.run("node", &short("0")).failed(5, &["1", "2"]);
    let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    nodes[0].write(&lines(0, 0..10));
    group.await_same(&[0, 1, 2], 10);
    drop(nodes);
    // All nodes died at once. A node that returns alone must not act for the others.
    group.run("node", &short("1")).failed(5, &["0", "2"]);
    assert_eq!(group.log(1).lines().count(), 10, "its log is untouched");
}

#[test]
fn minority_can_return_while_majority_runs() {
    let group = GroupFile::of(Transport::TcpWithKey, 5);
    let mut nodes: Vec<_> = (0..5).map(|id| group.node(id, &[])).collect();
    nodes[0].write(&lines(0, 0..50));
    group.await_same(&[0, 1, 2, 3, 4], 50);
    let gone = nodes.split_off(3);
    gone.into_iter().for_each(Node::kill);
    nodes[1].write(&lines(1, 0..50));
    group.await_same(&[0, 1, 2], 100);
    nodes.extend((3..5).map(|id| group.node(id, &[])));
    group.await_members(&[0, 1, 2, 3, 4]);
    nodes[4].write(&lines(4, 0..50));
    group.await_same(&[0, 1, 2, 3, 4], 150);
}

/// Each of two folders has an example file, so the groups have the same name.
#[test]
fn error_names_group_started_from_another_folder() {
    let (group, other) = (GroupFile::of(Transport::SharedMemory, 2), GroupFile::without_file());
    let (here, there) = (group.place.path(), other.place.path());
    let mut first = group.place.command(&["node", "--config", "group.toml", "--id", "0"]);
    first.args(["--log", "log-0"]).current_dir(here);
    let _first = Node::start(first);
    other.write(&group.text().replace("heartbeat_ms = 50", "heartbeat_ms = 30"));
    let second = |id: &str| {
        let mut command = group.place.command(&["node", "--config", "group.toml", "--id", id]);
        command.args(["--log", "log"]).current_dir(there);
        RunningProgram::start(command).wait()
    };
    wait_for("the first", || (group.place.members() > 0).then_some(()));
    let folder = here.to_str().expect("a path");
    second("0").failed(5, &["group 'log'", folder, "rename the group"]);
    second("1").failed_at_last(5, &["heartbeat_ms", "a different name"]);
}

#[test]
fn second_process_with_a_node_id_fails() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 2);
        let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
        group.await_members(&[0, 1]);
        group.run("node", &short("1")).failed(5, &["already running"]);
        nodes[1].write("still there\n");
        group.await_same(&[0, 1], 1);
        let log = group.log_path(0);
        let log = log.to_str().expect("a path");
        group.run("node", &[&short("1")[..], &["--log", log]].concat()).failed(2, &["its log"]);
    }
}

#[test]
fn node_ignores_malformed_data_at_its_port() {
    let group = GroupFile::of(Transport::TcpWithKey, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1]);
    let text = group.text();
    let addresses: Vec<&str> =
        text.split('"').filter(|part| part.starts_with("127.0.0.1:")).collect();
    for address in &addresses {
        for garbage in [
            &b"GET / HTTP/1.1\r\n\r\n"[..],
            &[0; 4096],
            b"tramontn\xff\xff\xff\xff\xff\xff\xff\xff",
            b"",
        ] {
            let mut stream = TcpStream::connect(address).expect("it listens");
            // The connection may be closed in the middle of a message.
            let _ = stream.write_all(garbage);
        }
    }
    nodes[0].write(&lines(0, 0..100));
    group.await_same(&[0, 1], 100);
    nodes[1].signal(Signal::TERM);
    nodes[1].assert_left();
}

#[test]
fn log_must_be_a_regular_file() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let in_place = |name: &str| group.place.path().join(name).to_str().expect("a path").to_owned();
    rustix::fs::mkfifoat(
        rustix::fs::CWD,
        in_place("pipe"),
        rustix::fs::Mode::RUSR | rustix::fs::Mode::WUSR,
    )
    .expect("a pipe");
    std::fs::create_dir(in_place("folder")).expect("a folder");
    std::os::unix::fs::symlink("/dev/null", in_place("null")).expect("a link");
    std::os::unix::fs::symlink(in_place("pipe"), in_place("to-pipe")).expect("a link");
    let _socket = std::os::unix::net::UnixListener::bind(in_place("socket")).expect("a socket");
    for (path, what) in [
        ("/dev/null", "a device"),
        ("/dev/full", "a device"),
        (&in_place("null"), "a device"),
        (&in_place("folder"), "a directory"),
        (&in_place("pipe"), "a pipe"),
        (&in_place("to-pipe"), "a pipe"),
        (&in_place("socket"), "a socket"),
    ] {
        let words = [path, what, "regular file", "--log"];
        group.run("node", &[&short("0")[..], &["--log", path]].concat()).failed(2, &words);
    }
    // With several subgroups, each has a log with its own name.
    let nodes = "[[nodes]]\nid = 0\n[[nodes]]\nid = 1\n";
    group.write(&format!(
        "name = \"g\"\n{nodes}[[subgroups]]\nname = \"a\"\n[[subgroups]]\nname = \"b\"\n"
    ));
    std::os::unix::fs::symlink("/dev/null", in_place("log.b")).expect("a link");
    group
        .run("node", &[&short("0")[..], &["--log", &in_place("log")]].concat())
        .failed(2, &["log.b is a device"]);
    for name in ["null", "to-pipe", "log.b"] {
        assert!(
            std::fs::symlink_metadata(in_place(name)).expect("it is there").is_symlink(),
            "{name}"
        );
    }
}

#[test]
fn waiting_node_reports_folders_of_other_users() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let node = group.node(0, &[]);
    let other = group.place.path().join("tramontane-4000000000");
    std::fs::create_dir(&other).expect("a folder");
    std::fs::create_dir(group.place.path().join("tramontane-other")).expect("a folder");
    node.await_errors("On shared memory, one user must run all members");
    let errors = node.errors();
    let other = format!("another user has groups in {}. ", other.display());
    assert!(errors.contains(&other) && errors.contains("still waiting in "), "{errors}");

    let arguments = ["cast", "--group", "g", "--id", "0", "--nodes", "2"];
    let cast = Node::start(group.place.command(&arguments));
    cast.await_errors(&other);
}
