//! The type-independent events of a reader for its listener, and the listener's answer.

use super::info::SampleInfo;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus,
};

/// A listener's decision about a sample that it has borrowed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// The listener is done with the sample: nothing is copied, and nothing is kept.
    Taken,
    /// The reader must keep the sample, for [`DataReader::take`](crate::DataReader::take).
    Keep,
}

/// An event of a reader, for its listener.
#[derive(Clone, Debug)]
pub(crate) enum ReaderEvent {
    Available,
    Lost(SampleLostStatus),
    Rejected(SampleRejectedStatus),
    DeadlineMissed(DeadlineMissedStatus),
    IncompatibleQos(IncompatibleQosStatus),
    Matched(MatchedStatus),
    Liveliness(LivelinessChangedStatus),
}

/// A listener, independent of the sample type.
pub(crate) trait AnyListener: Send {
    fn on_sample(&mut self, info: &SampleInfo, bytes: &[u8]) -> Disposition;
    fn on_event(&mut self, event: &ReaderEvent);
}
