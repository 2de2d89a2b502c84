//! Topics that a participant creates and deletes at run time, and those that it finds.

use std::marker::PhantomData;
use std::time::Duration;

use super::directory::Created;
use super::domain_participant::{DomainParticipant, Topic, check_type};
use super::upcall::check_not_in_listener;
use crate::cdr::TypeSupport;
use crate::domain::TopicDescription;
use crate::error::DdsError;
use crate::time::until;
use crate::wire::{ANNOUNCEMENT_MAX, Word};

impl DomainParticipant {
    /// Creates a topic that the domain's description does not have, at one of its
    /// [places](crate::TopicPlaces): all participants, and those that come later, know it from one
    /// place of an order on, and a view of the group begins with it. Whoever creates a topic that
    /// is there with the same description is given that one.
    ///
    /// A topic that was created lives until it is deleted, or all participants are gone at once.
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`]: DDS's inconsistent topic, with the fields that differ;
    /// [`DdsError::NoPlace`]; [`DdsError::Timeout`]: it may still come.
    pub fn create_topic<T: TypeSupport>(
        &self,
        topic: &TopicDescription,
        timeout: Duration,
    ) -> Result<Topic<T>, DdsError> {
        check_type::<T>(topic)?;
        let created = self.create(topic, timeout)?;
        let (index, generation) = (created.index, created.generation);
        Ok(Topic { index, generation, name: topic.name.clone(), sample: PhantomData })
    }

    /// The same for programs that do not know its type.
    ///
    /// # Errors
    /// As [`DomainParticipant::create_topic`].
    pub fn create_untyped_topic(
        &self,
        topic: &TopicDescription,
        timeout: Duration,
    ) -> Result<Topic<crate::Octets>, DdsError> {
        let created = self.create(topic, timeout)?;
        let (index, generation) = (created.index, created.generation);
        Ok(Topic { index, generation, name: topic.name.clone(), sample: PhantomData })
    }

    fn create(&self, topic: &TopicDescription, timeout: Duration) -> Result<Created, DdsError> {
        topic.check_keep()?;
        let topic = topic.clone();
        self.ask(timeout, |request| Word::Create { request, topic })
    }

    /// Deletes a topic that was created at run time, whoever created it, and whoever uses it: from
    /// one place of an order on nobody writes it, then a view begins without it. All its readers
    /// are given the same samples up to there, and are told that their writers are gone.
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`]: there is none, or it is declared in the domain;
    /// [`DdsError::Timeout`]: it may still go.
    pub fn delete_topic(&self, name: &str, timeout: Duration) -> Result<(), DdsError> {
        self.ask(timeout, |request| Word::Delete { request, name: name.to_owned() }).map(drop)
    }

    /// Says something of a topic to all, and waits for what comes of it.
    fn ask(&self, timeout: Duration, word: impl FnOnce(u64) -> Word) -> Result<Created, DdsError> {
        check_not_in_listener("create_topic and delete_topic")?;
        let until = until(timeout);
        let request = self.shared.known.lock().request();
        let said = word(request).encode()?;
        if said.len() > usize::try_from(ANNOUNCEMENT_MAX).unwrap_or(usize::MAX) {
            return Err(DdsError::TooLong { bytes: said.len(), limit: ANNOUNCEMENT_MAX });
        }
        self.discovery.clone().send(&said, timeout)?;
        let outcome = self.shared.known.outcome(request, until, || self.stopped().is_some());
        match (outcome, self.stopped()) {
            (Some(outcome), _) => Ok(outcome?),
            (None, Some(stopped)) => Err(DdsError::Ended(stopped)),
            (None, None) => Err(DdsError::Timeout(timeout)),
        }
    }

    /// Waits for a topic that somebody else creates: DDS's `find_topic`.
    ///
    /// # Errors
    /// [`DdsError::Timeout`]; otherwise as [`DomainParticipant::topic`].
    pub fn find_topic<T: TypeSupport>(
        &self,
        name: &str,
        timeout: Duration,
    ) -> Result<Topic<T>, DdsError> {
        check_not_in_listener("find_topic")?;
        let until = until(timeout);
        if !self.shared.known.await_named(name, until, || self.stopped().is_some()) {
            return Err(self.stopped().map_or(DdsError::Timeout(timeout), DdsError::Ended));
        }
        self.topic(name)
    }

    /// What there is of topics: those of the domain's description, then those that were created at
    /// run time and are not deleted.
    #[must_use]
    pub fn topics(&self) -> Vec<TopicDescription> {
        self.shared.known.lock().directory.topics().cloned().collect()
    }
}
