//! The conditions under which `tramontane node` forms a group. Only people may decide to form a
//! group again.

use std::time::Duration;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::wait_for;
use rustix::process::Signal;

/// A group of three nodes, of which the first two form the group.
fn two_of_three(carrier: Transport) -> GroupFile {
    let group = GroupFile::of(carrier, 3);
    group.write(&group.text().replace("name = \"log\"\n", "name = \"log\"\ninitial = [0, 1]\n"));
    group
}

/// Starts a node that keeps no log.
fn without_log(group: &GroupFile, id: usize, more: &[&str]) -> Node {
    let id = id.to_string();
    Node::start(
        group
            .place
            .command(&[&["node", "--config", &group.config, "--id", &id][..], more].concat()),
    )
}

/// Nodes 0 and 1 form the group, node 2 joins, and the first two nodes leave. Node 2 is then alone
/// in view 4.
fn until_the_last_is_alone(group: &GroupFile, start: impl Fn(&GroupFile, usize) -> Node) -> Node {
    let mut nodes: Vec<_> = (0..2).map(|id| start(group, id)).collect();
    group.await_members(&[0, 1]);
    let last = start(group, 2);
    group.await_members(&[0, 1, 2]);
    nodes[0].signal(Signal::TERM);
    nodes[0].assert_left();
    group.await_members(&[1, 2]);
    nodes[1].signal(Signal::TERM);
    nodes[1].assert_left();
    group.await_members(&[2]);
    last.await_errors("view 4: 2");
    last
}

#[test]
fn node_that_left_rejoins_instead_of_forming() {
    for carrier in Transport::ALL {
        let group = two_of_three(carrier);
        let mut last = until_the_last_is_alone(&group, |group, id| group.node(id, &[]));
        last.write(&lines(2, 0..10));
        group.await_same(&[2], 10);
        last.signal(Signal::STOP);
        let mut anew: Vec<_> = (0..2).map(|id| group.node(id, &["--time-limit", "8"])).collect();
        for node in &mut anew {
            let (code, errors) = node.ended();
            assert!(!errors.contains("view 1"), "{carrier:?}: two groups: {errors}");
            assert_eq!(code, Some(5), "{carrier:?}: {errors}");
            assert!(
                errors.contains("new-group") || errors.contains("node 2"),
                "{carrier:?}: {errors}"
            );
        }
        assert!(!group.place.path().join("log-0.1").exists(), "the log was set aside");
        let mut anew: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
        last.signal(Signal::CONT);
        group.await_members(&[0, 1, 2]);
        anew[0].write(&lines(0, 0..10));
        group.await_same(&[0, 1, 2], 20);
    }
}

/// On shared memory, a live member's lock is enough, although no node has stored anything.
#[test]
fn live_member_prevents_re_forming_the_group() {
    let group = two_of_three(Transport::SharedMemory);
    let last = until_the_last_is_alone(&group, |group, id| without_log(group, id, &[]));
    last.signal(Signal::STOP);
    let mut anew: Vec<_> =
        (0..2).map(|id| without_log(&group, id, &["--time-limit", "8"])).collect();
    for node in &mut anew {
        let (code, errors) = node.ended();
        assert_eq!(code, Some(5), "{errors}");
        assert!(errors.contains("node 2") && !errors.contains("view 1"), "{errors}");
    }
    // A dead node is not a member.
    last.kill();
    let anew: Vec<_> = (0..2).map(|id| without_log(&group, id, &[])).collect();
    anew[0].await_errors("view 1: 0 1");
}

/// All members have ended, or the majority has been lost. Each node has its log, but none continues
/// without help.
#[test]
fn ended_group_re_forms_with_new_group_option() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let start = |more: [&[&str]; 3]| -> Vec<Node> {
            more.iter().enumerate().map(|(id, more)| group.node(id, more)).collect()
        };
        let mut nodes = start([&[]; 3]);
        nodes[0].write("first\n");
        group.await_same(&[0, 1, 2], 1);
        // Two nodes are killed, and the third has no majority.
        nodes.drain(..2).for_each(Node::kill);
        let (code, errors) = nodes[0].ended();
        assert_eq!(code, Some(9), "{errors}");

        for mut node in start([&[], &[], &[]]) {
            let (code, errors) = node.ended();
            assert_eq!(code, Some(5), "{carrier:?}: {errors}");
            let line = errors.lines().last().expect("it says why");
            assert!(
                line.contains("was already a member") && line.contains("new-group"),
                "{errors}"
            );
        }
        for mut node in start([&["--new-group"], &[], &["--new-group"]]) {
            let (code, errors) = node.ended();
            assert!(
                code == Some(5) && errors.contains("node 1 "),
                "{carrier:?}: {code:?} {errors}"
            );
        }
        for id in 0..3 {
            assert_eq!(group.log(id), "first\n", "its log is untouched");
        }
        let mut nodes = start([&["--new-group"]; 3]);
        nodes[1].write("second\n");
        nodes[0].await_errors("log-0.1");
        group.await_same(&[0, 1, 2], 1);
        assert_eq!(group.log(2), "second\n");
        // Later, the group is running. A node that is started with the same options rejoins it.
        nodes.pop().expect("the last").kill();
        group.await_members(&[0, 1]);
        nodes.push(group.node(2, &["--new-group"]));
        group.await_members(&[0, 1, 2]);
    }
}

#[test]
fn network_node_without_state_forms_no_group() {
    let group = GroupFile::of(Transport::TcpWithKey, 2);
    let start =
        |more: &[&str]| -> Vec<Node> { (0..2).map(|id| without_log(&group, id, more)).collect() };
    for mut node in start(&[]) {
        let (code, errors) = node.ended();
        assert!(
            code == Some(5) && errors.contains("a state folder") && errors.contains("new-group"),
            "{errors}"
        );
    }
    let nodes = start(&["--new-group"]);
    group.await_members(&[0, 1]);
    drop(nodes);
    // An explicit folder serves as well as a log, whether it comes from the command line or the
    // group file.
    let state = group.place.path().join("own.state");
    let state = state.to_str().expect("a path");
    group.write(&group.text().replace("id = 1\n", "id = 1\nstate = \"other.state\"\n"));
    let mut nodes = vec![without_log(&group, 0, &["--state", state]), without_log(&group, 1, &[])];
    group.await_members(&[0, 1]);
    assert!(group.place.path().join("other.state/membership.json").exists());
    for node in &mut nodes {
        node.signal(Signal::TERM);
        node.assert_left();
    }
    let mut again = vec![without_log(&group, 0, &["--state", state]), without_log(&group, 1, &[])];
    for node in &mut again {
        let (code, errors) = node.ended();
        assert!(code == Some(5) && errors.contains("new-group"), "{errors}");
    }
}

#[test]
fn foreign_or_damaged_state_is_reported() {
    let group = GroupFile::of(Transport::SharedMemory, 1);
    let mut node = group.node(0, &[]);
    node.await_errors("view 1: 0");
    let state = group.place.path().join("log-0.state");
    let state = state.to_str().expect("a path");
    node.signal(Signal::TERM);
    node.assert_left();
    group.write(&group.text().replace("id = 0", "id = 4"));
    group.run("node", &["--id", "4", "--state", state]).failed(2, &["node 0", "log-0.state"]);
    group.write(&group.text().replace("id = 4", "id = 0"));
    for copy in ["membership.json", "membership-2.json"] {
        std::fs::write(group.place.path().join("log-0.state").join(copy), "{").expect("a file");
    }
    let told = ["membership.json", "damaged", "move them elsewhere"];
    group.run("node", &["--id", "0", "--state", state]).failed(2, &told);
}

#[test]
fn waiting_node_names_missing_nodes() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let node = group.node(0, &[]);
        node.await_errors("forming; waiting for 1, 2\n");
        let told = group.run("status", &[]);
        let printed = String::from_utf8_lossy(&told.output).into_owned();
        assert!(printed.contains("forming; waiting for 1, 2"), "{printed}");
        assert_eq!(told.status.code(), Some(5), "{}", told.errors);
        assert!(told.errors.contains("waiting for 1, 2"), "{}", told.errors);
        let last = group.node(2, &[]);
        wait_for("both wait for 1", || {
            let status = group.status();
            let says = |id: usize| status["nodes"][id]["error"] == "forming; waiting for 1";
            (says(0) && says(2)).then_some(())
        });
        last.await_errors("forming; waiting for 1\n");
        let _all = group.node(1, &[]);
        group.await_members(&[0, 1, 2]);
    }
}

#[test]
fn joining_node_names_nodes_that_form_group() {
    for carrier in Transport::ALL {
        let group = two_of_three(carrier);
        let node = group.node(2, &[]);
        node.await_errors("waiting for a running member; the group is formed by 0, 1\n");
        group.run("status", &["--id", "2"]).failed_after_output(5, &["it is starting"]);
    }
}

/// If heartbeat settings could differ, a member would remove peers whose heartbeats are less
/// frequent than it allows, or would be removed by such peers.
#[test]
fn mismatched_heartbeat_is_reported_early() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 4);
        group.write(
            &group.text().replace("name = \"log\"\n", "name = \"log\"\ninitial = [0, 1, 2]\n"),
        );
        let other = group.variant("heartbeat_ms = 50", "heartbeat_ms = 30");
        // While the group forms, both nodes report the difference.
        let mut first = group.node(0, &["--time-limit", "600"]);
        let run = |id: &str| {
            group.place.run(&[
                "node",
                "--config",
                &other,
                "--id",
                id,
                "--time-limit",
                "600",
                "--new-group",
            ])
        };
        run("1").failed_at_last(5, &["node 0 has a different configuration", "heartbeat_ms"]);
        let (code, errors) = first.ended();
        assert!(
            code == Some(5) && errors.contains("node 1") && errors.contains("heartbeat_ms"),
            "{errors}"
        );
        // In a running group, the report is immediate, both for a node of the first view and for
        // any other node.
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &["--new-group"])).collect();
        group.await_members(&[0, 1, 2]);
        run("3").failed_at_last(5, &["a different configuration", "heartbeat_ms"]);
        nodes.pop().expect("the last").kill();
        run("2").failed_at_last(5, &["a different configuration", "heartbeat_ms"]);
        let told = group.place.run(&["status", "--config", &other, "--id", "0"]);
        assert!(told.status.code() == Some(5) && told.errors.contains("heartbeat_ms"), "{told:?}");
    }
}

/// Any process can listen at a port of this machine before the member does, but without the key.
#[test]
fn foreign_listener_at_peer_port_is_tolerated() {
    let group = GroupFile::of(Transport::TcpWithKey, 2);
    let text = group.text();
    let address =
        text.split('"').find(|part| part.starts_with("127.0.0.1:")).expect("node 0 has one");
    let squatter = std::net::TcpListener::bind(address).expect("it is free");
    let is_over = std::sync::Arc::new(std::sync::atomic::AtomicBool::new(false));
    let over = std::sync::Arc::clone(&is_over);
    let squats = std::thread::spawn(move || {
        use std::io::{Read as _, Write as _};
        while let Ok((mut stream, _)) = squatter.accept() {
            if over.load(std::sync::atomic::Ordering::Relaxed) {
                return;
            }
            // Sends the preamble, and then the reply that the key is wrong, which needs no secret.
            let mut preamble = [0; 16];
            let _ = stream.read_exact(&mut preamble).and_then(|()| stream.write_all(&preamble));
            let _ = stream.write_all(&[0, 0]);
            let _ = stream.set_read_timeout(Some(Duration::from_millis(200)));
            let _ = stream.read(&mut [0; 256]);
        }
    });
    let mut node = group.node(1, &[]);
    node.await_errors("a different key");
    std::thread::sleep(Duration::from_secs(1));
    assert!(node.is_running(), "{}", node.errors());
    assert_eq!(node.errors().matches("a different key").count(), 1, "one line: {}", node.errors());
    is_over.store(true, std::sync::atomic::Ordering::Relaxed);
    drop(std::net::TcpStream::connect(address));
    squats.join().expect("no panic");
    let _first = group.node(0, &[]);
    group.await_members(&[0, 1]);
}
