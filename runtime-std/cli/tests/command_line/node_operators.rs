//! Operator commands for a group of `tramontane node`s: `status`, `leave`, metrics, and a full
//! disk.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::small_disk::SmallDisk;
use crate::support::{free_addresses, wait_for};
use serde_json::Value;

#[test]
fn status_reports_all_nodes() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        group.run("status", &[]).failed_after_output(5, &["no node is running"]);
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
        nodes[0].write(&lines(0, 0..7));
        group.await_same(&[0, 1, 2], 7);
        group.await_members(&[0, 1, 2]);
        let table = String::from_utf8(group.run("status", &[]).succeeded()).expect("text");
        let rows: Vec<&str> = table.lines().collect();
        assert_eq!(rows.len(), 4, "{table}");
        assert!(rows[0].starts_with("node  state") && rows[0].ends_with("frontiers"), "{table}");
        assert!(rows[3].contains("0 1 2") && rows[3].contains("log "), "{table}");

        group.run("status", &["--expect-all"]).succeeded();

        nodes.pop().expect("the last").kill();
        group.await_members(&[0, 1]);
        // A node that is not in the newest view does not count as missing.
        let status: Value =
            serde_json::from_slice(&group.run("status", &["--json"]).succeeded()).expect("JSON");
        assert_eq!(status["nodes"][0]["status"]["state"], "steady", "{status}");
        assert_eq!(status["nodes"][1]["status"]["delivered"], 7, "{status}");
        assert_eq!(status["nodes"][2]["status"], Value::Null, "{status}");
        assert!(
            status["nodes"][2]["error"]
                .as_str()
                .expect("a text")
                .contains("no process is listening")
        );
        group
            .run("status", &["--expect-all"])
            .failed_after_output(10, &["not members of view 2: 2"]);
        group.run("status", &["--id", "1"]).succeeded();
        group
            .run("status", &["--id", "2"])
            .failed_after_output(5, &["node 2", "no process is listening"]);
        let other = group.variant("name = \"log\"", "name = \"glo\"");
        if carrier == Transport::TcpWithKey {
            let ended = group.place.run(&["status", "--config", &other]);
            ended.failed_after_output(5, &["a different configuration"]);
        }
    }
}

#[test]
fn watch_reports_changes_until_interrupted() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1]);
    let arguments = ["status", "--config", &group.config, "--watch", "--json"];
    let mut watch = Node::start(group.place.command(&arguments));
    let says = |watch: &Node, lines: u64| {
        let is_said = |line: &str| {
            let status: Value = serde_json::from_str(line).expect("an object a line");
            (0..2).all(|id| status["nodes"][id]["status"]["delivered"] == lines)
        };
        watch.output().lines().any(is_said)
    };
    for part in 0..3 {
        wait_for("it says so", || says(&watch, 5 * part).then_some(()));
        nodes[0].write(&lines(0, 0..5));
    }
    // A node that has exited does not end the command.
    nodes.pop().expect("the last").kill();
    wait_for("it says so", || watch.output().contains("no process is listening").then_some(()));
    watch.signal(rustix::process::Signal::INT);
    let (status, errors) = watch.ended();
    assert_eq!((status, errors.as_str()), (Some(130), ""), "{}", watch.output());
}

#[test]
fn status_fails_for_stopped_member() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    group.write(&group.text().replace("= 3000", "= 60000"));
    let nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
    group.await_members(&[0, 1, 2]);
    nodes[1].signal(rustix::process::Signal::STOP);
    group.run("status", &["--time-limit", "1"]).failed_after_output(5, &["do not answer: 1"]);
    nodes[1].signal(rustix::process::Signal::CONT);
}

#[test]
fn leave_command_ends_node() {
    for carrier in Transport::ALL {
        let group = GroupFile::of(carrier, 3);
        let mut nodes: Vec<_> = (0..3).map(|id| group.node(id, &[])).collect();
        group.await_members(&[0, 1, 2]);
        let said = group.run("leave", &["--id", "1", "--time-limit", "30"]).succeeded();
        assert_eq!(String::from_utf8_lossy(&said), "node 1 has left; view 2: 0 2\n");
        nodes[1].assert_left();
        group.run("leave", &["--id", "1"]).failed(5, &["node 1", "no process is listening"]);
        group.run("leave", &["--id", "9"]).failed(2, &["node 9"]);
        nodes[0].write("on we go\n");
        group.await_same(&[0, 2], 1);
    }
}

#[test]
fn metrics_have_prometheus_format() {
    let group = GroupFile::of(Transport::SharedMemory, 2);
    let [address, other] = free_addresses(2).try_into().expect("two");
    let mut nodes =
        [group.node(0, &["--metrics", &address]), group.node(1, &["--metrics", &other])];
    nodes[1].write(&lines(1, 0..5));
    group.await_same(&[0, 1], 5);
    let page = crate::support::wait_for("the figures", || {
        let page = get(&address, "/metrics");
        page.contains("tramontane_delivered_messages_total{group=\"log\",node=\"0\"} 5\n")
            .then_some(page)
    });
    let (head, text) = page.split_once("\r\n\r\n").expect("a head");
    assert!(head.starts_with("HTTP/1.0 200") || head.starts_with("HTTP/1.1 200"), "{head}");
    assert!(head.to_lowercase().contains("content-type: text/plain; version=0.0.4"), "{head}");
    assert!(
        text.contains("tramontane_delivered_bytes_total{group=\"log\",node=\"0\"} 15\n"),
        "{text}"
    );
    let read = openmetrics_parser::prometheus::parse_prometheus(text);
    let read = read.unwrap_or_else(|error| panic!("{error}\n{text}"));
    assert!(read.families.len() >= 12, "{:?}", read.families.keys());
    let sent = get(&other, "/metrics");
    for line in [
        "tramontane_sent_bytes_total{group=\"log\",node=\"1\"} 15\n",
        ",node=\"1\",version=\"0.",
        "tramontane_delivery_latency_seconds_bucket{group=\"log\",node=\"1\",le=\"+Inf\"} ",
    ] {
        assert!(sent.contains(line), "{line} is not in {sent}");
    }
    assert!(
        !sent.contains("tramontane_delivery_latency_seconds_count{group=\"log\",node=\"1\"} 0\n"),
        "{sent}"
    );
    assert!(get(&address, "/").contains(" 404 "));
    // The address is now in use.
    group.run("node", &["--id", "1", "--metrics", &address]).failed(2, &[&address, "--metrics"]);
}

fn get(address: &str, path: &str) -> String {
    let mut stream = TcpStream::connect(address).expect("it listens");
    write!(stream, "GET {path} HTTP/1.0\r\n\r\n").expect("it reads");
    let mut page = String::new();
    stream.read_to_string(&mut page).expect("text");
    page
}

#[test]
fn full_disk_ends_node_and_others_continue() {
    let group = GroupFile::of(Transport::SharedMemory, 3);
    let Some(disk) = SmallDisk::mount(&group.place, "64k") else { return };
    let mut nodes: Vec<_> = (0..2).map(|id| group.node(id, &[])).collect();
    let log = disk.path().join("log");
    let log_text = log.to_str().expect("a path");
    let base = ["node", "--config", &group.config, "--id", "2", "--log", log_text];
    let mut full = Node::start(group.place.command(&base));
    full.await_errors("view 1");
    let long = "x".repeat(999);
    let all = format!("{long}\n").repeat(200);
    nodes[0].write(&all);
    let (code, errors) = full.ended();
    assert_eq!(code, Some(4), "{errors}");
    assert!(errors.contains("cannot write the log") && errors.contains("; "), "{errors}");
    nodes[1].await_errors("view 2: 0 1; gone 2\n");
    let log_of_others = group.await_same(&[0, 1], 200);
    let kept = std::fs::read_to_string(&log).expect("the log");
    assert!(
        kept.ends_with('\n') && log_of_others.starts_with(&kept) && kept.len() >= 32 << 10,
        "whole lines"
    );

    // Nor can the node restore a state that does not fit on the disk, and it reports that.
    let mut again = Node::start(group.place.command(&base));
    let (code, errors) = again.ended();
    assert_eq!(code, Some(4), "{errors}");
    assert_eq!(std::fs::read_to_string(&log).expect("the log"), kept, "what it had is untouched");
    nodes[0].write("on we go\n");
    group.await_same(&[0, 1], 201);
}
