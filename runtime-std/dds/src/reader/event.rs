//! What a reader tells its listener, of whichever type, and what that answers.

use super::info::SampleInfo;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus,
};

/// What a listener did with a sample that it was lent.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Disposition {
    /// It needs it no more: nothing is copied, and nothing is kept.
    Taken,
    /// The reader is to keep it, for [`DataReader::take`](crate::DataReader::take).
    Keep,
}

/// What a reader noticed, for its listener.
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

/// A listener of whichever type.
pub(crate) trait AnyListener: Send {
    fn on_sample(&mut self, info: &SampleInfo, bytes: &[u8]) -> Disposition;
    fn on_event(&mut self, event: &ReaderEvent);
}
