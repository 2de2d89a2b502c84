//! Values of RDMA options, in the form used on a command line and in a group file.

use std::net::IpAddr;
use std::str::FromStr;
use std::time::Duration;

use serde::{Deserialize, Deserializer, Serialize, Serializer};

/// An entry of a port's address table. In a file: its index as a number, or its address as a
/// string.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(untagged, expecting = "neither an index from 0 to 254, nor an address in quotes")]
pub enum Gid {
    /// The entry's index.
    Index(u8),
    /// The entry's address.
    Address(IpAddr),
}

impl FromStr for Gid {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let index = text.parse().map(Self::Index);
        index.or_else(|_| text.parse().map(Self::Address)).map_err(|_| {
            "neither an index from 0 to 254, nor an address such as 10.9.0.1 or fe80::1".to_owned()
        })
    }
}

/// The order in which devices and switches keep writes to one peer, as far as is known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum RdmaOrder {
    /// As the device reports.
    #[default]
    Auto,
    /// No order: every list of writes ends with a message that its receiver applies.
    None,
    /// Writes stay in order: no adaptive routing, and no relaxed ordering.
    Writes,
    /// Writes stay in order, and a completed write is visible at the peer, as shards require.
    Visible,
}

impl FromStr for RdmaOrder {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "auto" => Ok(Self::Auto),
            "none" => Ok(Self::None),
            "writes" => Ok(Self::Writes),
            "visible" => Ok(Self::Visible),
            _ => Err("unknown order; use auto, none, writes or visible".to_owned()),
        }
    }
}

/// A partition of an InfiniBand network, by its key: 15 bits, and one above that says whether a
/// port is a full member of it. Either form names the partition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "String", into = "String")]
pub struct Pkey(pub u16);

impl FromStr for Pkey {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
        let key = u16::from_str_radix(digits, 16).ok().filter(|key| key & 0x7fff != 0);
        key.map(Self)
            .ok_or_else(|| "not a partition key in hexadecimal, such as 0x8001 or 0x1".to_owned())
    }
}

impl TryFrom<String> for Pkey {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        text.parse()
    }
}

impl From<Pkey> for String {
    fn from(key: Pkey) -> Self {
        format!("{:#06x}", key.0)
    }
}

/// An optional duration as whole milliseconds.
pub(super) mod milliseconds {
    use super::{Deserialize, Deserializer, Duration, Serialize, Serializer};

    pub(in super::super) fn serialize<S: Serializer>(
        duration: &Option<Duration>,
        out: S,
    ) -> Result<S::Ok, S::Error> {
        let whole = |time: Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        duration.map(whole).serialize(out)
    }

    pub(in super::super) fn deserialize<'d, D: Deserializer<'d>>(
        from: D,
    ) -> Result<Option<Duration>, D::Error> {
        Ok(Option::<u64>::deserialize(from)?.map(Duration::from_millis))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gid_may_be_an_index_or_address() {
        assert_eq!("1".parse(), Ok(Gid::Index(1)));
        assert_eq!("10.9.0.1".parse(), Ok(Gid::Address(IpAddr::from([10, 9, 0, 1]))));
        assert!(matches!("fe80::1".parse(), Ok(Gid::Address(IpAddr::V6(_)))));
        for bad in ["", "256", "-1", "10.9.0", "rxe0"] {
            assert!(bad.parse::<Gid>().is_err(), "{bad}");
        }
    }

    #[test]
    fn partition_key_is_parsed_as_hexadecimal() {
        assert_eq!("0x8001".parse(), Ok(Pkey(0x8001)));
        assert_eq!(("ffff".parse(), "0X1".parse()), (Ok(Pkey(0xffff)), Ok(Pkey(1))));
        assert_eq!(String::from(Pkey(1)), "0x0001");
        for bad in ["", "0", "0x8000", "0x10000", "-1", "green"] {
            assert!(bad.parse::<Pkey>().is_err(), "{bad}");
        }
    }

    #[test]
    fn write_order_names_match_in_files_and_options() {
        for text in ["auto", "none", "writes", "visible"] {
            let order: RdmaOrder = text.parse().expect("an order");
            assert_eq!(serde_json::to_value(order).expect("data"), text);
        }
        assert!("device".parse::<RdmaOrder>().is_err());
    }
}
