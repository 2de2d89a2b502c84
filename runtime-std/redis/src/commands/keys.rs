//! Keys as such, and what concerns all of them.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::pattern;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::subscriptions;

pub(super) fn del(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    to.count(arguments.iter().filter(|key| keys.remove(key)).count());
    Ok(())
}

pub(super) fn exists(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    to.count(arguments.iter().filter(|key| keys.has(key)).count());
    Ok(())
}

pub(super) fn type_of(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"type")) };
    to.simple(keys.value(key).map_or("none", |value| value.type_name()));
    Ok(())
}

pub(super) fn db_size(keys: &Keyspace, to: &mut Reply) -> Executed {
    to.count(keys.len());
    Ok(())
}

pub(super) fn flush(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let is_mode =
        |mode: &[u8]| mode.eq_ignore_ascii_case(b"ASYNC") || mode.eq_ignore_ascii_case(b"SYNC");
    // A mistyped option must not delete everything. Both modes delete at once here.
    if !matches!(arguments, [] | [_]) || !arguments.iter().all(|mode| is_mode(mode)) {
        return Err(CommandRefusal::SYNTAX);
    }
    keys.clear();
    to.ok();
    Ok(())
}

pub(super) fn keys(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[sought] = arguments else { return Err(CommandRefusal::arity(b"keys")) };
    let (mut found, mut steps) = (Vec::<&[u8]>::new(), pattern::STEPS_OF_REQUEST);
    for key in keys.keys() {
        let is_found = pattern::matches_within(sought, key, &mut steps);
        if is_found.ok_or(CommandRefusal::PATTERN_TIME)? {
            found.push(key);
        }
    }
    to.bulks(found.into_iter());
    Ok(())
}

/// Replies a key that depends on the number of changes. It is not random enough for statistics.
pub(super) fn random_key(keys: &Keyspace, to: &mut Reply) -> Executed {
    let seed = xxhash_rust::xxh3::xxh3_64(&keys.changes().to_le_bytes());
    let mut after = keys.entries_from(seed).map(|(_, key, _)| key);
    let key = after.next().or_else(|| keys.keys().next());
    to.bulk_or_nil(key.map(|key| &**key));
    Ok(())
}

pub(super) fn rename(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    only_if_new: bool,
    to: &mut Reply,
) -> Executed {
    let &[from, name] = arguments else { return Err(CommandRefusal::arity(b"rename")) };
    if !keys.has(from) {
        return Err(CommandRefusal::NO_KEY);
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
pub(super) fn time(keys: &Keyspace, to: &mut Reply) -> Executed {
    let (seconds, rest_ms) = (keys.now_ms() / 1000, keys.now_ms() % 1000);
    to.array(2);
    to.bulk(seconds.to_string().as_bytes());
    to.bulk((rest_ms * 1000).to_string().as_bytes());
    Ok(())
}

/// Replies the versions of keys, eight bytes each, for the connection.
pub(super) fn watch(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    arguments.iter().for_each(|key| to.raw(&keys.version(key).to_le_bytes()));
    Ok(())
}

/// Hands a message to the subscribers at this member, and replies their number.
pub(super) fn publish(arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[channel, message] = arguments else { return Err(CommandRefusal::arity(b"publish")) };
    to.count(subscriptions::of_process().publish(channel, message));
    Ok(())
}

pub(super) fn ping(arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    match arguments {
        [] => to.simple("PONG"),
        &[text] => to.bulk(text),
        _ => return Err(CommandRefusal::arity(b"ping")),
    }
    Ok(())
}

pub(super) fn echo(arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[text] = arguments else { return Err(CommandRefusal::arity(b"echo")) };
    to.bulk(text);
    Ok(())
}
