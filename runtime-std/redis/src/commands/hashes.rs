//! Hashes: fields and their values. Fields are returned in the order of their bytes.

use super::arguments::{Arguments, Executed};
use super::counters::{add_float_to, add_to, float_step, zero};
use crate::keyspace::Keyspace;
use crate::long_double::is_long;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::text::Text;
use crate::value::Hash;

pub(super) fn set(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    replies_ok: bool,
    to: &mut Reply,
) -> Executed {
    let name: &[u8] = if replies_ok { b"hmset" } else { b"hset" };
    let [key, fields @ ..] = arguments else { return Err(CommandRefusal::arity(name)) };
    let (pairs, []) = fields.as_chunks() else { return Err(CommandRefusal::arity(name)) };
    let added = keys.edit(key, |hash: &mut Hash| {
        let set = |[field, value]: &[&[u8]; 2]| hash.insert((*field).into(), (*value).into());
        Ok(pairs.iter().map(set).filter(Option::is_none).count())
    })?;
    if replies_ok {
        to.ok();
    } else {
        to.count(added);
    }
    Ok(())
}

pub(super) fn set_nx(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, field, value] = arguments else { return Err(CommandRefusal::arity(b"hsetnx")) };
    let is_new = !keys.read::<Hash>(key)?.is_some_and(|hash| hash.contains_key(field));
    if is_new {
        keys.edit(key, |hash: &mut Hash| Ok(hash.insert(field.into(), value.into())))?;
    }
    to.flag(is_new);
    Ok(())
}

/// Returns the value of a field.
fn value<'k>(
    keys: &'k Keyspace,
    key: &[u8],
    field: &[u8],
) -> Result<Option<&'k Text>, CommandRefusal> {
    Ok(keys.read::<Hash>(key)?.and_then(|hash| hash.get(field)))
}

pub(super) fn get(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, field] = arguments else { return Err(CommandRefusal::arity(b"hget")) };
    to.bulk_or_nil(value(keys, key, field)?.map(|value| &**value));
    Ok(())
}

pub(super) fn mget(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, fields @ ..] = arguments else { return Err(CommandRefusal::arity(b"hmget")) };
    let hash = keys.read::<Hash>(key)?;
    to.array(fields.len());
    for field in fields {
        to.bulk_or_nil(hash.and_then(|hash| hash.get(*field)).map(|value| &**value));
    }
    Ok(())
}

/// Replies all fields, all values, or both.
pub(super) fn get_all(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    with_fields: bool,
    with_values: bool,
    to: &mut Reply,
) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"hgetall")) };
    let hash = keys.read::<Hash>(key)?;
    let parts = usize::from(with_fields) + usize::from(with_values);
    to.array(hash.map_or(0, Hash::len) * parts);
    for (field, value) in hash.into_iter().flatten() {
        if !to.is_kept() {
            break;
        }
        if with_fields {
            to.bulk(field);
        }
        if with_values {
            to.bulk(value);
        }
    }
    Ok(())
}

pub(super) fn del(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, fields @ ..] = arguments else { return Err(CommandRefusal::arity(b"hdel")) };
    let removed = keys.edit(key, |hash: &mut Hash| {
        Ok(fields.iter().filter(|field| hash.remove(**field).is_some()).count())
    })?;
    to.count(removed);
    Ok(())
}

pub(super) fn exists(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, field] = arguments else { return Err(CommandRefusal::arity(b"hexists")) };
    to.flag(value(keys, key, field)?.is_some());
    Ok(())
}

pub(super) fn len(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"hlen")) };
    to.count(keys.read::<Hash>(key)?.map_or(0, Hash::len));
    Ok(())
}

pub(super) fn str_len(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, field] = arguments else { return Err(CommandRefusal::arity(b"hstrlen")) };
    to.count(value(keys, key, field)?.map_or(0, |value| value.len()));
    Ok(())
}

pub(super) fn incr_by(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, field, step] = arguments else { return Err(CommandRefusal::arity(b"hincrby")) };
    let step = numbers::integer(step)?;
    let sum =
        edit_field(keys, key, field, |value| add_to(value, step, CommandRefusal::HASH_NUMBER))?;
    to.integer(sum);
    Ok(())
}

pub(super) fn incr_by_float(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let &[key, field, step] = arguments else { return Err(CommandRefusal::arity(b"hincrbyfloat")) };
    let stored = keys.read::<Hash>(key).ok().flatten().and_then(|hash| hash.get(field));
    if is_long(step) || stored.is_some_and(|number| is_long(number)) {
        keys.count_long_sum()?;
    }
    let step = float_step(step)?;
    let sum = edit_field(keys, key, field, |value| {
        add_float_to(value, step, CommandRefusal::HASH_FLOAT)?;
        Ok(value.clone())
    })?;
    to.bulk(&sum);
    Ok(())
}

/// Changes a field, which begins with zero.
fn edit_field<R>(
    keys: &mut Keyspace,
    key: &[u8],
    field: &[u8],
    edit: impl FnOnce(&mut Text) -> Result<R, CommandRefusal>,
) -> Result<R, CommandRefusal> {
    keys.edit(key, |hash: &mut Hash| match hash.get_mut(field) {
        Some(value) => edit(value),
        None => {
            let mut value = zero();
            let result = edit(&mut value)?;
            hash.insert(field.into(), value);
            Ok(result)
        }
    })
}
