//! A writer's listener.

use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus,
};

/// Callbacks into the application about a writer, from the participant's own threads.
#[allow(unused_variables, reason = "what is not of interest is left out")]
pub trait DataWriterListener: Send {
    /// Called when a matching reader appears or disappears.
    fn on_publication_matched(&mut self, status: &MatchedStatus) {}

    /// Called when a reader requests more than this writer offers.
    fn on_offered_incompatible_qos(&mut self, status: &IncompatibleQosStatus) {}

    /// Called when an instance has not been written within the deadline.
    fn on_offered_deadline_missed(&mut self, status: &DeadlineMissedStatus) {}

    /// Called when the application has not asserted the writer's liveliness in time.
    fn on_liveliness_lost(&mut self, status: &LivelinessLostStatus) {}
}

/// An event of a writer.
#[derive(Clone, Debug)]
pub(super) enum WriterEvent {
    Matched(MatchedStatus),
    IncompatibleQos(IncompatibleQosStatus),
    DeadlineMissed(DeadlineMissedStatus),
    LivelinessLost(LivelinessLostStatus),
}

impl WriterEvent {
    pub(super) fn tell(&self, listener: &mut dyn DataWriterListener) {
        match self {
            Self::Matched(status) => listener.on_publication_matched(status),
            Self::IncompatibleQos(status) => listener.on_offered_incompatible_qos(status),
            Self::DeadlineMissed(status) => listener.on_offered_deadline_missed(status),
            Self::LivelinessLost(status) => listener.on_liveliness_lost(status),
        }
    }
}
