//! Lists.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::text::Text;
use crate::value::TextList;

/// An end of a list.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum ListEnd {
    Left,
    Right,
}

impl ListEnd {
    fn parse(text: &[u8]) -> Result<Self, CommandRefusal> {
        match text.to_ascii_uppercase().as_slice() {
            b"LEFT" => Ok(Self::Left),
            b"RIGHT" => Ok(Self::Right),
            _ => Err(CommandRefusal::SYNTAX),
        }
    }

    fn push(self, list: &mut TextList, item: Text) {
        match self {
            Self::Left => list.push_front(item),
            Self::Right => list.push_back(item),
        }
    }

    fn pop(self, list: &mut TextList) -> Option<Text> {
        match self {
            Self::Left => list.pop_front(),
            Self::Right => list.pop_back(),
        }
    }
}

/// Resolves a position, which may be counted from the end.
fn position(at: i64, length: usize) -> Option<usize> {
    let from_end = |at: u64| length.checked_sub(usize::try_from(at).ok()?);
    let at = if at < 0 { from_end(at.unsigned_abs()) } else { usize::try_from(at).ok() };
    at.filter(|at| *at < length)
}

pub(super) fn push(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    end: ListEnd,
    only_if_exists: bool,
    to: &mut Reply,
) -> Executed {
    let [key, items @ ..] = arguments else { return Err(CommandRefusal::arity(b"push")) };
    if only_if_exists && keys.read::<TextList>(key)?.is_none() {
        to.integer(0);
        return Ok(());
    }
    let length = keys.edit(key, |list: &mut TextList| {
        items.iter().for_each(|item| end.push(list, (*item).into()));
        Ok(list.len())
    })?;
    to.count(length);
    Ok(())
}

pub(super) fn pop(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    end: ListEnd,
    to: &mut Reply,
) -> Executed {
    let (key, count) = match *arguments {
        [key] => (key, None),
        [key, count] => (key, Some(numbers::count(count)?)),
        _ => return Err(CommandRefusal::SYNTAX),
    };
    if keys.read::<TextList>(key)?.is_none() {
        if count.is_some() {
            to.nil_array();
        } else {
            to.nil();
        }
        return Ok(());
    }
    let popped = keys.edit(key, |list: &mut TextList| {
        let count = count.unwrap_or(1).min(list.len());
        Ok((0..count).filter_map(|_| end.pop(list)).collect::<Vec<_>>())
    })?;
    match count {
        Some(_) => to.bulks(popped.iter().map(|item| &**item)),
        None => to.bulk_or_nil(popped.first().map(|item| &**item)),
    }
    Ok(())
}

pub(super) fn len(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"llen")) };
    to.count(keys.read::<TextList>(key)?.map_or(0, TextList::len));
    Ok(())
}

pub(super) fn range(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, start, stop] = arguments else { return Err(CommandRefusal::arity(b"lrange")) };
    let (start, stop) = (numbers::integer(start)?, numbers::integer(stop)?);
    match keys.read::<TextList>(key)? {
        Some(list) => {
            let range = numbers::range(start, stop, list.len());
            to.bulks(list.range(range).map(|item| &**item));
        }
        None => to.array(0),
    }
    Ok(())
}

pub(super) fn index(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, at] = arguments else { return Err(CommandRefusal::arity(b"lindex")) };
    let Some(list) = keys.read::<TextList>(key)? else {
        to.nil();
        return Ok(());
    };
    let at = numbers::integer(at)?;
    let item = position(at, list.len()).and_then(|at| list.get(at));
    to.bulk_or_nil(item.map(|item| &**item));
    Ok(())
}

pub(super) fn set(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, at, item] = arguments else { return Err(CommandRefusal::arity(b"lset")) };
    if keys.read::<TextList>(key)?.is_none() {
        return Err(CommandRefusal::NO_KEY);
    }
    let at = numbers::integer(at)?;
    keys.edit(key, |list: &mut TextList| {
        let at = position(at, list.len()).ok_or(CommandRefusal::INDEX)?;
        list[at] = item.into();
        Ok(())
    })?;
    to.ok();
    Ok(())
}

pub(super) fn rem(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, count, item] = arguments else { return Err(CommandRefusal::arity(b"lrem")) };
    let count = numbers::integer(count)?;
    let removed = keys.edit(key, |list: &mut TextList| {
        let max = match usize::try_from(count.unsigned_abs()) {
            Ok(0) | Err(_) => usize::MAX,
            Ok(max) => max,
        };
        let mut places: Vec<usize> = (0..list.len()).filter(|at| *list[*at] == *item).collect();
        if count < 0 {
            places.reverse();
        }
        places.truncate(max);
        places.sort_unstable();
        let (mut at, mut removed) = (0, places.iter().peekable());
        list.retain(|_| {
            let is_removed = removed.next_if(|place| **place == at).is_some();
            at += 1;
            !is_removed
        });
        Ok(places.len())
    })?;
    to.count(removed);
    Ok(())
}

pub(super) fn trim(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, start, stop] = arguments else { return Err(CommandRefusal::arity(b"ltrim")) };
    let (start, stop) = (numbers::integer(start)?, numbers::integer(stop)?);
    keys.edit(key, |list: &mut TextList| {
        let range = numbers::range(start, stop, list.len());
        list.truncate(range.end);
        list.drain(..range.start);
        Ok(())
    })?;
    to.ok();
    Ok(())
}

pub(super) fn insert(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, side, pivot, item] = arguments else {
        return Err(CommandRefusal::arity(b"linsert"));
    };
    let after = match side.to_ascii_uppercase().as_slice() {
        b"BEFORE" => 0,
        b"AFTER" => 1,
        _ => return Err(CommandRefusal::SYNTAX),
    };
    if keys.read::<TextList>(key)?.is_none() {
        to.integer(0);
        return Ok(());
    }
    let length = keys.edit(key, |list: &mut TextList| {
        let Some(at) = list.iter().position(|item| **item == *pivot) else { return Ok(None) };
        list.insert(at + after, item.into());
        Ok(Some(list.len()))
    })?;
    match length {
        Some(length) => to.count(length),
        None => to.integer(-1),
    }
    Ok(())
}

pub(super) fn pos(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, item, options @ ..] = arguments else { return Err(CommandRefusal::arity(b"lpos")) };
    let (mut rank, mut count, mut len_max) = (1, None, 0);
    let (pairs, []) = options.as_chunks() else { return Err(CommandRefusal::SYNTAX) };
    for [option, value] in pairs {
        match option.to_ascii_uppercase().as_slice() {
            b"RANK" => rank = numbers::integer(value)?,
            b"COUNT" => count = Some(numbers::count(value)?),
            b"MAXLEN" => len_max = numbers::count(value)?,
            _ => return Err(CommandRefusal::SYNTAX),
        }
    }
    if rank == 0 || rank == i64::MIN {
        return Err(CommandRefusal::of(
            "ERR RANK can't be zero: use 1 to start from the first match",
        ));
    }
    let list = keys.read::<TextList>(key)?;
    let length = list.map_or(0, TextList::len);
    let compared = if len_max == 0 { length } else { len_max.min(length) };
    let in_turn = (0..compared).map(|at| if rank < 0 { length - 1 - at } else { at });
    let matching = in_turn.filter(|at| list.is_some_and(|list| *list[*at] == **item));
    let before = usize::try_from(rank.unsigned_abs() - 1).unwrap_or(usize::MAX);
    let wanted = count.map_or(1, |count| if count == 0 { usize::MAX } else { count });
    let found: Vec<usize> = matching.skip(before).take(wanted).collect();
    match (count, found.first()) {
        (Some(_), _) => {
            to.array(found.len());
            found.into_iter().for_each(|at| to.count(at));
        }
        (None, Some(at)) => to.count(*at),
        (None, None) => to.nil(),
    }
    Ok(())
}

/// Moves an item from one end of a list to an end of another one, or of the same one.
fn shift_item(
    keys: &mut Keyspace,
    [from, onto]: [&[u8]; 2],
    source: ListEnd,
    target: ListEnd,
    to: &mut Reply,
) -> Executed {
    if keys.read::<TextList>(from)?.is_none() {
        to.nil();
        return Ok(());
    }
    // Checked before anything changes.
    keys.read::<TextList>(onto)?;
    let item = keys.edit(from, |list: &mut TextList| {
        let item = source.pop(list);
        if from == onto {
            item.iter().for_each(|item| target.push(list, item.clone()));
        }
        Ok(item)
    })?;
    if let Some(item) = item.as_ref().filter(|_| from != onto) {
        keys.edit(onto, |list: &mut TextList| {
            target.push(list, item.clone());
            Ok(())
        })?;
    }
    to.bulk_or_nil(item.as_deref());
    Ok(())
}

pub(super) fn shift(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    source: ListEnd,
    target: ListEnd,
    to: &mut Reply,
) -> Executed {
    let &[from, onto] = arguments else { return Err(CommandRefusal::arity(b"rpoplpush")) };
    shift_item(keys, [from, onto], source, target, to)
}

pub(super) fn lmove(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[from, onto, source, target] = arguments else {
        return Err(CommandRefusal::arity(b"lmove"));
    };
    shift_item(keys, [from, onto], ListEnd::parse(source)?, ListEnd::parse(target)?, to)
}
