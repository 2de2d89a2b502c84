//! The reader, as applications use it.

use std::marker::PhantomData;
use std::sync::Arc;

use super::conditions::{ReadCondition, ReaderStatusCondition};
use super::core::{ReaderCore, Statuses};
use super::lent::Sample;
use super::listener::{DataReaderListener, Typed};
use super::selection::Selection;
use crate::cdr::TypeSupport;
use crate::error::DdsError;
use crate::participant::{Attachment, PublicationData, SubscriptionHandle};
use crate::qos::ReaderQos;
use crate::status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, MatchedStatus,
    SampleLostStatus, SampleRejectedStatus, StatusMask,
};
use crate::sync::lock;
use crate::waitset::Condition;

/// Reads the samples of a topic. Dropping it deletes the reader.
pub struct DataReader<T> {
    core: Arc<ReaderCore>,
    /// `None` for the reader that a listener borrows.
    attachment: Option<Attachment>,
    sample: PhantomData<fn() -> T>,
}

impl<T: TypeSupport> DataReader<T> {
    pub(crate) const fn new(core: Arc<ReaderCore>, attachment: Attachment) -> Self {
        Self { core, attachment: Some(attachment), sample: PhantomData }
    }

    pub(super) const fn of_listener(core: Arc<ReaderCore>) -> Self {
        Self { core, attachment: None, sample: PhantomData }
    }

    /// Returns the selected samples in the topic's order if the reader requested ordered access,
    /// and grouped by instance otherwise. The samples stay in the reader, and count as read.
    #[must_use]
    pub fn read(&self, selection: &Selection) -> Vec<Sample<T>> {
        self.select(selection, false)
    }

    /// Returns the same samples as [`DataReader::read`], and removes them.
    #[must_use]
    pub fn take(&self, selection: &Selection) -> Vec<Sample<T>> {
        self.select(selection, true)
    }

    /// Returns the next unread sample.
    #[must_use]
    pub fn take_next_sample(&self) -> Option<Sample<T>> {
        self.take(&Selection::unread().at_most(1)).pop()
    }

    fn select(&self, selection: &Selection, takes: bool) -> Vec<Sample<T>> {
        let selected = self.core.select(selection, takes);
        selected.into_iter().map(|found| Sample::new(found.info, found.payload)).collect()
    }

    /// Sets the listener, which replaces an earlier one.
    ///
    /// # Errors
    /// [`DdsError::IllegalOperation`]: from a listener.
    pub fn set_listener(
        &self,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<(), DdsError> {
        crate::participant::check_not_in_listener("set_listener")?;
        self.core.set_listener(Some(Box::new(Self::any_listener(&self.core, listener))));
        Ok(())
    }

    pub(crate) fn any_listener<L: DataReaderListener<T> + 'static>(
        core: &Arc<ReaderCore>,
        listener: L,
    ) -> impl super::AnyListener + use<T, L> {
        Typed { listener, reader: Arc::downgrade(core), sample: PhantomData }
    }

    /// Returns a condition that is true while a selection has samples.
    #[must_use]
    pub fn read_condition(&self, selection: Selection) -> Arc<dyn Condition> {
        Arc::new(ReadCondition { reader: Arc::clone(&self.core), selection })
    }

    /// Returns a condition that is true while one of these statuses has changed.
    #[must_use]
    pub fn status_condition(&self, enabled: StatusMask) -> Arc<dyn Condition> {
        Arc::new(ReaderStatusCondition { reader: Arc::clone(&self.core), enabled })
    }

    /// Returns whether the topic has been deleted and all its samples, which are the same for all
    /// readers, have been delivered. Samples that have not been taken stay in the reader.
    #[must_use]
    pub fn is_topic_deleted(&self) -> bool {
        self.core.is_over()
    }

    /// Returns the statuses that have changed since they were last read.
    #[must_use]
    pub fn status_changes(&self) -> StatusMask {
        lock(&self.core.statuses).changed
    }

    fn status<S>(&self, kind: StatusMask, take: impl FnOnce(&mut Statuses) -> S) -> S {
        let mut statuses = lock(&self.core.statuses);
        statuses.changed.remove(kind);
        take(&mut statuses)
    }

    /// Returns the number of samples that did not arrive.
    #[must_use]
    pub fn sample_lost_status(&self) -> SampleLostStatus {
        self.status(StatusMask::SAMPLE_LOST, |statuses| statuses.lost.take())
    }

    /// Returns the samples for which there was no room.
    #[must_use]
    pub fn sample_rejected_status(&self) -> SampleRejectedStatus {
        self.status(StatusMask::SAMPLE_REJECTED, |statuses| statuses.rejected.take())
    }

    /// Returns the missed deadlines.
    #[must_use]
    pub fn requested_deadline_missed_status(&self) -> DeadlineMissedStatus {
        self.status(StatusMask::REQUESTED_DEADLINE_MISSED, |statuses| statuses.deadline.take())
    }

    /// Returns the writers whose offers are insufficient.
    #[must_use]
    pub fn requested_incompatible_qos_status(&self) -> IncompatibleQosStatus {
        self.status(StatusMask::REQUESTED_INCOMPATIBLE_QOS, |statuses| statuses.incompatible.take())
    }

    /// Returns the number of matched writers.
    #[must_use]
    pub fn subscription_matched_status(&self) -> MatchedStatus {
        self.status(StatusMask::SUBSCRIPTION_MATCHED, |statuses| statuses.matched.take())
    }

    /// Returns the liveliness of the matched writers.
    #[must_use]
    pub fn liveliness_changed_status(&self) -> LivelinessChangedStatus {
        self.status(StatusMask::LIVELINESS_CHANGED, |statuses| statuses.liveliness.take())
    }

    /// Returns the matched writers.
    ///
    /// # Errors
    /// [`DdsError::IllegalOperation`]: from a listener.
    pub fn matched_publications(&self) -> Result<Vec<PublicationData>, DdsError> {
        crate::participant::check_not_in_listener("matched_publications")?;
        Ok(self.attachment.as_ref().map_or_else(Vec::new, Attachment::matched_publications))
    }

    /// Returns this reader's handle in the domain.
    #[must_use]
    pub fn handle(&self) -> SubscriptionHandle {
        self.core.handle
    }

    /// Returns the policies that the reader requests.
    #[must_use]
    pub fn qos(&self) -> &ReaderQos {
        &self.core.qos
    }
}

impl<T> std::fmt::Debug for DataReader<T> {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DataReader").field("handle", &self.core.handle).finish_non_exhaustive()
    }
}
