//! Strings that are numbers.

use std::io::Write as _;

use super::arguments::{Arguments, Executed};
use crate::keyspace::Keyspace;
use crate::long_double::{LongDouble, ParsedNumber, is_long};
use crate::numbers;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::text::Text;

/// The value of a counter that does not exist.
pub(super) fn zero() -> Text {
    Text(b"0".to_vec())
}

/// Adds to a number that is text. `not_a_number` is the refusal of other text.
pub(super) fn add_to(
    value: &mut Text,
    step: i64,
    not_a_number: CommandRefusal,
) -> Result<i64, CommandRefusal> {
    let number = numbers::integer(value).map_err(|_| not_a_number)?;
    let sum = number.checked_add(step).ok_or(CommandRefusal::OVERFLOW)?;
    value.0.clear();
    // Writing to memory cannot fail.
    let _ = write!(value.0, "{sum}");
    Ok(sum)
}

/// Parses the number that INCRBYFLOAT or HINCRBYFLOAT adds. An infinity is `None`.
pub(super) fn float_step(step: &[u8]) -> Result<Option<LongDouble>, CommandRefusal> {
    match LongDouble::parse(step).ok_or(CommandRefusal::NOT_FLOAT)? {
        ParsedNumber::Finite(step) => Ok(Some(step)),
        ParsedNumber::Infinite => Ok(None),
    }
}

/// Adds to a floating-point number that is text.
pub(super) fn add_float_to(
    value: &mut Text,
    step: Option<LongDouble>,
    not_a_number: CommandRefusal,
) -> Result<(), CommandRefusal> {
    let sum = match (LongDouble::parse(value).ok_or(not_a_number)?, step) {
        (ParsedNumber::Finite(number), Some(step)) => number.plus(step),
        _ => None,
    };
    value.0 = sum.ok_or(CommandRefusal::NOT_A_NUMBER)?.text().into_bytes();
    Ok(())
}

/// Adds to a counter, and replies the sum.
fn add_step(keys: &mut Keyspace, key: &[u8], step: i64, to: &mut Reply) -> Executed {
    let sum =
        keys.edit_from(key, zero, |value| add_to(value, step, CommandRefusal::NOT_INTEGER))?;
    to.integer(sum);
    Ok(())
}

pub(super) fn add(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    step: i64,
    to: &mut Reply,
) -> Executed {
    let &[key] = arguments else { return Err(CommandRefusal::arity(b"incr")) };
    add_step(keys, key, step, to)
}

pub(super) fn add_by(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    sign: i64,
    to: &mut Reply,
) -> Executed {
    let &[key, step] = arguments else { return Err(CommandRefusal::arity(b"incrby")) };
    let step = numbers::integer(step)?.checked_mul(sign);
    let step = step.ok_or(CommandRefusal::of("ERR decrement would overflow"))?;
    add_step(keys, key, step, to)
}

pub(super) fn add_float(
    keys: &mut Keyspace,
    arguments: &Arguments<'_>,
    to: &mut Reply,
) -> Executed {
    let &[key, step] = arguments else { return Err(CommandRefusal::arity(b"incrbyfloat")) };
    let stored = keys.read::<Text>(key).ok().flatten();
    if is_long(step) || stored.is_some_and(|number| is_long(number)) {
        keys.count_long_sum()?;
    }
    let step = float_step(step)?;
    let sum = keys.edit_from(key, zero, |value| {
        add_float_to(value, step, CommandRefusal::NOT_FLOAT)?;
        Ok(value.clone())
    })?;
    to.bulk(&sum);
    Ok(())
}
