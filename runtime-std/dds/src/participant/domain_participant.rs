//! The participant, as applications use it.

use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use tramontane::{GroupStatus, Running, Sender, SharedStatus, StartOptions, Stopped, start};

use super::application::TopicApplication;
use super::calls::participant_calls;
use super::facts::DomainFacts;
use super::handles::ParticipantId;
use super::history::LogSource;
use super::host::Host;
use super::shared::{ANNOUNCE, ParticipantState};
use super::timers;
use super::typed_topic::{Topic, check_type};
use super::voice::Voice;
use crate::cdr::TypeSupport;
use crate::domain::{Domain, Level, TopicDescription};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};
use crate::reader::{DataReader, DataReaderListener};
use crate::wire::say_begun;
use crate::writer::DataWriter;

/// A participant of a domain: one member of its group. Dropping it ends it without notice;
/// [`DomainParticipant::leave`] leaves in an orderly way.
///
/// ```
/// use std::time::Duration;
/// use tramontane::{Description, StartOptions};
/// use tramontane_dds::{
///     Domain, DomainParticipant, Level, Octets, ReaderQos, Selection, TopicDescription, WaitSet,
///     WriterQos,
/// };
///
/// # fn main() -> Result<(), tramontane_dds::DdsError> {
/// // A domain with one node, so that this example runs by itself.
/// let name = format!("doc-dds-{}", std::process::id());
/// let topic = TopicDescription::new("Pings", "Octets");
/// let domain = Domain::new(Description::builder(&name).nodes(1), [topic])?;
/// let participant = DomainParticipant::join(&domain, StartOptions::new(0))?;
/// let pings = participant.topic::<Octets>("Pings")?;
/// let reader = participant.create_datareader(&pings, ReaderQos::default())?;
/// let mut writer = participant.create_datawriter(&pings, WriterQos::of(Level::Atomic))?;
/// writer.write(&Octets(vec![1, 2, 3]))?;
/// let mut set = WaitSet::new();
/// set.attach(reader.read_condition(Selection::unread()));
/// assert_eq!(set.wait(Duration::from_secs(10)), [0]);
/// let sample = reader.take_next_sample().expect("the condition says so");
/// assert_eq!(sample.data()?, Octets(vec![1, 2, 3]));
/// # drop((reader, writer));
/// participant.leave(Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
pub struct DomainParticipant {
    pub(super) running: Option<Running>,
    domain: Domain,
    node: u32,
    pub(super) shared: Arc<ParticipantState>,
    timers: Option<JoinHandle<()>>,
    pub(super) discovery: Sender,
}

impl DomainParticipant {
    participant_calls!();

    /// Joins the domain as the node given in the options.
    ///
    /// # Errors
    /// Fails with [`DdsError::Start`] or [`DdsError::System`].
    pub fn join(domain: &Domain, options: StartOptions<'_>) -> Result<Self, DdsError> {
        let node = options.node;
        let own = ParticipantId::Node(node);
        let facts = DomainFacts::of(domain);
        let shared = Arc::new(ParticipantState::new(facts, own));
        let options = StartOptions { terms: options.terms ^ domain.terms(), ..options };
        let running = start(domain.group().clone(), options, TopicApplication::new(&shared))?;
        let discovery = running
            .sender_of(tramontane::SubgroupId(0))
            .ok_or_else(|| DdsError::Domain("this node may not send in discovery".into()))?;
        if let Some(reserved) = running.reserved_subgroups() {
            let _ = shared.keeping.set((reserved, discovery.clone()));
        }
        for (index, topic) in domain.topics().iter().enumerate() {
            if topic.level == Level::Logged
                && let Some(sender) = running.sender_of(Domain::subgroup_of(index))
            {
                say_begun(sender, ANNOUNCE)?;
            }
        }
        let timers = timers::start(&shared)?;
        let (running, timers) = (Some(running), Some(timers));
        Ok(Self { running, domain: domain.clone(), node, shared, timers, discovery })
    }

    /// Finds a topic by name: its index, its generation and its description.
    pub(super) fn find(&self, name: &str) -> Result<(usize, u64, TopicDescription), DdsError> {
        let known = self.shared.known.lock();
        let found = known.directory.find(name).filter(|_| known.has_open(name));
        let found = found.map(|(index, generation, topic)| (index, generation, topic.clone()));
        found.ok_or_else(|| {
            DdsError::PreconditionNotMet(format!(
                "the domain has no topic \"{name}\"; add it to the domain's description, or create it"
            ))
        })
    }

    pub(super) fn running(&self) -> Result<&Running, DdsError> {
        self.running.as_ref().ok_or(DdsError::Ended(Stopped::Closed))
    }

    /// Returns the domain.
    #[must_use]
    pub fn domain(&self) -> &Domain {
        &self.domain
    }

    /// Returns the state of the group: the view, its members, and the topics as subgroups.
    #[must_use]
    pub fn status(&self) -> GroupStatus {
        self.running.as_ref().map(Running::status).unwrap_or_default()
    }

    /// Returns the state in a form that other threads can use, even after the participant has
    /// ended.
    #[must_use]
    pub fn shared_status(&self) -> SharedStatus {
        self.running.as_ref().map(Running::shared_status).unwrap_or_default()
    }

    /// Returns this participant's node.
    #[must_use]
    pub fn node(&self) -> u32 {
        self.node
    }

    /// Returns why this participant is no longer a member, or `None` if it is.
    #[must_use]
    pub fn stopped(&self) -> Option<Stopped> {
        self.running.as_ref().and_then(Running::stopped)
    }

    /// Leaves the domain once this participant's samples have been delivered. Waits for at most
    /// `timeout`.
    ///
    /// # Errors
    /// [`DdsError::Ended`]: it ended otherwise.
    pub fn leave(mut self, timeout: Duration) -> Result<(), DdsError> {
        match self.running.take() {
            Some(running) => Ok(running.leave(timeout).map(drop)?),
            None => Ok(()),
        }
    }
}

impl Host for DomainParticipant {
    fn shared(&self) -> &Arc<ParticipantState> {
        &self.shared
    }

    fn described<T>(&self, topic: &Topic<T>) -> Result<TopicDescription, DdsError> {
        let known = self.shared.known.lock();
        let found = known.directory.topic(topic.index, topic.generation);
        found.cloned().ok_or(DdsError::TopicDeleted)
    }

    fn discovery(&self) -> Voice {
        Voice::Member(self.discovery.clone())
    }

    fn voice(
        &self,
        (topic, _): (usize, u64),
        described: &TopicDescription,
    ) -> Result<Voice, DdsError> {
        let own = self.node;
        let publishes = described.publishers.as_ref().is_none_or(|nodes| nodes.contains(&own));
        let sender = self.running()?.sender_of(Domain::subgroup_of(topic));
        let sender = sender.filter(|_| publishes).ok_or_else(|| {
            DdsError::PreconditionNotMet(format!(
                "node {own} is not a publisher of topic \"{}\"; add it to the topic's publishers",
                described.name
            ))
        })?;
        Ok(Voice::Member(sender))
    }

    /// A member receives all delivered messages in any case.
    fn hear(&self, _: (usize, u64), described: &TopicDescription) -> Result<(), DdsError> {
        if described.subscribers.as_ref().is_some_and(|nodes| !nodes.contains(&self.node)) {
            return Err(DdsError::PreconditionNotMet(format!(
                "node {} is not a subscriber of topic \"{}\"; add it to the topic's subscribers",
                self.node, described.name
            )));
        }
        Ok(())
    }

    fn log(
        &self,
        topic: usize,
        described: &TopicDescription,
        before: u64,
    ) -> Result<LogSource, DdsError> {
        let log = self.running()?.log_reader(Domain::subgroup_of(topic), before);
        log.map(LogSource::Own).ok_or_else(|| {
            DdsError::PreconditionNotMet(format!(
                "node {} has no log of topic \"{}\"; read it at a node that has one",
                self.node, described.name
            ))
        })
    }
}

impl Drop for DomainParticipant {
    fn drop(&mut self) {
        self.shared.life.end();
        drop(self.running.take());
        self.shared.alarm.ring();
        self.shared.life.join();
        // The thread ends after the last of the participant's entities is dropped.
        drop(self.timers.take());
    }
}

impl std::fmt::Debug for DomainParticipant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("DomainParticipant").field("node", &self.node).finish_non_exhaustive()
    }
}
