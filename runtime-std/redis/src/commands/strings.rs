//! Strings.

use super::arguments::{Arguments, Executed};
use super::options::SetOptions;
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::text::Text;
use crate::value::Value;

/// The maximum length of a string, in bytes. Redis has the same limit.
const STRING_MAX: usize = 512 << 20;

fn text(bytes: &[u8]) -> Value {
    Value::Text(bytes.into())
}

pub(super) fn get(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"get")) };
    to.bulk_or_nil(keys.read::<Text>(key)?.map(|value| &**value));
    Ok(())
}

pub(super) fn set(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, value, options @ ..] = arguments else { return Err(CommandRefusal::arity(b"set")) };
    let options = SetOptions::parse(options, keys.now_ms())?;
    let previous = if options.get { keys.read::<Text>(key)?.cloned() } else { None };
    let is_set = options.only_if_exists.is_none_or(|exists| keys.has(key) == exists);
    if is_set {
        let kept = if options.keep_ttl { keys.expires_at_ms(key).flatten() } else { None };
        keys.set(key, text(value), options.expires_at_ms.or(kept));
    }
    match (options.get, is_set) {
        (true, _) => to.bulk_or_nil(previous.as_deref()),
        (false, true) => to.ok(),
        (false, false) => to.nil(),
    }
    Ok(())
}

pub(super) fn set_ex(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    unit_ms: u64,
    to: &mut Reply,
) -> Executed {
    let name: &[u8] = if unit_ms == 1 { b"psetex" } else { b"setex" };
    let &[key, duration, value] = arguments else { return Err(CommandRefusal::arity(name)) };
    let duration = numbers::integer(duration)?;
    let duration = u64::try_from(duration).ok().filter(|duration| *duration > 0);
    let at_ms = duration.and_then(|duration| duration.checked_mul(unit_ms));
    let at_ms = at_ms.and_then(|duration_ms| keys.now_ms().checked_add(duration_ms));
    let at_ms = at_ms.filter(|at_ms| i64::try_from(*at_ms).is_ok());
    keys.set(key, text(value), Some(at_ms.ok_or_else(|| CommandRefusal::expiry(name))?));
    to.ok();
    Ok(())
}

pub(super) fn set_nx(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, value] = arguments else { return Err(CommandRefusal::arity(b"setnx")) };
    let is_new = !keys.has(key);
    if is_new {
        keys.set(key, text(value), None);
    }
    to.flag(is_new);
    Ok(())
}

pub(super) fn get_set(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, value] = arguments else { return Err(CommandRefusal::arity(b"getset")) };
    to.bulk_or_nil(keys.read::<Text>(key)?.map(|value| &**value));
    keys.set(key, text(value), None);
    Ok(())
}

pub(super) fn get_del(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"getdel")) };
    to.bulk_or_nil(keys.read::<Text>(key)?.map(|value| &**value));
    keys.remove(key);
    Ok(())
}

pub(super) fn get_ex(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, options @ ..] = arguments else { return Err(CommandRefusal::arity(b"getex")) };
    let options = SetOptions::parse_get_ex(options, keys.now_ms())?;
    to.bulk_or_nil(keys.read::<Text>(key)?.map(|value| &**value));
    if options.expires_at_ms.is_some() || options.persist {
        keys.set_expiry(key, options.expires_at_ms);
    }
    Ok(())
}

pub(super) fn mget(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    to.array(arguments.len());
    for key in arguments {
        // A value of another type is absent here, as in Redis.
        to.bulk_or_nil(keys.read::<Text>(key).ok().flatten().map(|value| &**value));
    }
    Ok(())
}

fn set_all(keys: &mut Keyspace, pairs: &[[&[u8]; 2]]) {
    pairs.iter().for_each(|[key, value]| keys.set(key, text(value), None));
}

pub(super) fn mset(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (pairs, []) = arguments.as_chunks() else { return Err(CommandRefusal::arity(b"mset")) };
    set_all(keys, pairs);
    to.ok();
    Ok(())
}

pub(super) fn mset_nx(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (pairs, []) = arguments.as_chunks() else { return Err(CommandRefusal::arity(b"msetnx")) };
    let are_new = !pairs.iter().any(|[key, _]| keys.has(key));
    if are_new {
        set_all(keys, pairs);
    }
    to.flag(are_new);
    Ok(())
}

/// Refuses a string that would become too long.
fn check_length(length: usize) -> Result<(), CommandRefusal> {
    if length <= STRING_MAX {
        return Ok(());
    }
    Err(CommandRefusal::of("ERR string exceeds maximum allowed size (proto-max-bulk-len)"))
}

pub(super) fn append(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, suffix] = arguments else { return Err(CommandRefusal::arity(b"append")) };
    let length = keys.edit(key, |value: &mut Text| {
        check_length(value.len() + suffix.len())?;
        value.0.extend_from_slice(suffix);
        Ok(value.len())
    })?;
    to.count(length);
    Ok(())
}

pub(super) fn str_len(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"strlen")) };
    to.count(keys.read::<Text>(key)?.map_or(0, |value| value.len()));
    Ok(())
}

pub(super) fn get_range(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, start, stop] = arguments else { return Err(CommandRefusal::arity(b"getrange")) };
    let (start, stop) = (numbers::integer(start)?, numbers::integer(stop)?);
    let value = keys.read::<Text>(key)?.map_or(&[][..], |value| &**value);
    // Unlike in lists, an end before the beginning is the first byte, as in Redis.
    let length = i64::try_from(value.len()).unwrap_or(i64::MAX);
    let is_empty = start < 0 && stop < 0 && start > stop;
    let stop = if stop < 0 { stop.saturating_add(length).max(0) } else { stop };
    let range = if is_empty { 0..0 } else { numbers::range(start, stop, value.len()) };
    to.bulk(value.get(range).unwrap_or_default());
    Ok(())
}

pub(super) fn set_range(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let &[key, offset, part] = arguments else { return Err(CommandRefusal::arity(b"setrange")) };
    let offset = numbers::integer(offset)?;
    let offset =
        usize::try_from(offset).map_err(|_| CommandRefusal::of("ERR offset is out of range"))?;
    if part.is_empty() {
        to.count(keys.read::<Text>(key)?.map_or(0, |value| value.len()));
        return Ok(());
    }
    let length = keys.edit(key, |value: &mut Text| {
        let end = offset.saturating_add(part.len());
        check_length(end)?;
        value.0.resize(value.len().max(end), 0);
        value.0[offset..end].copy_from_slice(part);
        Ok(value.len())
    })?;
    to.count(length);
    Ok(())
}
