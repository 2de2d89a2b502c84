//! Sets. Members are returned in the order of their bytes.

use std::collections::BTreeSet;

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::text::Text;
use crate::value::{Set, Stored as _};
use xxhash_rust::xxh3::xxh3_64_with_seed;

/// Which members of several sets belong to their combination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Of {
    /// Members of all sets.
    All,
    /// Members of any set.
    Any,
    /// Members of the first set and of no other.
    First,
}

pub(super) fn add(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, members @ ..] = arguments else { return Err(CommandRefusal::arity(b"sadd")) };
    let added = keys.edit(key, |set: &mut Set| {
        Ok(members.iter().filter(|member| set.insert((**member).into())).count())
    })?;
    to.count(added);
    Ok(())
}

pub(super) fn rem(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, members @ ..] = arguments else { return Err(CommandRefusal::arity(b"srem")) };
    let removed = keys.edit(key, |set: &mut Set| {
        Ok(members.iter().filter(|member| set.remove(**member)).count())
    })?;
    to.count(removed);
    Ok(())
}

pub(super) fn members(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"smembers")) };
    let set = keys.read::<Set>(key)?;
    to.array(set.map_or(0, Set::len));
    to.bulks_of_array(set.into_iter().flatten().map(|member| &**member));
    Ok(())
}

pub(super) fn is_member(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, member] = arguments else { return Err(CommandRefusal::arity(b"sismember")) };
    to.flag(keys.read::<Set>(key)?.is_some_and(|set| set.contains(member)));
    Ok(())
}

pub(super) fn are_members(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, members @ ..] = arguments else { return Err(CommandRefusal::arity(b"smismember")) };
    let set = keys.read::<Set>(key)?;
    to.array(members.len());
    for member in members {
        to.flag(set.is_some_and(|set| set.contains(*member)));
    }
    Ok(())
}

pub(super) fn card(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"scard")) };
    to.count(keys.read::<Set>(key)?.map_or(0, Set::len));
    Ok(())
}

/// Returns the places of `count` different members of a set. They depend only on the number of
/// changes, so that all members of the group choose the same ones.
fn places(keys: &Keyspace, key: &[u8], length: usize, count: usize) -> Vec<usize> {
    // The first elements of a shuffled list of places.
    let mut places: Vec<usize> = (0..length).collect();
    let count = count.min(length);
    for at in 0..count {
        let other = at + random(keys, key, at, length - at);
        places.swap(at, other);
    }
    places.truncate(count);
    places
}

fn random(keys: &Keyspace, key: &[u8], draw: usize, below: usize) -> usize {
    let seed = keys.changes().wrapping_add((draw as u64) << 40) ^ keys.now_ms();
    usize::try_from(xxh3_64_with_seed(key, seed) % below.max(1) as u64).unwrap_or(0)
}

fn members_at(set: &Set, places: &[usize]) -> Vec<Text> {
    match places {
        [place] => set.iter().nth(*place).cloned().into_iter().collect(),
        _ => {
            let all: Vec<&Text> = set.iter().collect();
            places.iter().filter_map(|place| all.get(*place).copied().cloned()).collect()
        }
    }
}

/// Parses the arguments of SPOP and SRANDMEMBER: a key, and a count.
fn key_and_count<'a>(arguments: &Arguments<'a>) -> Result<(&'a [u8], Option<i64>), CommandRefusal> {
    match *arguments {
        [key] => Ok((key, None)),
        [key, count] => Ok((key, Some(numbers::integer(count)?))),
        _ => Err(CommandRefusal::SYNTAX),
    }
}

fn reply_members(members: &[Text], has_count: bool, to: &mut Reply) {
    if has_count {
        to.bulks(members.iter().map(|member| &**member));
    } else {
        to.bulk_or_nil(members.first().map(|member| &**member));
    }
}

pub(super) fn pop(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, count) = key_and_count(arguments)?;
    let wanted = usize::try_from(count.unwrap_or(1)).map_err(|_| CommandRefusal::NOT_POSITIVE)?;
    let length = keys.read::<Set>(key)?.map_or(0, Set::len);
    let places = places(keys, key, length, wanted);
    let popped = keys.edit(key, |set: &mut Set| {
        let popped = members_at(set, &places);
        for member in &popped {
            set.remove(&**member);
        }
        Ok(popped)
    })?;
    reply_members(&popped, count.is_some(), to);
    Ok(())
}

pub(super) fn random_members(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let (key, count) = key_and_count(arguments)?;
    let set = keys.read::<Set>(key)?;
    let length = set.map_or(0, Set::len);
    let wanted = usize::try_from(count.unwrap_or(1).unsigned_abs()).unwrap_or(usize::MAX);
    let repeats = count.is_some_and(|count| count < 0);
    if repeats && wanted > 1 << 20 {
        return Err(CommandRefusal::of("ERR value is out of range"));
    }
    let Some(set) = set else {
        reply_members(&[], count.is_some(), to);
        return Ok(());
    };
    if count.is_none() {
        let place = random(keys, key, 0, length);
        to.bulk_or_nil(set.iter().nth(place).map(|member| &**member));
        return Ok(());
    }
    // Members are written one by one and not copied first: a few large ones that are drawn a
    // million times would not fit into memory.
    let all: Vec<&Text> = set.iter().collect();
    let member = |place: usize| all.get(place).map(|member| &***member);
    if repeats {
        to.array(wanted);
        to.bulks_of_array((0..wanted).filter_map(|draw| member(random(keys, key, draw, length))));
    } else {
        let places = places(keys, key, length, wanted);
        to.array(places.len());
        to.bulks_of_array(places.into_iter().filter_map(member));
    }
    Ok(())
}

pub(super) fn shift(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[from, onto, member] = arguments else { return Err(CommandRefusal::arity(b"smove")) };
    let Some(set) = keys.read::<Set>(from)? else {
        to.integer(0);
        return Ok(());
    };
    let is_there = set.contains(member);
    // Checked before anything changes.
    keys.read::<Set>(onto)?;
    if is_there && from != onto {
        keys.edit(from, |set: &mut Set| Ok(set.remove(member)))?;
        keys.edit(onto, |set: &mut Set| Ok(set.insert(member.into())))?;
    }
    to.flag(is_there);
    Ok(())
}

/// The maximum number of look-ups of members for one combination. Otherwise a request that names a
/// large set many times would keep the nodes busy for minutes.
const LOOKUPS_MAX: usize = 5_000_000;

/// Returns the combination of sets.
fn combined<'k>(
    keys: &'k Keyspace,
    sets: &Arguments<'_>,
    of: Of,
) -> Result<BTreeSet<&'k Text>, CommandRefusal> {
    // All types are checked, also if the result is known earlier.
    let sets = sets.iter().map(|key| keys.read::<Set>(key)).collect::<Result<Vec<_>, _>>()?;
    let Some((first, others)) = sets.split_first() else { return Ok(BTreeSet::new()) };
    let length = |set: &Option<&Set>| set.map_or(0, Set::len);
    let lookups = match of {
        Of::Any => others.iter().map(length).fold(length(first), usize::saturating_add),
        Of::All | Of::First => length(first).saturating_mul(others.len().max(1)),
    };
    if lookups > LOOKUPS_MAX {
        return Err(CommandRefusal::of(
            "ERR the sets are too large to be combined in one request; combine fewer sets",
        ));
    }
    let first = first.iter().copied().flatten();
    let is_in = |other: &Option<&Set>, member: &Text| other.is_some_and(|set| set.contains(member));
    Ok(match of {
        Of::Any => first.chain(others.iter().flatten().copied().flatten()).collect(),
        Of::All => {
            let is_in_all = |member: &&Text| others.iter().all(|other| is_in(other, member));
            first.filter(is_in_all).collect()
        }
        Of::First => {
            let is_in_none = |member: &&Text| !others.iter().any(|other| is_in(other, member));
            first.filter(is_in_none).collect()
        }
    })
}

pub(super) fn combine(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    of: Of,
    to: &mut Reply,
) -> Executed {
    let set = combined(keys, arguments, of)?;
    to.bulks(set.iter().map(|member| &***member));
    Ok(())
}

pub(super) fn combine_store(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    of: Of,
    to: &mut Reply,
) -> Executed {
    let [onto, sets @ ..] = arguments else { return Err(CommandRefusal::SYNTAX) };
    let set: Set = combined(keys, sets, of)?.into_iter().cloned().collect();
    to.count(set.len());
    if set.is_empty() {
        keys.remove(onto);
    } else {
        keys.set(onto, set.into_value(), None);
    }
    Ok(())
}
