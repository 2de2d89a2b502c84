//! Listeners: what an application is told as it happens.

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

/// A reader's listener. It is called from the thread that delivers: what it does not do soon holds
/// the group back, and a call longer than the group's failure timeout removes this member. Calls
/// that may wait are refused there.
#[allow(unused_variables, reason = "what is not of interest is left out")]
pub trait DataReaderListener<T: TypeSupport>: Send {
    /// A sample, or the end of an instance, lent where it lies: over shared memory in its writer's
    /// ring. Who says [`Disposition::Taken`] has it without a copy.
    fn on_sample(&mut self, sample: &Lent<'_, T>) -> Disposition {
        Disposition::Keep
    }

    /// Samples were kept, and can be taken. Called once for all that came together.
    fn on_data_available(&mut self, reader: &DataReader<T>) {}

    /// Samples did not arrive.
    fn on_sample_lost(&mut self, status: &SampleLostStatus) {}

    /// Samples arrived for which there was no room.
    fn on_sample_rejected(&mut self, status: &SampleRejectedStatus) {}

    /// An instance had no sample for as long as the deadline.
    fn on_requested_deadline_missed(&mut self, status: &DeadlineMissedStatus) {}

    /// A writer offers less than this reader asks for.
    fn on_requested_incompatible_qos(&mut self, status: &IncompatibleQosStatus) {}

    /// A writer came or went.
    fn on_subscription_matched(&mut self, status: &MatchedStatus) {}

    /// A writer lives, or does no more.
    fn on_liveliness_changed(&mut self, status: &LivelinessChangedStatus) {}
}

/// A listener with its reader's type.
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

/// A closure that is lent samples is a listener.
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
