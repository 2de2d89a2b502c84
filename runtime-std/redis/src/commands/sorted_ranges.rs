//! Ranges of sorted sets, by rank or by score.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::sorted_set::SortedSet;
use crate::text::Text;

/// A range of scores.
#[derive(Clone, Copy, Debug)]
struct Scores {
    least: f64,
    excludes_least: bool,
    most: f64,
    excludes_most: bool,
}

impl Scores {
    fn parse(least: &[u8], most: &[u8]) -> Result<Self, CommandRefusal> {
        let bound = |text: &[u8]| {
            let (excludes, number) = match text.strip_prefix(b"(") {
                Some(number) => (true, number),
                None => (false, text),
            };
            Ok((numbers::bound(number).map_err(|_| CommandRefusal::RANGE)?, excludes))
        };
        let ((least, excludes_least), (most, excludes_most)) = (bound(least)?, bound(most)?);
        Ok(Self { least, excludes_least, most, excludes_most })
    }

    fn contains(&self, score: f64) -> bool {
        let is_above = if self.excludes_least { score > self.least } else { score >= self.least };
        let is_below = if self.excludes_most { score < self.most } else { score <= self.most };
        is_above && is_below
    }

    /// Returns the members of a set in this range, in order.
    fn of<'s>(&self, set: Option<&'s SortedSet>) -> Vec<(&'s Text, f64)> {
        let from = set.into_iter().flat_map(|set| set.members_from(self.least));
        let most = self.most;
        let until = from.take_while(move |(_, score)| *score <= most);
        until.filter(|(_, score)| self.contains(*score)).collect()
    }
}

/// How a range is chosen and replied.
#[derive(Default)]
struct RangeOptions {
    by_score: bool,
    is_reversed: bool,
    with_scores: bool,
    /// The number of members to leave out, and the maximum number of those that follow.
    limit: Option<(i64, i64)>,
}

impl RangeOptions {
    fn parse(mut options: &Arguments<'_>) -> Result<Self, CommandRefusal> {
        let mut parsed = Self::default();
        while let [option, rest @ ..] = options {
            options = rest;
            match option.to_ascii_uppercase().as_slice() {
                b"BYSCORE" => parsed.by_score = true,
                b"REV" => parsed.is_reversed = true,
                b"WITHSCORES" => parsed.with_scores = true,
                b"LIMIT" => {
                    let [skipped, count, rest @ ..] = options else {
                        return Err(CommandRefusal::SYNTAX);
                    };
                    parsed.limit = Some((numbers::integer(skipped)?, numbers::integer(count)?));
                    options = rest;
                }
                b"BYLEX" => return Err(CommandRefusal::TEXT_RANGE),
                _ => return Err(CommandRefusal::SYNTAX),
            }
        }
        Ok(parsed)
    }

    fn reply(&self, mut members: Vec<(&Text, f64)>, to: &mut Reply) {
        if let Some((skipped, count)) = self.limit {
            let skipped = usize::try_from(skipped).unwrap_or(usize::MAX).min(members.len());
            members.drain(..skipped);
            // A negative count stands for all.
            members.truncate(usize::try_from(count).unwrap_or(usize::MAX));
        }
        to.array(members.len() * if self.with_scores { 2 } else { 1 });
        for (member, score) in members {
            if !to.is_kept() {
                return;
            }
            to.bulk(member);
            if self.with_scores {
                to.bulk(numbers::float_text(score).as_bytes());
            }
        }
    }
}

/// Replies the members in a range of ranks.
fn reply_ranks(
    keys: &Keyspace,
    key: &[u8],
    [start, stop]: [&[u8]; 2],
    options: &RangeOptions,
    to: &mut Reply,
) -> Executed {
    let (start, stop) = (numbers::integer(start)?, numbers::integer(stop)?);
    let set = keys.read::<SortedSet>(key)?;
    let ranks = numbers::range(start, stop, set.map_or(0, SortedSet::len));
    let all = set.into_iter().flat_map(SortedSet::iter);
    let members = if options.is_reversed {
        all.rev().skip(ranks.start).take(ranks.len()).collect()
    } else {
        all.skip(ranks.start).take(ranks.len()).collect()
    };
    options.reply(members, to);
    Ok(())
}

/// Replies the members in a range of scores. A reversed range begins with the greatest score.
fn reply_scores(
    keys: &Keyspace,
    key: &[u8],
    [start, stop]: [&[u8]; 2],
    options: &RangeOptions,
    to: &mut Reply,
) -> Executed {
    let (least, most) = if options.is_reversed { (stop, start) } else { (start, stop) };
    let mut members = Scores::parse(least, most)?.of(keys.read(key)?);
    if options.is_reversed {
        members.reverse();
    }
    options.reply(members, to);
    Ok(())
}

pub(super) fn range(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, start, stop, options @ ..] = arguments else {
        return Err(CommandRefusal::arity(b"zrange"));
    };
    let options = RangeOptions::parse(options)?;
    if options.by_score {
        return reply_scores(keys, key, [start, stop], &options, to);
    }
    if options.limit.is_some() {
        return Err(CommandRefusal::of(
            "ERR syntax error, LIMIT is only supported in combination with either BYSCORE or BYLEX",
        ));
    }
    reply_ranks(keys, key, [start, stop], &options, to)
}

pub(super) fn rev_range(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [key, start, stop, options @ ..] = arguments else {
        return Err(CommandRefusal::arity(b"zrevrange"));
    };
    let options = RangeOptions::parse(options)?;
    if options.by_score || options.is_reversed || options.limit.is_some() {
        return Err(CommandRefusal::SYNTAX);
    }
    let options = RangeOptions { is_reversed: true, ..options };
    reply_ranks(keys, key, [start, stop], &options, to)
}

pub(super) fn by_score(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    is_reversed: bool,
    to: &mut Reply,
) -> Executed {
    let [key, start, stop, options @ ..] = arguments else {
        return Err(CommandRefusal::arity(b"zrangebyscore"));
    };
    let options = RangeOptions::parse(options)?;
    if options.by_score || options.is_reversed {
        return Err(CommandRefusal::SYNTAX);
    }
    let options = RangeOptions { is_reversed, ..options };
    reply_scores(keys, key, [start, stop], &options, to)
}

pub(super) fn count(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key, least, most] = arguments else { return Err(CommandRefusal::arity(b"zcount")) };
    to.count(Scores::parse(least, most)?.of(keys.read(key)?).len());
    Ok(())
}

/// Removes members, and replies their number.
fn remove(
    keys: &mut Keyspace,
    key: &[u8],
    choose: impl FnOnce(&SortedSet) -> Vec<Text>,
    to: &mut Reply,
) -> Executed {
    let removed = keys.edit(key, |set: &mut SortedSet| {
        let members = choose(set);
        for member in &members {
            set.remove(member);
        }
        Ok(members.len())
    })?;
    to.count(removed);
    Ok(())
}

pub(super) fn rem_by_rank(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let &[key, start, stop] = arguments else {
        return Err(CommandRefusal::arity(b"zremrangebyrank"));
    };
    let (start, stop) = (numbers::integer(start)?, numbers::integer(stop)?);
    let choose = |set: &SortedSet| {
        let ranks = numbers::range(start, stop, set.len());
        let members = set.iter().skip(ranks.start).take(ranks.len());
        members.map(|(member, _)| member.clone()).collect()
    };
    remove(keys, key, choose, to)
}

pub(super) fn rem_by_score(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let &[key, least, most] = arguments else {
        return Err(CommandRefusal::arity(b"zremrangebyscore"));
    };
    let scores = Scores::parse(least, most)?;
    let choose = |set: &SortedSet| {
        scores.of(Some(set)).into_iter().map(|(member, _)| member.clone()).collect()
    };
    remove(keys, key, choose, to)
}
