//! Groups with logs, all of whose nodes end.

use crate::nodes::{TestGroup, await_that};

#[test]
fn answered_requests_survive_kill_of_all_nodes() {
    let group = TestGroup::new("logged = true");
    for round in 0..3 {
        let nodes = group.start_all(&[0, 1, 2]);
        let mut clients: Vec<_> = nodes.iter().map(super::nodes::TestNode::client).collect();
        for (node, client) in clients.iter_mut().enumerate() {
            let expected = round * 60 + node * 20;
            let found = client.ask("GET n");
            assert_eq!(found, if expected == 0 { "nil".into() } else { format!("\"{expected}\"") });
            for more in 1..=20 {
                assert_eq!(client.ask("INCR n"), (expected + more).to_string());
            }
            client.ask(&format!("RPUSH list {round}-{node}"));
        }
        let list = clients[0].ask("LRANGE list 0 -1");
        let expected: Vec<_> = (0..=round)
            .flat_map(|round| (0..3).map(move |node| format!("\"{round}-{node}\"")))
            .collect();
        assert_eq!(list, format!("[{}]", expected.join(" ")));
        nodes.into_iter().for_each(super::nodes::TestNode::kill);
    }
}

#[test]
fn snapshot_replaces_removed_part_of_log() {
    let group = TestGroup::new("logged = true").with(&["--data-keep-mb", "1"]);
    let nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    let value = "x".repeat(8000);
    for key in 0..400 {
        assert_eq!(client.ask(&format!("SET key:{} {key}{value}", key % 10)), "OK");
    }
    client.check("DBSIZE => 10");
    nodes.into_iter().for_each(super::nodes::TestNode::kill);
    let nodes = group.start_all(&[0, 1, 2]);
    for node in &nodes {
        let mut client = node.client();
        client.check("DBSIZE => 10");
        assert!(client.ask("GET key:9").starts_with("\"399xxx"));
    }
}

#[test]
fn joining_node_replays_log() {
    let group = TestGroup::new("logged = true");
    let mut nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    client.check("SET before 1 => OK");
    nodes.pop().expect("three nodes").kill();
    client.check("SET during 2 => OK");
    let joined = group.start(2);
    let mut other = joined.client();
    other.check("MGET before during => [\"1\" \"2\"]\nSET after 3 => OK");
    client.check("GET after => \"3\"");
    await_that("all are members", || client.ask("INFO").contains("members:0 1 2"));
}
