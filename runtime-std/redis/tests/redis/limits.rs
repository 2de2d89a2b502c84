//! Bad input, and clients that take more than their share.

use std::io::Write as _;

use crate::client::{TestClient, request};
use crate::nodes::{TestGroup, await_that};

#[test]
fn too_large_value_is_refused_and_connection_continues() {
    let group = TestGroup::of(1, "large_max = 100000");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut client = node.client();
    // A request that is larger than message_max travels as a large message.
    let large = vec![b'x'; 90_000];
    client.send(&request(&[b"SET", b"k", &large]));
    assert_eq!(client.read(), "OK");
    assert_eq!(client.ask("STRLEN k"), "90000");
    for length in [100_000, 150_000, 10_000_000] {
        let mut bytes = request(&[b"SET", b"k", &vec![b'y'; length]]);
        bytes.extend_from_slice(&request(&[b"STRLEN", b"k"]));
        client.send(&bytes);
        let reply = client.read();
        assert!(reply.starts_with("(error) ERR a request of "), "{reply}");
        assert_eq!(client.read(), "90000");
    }
    let mut empty = b"*50000\r\n".to_vec();
    (0..50_000).for_each(|_| empty.extend_from_slice(b"$0\r\n\r\n"));
    client.send(&empty);
    assert!(client.read().starts_with("(error) ERR a request of 200012 bytes exceeds "));
    client.check("MULTI => OK\nSET a 1 => QUEUED");
    client.send(&request(&[b"SET", b"k", &vec![b'y'; 200_000]]));
    assert!(client.read().starts_with("(error) ERR a request of "));
    client.check("EXEC => (error) EXECABORT Transaction discarded because of previous errors.");
    assert!(node.memory() < 300 << 20);
}

#[test]
fn malformed_request_ends_connection_with_error() {
    let group = TestGroup::of(1, "");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    for (bytes, error) in [
        ("SET k \"v\r\n", "unbalanced quotes in request"),
        ("*1\r\n:1\r\n", "expected '$'"),
        ("*99999999\r\n", "invalid multibulk length"),
        ("*1\r\n$-5\r\n", "invalid bulk length"),
    ] {
        let mut client = node.client();
        client.send(format!("PING\r\n{bytes}PING\r\n").as_bytes());
        assert_eq!(client.read(), "PONG");
        assert_eq!(client.read(), format!("(error) ERR Protocol error: {error}"));
        assert_eq!(client.read(), "(closed)");
    }
    // An announced length reserves no memory.
    let mut clients: Vec<TestClient> = (0..50).map(|_| node.client()).collect();
    for client in &mut clients {
        client.send(b"*1000000\r\n$500000000\r\nabc");
    }
    node.client().check("PING => PONG");
    assert!(node.memory() < 300 << 20);
}

#[test]
fn client_that_never_reads_is_disconnected() {
    let group = TestGroup::of(1, "large_max = 2000000").with(&["--unsent-max-mb", "4"]);
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut other = node.client();
    other.send(&request(&[b"SET", b"k", &vec![b'x'; 1_000_000]]));
    assert_eq!(other.read(), "OK");
    let mut silent = node.client();
    await_that("the client is disconnected", || {
        silent.stream.write_all(&request(&[b"GET", b"k"])).is_err()
    });
    assert!(node.memory() < 300 << 20);
    // Draws of a large member are not copied before the limit is known.
    let mut drawing = node.client();
    drawing.send(&request(&[b"SADD", b"s", &vec![b'x'; 100_000]]));
    assert_eq!(drawing.read(), "1");
    assert_eq!(drawing.ask("SRANDMEMBER s -10000"), "(closed)");
    assert!(node.peak_memory() < 300 << 20);
    // A single answer above the limit ends the connection too, and nothing else.
    let mut greedy = node.client();
    greedy.send(&request(&[b"MGET", b"k", b"k", b"k", b"k", b"k"]));
    assert_eq!(greedy.read(), "(closed)");
    assert_eq!(other.ask("STRLEN k"), "1000000");
}

#[test]
fn subscriber_that_never_reads_is_disconnected() {
    let group = TestGroup::of(1, "large_max = 2000000").with(&["--unsent-max-mb", "4"]);
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut silent = node.client();
    silent.check("SUBSCRIBE c => [\"subscribe\" \"c\" 1]");
    let mut publisher = node.client();
    let publish = request(&[b"PUBLISH", b"c", &vec![b'x'; 1_000_000]]);
    await_that("the subscriber is disconnected", || {
        publisher.send(&publish);
        publisher.read() == "0"
    });
    assert!(node.memory() < 300 << 20);
}

#[test]
fn clients_above_limit_are_refused() {
    let group = TestGroup::of(1, "").with(&["--clients-max", "3"]);
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut clients: Vec<TestClient> = (0..3).map(|_| node.client()).collect();
    clients.iter_mut().for_each(|client| client.check("PING => PONG"));
    let mut refused = node.client();
    assert_eq!(refused.read(), "(error) ERR max number of clients reached");
    assert_eq!(refused.read(), "(closed)");
    drop(clients.pop());
    await_that("there is room", || {
        TestClient::try_connect(node.address).is_ok_and(|mut client| client.ask("PING") == "PONG")
    });
}
