//! MULTI, EXEC, DISCARD and WATCH.

use crate::client::request;
use crate::nodes::TestGroup;

#[test]
fn transactions_are_executed_as_whole() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let (mut a, mut b) = (nodes[0].client(), nodes[1].client());
    a.check(
        "MULTI => OK
         SET k 1 => QUEUED
         INCR k => QUEUED
         LPUSH k x => QUEUED
         PING => QUEUED
         GET k => QUEUED",
    );
    b.check("EXISTS k => 0");
    let wrong = "(error) WRONGTYPE Operation against a key holding the wrong kind of value";
    a.check(&format!("EXEC => [OK 2 {wrong} PONG \"2\"]"));
    b.check("GET k => \"2\"");
    a.check(
        "EXEC => (error) ERR EXEC without MULTI
         DISCARD => (error) ERR DISCARD without MULTI
         MULTI => OK
         MULTI => (error) ERR MULTI calls can not be nested
         WATCH k => (error) ERR WATCH inside MULTI is not allowed
         INCR k => QUEUED
         DISCARD => OK
         GET k => \"2\"
         MULTI => OK
         INCR => (error) ERR wrong number of arguments for 'incr' command
         INCR k => QUEUED
         EXEC => (error) EXECABORT Transaction discarded because of previous errors.
         GET k => \"2\"",
    );
}

#[test]
fn change_from_any_node_fails_watching_transaction() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let (mut a, mut b) = (nodes[0].client(), nodes[1].client());
    a.check("SET k 1 => OK\nWATCH k none => OK\nMULTI => OK\nINCR k => QUEUED\nEXEC => [2]");
    a.check("WATCH k none => OK");
    b.check("SET none 1 => OK");
    a.check("MULTI => OK\nINCR k => QUEUED\nEXEC => nil\nGET k => \"2\"");
    // EXEC has ended the watch.
    b.check("SET k 5 => OK");
    a.check("MULTI => OK\nINCR k => QUEUED\nEXEC => [6]");
    a.check("WATCH k => OK\nUNWATCH => OK");
    b.check("INCR k => 7");
    a.check("MULTI => OK\nINCR k => QUEUED\nEXEC => [8]");
    // UNWATCH in a transaction is too late to save it.
    a.check("WATCH k => OK\nMULTI => OK\nUNWATCH => QUEUED\nSET k mine => QUEUED");
    b.check("SET k theirs => OK");
    a.check("EXEC => nil\nGET k => \"theirs\"\nMULTI => OK\nUNWATCH => QUEUED\nEXEC => [OK]");
}

#[test]
fn absent_key_that_was_present_fails_transaction() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let (mut a, mut b) = (nodes[0].client(), nodes[1].client());
    a.check("WATCH k => OK");
    b.check("SET k 1 => OK\nDEL k => 1\nGET k => nil");
    a.check("MULTI => OK\nSET m x => QUEUED\nEXEC => nil\nWATCH k => OK");
    b.check("SET k 1 PX 1 => OK");
    crate::nodes::await_that("k expires", || b.ask("GET k") == "nil");
    a.check("MULTI => OK\nSET m x => QUEUED\nEXEC => nil\nWATCH k => OK");
    b.check("SET other 1 => OK");
    a.check("MULTI => OK\nSET m x => QUEUED\nEXEC => [OK]");
}

#[test]
fn connection_commands_are_queued() {
    let group = TestGroup::of(1, "");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    node.client().check(
        "MULTI => OK
         SELECT 0 => QUEUED
         CLIENT SETNAME me => QUEUED
         SELECT 1 => QUEUED
         SET k 1 => QUEUED
         CLIENT GETNAME => QUEUED
         EXEC => [OK OK (error) ERR DB index is out of range: this server has only DB 0 OK \"me\"]
         MULTI => OK
         SUBSCRIBE c => (error) ERR SUBSCRIBE is not allowed in transactions
         EXEC => (error) EXECABORT Transaction discarded because of previous errors.",
    );
}

#[test]
fn watch_works_in_pipeline() {
    let group = TestGroup::of(1, "");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut client = node.client();
    let mut together = Vec::new();
    for words in [
        "SET k 1", "WATCH k", "MULTI", "INCR k", "EXEC", "WATCH k", "INCR k", "MULTI", "INCR k",
        "EXEC", "GET k",
    ] {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        together.extend_from_slice(&request(&words));
    }
    client.send(&together);
    let replies: Vec<_> = (0..11).map(|_| client.read()).collect();
    let expected = ["OK", "OK", "OK", "QUEUED", "[2]", "OK", "3", "OK", "QUEUED", "nil", "\"3\""];
    assert_eq!(replies, expected);
}
