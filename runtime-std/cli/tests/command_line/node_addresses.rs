//! Host names, which are accepted as addresses everywhere and looked up again for each connection,
//! and addresses to which no process can connect.

use std::path::Path;
use std::process::Command;

use crate::support::group::{GroupFile, Node, Transport, lines};
use crate::support::{free_addresses, wait_for};

/// Creates a group over TCP with a key and a subgroup for clients. Its nodes have these hosts.
fn group_at(hosts: &[&str]) -> (GroupFile, Vec<String>) {
    let group = GroupFile::of(Transport::TcpWithKey, hosts.len());
    let mut text = group.text();
    let of_line =
        |line: &str| Some(line.strip_prefix("address = \"")?.strip_suffix('"')?.to_owned());
    let addresses: Vec<String> = text.lines().filter_map(of_line).collect();
    let mut named = Vec::new();
    for (address, host) in addresses.iter().zip(hosts) {
        let port = address.rsplit(':').next().expect("a port");
        named.push(format!("{host}:{port}"));
        text = text.replace(address, &format!("{host}:{port}"));
    }
    group.write(&format!("{text}[[subgroups]]\nname = \"lines\"\nclients = true\n"));
    (group, named)
}

#[test]
fn nodes_and_clients_connect_by_host_name() {
    let (group, addresses) = group_at(&["localhost", "LocalHost", "127.0.0.1"]);
    let [metrics] = free_addresses(1).try_into().expect("one");
    let metrics = metrics.replace("127.0.0.1", "localhost");
    let mut nodes =
        vec![group.node(0, &["--metrics", &metrics]), group.node(1, &[]), group.node(2, &[])];
    group.await_members(&[0, 1, 2]);
    nodes[1].write(&lines(1, 0..3));
    let key = group.place.path().join("key").display().to_string();
    let publish = ["publish", "--to", &addresses[1], "--key-file", &key, "a line"];
    group.place.run(&publish).succeeded();
    nodes.pop().expect("the last").kill();
    group.await_members(&[0, 1]);
    nodes.push(group.node(2, &[]));
    group.await_same(&[0, 1, 2], 4);
    assert!(std::net::TcpStream::connect(&metrics).is_ok());
}

#[test]
fn addresses_that_cannot_be_called_are_refused() {
    let (group, addresses) = group_at(&["127.0.0.1", "127.0.0.1"]);
    let text = group.text();
    let port = addresses[1].rsplit(':').next().expect("a port");
    for (wrong, words) in [
        (format!("0.0.0.0:{port}"), "other nodes cannot connect to 0.0.0.0:"),
        (format!("[::]:{port}"), "other nodes cannot connect to [::]:"),
        ("alpha:0".to_owned(), "other nodes cannot connect to alpha:0"),
        (addresses[0].clone(), "nodes 0 and 1 both have the address"),
        ("alpha".to_owned(), "'alpha' is not an address; write HOST:PORT"),
        ("10.9.0.256:7000".to_owned(), "'10.9.0.256:7000' is not an address"),
    ] {
        group.write(&text.replace(&addresses[1], &wrong));
        for command in ["node", "status"] {
            let id: &[&str] = if command == "node" { &["--id", "0"] } else { &[] };
            group.run(command, id).failed(2, &[words]);
        }
    }
    for wrong in ["0.0.0.0:7000", "alpha:0"] {
        group.place.run(&["subscribe", "--to", wrong]).failed(2, &[wrong]);
    }
}

#[test]
fn node_reports_unknown_host_name() {
    let (group, _) = group_at(&["no-such-host.invalid", "127.0.0.1"]);
    let mut node = group.node(0, &["--time-limit", "20"]);
    let (code, errors) = node.ended();
    assert_eq!(code, Some(2), "{errors}");
    assert!(errors.contains("cannot resolve the host 'no-such-host.invalid'"), "{errors}");
    let waits = group.node(1, &["--time-limit", "60"]);
    waits.await_errors("node 0 cannot be reached yet: cannot resolve the host");
}

/// Returns a command that sees the file `hosts` instead of `/etc/hosts`.
fn with_hosts(hosts: &Path, command: &Command) -> Command {
    let mut wrapped = Command::new("unshare");
    let script = "mount --bind \"$0\" /etc/hosts && exec \"$@\"";
    wrapped.args(["--mount", "sh", "-c", script]).arg(hosts).arg(command.get_program());
    wrapped.args(command.get_args());
    for (name, value) in command.get_envs() {
        match value {
            Some(value) => wrapped.env(name, value),
            None => wrapped.env_remove(name),
        };
    }
    wrapped
}

#[test]
fn client_reconnects_to_host_with_new_address() {
    let (group, addresses) = group_at(&["alpha.test", "beta.test"]);
    let hosts = group.place.path().join("hosts");
    let write_hosts = |alpha: &str| {
        let text = format!("127.0.0.1 localhost\n{alpha} alpha.test\n127.0.0.3 beta.test\n");
        std::fs::write(&hosts, text).expect("a file");
    };
    write_hosts("127.0.0.2");
    if !with_hosts(&hosts, &Command::new("true")).status().is_ok_and(|status| status.success()) {
        eprintln!("inconclusive: this user may not mount a file");
        return;
    }
    let start = |words: &[&str]| Node::start(with_hosts(&hosts, &group.place.command(words)));
    let node = |id: &str| {
        let log = group.log_path(id.parse().expect("a number")).display().to_string();
        start(&["node", "--config", &group.config, "--id", id, "--log", &log])
    };
    let (alpha, mut beta) = (node("0"), node("1"));
    beta.await_errors("view 1: 0 1");
    let key = group.place.path().join("key").display().to_string();
    let subscriber = start(&[
        "subscribe",
        "--to",
        &addresses[0],
        "--key-file",
        &key,
        "--from",
        "0",
        "--time-limit",
        "60",
    ]);
    beta.write("before\n");
    wait_for("a line", || subscriber.output().contains("before").then_some(()));
    alpha.signal(rustix::process::Signal::TERM);
    beta.await_errors("view 2: 1");
    write_hosts("127.0.0.4");
    let alpha = node("0");
    alpha.await_errors("joined 0");
    beta.write("after\n");
    wait_for("a line", || subscriber.output().contains("after").then_some(()));
}
