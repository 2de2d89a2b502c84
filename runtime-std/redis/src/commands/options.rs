//! Options of SET and GETEX.

use super::arguments::Arguments;
use crate::numbers;
use crate::refusal::CommandRefusal;

/// The options of SET, or of GETEX.
#[derive(Debug, Default)]
pub(super) struct SetOptions {
    /// Whether the key must exist (XX) or not (NX).
    pub(super) only_if_exists: Option<bool>,
    pub(super) expires_at_ms: Option<u64>,
    pub(super) keep_ttl: bool,
    pub(super) persist: bool,
    pub(super) get: bool,
}

impl SetOptions {
    /// Parses the options of SET.
    pub(super) fn parse(options: &Arguments<'_>, now_ms: u64) -> Result<Self, CommandRefusal> {
        let parsed = Self::parse_all(options, now_ms, b"set")?;
        if parsed.persist { Err(CommandRefusal::SYNTAX) } else { Ok(parsed) }
    }

    /// Parses the options of GETEX.
    pub(super) fn parse_get_ex(
        options: &Arguments<'_>,
        now_ms: u64,
    ) -> Result<Self, CommandRefusal> {
        let parsed = Self::parse_all(options, now_ms, b"getex")?;
        let Self { only_if_exists, keep_ttl, get, .. } = parsed;
        let is_of_set = only_if_exists.is_some() || keep_ttl || get;
        if is_of_set { Err(CommandRefusal::SYNTAX) } else { Ok(parsed) }
    }

    fn parse_all(
        options: &Arguments<'_>,
        now_ms: u64,
        command: &[u8],
    ) -> Result<Self, CommandRefusal> {
        let mut parsed = Self::default();
        let mut options = options.iter();
        while let Some(option) = options.next() {
            let times = usize::from(parsed.expires_at_ms.is_some())
                + usize::from(parsed.keep_ttl)
                + usize::from(parsed.persist);
            match option.to_ascii_uppercase().as_slice() {
                b"NX" if parsed.only_if_exists != Some(true) => parsed.only_if_exists = Some(false),
                b"XX" if parsed.only_if_exists != Some(false) => parsed.only_if_exists = Some(true),
                b"GET" => parsed.get = true,
                b"KEEPTTL" if times == 0 => parsed.keep_ttl = true,
                b"PERSIST" if times == 0 => parsed.persist = true,
                unit @ (b"EX" | b"PX" | b"EXAT" | b"PXAT") if times == 0 => {
                    let time = numbers::integer(options.next().ok_or(CommandRefusal::SYNTAX)?)?;
                    let unit_ms = if unit.starts_with(b"E") { 1000 } else { 1 };
                    let base_ms = if unit.ends_with(b"AT") { 0 } else { now_ms };
                    let time = u64::try_from(time).ok().filter(|time| *time > 0);
                    let at_ms = time.and_then(|time| time.checked_mul(unit_ms));
                    let at_ms = at_ms.and_then(|at_ms| at_ms.checked_add(base_ms));
                    let at_ms = at_ms.filter(|at_ms| i64::try_from(*at_ms).is_ok());
                    parsed.expires_at_ms =
                        Some(at_ms.ok_or_else(|| CommandRefusal::expiry(command))?);
                }
                _ => return Err(CommandRefusal::SYNTAX),
            }
        }
        Ok(parsed)
    }
}
