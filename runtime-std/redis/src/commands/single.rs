//! Finds what executes a command.

use super::arguments::{Arguments, Executed};
use super::{
    counters, expiry, hashes, keys, lists, scans, sets, sorted_ranges, sorted_sets, strings,
};
use crate::keyspace::Keyspace;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::table::Verb;

/// Executes a command that is not a transaction.
pub(super) fn execute_single(
    keys: &mut Keyspace,
    verb: Verb,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    use Verb as V;
    match verb {
        V::Append => strings::append(keys, arguments, to),
        V::Get => strings::get(keys, arguments, to),
        V::GetDel => strings::get_del(keys, arguments, to),
        V::GetEx => strings::get_ex(keys, arguments, to),
        V::GetRange => strings::get_range(keys, arguments, to),
        V::GetSet => strings::get_set(keys, arguments, to),
        V::MGet => strings::mget(keys, arguments, to),
        V::MSet => strings::mset(keys, arguments, to),
        V::MSetNx => strings::mset_nx(keys, arguments, to),
        V::Set => strings::set(keys, arguments, to),
        V::SetEx => strings::set_ex(keys, arguments, 1000, to),
        V::PSetEx => strings::set_ex(keys, arguments, 1, to),
        V::SetNx => strings::set_nx(keys, arguments, to),
        V::SetRange => strings::set_range(keys, arguments, to),
        V::StrLen => strings::str_len(keys, arguments, to),

        V::Incr => counters::add(keys, arguments, 1, to),
        V::Decr => counters::add(keys, arguments, -1, to),
        V::IncrBy => counters::add_by(keys, arguments, 1, to),
        V::DecrBy => counters::add_by(keys, arguments, -1, to),
        V::IncrByFloat => counters::add_float(keys, arguments, to),

        V::DbSize => keys::db_size(keys, to),
        V::Del | V::Unlink => keys::del(keys, arguments, to),
        V::Exists | V::Touch => keys::exists(keys, arguments, to),
        V::FlushAll | V::FlushDb => keys::flush(keys, arguments, to),
        V::Keys => keys::keys(keys, arguments, to),
        V::RandomKey => keys::random_key(keys, to),
        V::Rename => keys::rename(keys, arguments, false, to),
        V::RenameNx => keys::rename(keys, arguments, true, to),
        V::Type => keys::type_of(keys, arguments, to),
        V::Time => keys::time(keys, to),
        V::Watch => keys::watch(keys, arguments, to),
        V::Publish => keys::publish(arguments, to),
        V::Ping => keys::ping(arguments, to),
        V::Echo => keys::echo(arguments, to),

        V::Expire => expiry::expire(keys, arguments, expiry::Unit::Seconds, to),
        V::PExpire => expiry::expire(keys, arguments, expiry::Unit::Milliseconds, to),
        V::ExpireAt => expiry::expire(keys, arguments, expiry::Unit::SecondsSince1970, to),
        V::PExpireAt => expiry::expire(keys, arguments, expiry::Unit::MillisecondsSince1970, to),
        V::Ttl => expiry::left(keys, arguments, 1000, to),
        V::PTtl => expiry::left(keys, arguments, 1, to),
        V::ExpireTime => expiry::time_of(keys, arguments, 1000, to),
        V::PExpireTime => expiry::time_of(keys, arguments, 1, to),
        V::Persist => expiry::persist(keys, arguments, to),

        V::Scan => scans::scan(keys, arguments, to),
        V::HScan => scans::hash_scan(keys, arguments, to),
        V::SScan => scans::set_scan(keys, arguments, to),
        V::ZScan => scans::sorted_scan(keys, arguments, to),
        _ => execute_collection(keys, verb, arguments, to),
    }
}

/// Executes a command on a list, a hash, a set or a sorted set.
fn execute_collection(
    keys: &mut Keyspace,
    verb: Verb,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    use Verb as V;
    use lists::ListEnd::{Left, Right};
    match verb {
        V::LPush => lists::push(keys, arguments, Left, false, to),
        V::RPush => lists::push(keys, arguments, Right, false, to),
        V::LPushX => lists::push(keys, arguments, Left, true, to),
        V::RPushX => lists::push(keys, arguments, Right, true, to),
        V::LPop => lists::pop(keys, arguments, Left, to),
        V::RPop => lists::pop(keys, arguments, Right, to),
        V::LLen => lists::len(keys, arguments, to),
        V::LRange => lists::range(keys, arguments, to),
        V::LIndex => lists::index(keys, arguments, to),
        V::LSet => lists::set(keys, arguments, to),
        V::LRem => lists::rem(keys, arguments, to),
        V::LTrim => lists::trim(keys, arguments, to),
        V::LInsert => lists::insert(keys, arguments, to),
        V::LPos => lists::pos(keys, arguments, to),
        V::RPopLPush => lists::shift(keys, arguments, Right, Left, to),
        V::LMove => lists::lmove(keys, arguments, to),

        V::HSet => hashes::set(keys, arguments, false, to),
        V::HMSet => hashes::set(keys, arguments, true, to),
        V::HSetNx => hashes::set_nx(keys, arguments, to),
        V::HGet => hashes::get(keys, arguments, to),
        V::HMGet => hashes::mget(keys, arguments, to),
        V::HGetAll => hashes::get_all(keys, arguments, true, true, to),
        V::HKeys => hashes::get_all(keys, arguments, true, false, to),
        V::HVals => hashes::get_all(keys, arguments, false, true, to),
        V::HDel => hashes::del(keys, arguments, to),
        V::HExists => hashes::exists(keys, arguments, to),
        V::HLen => hashes::len(keys, arguments, to),
        V::HStrLen => hashes::str_len(keys, arguments, to),
        V::HIncrBy => hashes::incr_by(keys, arguments, to),
        V::HIncrByFloat => hashes::incr_by_float(keys, arguments, to),

        V::SAdd => sets::add(keys, arguments, to),
        V::SRem => sets::rem(keys, arguments, to),
        V::SMembers => sets::members(keys, arguments, to),
        V::SIsMember => sets::is_member(keys, arguments, to),
        V::SMIsMember => sets::are_members(keys, arguments, to),
        V::SCard => sets::card(keys, arguments, to),
        V::SPop => sets::pop(keys, arguments, to),
        V::SRandMember => sets::random_members(keys, arguments, to),
        V::SMove => sets::shift(keys, arguments, to),
        V::SInter => sets::combine(keys, arguments, sets::Of::All, to),
        V::SUnion => sets::combine(keys, arguments, sets::Of::Any, to),
        V::SDiff => sets::combine(keys, arguments, sets::Of::First, to),
        V::SInterStore => sets::combine_store(keys, arguments, sets::Of::All, to),
        V::SUnionStore => sets::combine_store(keys, arguments, sets::Of::Any, to),
        V::SDiffStore => sets::combine_store(keys, arguments, sets::Of::First, to),

        V::ZAdd => sorted_sets::add(keys, arguments, to),
        V::ZIncrBy => sorted_sets::incr_by(keys, arguments, to),
        V::ZRem => sorted_sets::rem(keys, arguments, to),
        V::ZScore => sorted_sets::score(keys, arguments, to),
        V::ZMScore => sorted_sets::scores(keys, arguments, to),
        V::ZCard => sorted_sets::card(keys, arguments, to),
        V::ZRank => sorted_sets::rank(keys, arguments, false, to),
        V::ZRevRank => sorted_sets::rank(keys, arguments, true, to),
        V::ZPopMin => sorted_sets::pop(keys, arguments, false, to),
        V::ZPopMax => sorted_sets::pop(keys, arguments, true, to),
        V::ZCount => sorted_ranges::count(keys, arguments, to),
        V::ZRange => sorted_ranges::range(keys, arguments, to),
        V::ZRevRange => sorted_ranges::rev_range(keys, arguments, to),
        V::ZRangeByScore => sorted_ranges::by_score(keys, arguments, false, to),
        V::ZRevRangeByScore => sorted_ranges::by_score(keys, arguments, true, to),
        V::ZRemRangeByRank => sorted_ranges::rem_by_rank(keys, arguments, to),
        V::ZRemRangeByScore => sorted_ranges::rem_by_score(keys, arguments, to),
        // The others are executed at the connection, which sends none of them.
        _ => Err(CommandRefusal::MALFORMED),
    }
}
