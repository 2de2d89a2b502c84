//! Nodes that are killed, and nodes that join.

use crate::nodes::{TestGroup, await_that};

#[test]
fn joining_node_receives_keys_after_a_kill() {
    let group = TestGroup::new("");
    let mut nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    for key in 0..300 {
        assert_eq!(client.ask(&format!("SET key:{key} {key}")), "OK");
    }
    client.check("SADD set a b => 2\nZADD sorted 1.5 m => 1\nSET brief v EX 1000 => OK");
    nodes.pop().expect("three nodes").kill();
    // The others continue once they have removed it.
    client.check("INCR n => 1\nHSET hash f v => 1");
    let joined = group.start(2);
    let mut other = joined.client();
    other.check(
        "GET key:299 => \"299\"
         INCR n => 2
         SMEMBERS set => [\"a\" \"b\"]
         ZSCORE sorted m => \"1.5\"
         HGET hash f => \"v\"
         DBSIZE => 305
         EXPIRE brief 0 => 1",
    );
    client.check("EXISTS brief => 0\nGET n => \"2\"");
    // The node that was there from the beginning may go too.
    drop(client);
    nodes.remove(0).kill();
    other.check("INCR n => 3");
    nodes[0].client().check("GET n => \"3\"");
}

#[test]
fn node_without_majority_answers_with_error() {
    let group = TestGroup::new("");
    let mut nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    client.check("SET k v => OK");
    for node in nodes.drain(1..) {
        node.kill();
    }
    let reply = client.ask("SET k w");
    // The node may have noticed already that it has lost the majority.
    let is_error =
        reply.starts_with("(error) UNKNOWN ") || reply.starts_with("(error) NOTEXECUTED ");
    assert!(is_error || reply == "(closed)", "{reply}");
    let node = nodes.pop().expect("a node");
    await_that("the node ends", || crate::client::TestClient::try_connect(node.address).is_err());
}
