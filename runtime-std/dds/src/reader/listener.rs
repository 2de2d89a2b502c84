//! Listeners: callbacks into the application.

use std::sync::{Arc, Weak};

use super::core::ReaderCore;
use super::data_reader::DataReader;
use super::event::{AnyListener, Disposition, ReaderEvent};
use super::info::SampleInfo;
use super::lent::Lent;
use crate::cdr::TypeSupport;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus,
};

/// A reader's listener. The delivering thread calls it: a slow call delays the group, and a call
/// longer than the group's failure timeout removes this member. Calls that may wait are refused
/// inside a listener.
#[allow(unused_variables, reason = "what is not of interest is left out")]
pub trait DataReaderListener<T: TypeSupport>: Send {
    /// Called with a sample, or the end of an instance, borrowed in place. Over shared memory, it
    /// lies in its writer's ring. A listener that returns [`Disposition::Taken`] avoids a copy.
    fn on_sample(&mut self, sample: &Lent<'_, T>) -> Disposition {
        Disposition::Keep
    }

    /// Called once per batch when samples have been kept and can be taken.
    fn on_data_available(&mut self, reader: &DataReader<T>) {}

    /// Called when samples have been lost.
    fn on_sample_lost(&mut self, status: &SampleLostStatus) {}

    /// Called when arriving samples have found no room.
    fn on_sample_rejected(&mut self, status: &SampleRejectedStatus) {}

    /// Called when an instance has received no sample within the deadline.
    fn on_requested_deadline_missed(&mut self, status: &DeadlineMissedStatus) {}

    /// Called when a writer offers less than this reader requests.
    fn on_requested_incompatible_qos(&mut self, status: &IncompatibleQosStatus) {}

    /// Called when a matching writer appears or disappears.
    fn on_subscription_matched(&mut self, status: &MatchedStatus) {}

    /// Called when a writer becomes alive, or stops being alive.
    fn on_liveliness_changed(&mut self, status: &LivelinessChangedStatus) {}
}

/// A listener together with the sample type of its reader.
pub(super) struct Typed<T: TypeSupport, L> {
    pub(super) listener: L,
    pub(super) reader: Weak<ReaderCore>,
    pub(super) sample: std::marker::PhantomData<fn() -> T>,
}

impl<T: TypeSupport, L: DataReaderListener<T>> AnyListener for Typed<T, L> {
    #[inline]
    fn on_sample(&mut self, info: &SampleInfo, bytes: &[u8]) -> Disposition {
        self.listener.on_sample(&Lent::new(info, bytes))
    }

    fn on_event(&mut self, event: &ReaderEvent) {
        let listener = &mut self.listener;
        match event {
            ReaderEvent::Available => {
                if let Some(reader) = self.reader.upgrade() {
                    listener.on_data_available(&DataReader::of_listener(Arc::clone(&reader)));
                }
            }
            ReaderEvent::Lost(status) => listener.on_sample_lost(status),
            ReaderEvent::Rejected(status) => listener.on_sample_rejected(status),
            ReaderEvent::DeadlineMissed(status) => listener.on_requested_deadline_missed(status),
            ReaderEvent::IncompatibleQos(status) => listener.on_requested_incompatible_qos(status),
            ReaderEvent::Matched(status) => listener.on_subscription_matched(status),
            ReaderEvent::Liveliness(status) => listener.on_liveliness_changed(status),
        }
    }
}

/// A listener made from a closure that receives borrowed samples.
#[derive(Debug)]
pub struct OnSample<F>(pub F);

impl<T: TypeSupport, F: FnMut(&Lent<'_, T>) -> Disposition + Send> DataReaderListener<T>
    for OnSample<F>
{
    #[inline]
    fn on_sample(&mut self, sample: &Lent<'_, T>) -> Disposition {
        (self.0)(sample)
    }
}
