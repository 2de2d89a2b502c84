//! Maps log records to messages in a subgroup that accepts clients. Sequence positions count
//! messages only, but a log also contains client control messages.

use std::sync::Arc;

use tramontane_core::ids::SubgroupId;

use super::feed::Feed;
use crate::group::control::clients::RecordPlaces;

/// The sequence positions of one subgroup.
pub(crate) struct FeedPlaces {
    subgroup: SubgroupId,
    feed: Arc<Feed>,
}

impl FeedPlaces {
    pub(crate) const fn new(subgroup: SubgroupId, feed: Arc<Feed>) -> Self {
        Self { subgroup, feed }
    }
}

impl RecordPlaces for FeedPlaces {
    fn first(&self, record: u64) -> u64 {
        let told = self.feed.lock();
        let Some(of) = told.subgroups.get(&self.subgroup) else { return record };
        of.words.messages_among(record.max(of.words.first_known()))
    }

    fn record_of(&self, place: u64) -> Option<u64> {
        self.feed.lock().subgroups.get(&self.subgroup)?.words.record_of(place)
    }
}
