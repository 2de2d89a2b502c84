//! A writer's listener.

use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus,
};

/// What an application is told of a writer as it happens, from the participant's own threads.
#[allow(unused_variables, reason = "what is not of interest is left out")]
pub trait DataWriterListener: Send {
    /// A reader came or went.
    fn on_publication_matched(&mut self, status: &MatchedStatus) {}

    /// A reader asks for more than this writer offers.
    fn on_offered_incompatible_qos(&mut self, status: &IncompatibleQosStatus) {}

    /// An instance was not written for as long as the deadline.
    fn on_offered_deadline_missed(&mut self, status: &DeadlineMissedStatus) {}

    /// The application did not say in time that the writer lives.
    fn on_liveliness_lost(&mut self, status: &LivelinessLostStatus) {}
}

/// What a writer noticed.
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
