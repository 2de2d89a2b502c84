//! Partitions of an InfiniBand network, which are virtual networks: traffic flows only among the
//! members of one partition.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

/// The bit of a full member; the other 15 bits are the partition's number.
const FULL_MEMBER: u16 = 1 << 15;

/// A partition key (PKey), as it appears in a port's table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct PartitionKey(pub u16);

impl PartitionKey {
    /// The partition of which every port is a full member; Ethernet has no other.
    pub const USUAL: Self = Self(0xffff);

    /// Returns whether traffic flows between two ports: they must be in the same partition and not
    /// both be limited members.
    #[must_use]
    pub const fn reaches(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FULL_MEMBER == 0 && (self.0 | other.0) & FULL_MEMBER != 0
    }

    /// Returns whether both keys name the same partition, with any kind of membership.
    #[must_use]
    pub const fn is_same_partition(self, other: Self) -> bool {
        (self.0 ^ other.0) & !FULL_MEMBER == 0
    }

    /// Returns whether the partition number is valid.
    #[must_use]
    pub const fn is_valid(self) -> bool {
        self.0 & !FULL_MEMBER != 0
    }

    /// Returns whether the port is a full member of the partition.
    #[must_use]
    pub const fn is_full_member(self) -> bool {
        self.0 & FULL_MEMBER != 0
    }
}

/// Prints the key in hexadecimal, as subnet managers do.
impl fmt::Display for PartitionKey {
    fn fmt(&self, out: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(out, "{:#06x}", self.0)
    }
}

impl FromStr for PartitionKey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X"));
        let number = u16::from_str_radix(digits.unwrap_or(text), 16);
        number
            .ok()
            .map(Self)
            .filter(|key| key.is_valid())
            .ok_or_else(|| "not a partition key in hexadecimal, such as 0x8001 or 0x1".to_owned())
    }
}

/// An entry of a port's partition table.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Partition {
    /// The index by which connections name the entry.
    pub index: u16,
    /// The entry's key.
    pub key: PartitionKey,
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partition_key_parses_as_hexadecimal() {
        assert_eq!("0x8001".parse(), Ok(PartitionKey(0x8001)));
        assert_eq!("ffff".parse(), Ok(PartitionKey::USUAL));
        assert_eq!("0X1".parse(), Ok(PartitionKey(1)));
        for bad in ["", "0", "0x8000", "0x10000", "-1", "green"] {
            assert!(bad.parse::<PartitionKey>().is_err(), "{bad}");
        }
        assert_eq!(PartitionKey(0x1).to_string(), "0x0001");
    }

    #[test]
    fn traffic_requires_same_partition_and_full_member() {
        let reaches = |one, other| PartitionKey(one).reaches(PartitionKey(other));
        assert!(reaches(0x8001, 0x8001) && reaches(0x8001, 0x0001) && reaches(0x0001, 0x8001));
        assert!(!reaches(0x0001, 0x0001), "both limited");
        assert!(!reaches(0x8001, 0x8002) && !reaches(0xffff, 0x8001));
    }
}
