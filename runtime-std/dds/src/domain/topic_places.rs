//! Places for topics created at run time.

use serde::{Deserialize, Serialize};
use tramontane::SubgroupDescription;
use tramontane::group::WINDOW_DEFAULT;

use super::level::Level;
use super::topic_description::{
    SAMPLE_MAX_DEFAULT, TopicDescription, message_max, sample_max_default, window_default,
};
use crate::error::DdsError;

/// Places for topics created at run time. Each is a subgroup of all nodes, and is closed unless a
/// topic uses it. A closed subgroup takes a few bytes of a row.
///
/// ```
/// use tramontane::Description;
/// use tramontane_dds::{Domain, Level, TopicPlaces};
///
/// # fn main() -> Result<(), tramontane_dds::DdsError> {
/// let places = TopicPlaces { level: Level::Volatile, ..TopicPlaces::new(4) };
/// let domain = Domain::new(Description::builder("flight").nodes(3), [])?.with_places([places])?;
/// assert_eq!(domain.places().len(), 1);
/// # Ok(())
/// # }
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TopicPlaces {
    /// Number of topics that may use these places at the same time.
    pub count: u32,
    /// The level of topics in these places; `logged` is refused.
    #[serde(default)]
    pub level: Level,
    /// Maximum number of samples in flight per publishing node.
    #[serde(default = "window_default")]
    pub window: u32,
    /// Maximum sample size, in bytes of CDR.
    #[serde(default = "sample_max_default")]
    pub sample_max: u32,
    /// Whether the places are only for topics that external participants may write and read
    /// ([`TopicDescription::clients`]). If so, each message takes up to 25 more bytes.
    #[serde(default)]
    pub clients: bool,
}

/// Maximum number of places in a domain. Each takes a subgroup, and topics should be few.
const PLACES_MAX: u32 = 256;

impl TopicPlaces {
    /// Creates `count` places at the level atomic.
    #[must_use]
    pub const fn new(count: u32) -> Self {
        Self {
            count,
            level: Level::Atomic,
            window: WINDOW_DEFAULT,
            sample_max: SAMPLE_MAX_DEFAULT,
            clients: false,
        }
    }

    /// Returns the places' subgroups. `first` is the number of the first subgroup.
    pub(super) fn subgroups(
        &self,
        first: usize,
        client_lease_ms: u64,
    ) -> Result<Vec<SubgroupDescription>, DdsError> {
        if self.level == Level::Logged {
            return Err(DdsError::Domain(
                "places for topics cannot be logged, because a log outlives its topic; declare \
                 logged topics in the domain"
                    .into(),
            ));
        }
        if self.level == Level::Unordered && self.clients {
            return Err(DdsError::Domain(
                "places for unordered topics do not support external participants; remove clients, \
                 or raise the level"
                    .into(),
            ));
        }
        if self.count == 0 || self.count > PLACES_MAX {
            return Err(DdsError::Domain(format!(
                "a domain cannot have {} places for topics; set a number from 1 to {PLACES_MAX}",
                self.count
            )));
        }
        let place = |number: u32| {
            let number = usize::try_from(number).unwrap_or(usize::MAX).saturating_add(first);
            SubgroupDescription {
                window: self.window,
                message_max: message_max(self.sample_max),
                unordered: self.level == Level::Unordered,
                clients: self.clients,
                client_lease_ms,
                restart_empty: true,
                reserved: true,
                ..SubgroupDescription::named(&Self::name_of(number))
            }
        };
        Ok((0..self.count).map(place).collect())
    }

    /// Returns the name of a place's subgroup.
    pub(crate) fn name_of(subgroup: usize) -> String {
        format!("DCPS-{subgroup}")
    }

    /// Returns whether this topic may use one of the places.
    pub(crate) const fn fits(&self, topic: &TopicDescription) -> bool {
        self.level as u8 == topic.level as u8
            && self.window >= topic.window
            && self.sample_max >= topic.sample_max
            && self.clients == topic.clients
    }
}
