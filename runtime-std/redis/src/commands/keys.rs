//! Keys as such, and what concerns all of them.

use super::{Arguments, Outcome};
use crate::keyspace::Keyspace;
use crate::pattern;
use crate::protocol::Reply;
use crate::refusal::Refusal;
use crate::subscriptions;

pub(super) fn del(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    to.count(arguments.iter().filter(|key| keys.remove(key)).count());
    Ok(())
}

pub(super) fn exists(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    to.count(arguments.iter().filter(|key| keys.has(key)).count());
    Ok(())
}

pub(super) fn type_of(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    let &[key] = arguments else { return Err(Refusal::arity(b"type")) };
    to.simple(keys.value(key).map_or("none", |value| value.type_name()));
    Ok(())
}

pub(super) fn db_size(keys: &Keyspace, to: &mut Reply) -> Outcome {
    to.count(keys.len());
    Ok(())
}

pub(super) fn flush(keys: &mut Keyspace, to: &mut Reply) -> Outcome {
    keys.clear();
    to.ok();
    Ok(())
}

pub(super) fn keys(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    let &[sought] = arguments else { return Err(Refusal::arity(b"keys")) };
    let found: Vec<&[u8]> =
        keys.keys().map(|key| &**key).filter(|key| pattern::matches(sought, key)).collect();
    to.bulks(found.into_iter());
    Ok(())
}

/// Replies a key that depends on the number of changes. It is not random enough for statistics.
pub(super) fn random_key(keys: &Keyspace, to: &mut Reply) -> Outcome {
    let seed = xxhash_rust::xxh3::xxh3_64(&keys.changes().to_le_bytes());
    let mut after = keys.from_cursor(seed).map(|(_, key, _)| key);
    let key = after.next().or_else(|| keys.keys().next());
    to.bulk_or_nil(key.map(|key| &**key));
    Ok(())
}

pub(super) fn rename(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    only_if_new: bool,
    to: &mut Reply,
) -> Outcome {
    let &[from, name] = arguments else { return Err(Refusal::arity(b"rename")) };
    if !keys.has(from) {
        return Err(Refusal::NO_KEY);
    }
    if only_if_new && keys.has(name) {
        to.integer(0);
        return Ok(());
    }
    if let Some((value, expires_at_ms)) = keys.take(from) {
        keys.set(name, value, expires_at_ms);
    }
    if only_if_new {
        to.integer(1);
    } else {
        to.ok();
    }
    Ok(())
}

/// Replies the time of the order, in seconds and microseconds.
pub(super) fn time(keys: &Keyspace, to: &mut Reply) -> Outcome {
    let (seconds, rest_ms) = (keys.now_ms() / 1000, keys.now_ms() % 1000);
    to.array(2);
    to.bulk(seconds.to_string().as_bytes());
    to.bulk((rest_ms * 1000).to_string().as_bytes());
    Ok(())
}

/// Hands a message to the subscribers at this member, and replies their number.
pub(super) fn publish(arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    let &[channel, message] = arguments else { return Err(Refusal::arity(b"publish")) };
    to.count(subscriptions::of_process().publish(channel, message));
    Ok(())
}

pub(super) fn ping(arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    match arguments {
        [] => to.simple("PONG"),
        &[text] => to.bulk(text),
        _ => return Err(Refusal::arity(b"ping")),
    }
    Ok(())
}

pub(super) fn echo(arguments: &Arguments<'_>, to: &mut Reply) -> Outcome {
    let &[text] = arguments else { return Err(Refusal::arity(b"echo")) };
    to.bulk(text);
    Ok(())
}
