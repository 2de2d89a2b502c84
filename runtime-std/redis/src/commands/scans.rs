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
}

impl<'a> ScanOptions<'a> {
    fn parse(options: &Arguments<'a>) -> Result<Self, CommandRefusal> {
        let mut parsed = Self { pattern: None, count: COUNT_DEFAULT, type_name: None };
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

    fn matches(&self, name: &[u8]) -> bool {
        self.pattern.is_none_or(|pattern| pattern::matches(pattern, name))
    }
}

fn cursor(text: &[u8]) -> Result<u64, CommandRefusal> {
    let cursor = std::str::from_utf8(text).ok().and_then(|text| text.parse().ok());
    cursor.ok_or(CommandRefusal::CURSOR)
}

pub(super) fn scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let [from, options @ ..] = arguments else { return Err(CommandRefusal::arity(b"scan")) };
    let (from, options) = (cursor(from)?, ScanOptions::parse(options)?);
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
        if is_of_type && options.matches(key) {
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
    let (key, options) = of_collection(arguments)?;
    let fields = keys.read::<Hash>(key)?.into_iter().flatten();
    let fields = fields.filter(|(field, _)| options.matches(field));
    let items: Vec<&[u8]> = fields.flat_map(|(field, value)| [&**field, &**value]).collect();
    whole(&items, to);
    Ok(())
}

pub(super) fn set_scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, options) = of_collection(arguments)?;
    let members = keys.read::<Set>(key)?.into_iter().flatten().map(|member| &**member);
    let items: Vec<&[u8]> = members.filter(|member| options.matches(member)).collect();
    whole(&items, to);
    Ok(())
}

pub(super) fn sorted_scan(keys: &Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let (key, options) = of_collection(arguments)?;
    let members = keys.read::<SortedSet>(key)?.into_iter().flat_map(SortedSet::iter);
    let members: Vec<_> = members.filter(|(member, _)| options.matches(member)).collect();
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
