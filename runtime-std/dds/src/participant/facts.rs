//! The facts of the domain that an external participant receives, so that it needs no file.

use std::time::Duration;

use serde::{Deserialize, Serialize};
use tramontane::Membership;

use crate::domain::{Domain, TopicDescription, TopicPlaces};

/// The facts that hold as long as the domain exists.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct DomainFacts {
    pub(super) name: String,
    /// The declared topics.
    pub(super) topics: Vec<TopicDescription>,
    /// Every place for topics created at run time.
    pub(super) places: Vec<TopicPlaces>,
    /// The time after which a silent member is removed; `None` if the loss of a member is noticed
    /// immediately.
    failure_timeout_ms: Option<u64>,
    /// The time after which a silent external participant is forgotten.
    client_lease_ms: u64,
}

impl DomainFacts {
    pub(super) fn of(domain: &Domain) -> Self {
        let group = domain.group();
        let is_changing = group.membership == Membership::Changing;
        Self {
            name: group.name.clone(),
            topics: domain.topics().to_vec(),
            places: domain.each_place(),
            failure_timeout_ms: is_changing.then_some(group.failure_timeout_ms),
            client_lease_ms: domain.client_lease_ms(),
        }
    }

    pub(super) fn failure_timeout(&self) -> Option<Duration> {
        self.failure_timeout_ms.map(Duration::from_millis)
    }

    pub(super) const fn client_lease(&self) -> Duration {
        Duration::from_millis(self.client_lease_ms)
    }
}
