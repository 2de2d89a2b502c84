//! Scans. The cursor of SCAN is the hash of the next key, so any member continues a scan that
//! another one began, and a key that exists from beginning to end is returned once. The scans of
//! collections return everything at once, as Redis does for small ones.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::pattern;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::sorted_set::SortedSet;
use crate::value::{Hash, Set};

/// The number of keys that a call examines unless the client says otherwise.
const COUNT_DEFAULT: usize = 10;

/// The options of a scan.
struct ScanOptions<'a> {
    pattern: Option<&'a [u8]>,
    count: usize,
    type_name: Option<Vec<u8>>,
    /// The number of steps that are left for the pattern.
    steps: u64,
}

impl<'a> ScanOptions<'a> {
    fn parse(options: &Arguments<'a>) -> Result<Self, CommandRefusal> {
        let mut parsed = Self {
            pattern: None,
            count: COUNT_DEFAULT,
            type_name: None,
            steps: pattern::STEPS_OF_REQUEST,
        };
        let (pairs, []) = options.as_chunks() else { return Err(CommandRefusal::SYNTAX) };
        for [option, value] in pairs {
            match option.to_ascii_uppercase().as_slice() {
                b"MATCH" => parsed.pattern = Some(value),
                b"COUNT" => {
                    parsed.count = numbers::count(value)?;
                    if parsed.count == 0 {
                        return Err(CommandRefusal::SYNTAX);
                    }
                }
                b"TYPE" => parsed.type_name = Some(value.to_ascii_lowercase()),
                _ => return Err(CommandRefusal::SYNTAX),
            }
        }
        Ok(parsed)
    }

    fn matches(&mut self, name: &[u8]) -> Result<bool, CommandRefusal> {
        let Some(pattern) = self.pattern else { return Ok(true) };
        pattern::matches_within(pattern, name, &mut self.steps).ok_or(CommandRefusal::PATTERN_TIME)
    }
}

fn cursor(text: &[u8]) -> Result<u64, CommandRefusal> {
    let cursor = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    cursor.ok_or(CommandRefusal::CURSOR)
}

pub(super) fn scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [from, options @ ..] = arguments else { return Err(CommandRefusal::arity(b"scan")) };
    let (from, mut options) = (cursor(from)?, ScanOptions::parse(options)?);
    let (mut found, mut examined, mut next, mut last) = (Vec::new(), 0, 0, 0);
    for (hash, key, value) in keys.entries_from(from) {
        // Keys with equal hashes are returned together, because a cursor cannot separate them.
        if examined >= options.count && hash != last {
            next = hash;
            break;
        }
        (examined, last) = (examined + 1, hash);
        let type_name = options.type_name.as_deref();
        let is_of_type = type_name.is_none_or(|name| name == value.type_name().as_bytes());
        if is_of_type && options.matches(key)? {
            found.push(&**key);
        }
    }
    to.array(2);
    to.bulk(next.to_string().as_bytes());
    to.bulks(found.into_iter());
    Ok(())
}

/// Replies the end of a scan with these items.
fn whole(items: &[&[u8]], to: &mut Reply) {
    to.array(2);
    to.bulk(b"0");
    to.bulks(items.iter().copied());
}

/// Checks the arguments of a scan of a collection.
fn of_collection<'a>(
    arguments: &Arguments<'a>,
) -> Result<(&'a [u8], ScanOptions<'a>), CommandRefusal> {
    let [key, from, options @ ..] = arguments else { return Err(CommandRefusal::SYNTAX) };
    cursor(from)?;
    let options = ScanOptions::parse(options)?;
    if options.type_name.is_some() { Err(CommandRefusal::SYNTAX) } else { Ok((key, options)) }
}

pub(super) fn hash_scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, mut options) = of_collection(arguments)?;
    let mut items: Vec<&[u8]> = Vec::new();
    for (field, value) in keys.read::<Hash>(key)?.into_iter().flatten() {
        if options.matches(field)? {
            items.extend([&**field, &**value]);
        }
    }
    whole(&items, to);
    Ok(())
}

pub(super) fn set_scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, mut options) = of_collection(arguments)?;
    let mut items: Vec<&[u8]> = Vec::new();
    for member in keys.read::<Set>(key)?.into_iter().flatten() {
        if options.matches(member)? {
            items.push(member);
        }
    }
    whole(&items, to);
    Ok(())
}

pub(super) fn sorted_scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, mut options) = of_collection(arguments)?;
    let mut members = Vec::new();
    for (member, score) in keys.read::<SortedSet>(key)?.into_iter().flat_map(SortedSet::iter) {
        if options.matches(member)? {
            members.push((member, score));
        }
    }
    to.array(2);
    to.bulk(b"0");
    to.array(members.len() * 2);
    for (member, score) in members {
        if !to.is_kept() {
            break;
        }
        to.bulk(member);
        to.bulk(numbers::float_text(score).as_bytes());
    }
    Ok(())
}
