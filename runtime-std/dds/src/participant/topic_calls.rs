//! Topics that a participant creates, deletes and finds at run time.

use std::marker::PhantomData;
use std::time::Duration;

use super::directory::Created;
use super::domain_participant::DomainParticipant;
use super::typed_topic::{Topic, check_type};
use super::upcall::check_not_in_listener;
use crate::cdr::TypeSupport;
use crate::domain::TopicDescription;
use crate::error::DdsError;
use crate::time::until;
use crate::wire::{ANNOUNCEMENT_MAX, Word};

impl DomainParticipant {
    /// Creates a topic that is not in the domain's description, at one of its
    /// [places](crate::TopicPlaces). All participants, including later ones, learn of it at the
    /// same position in the order, and the topic opens with a view of the group. If a topic with
    /// the same description exists, that topic is returned.
    ///
    /// A created topic exists until it is deleted, or until no participant is left.
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`]: DDS's inconsistent topic, with the fields that differ;
    /// Fails with [`DdsError::NoPlace`], or with [`DdsError::Timeout`], after which the topic may
    /// still appear.
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

    /// Creates a topic for programs that do not know its type.
    ///
    /// # Errors
    /// Fails like [`DomainParticipant::create_topic`].
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

    /// Deletes a topic created at run time by any participant, even while it is in use. After one
    /// position in the order, the topic cannot be written, and a later view closes it. All its
    /// readers receive the same samples up to that position, and learn that their writers are gone.
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`]: there is none, or it is declared in the domain;
    /// [`DdsError::Timeout`]: it may still go.
    pub fn delete_topic(&self, name: &str, timeout: Duration) -> Result<(), DdsError> {
        self.ask(timeout, |request| Word::Delete { request, name: name.to_owned() }).map(drop)
    }

    /// Sends a request about a topic to all participants, and waits for its result.
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
}
