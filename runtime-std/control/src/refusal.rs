//! The reasons for refusing a client, as numbers that both ends understand.

use std::fmt;

/// The reason why a client was refused, as reported to both ends. The numbers are part of the
/// protocol, so they never change.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[repr(u8)]
#[non_exhaustive]
pub enum Refusal {
    /// The layout differs, in its members, subgroups, windows or sizes.
    Digest = 1,
    /// Another view.
    View = 2,
    /// A different process with this id is connected.
    DuplicateId = 3,
    /// The id does not belong to a member, or not to one that connects here.
    NotAMember = 4,
    /// The protocol version differs.
    Version = 5,
    /// Only one of the two ends has a key.
    KeyMode = 6,
    /// Another key.
    Key = 7,
    /// The group is still meeting. A client that needs a running group may connect later.
    NotRunning = 8,
    /// The group is already running, so members no longer meet.
    Running = 9,
    /// Too many clients are connected. The client may connect later.
    Busy = 10,
}

impl Refusal {
    pub(super) const fn from_raw(raw: u8) -> Option<Self> {
        Some(match raw {
            1 => Self::Digest,
            2 => Self::View,
            3 => Self::DuplicateId,
            4 => Self::NotAMember,
            5 => Self::Version,
            6 => Self::KeyMode,
            7 => Self::Key,
            8 => Self::NotRunning,
            9 => Self::Running,
            10 => Self::Busy,
            _ => return None,
        })
    }

    /// Returns what the refused process, or its operator, can do.
    pub(super) const fn remedy(self) -> &'static str {
        match self {
            Self::Digest => "give all processes the same group file",
            Self::View | Self::Running | Self::Busy => "try again later",
            Self::DuplicateId => "give each process its own id",
            Self::NotAMember => "use an id of the group file",
            Self::Version => "run the same version everywhere",
            Self::KeyMode => "give the group's key file to all processes, or to none",
            Self::Key => "give all processes the same key file",
            Self::NotRunning => "connect again once the group is running",
        }
    }
}

/// Displays the reason as a clause that is true at both ends.
impl fmt::Display for Refusal {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        out.write_str(match self {
            Self::Digest => "the other end has a different configuration",
            Self::View => "the other end is in a different view",
            Self::DuplicateId => "the id is already taken",
            Self::NotAMember => "the id is not expected here",
            Self::Version => "the other end runs a different version of the program",
            Self::KeyMode => "only one end has a key",
            Self::Key => "the other end uses a different key",
            Self::NotRunning => "the group is not running yet",
            Self::Running => "the group is already running",
            Self::Busy => "too many clients are connected",
        })
    }
}

/// Encodes a verdict as a byte. Zero means consent.
pub(super) fn encode_verdict(verdict: Result<(), Refusal>) -> u8 {
    #[allow(clippy::as_conversions, reason = "the number that the enum declares")]
    verdict.err().map_or(0, |refusal| refusal as u8)
}

/// Decodes a verdict. Returns `None` if the byte is not a verdict.
pub(super) fn decode_verdict(bytes: &[u8]) -> Option<Result<(), Refusal>> {
    match bytes {
        [0] => Some(Ok(())),
        [raw] => Refusal::from_raw(*raw).map(Err),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_round_trip_with_stable_codes() {
        let refusals = [
            Refusal::Digest,
            Refusal::View,
            Refusal::DuplicateId,
            Refusal::NotAMember,
            Refusal::Version,
            Refusal::KeyMode,
            Refusal::Key,
            Refusal::NotRunning,
            Refusal::Running,
            Refusal::Busy,
        ];
        for (raw, refusal) in (1..).zip(refusals) {
            assert_eq!(encode_verdict(Err(refusal)), raw);
            assert_eq!(decode_verdict(&[raw]), Some(Err(refusal)));
        }
        assert_eq!(decode_verdict(&[encode_verdict(Ok(()))]), Some(Ok(())));
        assert_eq!(decode_verdict(&[11]), None);
        assert_eq!(decode_verdict(&[]), None);
    }
}
