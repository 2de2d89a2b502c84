//! Commands of all types, over three nodes.

use crate::client::request;
use crate::nodes::TestGroup;

#[test]
fn every_node_answers_with_the_same_keys() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let [a, b, c] = &mut [nodes[0].client(), nodes[1].client(), nodes[2].client()];
    a.check("SET colour red => OK\nINCR hits => 1");
    b.check("GET colour => \"red\"\nINCR hits => 2");
    c.check("INCR hits => 3\nDBSIZE => 2\nRPUSH list a b => 2");
    a.check("LRANGE list 0 -1 => [\"a\" \"b\"]");
    // Requests that arrive together are answered in order, with local ones among them.
    let mut together = Vec::new();
    for words in ["SET n 1", "INCR n", "PING", "GET n", "ECHO x", "NONE", "INCR n", "QUIT"] {
        let words: Vec<&[u8]> = words.split(' ').map(str::as_bytes).collect();
        together.extend_from_slice(&request(&words));
    }
    a.send(&together);
    let replies: Vec<_> = (0..9).map(|_| a.read()).collect();
    let unknown = "(error) ERR unknown command 'NONE', with args beginning with: ";
    let expected = ["OK", "2", "PONG", "\"2\"", "\"x\"", unknown, "3", "OK", "(closed)"];
    assert_eq!(replies, expected);
    for node in nodes {
        let (status, errors) = node.end();
        assert!(status.success() && errors.is_empty(), "{status}: {errors:?}");
    }
}

#[test]
fn commands_reply_as_in_redis() {
    let group = TestGroup::of(1, "");
    let [node] = &group.start_all(&[0])[..] else { panic!("a node") };
    let mut client = node.client();
    client.check(
        "SET k v NX => OK
         SET k w NX => nil
         SET k w XX GET => \"v\"
         SET k => (error) ERR wrong number of arguments for 'set' command
         SET k v EX 0 => (error) ERR invalid expire time in 'set' command
         SET k v NX XX => (error) ERR syntax error
         GETSET k x => \"w\"
         APPEND k yz => 3
         STRLEN k => 3
         GETRANGE k -2 -1 => \"yz\"
         SETRANGE k 1 ab => 3
         MSET a 1 b 2 => OK
         MGET a b none => [\"1\" \"2\" nil]
         MSETNX a 1 c 2 => 0
         SETNX c 7 => 1
         DEL a b none => 2
         EXISTS c c none => 2
         TYPE c => string
         TYPE none => none
         INCRBY c 3 => 10
         DECRBY c 20 => -10
         DECR c => -11
         INCR k => (error) ERR value is not an integer or out of range
         SET m 9223372036854775807 => OK
         INCR m => (error) ERR increment or decrement would overflow
         INCRBYFLOAT f 2.5 => \"2.5\"
         SET big 9007199254740993 => OK
         INCRBYFLOAT big 1 => \"9007199254740994\"
         HINCRBYFLOAT floats f 1e17 => \"100000000000000000\"
         HINCRBYFLOAT floats f 1 => \"100000000000000001\"
         INCRBYFLOAT f inf => (error) ERR increment would produce NaN or Infinity
         DEL floats big => 2
         ZADD zero 1e400 m => (error) ERR value is not a valid float
         LPUSH k x => (error) WRONGTYPE Operation against a key holding the wrong kind of value",
    );
    client.check(
        "RPUSH l a b c d => 4
         LPUSH l z => 5
         LRANGE l 0 -1 => [\"z\" \"a\" \"b\" \"c\" \"d\"]
         LPOP l => \"z\"
         RPOP l 2 => [\"d\" \"c\"]
         LINSERT l BEFORE b x => 3
         LSET l 0 A => OK
         LINDEX l -1 => \"b\"
         LREM l 0 x => 1
         LLEN l => 2
         LTRIM l 1 -1 => OK
         RPOPLPUSH l other => \"b\"
         EXISTS l => 0
         LPUSHX l a => 0
         HSET h f 1 g 2 => 2
         HSET h f 3 => 0
         HGET h f => \"3\"
         HMGET h f none => [\"3\" nil]
         HGETALL h => [\"f\" \"3\" \"g\" \"2\"]
         HINCRBY h f 4 => 7
         HDEL h f g => 2
         EXISTS h => 0
         SADD s a b c => 3
         SISMEMBER s b => 1
         SREM s a => 1
         SMEMBERS s => [\"b\" \"c\"]
         SADD t c d => 2
         SINTER s t => [\"c\"]
         SUNIONSTORE u s t => 3
         SDIFF s t => [\"b\"]
         SCARD u => 3
         SREM u b => 1
         SREM u c => 1
         SPOP u 3 => [\"d\"]",
    );
    client.check(
        "ZADD z 1 a 2 b 3 c => 3
         ZADD z CH 5 a => 1
         ZRANGE z 0 -1 WITHSCORES => [\"b\" \"2\" \"c\" \"3\" \"a\" \"5\"]
         ZREVRANGE z 0 0 => [\"a\"]
         ZRANGEBYSCORE z (2 +inf => [\"c\" \"a\"]
         ZCOUNT z -inf 3 => 2
         ZRANK z a => 2
         ZREVRANK z a => 0
         ZSCORE z none => nil
         ZINCRBY z 1.5 b => \"3.5\"
         ZPOPMIN z => [\"c\" \"3\"]
         ZREMRANGEBYRANK z 0 0 => 1
         ZREM z a => 1
         TYPE z => none
         SELECT 0 => OK
         SELECT 1 => (error) ERR DB index is out of range: this server has only DB 0
         HELLO 3 => (error) NOPROTO unsupported protocol version: this server speaks 2
         CONFIG GET save => [\"save\" \"\"]
         CLIENT SETNAME me => OK
         CLIENT GETNAME => \"me\"
         RENAME c renamed => OK
         KEYS ren* => [\"renamed\"]
         FLUSHALL BOGUS => (error) ERR syntax error
         FLUSHDB SYNC ASYNC => (error) ERR syntax error
         EXISTS renamed => 1
         FLUSHALL async => OK
         FLUSHDB SYNC => OK
         DBSIZE => 0
         SET k v NX NX => OK
         PEXPIRE k 9223372036854775807 => (error) ERR invalid expire time in 'pexpire' command
         EXPIREAT k 9223372036854775807 => (error) ERR invalid expire time in 'expireat' command",
    );
}

#[test]
fn keys_expire_by_time_of_order() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let (mut a, mut b) = (nodes[0].client(), nodes[1].client());
    a.check(
        "MULTI => OK
         SET k v PX 300 => QUEUED
         GET k => QUEUED
         PTTL k => QUEUED
         EXEC => [OK \"v\" 300]
         SET long v EXAT 33177117420 => OK
         EXPIRETIME long => 33177117420
         TTL none => -2
         PERSIST long => 1
         TTL long => -1
         EXPIRE long 200 NX => 1
         EXPIRE long 100 GT => 0
         PEXPIREAT long 1 => 1
         EXISTS long => 0",
    );
    crate::nodes::await_that("k expires", || b.ask("GET k") == "nil");
    a.check("PTTL k => -2\nSETNX k again => 1\nTTL k => -1");
}

#[test]
fn scan_returns_every_key_once_from_any_node() {
    let group = TestGroup::new("");
    let nodes = group.start_all(&[0, 1, 2]);
    let mut clients: Vec<_> = nodes.iter().map(super::nodes::TestNode::client).collect();
    for key in 0..500 {
        clients[0].ask(&format!("SET key:{key} v"));
    }
    let (mut cursor, mut found) = ("0".to_owned(), Vec::new());
    for turn in 0.. {
        let reply = clients[turn % 3].ask(&format!("SCAN {cursor} COUNT 7 MATCH key:*"));
        let words: Vec<_> = reply.split(['[', ']', ' ', '"']).filter(|w| !w.is_empty()).collect();
        cursor = words[0].to_owned();
        found.extend(words[1..].iter().map(|word| (*word).to_owned()));
        if cursor == "0" {
            assert!(turn > 50, "a scan has many parts");
            break;
        }
    }
    found.sort();
    let mut expected: Vec<_> = (0..500).map(|key| format!("key:{key}")).collect();
    expected.sort();
    assert_eq!(found, expected);
}
