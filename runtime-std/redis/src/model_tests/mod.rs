//! Draws commands, against a naive model, and at two members of which only one answers.

mod collections;
mod model;

use bytes::Bytes;
use resp_rs::resp2::{Frame, parse_frame};
use tramontane::StateMachine as _;

use crate::batch::{Batch, Requests};
use crate::machine::Database;
use crate::process;
use crate::table::CommandEntry;
use model::KeyModel;

/// A small generator of random numbers.
struct Draws(u64);

impl Draws {
    fn below(&mut self, bound: usize) -> usize {
        self.0 ^= self.0 << 13;
        self.0 ^= self.0 >> 7;
        self.0 ^= self.0 << 17;
        usize::try_from(self.0 >> 11).expect("64 bits") % bound
    }

    fn word<'w>(&mut self, words: &[&'w str]) -> &'w str {
        words[self.below(words.len())]
    }
}

/// Commands with the kinds of their arguments: k key, v value, n small number, s score, m member,
/// t time.
const SHAPES: &[&str] = &[
    "SET k v",
    "SET k v NX",
    "SET k v XX",
    "SET k v PX t",
    "GET k",
    "APPEND k v",
    "STRLEN k",
    "INCRBY k n",
    "DEL k k",
    "EXISTS k k",
    "TYPE k",
    "PEXPIRE k t",
    "PTTL k",
    "PERSIST k",
    "RENAME k k",
    "RPUSH k v v",
    "LPUSH k v",
    "LPOP k",
    "RPOP k",
    "LRANGE k n n",
    "LREM k n v",
    "LTRIM k n n",
    "LINDEX k n",
    "LLEN k",
    "RPOPLPUSH k k",
    "HSET k m v",
    "HGET k m",
    "HDEL k m m",
    "HGETALL k",
    "HLEN k",
    "HINCRBY k m n",
    "SADD k m m",
    "SREM k m",
    "SMEMBERS k",
    "SISMEMBER k m",
    "SINTER k k",
    "SUNION k k",
    "SDIFF k k",
    "SMOVE k k m",
    "ZADD k s m s m",
    "ZREM k m",
    "ZSCORE k m",
    "ZRANGE k n n",
    "ZREVRANGE k n n",
    "ZRANK k m",
    "ZRANGEBYSCORE k s s",
    "ZINCRBY k s m",
    "ZCARD k",
    "ZREMRANGEBYSCORE k s s",
    "ZREMRANGEBYRANK k n n",
    "SINTERSTORE k k k",
    "GETSET k v",
    "SETNX k v",
];

fn random_command(random: &mut Draws) -> Vec<String> {
    let shape = random.word(SHAPES);
    let argument = |word: &str| match word {
        // Keys of each type are more frequent in commands of that type, by their first letters.
        "k" => random.word(&["a", "b", "c", "d", "e", "f"]).to_owned(),
        "v" => random.word(&["x", "y", "", "1", "-5", "7.5"]).to_owned(),
        "n" => random.word(&["-3", "-2", "-1", "0", "1", "2", "3"]).to_owned(),
        "s" => random.word(&["-1", "0", "1.5", "2", "(1", "inf", "x"]).to_owned(),
        "m" => random.word(&["p", "q", "r", "s"]).to_owned(),
        "t" => random.word(&["1", "20", "300", "-1", "0"]).to_owned(),
        word => word.to_owned(),
    };
    shape.split(' ').map(argument).collect()
}

fn text(frame: &Frame) -> String {
    let lossy = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    match frame {
        Frame::SimpleString(text) => lossy(text),
        // The model knows whether a command is refused, and why only roughly.
        Frame::Error(text) => format!("!{}", lossy(text).split(' ').next().unwrap_or_default()),
        Frame::Integer(number) => number.to_string(),
        Frame::BulkString(Some(bytes)) => format!("\"{}\"", lossy(bytes)),
        Frame::BulkString(None) | Frame::Array(None) => "nil".to_owned(),
        Frame::Array(Some(items)) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "))
        }
    }
}

fn batch(origin: u64, now_ms: u64, commands: &[Vec<String>]) -> Batch {
    let mut requests = Requests::default();
    for words in commands {
        let command = CommandEntry::named(words[0].as_bytes()).expect("it exists");
        assert!(command.takes(words.len()), "{words:?}");
        requests.push(command.verb as u8, words[1..].iter().map(String::as_bytes));
        requests.end_run();
    }
    Batch { origin, now_ms, requests: requests.into_text() }
}

fn encoded(database: &Database) -> Vec<u8> {
    postcard::to_stdvec(database).expect("it is encoded")
}

/// Applies random batches at two members and in the model.
fn run(seed: u64) {
    let mut random = Draws(seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1);
    let (mut own, mut other, mut model) =
        (Database::default(), Database::default(), KeyModel::default());
    let mut now_ms = 1_000_000_u64;
    for _ in 0..200 {
        now_ms += random.below(30) as u64;
        // The clock of another proposer may be behind.
        let clock_ms = now_ms - random.below(2) as u64 * random.below(50) as u64;
        let commands: Vec<_> = (0..=random.below(4)).map(|_| random_command(&mut random)).collect();
        let origin = process::incarnation();
        let replies = own.apply(batch(origin, clock_ms, &commands));
        assert!(other.apply(batch(origin ^ 1, clock_ms, &commands)).is_empty());
        model.advance(clock_ms);
        for (words, reply) in commands.iter().zip(replies) {
            let (frame, rest) = parse_frame(reply.bytes.into()).expect("a reply");
            assert!(rest.is_empty());
            assert_eq!(text(&frame), model.execute(words), "seed {seed}: {words:?}");
        }
        assert_eq!(encoded(&own), encoded(&other), "seed {seed}: members differ");
        if random.below(10) == 0 {
            // A joining node continues with the snapshot.
            other = postcard::from_bytes(&encoded(&own)).expect("it is decoded");
        }
    }
}

#[test]
fn commands_agree_with_model_and_members_agree() {
    (0..300).for_each(run);
}

#[test]
#[ignore = "takes a minute"]
fn many_seeds_agree_with_model() {
    (1000..20_000).for_each(run);
}
