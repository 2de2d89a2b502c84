//! The writer, as applications use it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::time::Duration;

use super::conditions::WriterStatusCondition;
use super::core::{Statuses, WriterCore};
use super::listener::DataWriterListener;
use super::loan::{Loan, OctetsLoan};
use super::outlet::{Outlet, Subject};
use crate::cdr::{
    Encoding, InstanceHandle, Octets, PlainType, SEQUENCE_LENGTH_BYTES, TypeSupport, encode,
    encode_in_place, is_plain,
};
use crate::domain::Level;
use crate::error::DdsError;
use crate::participant::{
    PublicationHandle, SubscriptionData, WriterAttachment, check_not_in_listener,
};
use crate::qos::WriterQos;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessLostStatus, MatchedStatus, StatusMask,
};
use crate::sync::lock;
use crate::time::{Now, Timestamp};
use crate::waitset::Condition;
use crate::wire::{HEADER_BYTES, Kind, Origin};

/// Writes samples of a topic. Dropping it deletes the writer: its instances are unregistered, and
/// disposed of if its policies say so. A writer belongs to one thread, so create one per thread.
///
/// Inside a listener, a write never waits: it returns [`DdsError::Timeout`] if there is no room.
pub struct DataWriter<T: TypeSupport> {
    pub(super) outlet: Outlet,
    attachment: WriterAttachment,
    sample_max: usize,
    /// Whether the type's memory layout is identical to its CDR; determined by the first loan.
    is_plain: Option<bool>,
    sample: PhantomData<fn(T)>,
}

impl<T: TypeSupport> DataWriter<T> {
    pub(crate) fn new(outlet: Outlet, attachment: WriterAttachment, sample_max: usize) -> Self {
        Self { outlet, attachment, sample_max, is_plain: None, sample: PhantomData }
    }

    /// Writes a sample. Its CDR is built in the group's slot.
    ///
    /// # Errors
    /// Fails with [`DdsError`] if nothing was written. A best-effort writer that finds no room
    /// drops the sample, counts it ([`DataWriter::dropped`]), and returns no error.
    pub fn write(&mut self, sample: &T) -> Result<(), DdsError> {
        self.write_w_timestamp(sample, Timestamp::now())
    }

    /// Writes a sample with the given source timestamp.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`].
    pub fn write_w_timestamp(&mut self, sample: &T, source: Timestamp) -> Result<(), DdsError> {
        let instance = InstanceHandle::of(sample)?;
        self.outlet.progress().register(instance)?;
        let encoding = Encoding::NATIVE;
        let subject = Subject { kind: Kind::Data, instance, source, encoding, origin: None };
        self.outlet.send(&subject, self.sample_max, |body| encode_in_place(sample, body))
    }

    /// Writes a sample that has already been encoded, for programs that do not know the type or
    /// that forward samples from another system.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`].
    pub fn write_cdr(
        &mut self,
        cdr: &[u8],
        encoding: Encoding,
        instance: InstanceHandle,
        source: Timestamp,
        origin: Option<Origin>,
    ) -> Result<(), DdsError> {
        self.check_size(cdr.len())?;
        self.outlet.progress().register(instance)?;
        let subject = Subject { kind: Kind::Data, instance, source, encoding, origin };
        self.end(&subject, cdr)
    }

    /// Registers an instance before it is written, like DDS's `register_instance`.
    ///
    /// # Errors
    /// Fails with [`DdsError::OutOfResources`] or [`DdsError::Cdr`].
    pub fn register_instance(&mut self, key: &T::Key) -> Result<InstanceHandle, DdsError> {
        let instance = InstanceHandle::of_key(key)?;
        self.outlet.progress().register(instance)?;
        Ok(instance)
    }

    /// Disposes of an instance.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`], and with [`DdsError::PreconditionNotMet`] if this writer
    /// does not have the instance.
    pub fn dispose(&mut self, key: &T::Key) -> Result<(), DdsError> {
        self.end_instance(Kind::Dispose, key)
    }

    /// Unregisters an instance that this writer will no longer write. Also disposes of the instance
    /// if the writer's policies say so (`autodispose_unregistered_instances`).
    ///
    /// # Errors
    /// Fails like [`DataWriter::dispose`].
    pub fn unregister_instance(&mut self, key: &T::Key) -> Result<(), DdsError> {
        let kind = self.unregistering();
        self.end_instance(kind, key)
    }

    fn unregistering(&self) -> Kind {
        let lifecycle = self.outlet.core().qos.writer_data_lifecycle;
        if lifecycle.autodispose_unregistered_instances {
            Kind::DisposeAndUnregister
        } else {
            Kind::Unregister
        }
    }

    fn end_instance(&mut self, kind: Kind, key: &T::Key) -> Result<(), DdsError> {
        let instance = InstanceHandle::of_key(key)?;
        if !self.outlet.progress().registered.contains(&instance) {
            return Err(DdsError::PreconditionNotMet(format!(
                "this writer has not written or registered instance {instance}; register it, or \
                 write a sample of it first"
            )));
        }
        self.end(&Subject::now(kind, instance), &encode(key)?)
    }

    fn end(&mut self, subject: &Subject, body: &[u8]) -> Result<(), DdsError> {
        let limit = self.sample_max;
        self.outlet.send(subject, body.len(), |place| {
            let place = place
                .get_mut(..body.len())
                .ok_or(DdsError::TooLarge { bytes: body.len(), limit })?;
            place.copy_from_slice(body);
            Ok(body.len())
        })
    }

    /// Asserts that this writer is alive, if its liveliness is manual.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`].
    pub fn assert_liveliness(&mut self) -> Result<(), DdsError> {
        let wait = self.outlet.core().qos.reliability.max_blocking_time;
        self.outlet.say(Kind::Alive, &[], wait)?;
        self.outlet.core().gave_sign(Now::read().elapsed);
        Ok(())
    }

    /// Lends a slot in which a sample of a plain type is built. [`Loan::write`] writes the sample;
    /// dropping the loan writes nothing. The slot initially holds stale bytes.
    ///
    /// # Errors
    /// Fails like [`DataWriter::write`], and with [`DdsError::PreconditionNotMet`] if the type's
    /// memory layout is not identical to its CDR, or for a best-effort writer without room.
    pub fn loan(&mut self) -> Result<Loan<'_, T>, DdsError>
    where
        T: PlainType,
    {
        if !*self.is_plain.get_or_insert_with(is_plain::<T>) {
            return Err(DdsError::PreconditionNotMet(format!(
                "the memory layout of {} differs from its CDR encoding; use write",
                T::TYPE_NAME
            )));
        }
        self.check_size(size_of::<T>())?;
        let slot = self.outlet.open(HEADER_BYTES + size_of::<T>())?;
        Loan::new(slot.ok_or(DdsError::Timeout(Duration::ZERO))?)
    }

    fn check_size(&self, bytes: usize) -> Result<(), DdsError> {
        if bytes > self.sample_max {
            return Err(DdsError::TooLarge { bytes, limit: self.sample_max });
        }
        Ok(())
    }

    /// Waits, for at most `timeout`, until all samples of this writer have been delivered here (for
    /// an external participant: at its member), so that all members of the topic have received
    /// them. At the level logged, waits until a majority of the members has them on disk.
    ///
    /// # Errors
    /// Fails with [`DdsError::Timeout`]; with [`DdsError::PreconditionNotMet`] at the level
    /// unordered, which does not track deliveries; and with [`DdsError::IllegalOperation`] inside a
    /// listener.
    pub fn wait_for_acknowledgments(&mut self, timeout: Duration) -> Result<(), DdsError> {
        check_not_in_listener("wait_for_acknowledgments")?;
        if self.attachment.level() == Level::Unordered {
            return Err(DdsError::PreconditionNotMet(
                "at the level unordered a writer does not learn which samples were received; raise \
                 the level"
                    .into(),
            ));
        }
        if self.outlet.progress().last.is_none() {
            return Ok(());
        }
        if self.outlet.core().is_stopped() {
            return Err(DdsError::TopicDeleted);
        }
        self.outlet.wait_for_all(timeout).map_err(|why| match why {
            DdsError::Timeout(_) if self.outlet.core().is_stopped() => DdsError::TopicDeleted,
            why => why,
        })
    }

    /// Returns whether the topic has been deleted, so that the writer can no longer write.
    #[must_use]
    pub fn is_topic_deleted(&self) -> bool {
        self.outlet.core().is_stopped()
    }

    /// Returns the number of samples that this best-effort writer has dropped for lack of room.
    pub fn dropped(&mut self) -> u64 {
        self.outlet.progress().dropped
    }

    /// Sets the listener, which replaces an earlier one.
    ///
    /// # Errors
    /// [`DdsError::IllegalOperation`]: from a listener.
    pub fn set_listener(
        &self,
        listener: impl DataWriterListener + 'static,
    ) -> Result<(), DdsError> {
        check_not_in_listener("set_listener")?;
        self.outlet.core().set_listener(Some(Box::new(listener)));
        Ok(())
    }

    /// Returns a condition that is true while one of these statuses has changed.
    #[must_use]
    pub fn status_condition(&self, enabled: StatusMask) -> Arc<dyn Condition> {
        Arc::new(WriterStatusCondition { writer: Arc::clone(self.outlet.core()), enabled })
    }

    /// Returns the statuses that have changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        lock(&self.outlet.core().statuses).changed
    }

    fn status<S>(&self, kind: StatusMask, take: impl FnOnce(&mut Statuses) -> S) -> S {
        let core: &WriterCore = self.outlet.core();
        let mut statuses = lock(&core.statuses);
        statuses.changed.remove(kind);
        take(&mut statuses)
    }

    /// Returns the number of matched readers.
    #[must_use]
    pub fn publication_matched_status(&self) -> MatchedStatus {
        self.status(StatusMask::PUBLICATION_MATCHED, |statuses| statuses.matched.take())
    }

    /// Returns the readers that request more than this writer offers.
    #[must_use]
    pub fn offered_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        self.status(StatusMask::OFFERED_INCOMPATIBLE_QOS, |statuses| statuses.incompatible.take())
    }

    /// Returns the missed deadlines.
    #[must_use]
    pub fn offered_deadline_missed_status(&self) -> DeadlineMissedStatus {
        self.status(StatusMask::OFFERED_DEADLINE_MISSED, |statuses| statuses.deadline.take())
    }

    /// Returns the missed leases.
    #[must_use]
    pub fn liveliness_lost_status(&self) -> LivelinessLostStatus {
        self.status(StatusMask::LIVELINESS_LOST, |statuses| statuses.liveliness.take())
    }

    /// Returns the matched readers.
    ///
    /// # Errors
    /// [`DdsError::IllegalOperation`]: from a listener.
    pub fn matched_subscriptions(&self) -> Result<Vec<SubscriptionData>, DdsError> {
        check_not_in_listener("matched_subscriptions")?;
        Ok(self.attachment.matched_subscriptions(self.outlet.core()))
    }

    /// Returns this writer's handle in the domain.
    #[must_use]
    pub fn handle(&self) -> PublicationHandle {
        self.outlet.core().handle
    }

    /// Returns the policies that the writer offers.
    #[must_use]
    pub fn qos(&self) -> &WriterQos {
        &self.outlet.core().qos
    }
}

impl DataWriter<Octets> {
    /// Lends a slot in which a sequence of `bytes` bytes is built, like [`DataWriter::loan`].
    ///
    /// # Errors
    /// Fails like [`DataWriter::loan`].
    pub fn loan_octets(&mut self, bytes: usize) -> Result<OctetsLoan<'_>, DdsError> {
        let body = bytes.saturating_add(SEQUENCE_LENGTH_BYTES);
        self.check_size(body)?;
        let slot = self.outlet.open(HEADER_BYTES + body)?;
        OctetsLoan::new(slot.ok_or(DdsError::Timeout(Duration::ZERO))?, bytes)
    }
}

impl<T: TypeSupport> Drop for DataWriter<T> {
    fn drop(&mut self) {
        let kind = self.unregistering();
        let registered = self.outlet.progress().registered.clone();
        for instance in registered {
            // A participant that misses this message learns of the writer's deletion below.
            if self.end(&Subject::now(kind, instance), &[]).is_err() {
                break;
            }
        }
        self.attachment.delete(&mut self.outlet);
    }
}

impl<T: TypeSupport> std::fmt::Debug for DataWriter<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DataWriter").field("handle", &self.handle()).finish_non_exhaustive()
    }
}
