//! The link between two members.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The link between two members, by rank; `0-1` on the command line.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct MemberLink {
    /// One of the two members.
    pub one: u16,
    /// The other member.
    pub other: u16,
}

impl MemberLink {
    /// Returns the other member of the link, if `member` is one of the two.
    pub(super) fn peer_of(self, member: u16) -> Option<u16> {
        match self {
            Self { one, other } if one == member => Some(other),
            Self { one, other } if other == member => Some(one),
            Self { .. } => None,
        }
    }
}

impl FromStr for MemberLink {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let wrong = || format!("'{text}' is not a link; name its two members, as in 0-1");
        let (one, other) = text.split_once('-').ok_or_else(wrong)?;
        let one = one.parse().map_err(|_| wrong())?;
        let link = Self { one, other: other.parse().map_err(|_| wrong())? };
        if link.one == link.other { Err(wrong()) } else { Ok(link) }
    }
}

impl fmt::Display for MemberLink {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{}-{}", self.one, self.other)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn link_needs_two_distinct_members() {
        assert_eq!("0-11".parse(), Ok(MemberLink { one: 0, other: 11 }));
        let link = MemberLink { one: 3, other: 5 };
        assert_eq!((link.peer_of(5), link.peer_of(4)), (Some(3), None));
        for wrong in ["", "3", "3-", "3-3", "a-b", "1-2-3"] {
            assert!(wrong.parse::<MemberLink>().is_err(), "{wrong}");
        }
    }
}
