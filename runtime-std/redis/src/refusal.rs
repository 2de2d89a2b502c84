//! The reasons why a command is not executed, in the words that Redis' clients know.

use std::borrow::Cow;
use std::fmt;

/// An error reply.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct CommandRefusal(pub(crate) Cow<'static, str>);

impl CommandRefusal {
    pub(crate) const WRONG_TYPE: Self =
        Self::of("WRONGTYPE Operation against a key holding the wrong kind of value");
    pub(crate) const SYNTAX: Self = Self::of("ERR syntax error");
    pub(crate) const NOT_INTEGER: Self = Self::of("ERR value is not an integer or out of range");
    pub(crate) const NOT_FLOAT: Self = Self::of("ERR value is not a valid float");
    pub(crate) const OVERFLOW: Self = Self::of("ERR increment or decrement would overflow");
    pub(crate) const NO_KEY: Self = Self::of("ERR no such key");
    pub(crate) const INDEX: Self = Self::of("ERR index out of range");
    pub(crate) const NOT_POSITIVE: Self = Self::of("ERR value is out of range, must be positive");
    pub(crate) const RANGE: Self = Self::of("ERR min or max is not a float");
    pub(crate) const TEXT_RANGE: Self = Self::of("ERR min or max not valid string range item");
    pub(crate) const CURSOR: Self = Self::of("ERR invalid cursor");
    pub(crate) const HASH_NUMBER: Self = Self::of("ERR hash value is not an integer");
    pub(crate) const HASH_FLOAT: Self = Self::of("ERR hash value is not a float");
    pub(crate) const NOT_A_NUMBER: Self = Self::of("ERR increment would produce NaN or Infinity");
    pub(crate) const TRANSACTION_TIME: Self = Self::of(
        "ERR the slow reads of this transaction took too long; send this one outside a transaction",
    );
    pub(crate) const PATTERN_TIME: Self = Self::of(
        "ERR the pattern takes too long for these names; use a shorter pattern, or SCAN with COUNT",
    );
    pub(crate) const MEMORY: Self = Self::of(
        "ERR this node holds as many bytes for clients as --memory-mb allows; send this slow \
         request later",
    );
    pub(crate) const LONG_SUMS: Self = Self::of(
        "ERR too many numbers of more than 100 digits are added at once; send this request later",
    );
    /// A batch that this program did not encode.
    pub(crate) const MALFORMED: Self = Self::of("ERR the batch of this request is damaged");

    /// Creates the refusal with this text.
    pub(crate) const fn of(text: &'static str) -> Self {
        Self(Cow::Borrowed(text))
    }

    /// Refuses a request above a limit of this server. Each argument takes a few bytes more.
    pub(crate) fn request_too_large(bytes: usize, limit: usize) -> Self {
        Self(Cow::Owned(format!(
            "ERR a request of {bytes} bytes exceeds this server's limit of {limit}; send smaller \
             values or fewer arguments, or raise large_max in the group file"
        )))
    }

    /// Refuses a slow write in a transaction that contains too many.
    pub(crate) fn too_many_slow(command: &str) -> Self {
        Self(Cow::Owned(format!(
            "ERR {command} may take long, and this transaction contains as many such writes as it \
             may; use several transactions"
        )))
    }

    /// Refuses an expiry time.
    pub(crate) fn expiry(command: &[u8]) -> Self {
        let command = command.to_ascii_lowercase();
        let command = String::from_utf8_lossy(&command);
        Self(Cow::Owned(format!("ERR invalid expire time in '{command}' command")))
    }

    /// Refuses a number of arguments.
    pub(crate) fn arity(command: &[u8]) -> Self {
        let command = command.to_ascii_lowercase();
        let command = String::from_utf8_lossy(&command);
        Self(Cow::Owned(format!("ERR wrong number of arguments for '{command}' command")))
    }
}

impl fmt::Display for CommandRefusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(&self.0)
    }
}
