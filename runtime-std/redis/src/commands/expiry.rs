//! The times at which keys expire, by the time that the group's order brings.

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;

/// The meaning of an expiry command's number.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Unit {
    Seconds,
    Milliseconds,
    SecondsSince1970,
    MillisecondsSince1970,
}

impl Unit {
    /// Returns the name of the command whose number has this meaning.
    const fn command(self) -> &'static [u8] {
        match self {
            Self::Seconds => b"expire",
            Self::Milliseconds => b"pexpire",
            Self::SecondsSince1970 => b"expireat",
            Self::MillisecondsSince1970 => b"pexpireat",
        }
    }

    /// Returns the time in milliseconds since 1970, which may have passed.
    fn at_ms(self, number: i64, now_ms: u64) -> Option<i64> {
        let now_ms = i64::try_from(now_ms).ok()?;
        match self {
            Self::Seconds => number.checked_mul(1000)?.checked_add(now_ms),
            Self::Milliseconds => number.checked_add(now_ms),
            Self::SecondsSince1970 => number.checked_mul(1000),
            Self::MillisecondsSince1970 => Some(number),
        }
    }
}

/// Conditions on the time that a key has.
#[derive(Default)]
struct Conditions {
    if_none: bool,
    if_any: bool,
    if_later: bool,
    if_earlier: bool,
}

impl Conditions {
    fn parse(options: &Arguments<'_>) -> Result<Self, CommandRefusal> {
        let mut conditions = Self::default();
        for option in options {
            match option.to_ascii_uppercase().as_slice() {
                b"NX" => conditions.if_none = true,
                b"XX" => conditions.if_any = true,
                b"GT" => conditions.if_later = true,
                b"LT" => conditions.if_earlier = true,
                _ => {
                    let option = String::from_utf8_lossy(option);
                    return Err(CommandRefusal(format!("ERR Unsupported option {option}").into()));
                }
            }
        }
        let Self { if_none, if_any, if_later, if_earlier } = conditions;
        if if_none && (if_any || if_later || if_earlier) {
            return Err(CommandRefusal::of(
                "ERR NX and XX, GT or LT options at the same time are not compatible",
            ));
        }
        if if_later && if_earlier {
            return Err(CommandRefusal::of(
                "ERR GT and LT options at the same time are not compatible",
            ));
        }
        Ok(conditions)
    }

    /// A key without a time counts as one that expires last.
    fn hold(&self, current: Option<u64>, at_ms: i64) -> bool {
        let current_ms = current.and_then(|at_ms| i64::try_from(at_ms).ok()).unwrap_or(i64::MAX);
        !(self.if_none && current.is_some()
            || self.if_any && current.is_none()
            || self.if_later && at_ms <= current_ms
            || self.if_earlier && at_ms >= current_ms)
    }
}

pub(super) fn expire(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    unit: Unit,
    to: &mut Reply,
) -> Executed {
    let [key, number, options @ ..] = arguments else {
        return Err(CommandRefusal::arity(b"expire"));
    };
    let number = numbers::integer(number)?;
    let at_ms = unit.at_ms(number, keys.now_ms());
    let at_ms = at_ms.ok_or_else(|| CommandRefusal::expiry(unit.command()))?;
    let conditions = Conditions::parse(options)?;
    let current = keys.expires_at_ms(key);
    let is_set = current.is_some_and(|current| conditions.hold(current, at_ms));
    if is_set {
        match u64::try_from(at_ms).ok().filter(|at_ms| *at_ms > keys.now_ms()) {
            Some(at_ms) => keys.set_expiry(key, Some(at_ms)),
            None => keys.remove(key),
        };
    }
    to.flag(is_set);
    Ok(())
}

/// Replies the time that is left, in units of `unit_ms`: -2 without the key, -1 without
/// a time.
pub(super) fn left(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    unit_ms: u64,
    to: &mut Reply,
) -> Executed {
    reply_time(keys, arguments, to, |at_ms| {
        // Rounded as in Redis.
        (at_ms.saturating_sub(keys.now_ms()) + unit_ms / 2) / unit_ms
    })
}

/// Replies the time at which a key expires, in units of `unit_ms` since 1970.
pub(super) fn time_of(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    unit_ms: u64,
    to: &mut Reply,
) -> Executed {
    reply_time(keys, arguments, to, |at_ms| at_ms / unit_ms)
}

fn reply_time(
    keys: &Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
    time: impl FnOnce(u64) -> u64,
) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"ttl")) };
    to.integer(match keys.expires_at_ms(key) {
        None => -2,
        Some(None) => -1,
        Some(Some(at_ms)) => i64::try_from(time(at_ms)).unwrap_or(i64::MAX),
    });
    Ok(())
}

pub(super) fn persist(keys: &mut Keyspace, arguments: &Arguments<'_>, to: &mut Reply) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"persist")) };
    let has_time = keys.expires_at_ms(key).flatten().is_some();
    to.flag(has_time && keys.set_expiry(key, None));
    Ok(())
}
