//! Sorted sets: members and their scores.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::sorted_set::SortedSet;

/// The options of ZADD.
#[derive(Default)]
struct AddOptions {
    only_new: bool,
    only_existing: bool,
    only_greater: bool,
    only_less: bool,
    counts_changes: bool,
    increments: bool,
}

impl AddOptions {
    /// Parses options, and returns the other arguments.
    fn parse<'s, 'a>(
        mut arguments: &'s Arguments<'a>,
    ) -> Result<(Self, &'s Arguments<'a>), CommandRefusal> {
        let mut options = Self::default();
        while let [option, rest @ ..] = arguments {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => options.only_new = true,
                b"XX" => options.only_existing = true,
                b"GT" => options.only_greater = true,
                b"LT" => options.only_less = true,
                b"CH" => options.counts_changes = true,
                b"INCR" => options.increments = true,
                _ => break,
            }
            arguments = rest;
        }
        let Self { only_new, only_existing, only_greater, only_less, .. } = options;
        if only_new && only_existing {
            return Err(CommandRefusal::of(
                "ERR XX and NX options at the same time are not compatible",
            ));
        }
        if only_greater && only_less || only_new && (only_greater || only_less) {
            return Err(CommandRefusal::of(
                "ERR GT, LT, and/or NX options at the same time are not compatible",
            ));
        }
        Ok((options, arguments))
    }

    /// Returns a member's new score, or `None` if these options forbid a change.
    fn score(&self, current: Option<f64>, number: f64) -> Result<Option<f64>, CommandRefusal> {
        let base = if self.increments { current.unwrap_or(0.0) } else { 0.0 };
        let score = base + number;
        if score.is_nan() {
            return Err(CommandRefusal::of("ERR resulting score is not a number (NaN)"));
        }
        let is_allowed = match current {
            None => !self.only_existing,
            Some(current) => {
                !(self.only_new
                    || self.only_greater && score <= current
                    || self.only_less && score >= current)
            }
        };
        Ok(is_allowed.then_some(score))
    }
}

pub(super) fn add(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, rest @ ..] = arguments else { return Err(CommandRefusal::arity(b"zadd")) };
    let (options, rest) = AddOptions::parse(rest)?;
    let (pairs, []) = rest.as_chunks::<2>() else { return Err(CommandRefusal::SYNTAX) };
    if pairs.is_empty() {
        return Err(CommandRefusal::SYNTAX);
    }
    if options.increments && pairs.len() > 1 {
        return Err(CommandRefusal::of("ERR INCR option supports a single increment-element pair"));
    }
    // All numbers are checked before anything changes.
    let pairs = pairs.iter().map(|[score, member]| Ok((numbers::float(score)?, *member)));
    let pairs = pairs.collect::<Result<Vec<_>, CommandRefusal>>()?;
    let (added, changed, last) = keys.edit(key, |set: &mut SortedSet| {
        let (mut added, mut changed, mut last) = (0, 0, None);
        for (number, member) in &pairs {
            let current = set.score(member);
            // Only a single increment can fail, so nothing has changed.
            last = options.score(current, *number)?;
            let Some(score) = last else { continue };
            added += usize::from(current.is_none());
            changed += usize::from(current != Some(score));
            set.insert(member, score);
        }
        Ok((added, changed, last))
    })?;
    match (options.increments, last) {
        (true, Some(score)) => to.bulk(numbers::float_text(score).as_bytes()),
        (true, None) => to.nil(),
        (false, _) => to.count(if options.counts_changes { changed } else { added }),
    }
    Ok(())
}

pub(super) fn incr_by(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, number, member] = arguments else { return Err(CommandRefusal::arity(b"zincrby")) };
    let number = numbers::float(number)?;
    let options = AddOptions { increments: true, ..AddOptions::default() };
    let score = keys.edit(key, |set: &mut SortedSet| {
        let score = options.score(set.score(member), number)?;
        if let Some(score) = score {
            set.insert(member, score);
        }
        Ok(score)
    })?;
    to.bulk_or_nil(score.map(numbers::float_text).as_ref().map(String::as_bytes));
    Ok(())
}

pub(super) fn rem(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, members @ ..] = arguments else { return Err(CommandRefusal::arity(b"zrem")) };
    let removed = keys.edit(key, |set: &mut SortedSet| {
        Ok(members.iter().filter(|member| set.remove(member)).count())
    })?;
    to.count(removed);
    Ok(())
}

fn reply_score(score: Option<f64>, to: &mut Reply) {
    match score {
        Some(score) => to.bulk(numbers::float_text(score).as_bytes()),
        None => to.nil(),
    }
}

pub(super) fn score(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, member] = arguments else { return Err(CommandRefusal::arity(b"zscore")) };
    reply_score(keys.read::<SortedSet>(key)?.and_then(|set| set.score(member)), to);
    Ok(())
}

pub(super) fn scores(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, members @ ..] = arguments else { return Err(CommandRefusal::arity(b"zmscore")) };
    let set = keys.read::<SortedSet>(key)?;
    to.array(members.len());
    members.iter().for_each(|member| reply_score(set.and_then(|set| set.score(member)), to));
    Ok(())
}

pub(super) fn card(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"zcard")) };
    to.count(keys.read::<SortedSet>(key)?.map_or(0, SortedSet::len));
    Ok(())
}

pub(super) fn rank(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    from_end: bool,
    to: &mut Reply,
) -> Executed {
    let &[key, member] = arguments else { return Err(CommandRefusal::arity(b"zrank")) };
    let set = keys.read::<SortedSet>(key)?;
    match set.and_then(|set| Some((set.rank(member)?, set.len()))) {
        Some((rank, length)) => to.count(if from_end { length - 1 - rank } else { rank }),
        None => to.nil(),
    }
    Ok(())
}

pub(super) fn pop(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    from_end: bool,
    to: &mut Reply,
) -> Executed {
    let (key, count) = match *arguments {
        [key] => (key, 1),
        [key, count] => (key, numbers::count(count)?),
        _ => return Err(CommandRefusal::SYNTAX),
    };
    let popped = keys.edit(key, |set: &mut SortedSet| {
        let copy = |(member, score): (&crate::text::Text, f64)| (member.clone(), score);
        let popped: Vec<_> = if from_end {
            set.iter().rev().take(count).map(copy).collect()
        } else {
            set.iter().take(count).map(copy).collect()
        };
        for (member, _) in &popped {
            set.remove(member);
        }
        Ok(popped)
    })?;
    to.array(popped.len() * 2);
    for (member, score) in &popped {
        to.bulk(member);
        to.bulk(numbers::float_text(*score).as_bytes());
    }
    Ok(())
}
