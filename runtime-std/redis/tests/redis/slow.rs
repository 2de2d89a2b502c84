//! Slow requests: they must not keep a node from showing the others that it is alive.

use std::time::{Duration, Instant};

use crate::client::{TestClient, request};
use crate::nodes::{TestGroup, TestNode, await_that};

/// The time after which the nodes of these groups remove a silent one.
const FAILURE_TIMEOUT: Duration = Duration::from_secs(2);

/// Appends this number of items to the list `l`.
fn fill_list(client: &mut TestClient, items: usize) {
    for from in (0..items).step_by(1000) {
        let items: Vec<_> = (from..from + 1000).map(|item| format!("v{item}")).collect();
        let mut words: Vec<&[u8]> = vec![b"RPUSH", b"l"];
        words.extend(items.iter().map(String::as_bytes));
        client.send(&request(&words));
    }
    (0..items.div_ceil(1000)).for_each(|_| drop(client.read()));
}

fn assert_all_are_members(nodes: &[TestNode]) {
    for node in nodes {
        let info = node.client().ask("INFO");
        assert!(info.contains("members:0 1 2"), "{info}");
    }
}

#[test]
fn slow_and_fast_requests_are_answered_in_order() {
    let group = TestGroup::of(1, "");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let cases = "RPUSH l a b c => 3
         LPOS l b => 1
         LPOS l c => 2
         PING => PONG
         LREM l 0 a => 1
         LPOS l b => 0
         SET k 1 => OK
         LPOS l c => 1
         NONE => (error) ERR unknown command 'NONE', with args beginning with:\u{20}
         INCR k => 2
         KEYS * => [\"k\" \"l\"]
         LPOS l c RANK 0 => (error) ERR RANK can't be zero: use 1 to start from the first match
         WATCH k => OK
         MULTI => OK
         LPOS l c => QUEUED
         LREM l 0 b => QUEUED
         EXEC => [1 1]
         LPOS l c => 0
         LPOS l => (error) ERR wrong number of arguments for 'lpos' command
         SUBSCRIBE c => [\"subscribe\" \"c\" 1]
         LPOS l c => (error) ERR Can't execute 'lpos': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context
         QUIT => OK";
    let cases: Vec<_> =
        cases.lines().filter_map(|case| case.trim_start().split_once(" => ")).collect();
    // Together, and in parts that end within requests.
    for part in [usize::MAX, 13] {
        let mut client = node.client();
        client.ask("FLUSHALL");
        let words = cases.iter().map(|(words, _)| words.split(' ').map(str::as_bytes).collect());
        let bytes: Vec<u8> = words.flat_map(|words: Vec<&[u8]>| request(&words)).collect();
        bytes.chunks(part.min(bytes.len())).for_each(|part| client.send(part));
        for (words, expected) in &cases {
            let reply = client.read();
            let is_same = reply == *expected || *words == "KEYS *" && reply == "[\"l\" \"k\"]";
            assert!(is_same, "{words}: {reply}");
        }
    }
}

#[test]
fn pipelined_slow_reads_leave_node_in_group() {
    let group = TestGroup::new("large_max = 1000000");
    let nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    fill_list(&mut client, 300_000);
    let began = Instant::now();
    client.check("LPOS l none => nil");
    let one = began.elapsed().max(Duration::from_micros(100));
    // Together, they take twice the time after which a silent node is removed.
    let requests = (2 * FAILURE_TIMEOUT).div_duration_f64(one) as usize;
    (0..requests).for_each(|_| client.send(&request(&[b"LPOS", b"l", b"none"])));
    let mut other = nodes[0].client();
    let began = Instant::now();
    for number in 1..=5 {
        assert_eq!(other.ask("INCR n"), number.to_string());
    }
    let other_waited = began.elapsed();
    (0..requests).for_each(|_| assert_eq!(client.read(), "nil"));
    assert!(other_waited < began.elapsed() / 2, "{other_waited:?} of {:?}", began.elapsed());
    assert_all_are_members(&nodes);
}

#[test]
fn costly_patterns_are_refused() {
    let group = TestGroup::new("large_max = 1000000").patient();
    let nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    client.send(&request(&[b"SET", &[b'a'; 200_000], b"v"]));
    assert_eq!(client.read(), "OK");
    let pattern = format!("*{}b", "a".repeat(5000));
    for words in [vec!["KEYS", &pattern], vec!["SCAN", "0", "MATCH", &pattern]] {
        let words: Vec<_> = words.into_iter().map(str::as_bytes).collect();
        client.send(&request(&words));
        let reply = client.read();
        assert!(reply.starts_with("(error) ERR the pattern takes too long"), "{reply}");
    }
    assert_all_are_members(&nodes);
}

#[test]
fn slow_work_of_one_request_is_bounded() {
    let group = TestGroup::new("large_max = 1000000");
    let nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    // A transaction of slow reads.
    fill_list(&mut client, 300_000);
    client.check("MULTI => OK");
    (0..5000).for_each(|_| client.send(&request(&[b"LPOS", b"l", b"none"])));
    (0..5000).for_each(|_| assert_eq!(client.read(), "QUEUED"));
    let reply = client.ask("EXEC");
    assert!(reply.starts_with("[nil ") && reply.contains("took too long"), "{reply}");
    client.check("MULTI => OK");
    (0..16).for_each(|_| client.check("LREM l 0 none => QUEUED"));
    let too_many = "this transaction contains as many such writes as it may";
    assert!(client.ask("LREM l 0 none").contains(too_many));
    client.check("EXEC => (error) EXECABORT Transaction discarded because of previous errors.");
    client.check("MULTI => OK\nSUNIONSTORE t s s => QUEUED\nSDIFFSTORE t s s => QUEUED");
    for words in ["SINTERSTORE t s s", "LREM l 0 none"] {
        assert!(client.ask(words).contains(too_many));
    }
    client.check("LPOS l none => QUEUED\nDISCARD => OK");
    // A large set, many times.
    let members: Vec<_> = (0..1000).map(|member| member.to_string()).collect();
    let mut words: Vec<&[u8]> = vec![b"SADD", b"s"];
    words.extend(members.iter().map(String::as_bytes));
    client.send(&request(&words));
    assert_eq!(client.read(), "1000");
    let words: Vec<&[u8]> =
        [&b"SUNIONSTORE"[..], b"t"].into_iter().chain([&b"s"[..]; 6000]).collect();
    client.send(&request(&words));
    assert!(client.read().starts_with("(error) ERR the sets are too large to be combined"));
    assert_all_are_members(&nodes);
}

#[test]
fn long_numbers_leave_nodes_in_group() {
    let group = TestGroup::new("").patient().with(&["--unsent-max-mb", "500"]);
    let nodes = group.start_all(&[0, 1, 2]);
    let mut client = nodes[0].client();
    assert_eq!(client.ask("INCRBYFLOAT k 1e4900").len(), 4903);
    assert_eq!(client.ask("HINCRBYFLOAT h f 1e4900").len(), 4903);
    for words in ["INCRBYFLOAT k 1", "HINCRBYFLOAT h f 1", "INCRBYFLOAT n 1e-20000"] {
        let words: Vec<_> = words.split(' ').map(str::as_bytes).collect();
        client.send(&request(&words).repeat(10_000));
        let replies: Vec<_> = (0..10_000).map(|_| client.read()).collect();
        assert!(replies.iter().any(|reply| reply.starts_with("(error) ERR ")));
    }
    client.check("INCRBYFLOAT n 1.5 => \"1.5\"");
    assert_eq!(client.ask("INCRBYFLOAT k 1").len(), 4903);
    assert_all_are_members(&nodes);
}

#[test]
fn waiting_slow_requests_take_bounded_memory() {
    let group = TestGroup::of(1, "large_max = 2000000").with(&["--memory-mb", "4"]);
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut client = node.client();
    fill_list(&mut client, 300_000);
    // Each of these transactions is a batch, and the other requests wait for them.
    let mut busy: Vec<_> = (0..20).map(|_| node.client()).collect();
    for client in &mut busy {
        client.check("MULTI => OK");
        (0..16).for_each(|_| client.check("LREM l 0 none => QUEUED"));
    }
    busy.iter_mut().for_each(|client| client.send(&request(&[b"EXEC"])));
    let mut waiting: Vec<_> = (0..20).map(|_| node.client()).collect();
    let insert = request(&[b"LINSERT", b"l", b"BEFORE", b"v0", &vec![b'x'; 500_000]]);
    waiting.iter_mut().for_each(|client| client.send(&insert));
    busy.iter_mut().for_each(|client| assert!(client.read().starts_with("[0 0 ")));
    let replies: Vec<_> = waiting.iter_mut().map(TestClient::read).collect();
    let inserted = replies.iter().filter(|reply| reply.starts_with("300")).count();
    assert!((1..=10).contains(&inserted), "{replies:?}");
    // The requests of the others, which were disconnected, are not executed.
    assert_eq!(client.ask("LLEN l"), (300_000 + inserted).to_string());
}

#[test]
fn slow_requests_are_refused_without_memory() {
    let group = TestGroup::of(1, "").with(&["--memory-mb", "1"]);
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut client = node.client();
    client.check("RPUSH l a => 1");
    let mut many: Vec<_> = (0..60).map(|_| node.client()).collect();
    let incomplete = [&b"*1\r\n$30000\r\n"[..], &[b'x'; 25_000]].concat();
    many.iter_mut().for_each(|other| other.send(&incomplete));
    await_that("the memory is full", || {
        client.ask("LPOS l a").starts_with("(error) ERR this node holds as many bytes")
    });
    client.check("LLEN l => 1");
    drop(many);
    await_that("there is memory again", || client.ask("LPOS l a") == "0");
}
