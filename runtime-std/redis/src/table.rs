//! The table of commands.
//!
//! Logs contain the numbers of commands. A number is never used for another command, and the state
//! that a command leads to never changes; a command that must behave differently gets a new number.

/// The place in which a command is executed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum CommandKind {
    /// At the connection. It has nothing to do with the keys.
    Local,
    /// At the connection; within a transaction, where all replies come together, through the order.
    Either,
    /// Through the order, and only at the member that received it: it changes nothing.
    Read,
    /// Through the order, at all members.
    Write,
}

/// A command that clients may send.
#[derive(Debug)]
pub(crate) struct CommandEntry {
    /// The name, in capitals.
    pub(crate) name: &'static str,
    pub(crate) verb: Verb,
    /// The number of arguments with the name, or the least number as a negative one.
    pub(crate) arity: i8,
    pub(crate) kind: CommandKind,
    /// The places of the first and the last key, and the step from one to the next, for COMMAND.
    pub(crate) keys: (i8, i8, i8),
}

macro_rules! commands {
    ($($name:literal $verb:ident $number:literal $arity:literal $kind:ident $keys:tt;)*) => {
        /// A command's meaning. Batches contain the number.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[repr(u8)]
        pub(crate) enum Verb {
            $($verb = $number,)*
        }

        impl Verb {
            /// Returns the verb with this number, if this program knows it.
            pub(crate) const fn of(number: u8) -> Option<Self> {
                match number {
                    $($number => Some(Self::$verb),)*
                    _ => None,
                }
            }

            /// Returns the place in which the command is executed.
            pub(crate) const fn kind(self) -> CommandKind {
                match self {
                    $(Self::$verb => CommandKind::$kind,)*
                }
            }
        }

        /// All commands, in the order of their names.
        pub(crate) static COMMANDS: &[CommandEntry] = &[
            $(CommandEntry {
                name: $name,
                verb: Verb::$verb,
                arity: $arity,
                kind: CommandKind::$kind,
                keys: $keys,
            },)*
        ];
    };
}

commands! {
    "APPEND" Append 1 3 Write (1, 1, 1);
    "AUTH" Auth 2 -2 Local (0, 0, 0);
    "CLIENT" Client 3 -2 Local (0, 0, 0);
    "COMMAND" CommandInfo 4 -1 Local (0, 0, 0);
    "CONFIG" Config 5 -2 Local (0, 0, 0);
    "DBSIZE" DbSize 6 1 Read (0, 0, 0);
    "DECR" Decr 7 2 Write (1, 1, 1);
    "DECRBY" DecrBy 8 3 Write (1, 1, 1);
    "DEL" Del 9 -2 Write (1, -1, 1);
    "DISCARD" Discard 10 1 Local (0, 0, 0);
    "ECHO" Echo 11 2 Either (0, 0, 0);
    "EXEC" Exec 12 1 Write (0, 0, 0);
    "EXISTS" Exists 13 -2 Read (1, -1, 1);
    "EXPIRE" Expire 14 -3 Write (1, 1, 1);
    "EXPIREAT" ExpireAt 15 -3 Write (1, 1, 1);
    "EXPIRETIME" ExpireTime 16 2 Read (1, 1, 1);
    "FLUSHALL" FlushAll 17 -1 Write (0, 0, 0);
    "FLUSHDB" FlushDb 18 -1 Write (0, 0, 0);
    "GET" Get 19 2 Read (1, 1, 1);
    "GETDEL" GetDel 20 2 Write (1, 1, 1);
    "GETEX" GetEx 21 -2 Write (1, 1, 1);
    "GETRANGE" GetRange 22 4 Read (1, 1, 1);
    "GETSET" GetSet 23 3 Write (1, 1, 1);
    "HDEL" HDel 24 -3 Write (1, 1, 1);
    "HELLO" Hello 25 -1 Local (0, 0, 0);
    "HEXISTS" HExists 26 3 Read (1, 1, 1);
    "HGET" HGet 27 3 Read (1, 1, 1);
    "HGETALL" HGetAll 28 2 Read (1, 1, 1);
    "HINCRBY" HIncrBy 29 4 Write (1, 1, 1);
    "HINCRBYFLOAT" HIncrByFloat 30 4 Write (1, 1, 1);
    "HKEYS" HKeys 31 2 Read (1, 1, 1);
    "HLEN" HLen 32 2 Read (1, 1, 1);
    "HMGET" HMGet 33 -3 Read (1, 1, 1);
    "HMSET" HMSet 34 -4 Write (1, 1, 1);
    "HSCAN" HScan 35 -3 Read (1, 1, 1);
    "HSET" HSet 36 -4 Write (1, 1, 1);
    "HSETNX" HSetNx 37 4 Write (1, 1, 1);
    "HSTRLEN" HStrLen 38 3 Read (1, 1, 1);
    "HVALS" HVals 39 2 Read (1, 1, 1);
    "INCR" Incr 40 2 Write (1, 1, 1);
    "INCRBY" IncrBy 41 3 Write (1, 1, 1);
    "INCRBYFLOAT" IncrByFloat 42 3 Write (1, 1, 1);
    "INFO" Info 43 -1 Local (0, 0, 0);
    "KEYS" Keys 44 2 Read (0, 0, 0);
    "LINDEX" LIndex 45 3 Read (1, 1, 1);
    "LINSERT" LInsert 46 5 Write (1, 1, 1);
    "LLEN" LLen 47 2 Read (1, 1, 1);
    "LMOVE" LMove 48 5 Write (1, 2, 1);
    "LPOP" LPop 49 -2 Write (1, 1, 1);
    "LPOS" LPos 50 -3 Read (1, 1, 1);
    "LPUSH" LPush 51 -3 Write (1, 1, 1);
    "LPUSHX" LPushX 52 -3 Write (1, 1, 1);
    "LRANGE" LRange 53 4 Read (1, 1, 1);
    "LREM" LRem 54 4 Write (1, 1, 1);
    "LSET" LSet 55 4 Write (1, 1, 1);
    "LTRIM" LTrim 56 4 Write (1, 1, 1);
    "MGET" MGet 57 -2 Read (1, -1, 1);
    "MSET" MSet 58 -3 Write (1, -1, 2);
    "MSETNX" MSetNx 59 -3 Write (1, -1, 2);
    "MULTI" Multi 60 1 Local (0, 0, 0);
    "PERSIST" Persist 61 2 Write (1, 1, 1);
    "PEXPIRE" PExpire 62 -3 Write (1, 1, 1);
    "PEXPIREAT" PExpireAt 63 -3 Write (1, 1, 1);
    "PEXPIRETIME" PExpireTime 64 2 Read (1, 1, 1);
    "PING" Ping 65 -1 Either (0, 0, 0);
    "PSETEX" PSetEx 66 4 Write (1, 1, 1);
    "PSUBSCRIBE" PSubscribe 67 -2 Local (0, 0, 0);
    "PTTL" PTtl 68 2 Read (1, 1, 1);
    "PUBLISH" Publish 69 3 Write (0, 0, 0);
    "PUBSUB" PubSub 70 -2 Local (0, 0, 0);
    "PUNSUBSCRIBE" PUnsubscribe 71 -1 Local (0, 0, 0);
    "QUIT" Quit 72 -1 Local (0, 0, 0);
    "RANDOMKEY" RandomKey 73 1 Read (0, 0, 0);
    "RENAME" Rename 74 3 Write (1, 2, 1);
    "RENAMENX" RenameNx 75 3 Write (1, 2, 1);
    "RESET" Reset 76 1 Local (0, 0, 0);
    "RPOP" RPop 77 -2 Write (1, 1, 1);
    "RPOPLPUSH" RPopLPush 78 3 Write (1, 2, 1);
    "RPUSH" RPush 79 -3 Write (1, 1, 1);
    "RPUSHX" RPushX 80 -3 Write (1, 1, 1);
    "SADD" SAdd 81 -3 Write (1, 1, 1);
    "SCAN" Scan 82 -2 Read (0, 0, 0);
    "SCARD" SCard 83 2 Read (1, 1, 1);
    "SDIFF" SDiff 84 -2 Read (1, -1, 1);
    "SDIFFSTORE" SDiffStore 85 -3 Write (1, -1, 1);
    "SELECT" Select 86 2 Local (0, 0, 0);
    "SET" Set 87 -3 Write (1, 1, 1);
    "SETEX" SetEx 88 4 Write (1, 1, 1);
    "SETNX" SetNx 89 3 Write (1, 1, 1);
    "SETRANGE" SetRange 90 4 Write (1, 1, 1);
    "SINTER" SInter 91 -2 Read (1, -1, 1);
    "SINTERSTORE" SInterStore 92 -3 Write (1, -1, 1);
    "SISMEMBER" SIsMember 93 3 Read (1, 1, 1);
    "SMEMBERS" SMembers 94 2 Read (1, 1, 1);
    "SMISMEMBER" SMIsMember 95 -3 Read (1, 1, 1);
    "SMOVE" SMove 96 4 Write (1, 2, 1);
    "SPOP" SPop 97 -2 Write (1, 1, 1);
    "SRANDMEMBER" SRandMember 98 -2 Read (1, 1, 1);
    "SREM" SRem 99 -3 Write (1, 1, 1);
    "SSCAN" SScan 100 -3 Read (1, 1, 1);
    "STRLEN" StrLen 101 2 Read (1, 1, 1);
    "SUBSCRIBE" Subscribe 102 -2 Local (0, 0, 0);
    "SUNION" SUnion 103 -2 Read (1, -1, 1);
    "SUNIONSTORE" SUnionStore 104 -3 Write (1, -1, 1);
    "TIME" Time 105 1 Read (0, 0, 0);
    "TOUCH" Touch 106 -2 Read (1, -1, 1);
    "TTL" Ttl 107 2 Read (1, 1, 1);
    "TYPE" Type 108 2 Read (1, 1, 1);
    "UNLINK" Unlink 109 -2 Write (1, -1, 1);
    "UNSUBSCRIBE" Unsubscribe 110 -1 Local (0, 0, 0);
    "UNWATCH" Unwatch 111 1 Local (0, 0, 0);
    "WATCH" Watch 112 -2 Read (1, -1, 1);
    "ZADD" ZAdd 113 -4 Write (1, 1, 1);
    "ZCARD" ZCard 114 2 Read (1, 1, 1);
    "ZCOUNT" ZCount 115 4 Read (1, 1, 1);
    "ZINCRBY" ZIncrBy 116 4 Write (1, 1, 1);
    "ZMSCORE" ZMScore 117 -3 Read (1, 1, 1);
    "ZPOPMAX" ZPopMax 118 -2 Write (1, 1, 1);
    "ZPOPMIN" ZPopMin 119 -2 Write (1, 1, 1);
    "ZRANGE" ZRange 120 -4 Read (1, 1, 1);
    "ZRANGEBYSCORE" ZRangeByScore 121 -4 Read (1, 1, 1);
    "ZRANK" ZRank 122 3 Read (1, 1, 1);
    "ZREM" ZRem 123 -3 Write (1, 1, 1);
    "ZREMRANGEBYRANK" ZRemRangeByRank 124 4 Write (1, 1, 1);
    "ZREMRANGEBYSCORE" ZRemRangeByScore 125 4 Write (1, 1, 1);
    "ZREVRANGE" ZRevRange 126 -4 Read (1, 1, 1);
    "ZREVRANGEBYSCORE" ZRevRangeByScore 127 -4 Read (1, 1, 1);
    "ZREVRANK" ZRevRank 128 3 Read (1, 1, 1);
    "ZSCAN" ZScan 129 -3 Read (1, 1, 1);
    "ZSCORE" ZScore 130 3 Read (1, 1, 1);
}

impl Verb {
    /// Returns whether the work of the command may grow with the number of keys or with the size of
    /// a value, and not only with the sizes of the request and its reply.
    pub(crate) const fn is_slow(self) -> bool {
        use Verb as V;
        matches!(
            self,
            V::Keys
                | V::Scan
                | V::HScan
                | V::SScan
                | V::ZScan
                | V::LPos
                | V::LRem
                | V::LInsert
                | V::LTrim
                | V::SInter
                | V::SUnion
                | V::SDiff
                | V::SInterStore
                | V::SUnionStore
                | V::SDiffStore
                | V::SRandMember
                | V::SPop
                | V::ZRank
                | V::ZRevRank
                | V::ZCount
                | V::ZRange
                | V::ZRevRange
                | V::ZRangeByScore
                | V::ZRevRangeByScore
                | V::ZRemRangeByRank
                | V::ZRemRangeByScore
        )
    }
}

/// The longest name.
const NAME_MAX: usize = 16;

impl CommandEntry {
    /// Returns the command with this name, in capitals or not.
    pub(crate) fn named(name: &[u8]) -> Option<&'static Self> {
        let mut capitals = [0_u8; NAME_MAX];
        let capitals = capitals.get_mut(..name.len())?;
        for (to, from) in capitals.iter_mut().zip(name) {
            *to = from.to_ascii_uppercase();
        }
        let capitals = &*capitals;
        let at = COMMANDS.binary_search_by(|command| command.name.as_bytes().cmp(capitals)).ok()?;
        COMMANDS.get(at)
    }

    /// Returns whether a request may have this number of arguments, with the name.
    pub(crate) fn takes(&self, arguments: usize) -> bool {
        let least = usize::from(self.arity.unsigned_abs());
        if self.arity < 0 { arguments >= least } else { arguments == least }
    }
}

/// Returns a digest of the commands, which must be the same at all members: a member that does not
/// know a command would have another state.
pub(crate) fn digest() -> u64 {
    let names: Vec<String> = COMMANDS
        .iter()
        .map(|command| format!("{} {} {:?}", command.verb as u8, command.name, command.kind))
        .collect();
    xxhash_rust::xxh3::xxh3_64(names.join("\n").as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_are_found_by_name() {
        assert!(COMMANDS.is_sorted_by(|one, next| one.name < next.name));
        for command in COMMANDS {
            assert!(command.name.len() <= NAME_MAX);
            let found = CommandEntry::named(command.name.to_ascii_lowercase().as_bytes());
            assert_eq!(found.map(|found| found.verb), Some(command.verb));
            assert_eq!(Verb::of(command.verb as u8), Some(command.verb));
            assert_eq!(command.verb.kind(), command.kind);
        }
        assert!(
            CommandEntry::named(b"GETT").is_none() && CommandEntry::named(&[b'x'; 99]).is_none()
        );
    }

    #[test]
    fn numbers_of_commands_never_change() {
        assert_eq!(Verb::of(0), None, "it ends a run");
        // A new command gets the next number, and then this digest changes too.
        assert_eq!((COMMANDS.len(), Verb::ZScore as u8), (130, 130));
    }
}
