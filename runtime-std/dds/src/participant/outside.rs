//! The participant of a program that is not a member of the domain's group (EXT-1, DDS-1).

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_client::{
    ClientId, ConnectError, Level as Reach, Members, Publisher, PublisherOptions, Subscriber, query,
};

use super::calls::participant_calls;
use super::discovery::facts_of;
use super::following::{begin, follow_discovery, follow_topic};
use super::handles::ParticipantId;
use super::history::LogSource;
use super::host::Host;
use super::shared::ParticipantState;
use super::timers;
use super::typed_topic::{Topic, check_type};
use super::voice::Voice;
use crate::cdr::TypeSupport;
use crate::domain::{DISCOVERY, Domain, Level, TopicDescription};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};
use crate::reader::{DataReader, DataReaderListener};
use crate::sync::{Mutex, lock};
use crate::time::{Now, until};
use crate::writer::DataWriter;

/// Interval between checks whether a topic that no member has yet has been deleted.
const LOOK: Duration = Duration::from_millis(200);

/// Time limit for receiving a member's state.
const STATE_WAIT: Duration = Duration::from_secs(30);

/// An external participant: a client of the domain's group, which is connected to one of the
/// group's members and switches to another member if the first is lost. It writes and reads the
/// declared topics that have `clients = true`.
///
/// Its readers receive the same samples as members' readers, in the same order. Each sample from
/// its writers is delivered once. The group never waits for an external participant. Dropping it
/// ends it: its readers receive nothing more, and the domain forgets it when the last of its
/// writers and readers has been dropped.
///
/// ```
/// use std::time::Duration;
/// use tramontane::group::ControlEndpoints;
/// use tramontane::shared_memory::Root;
/// use tramontane::{Description, StartOptions};
/// use tramontane_dds::{
///     Domain, DomainParticipant, Level, Members, Octets, OutsideParticipant, ReaderQos,
///     Selection, TopicDescription, WaitSet, WriterQos,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A domain with one node, so that this example runs by itself.
/// let name = format!("doc-outside-{}", std::process::id());
/// let topic = TopicDescription::new("Pings", "Octets").clients(true);
/// let domain = Domain::new(Description::builder(&name).nodes(1), [topic])?;
/// let member = DomainParticipant::join(&domain, StartOptions::new(0))?;
/// let pings = member.topic::<Octets>("Pings")?;
/// let reader = member.create_datareader(&pings, ReaderQos::default())?;
///
/// // Another program knows the addresses of some members, and needs no domain file.
/// let endpoints = ControlEndpoints::of(domain.group(), &Root::from_env())?;
/// let members = Members::at(endpoints.addresses().cloned());
/// let outside = OutsideParticipant::connect(members)?;
/// let pings = outside.topic::<Octets>("Pings")?;
/// let mut writer = outside.create_datawriter(&pings, WriterQos::of(Level::Atomic))?;
/// writer.write(&Octets(vec![1, 2, 3]))?;
///
/// let mut set = WaitSet::new();
/// set.attach(reader.read_condition(Selection::unread()));
/// assert_eq!(set.wait(Duration::from_secs(10)), [0]);
/// let sample = reader.take_next_sample().expect("the condition says so");
/// assert_eq!(sample.data()?, Octets(vec![1, 2, 3]));
/// # drop((reader, writer));
/// outside.close(Duration::from_secs(10))?;
/// # Ok(())
/// # }
/// ```
pub struct OutsideParticipant {
    shared: Arc<ParticipantState>,
    members: Members,
    id: ClientId,
    /// The publisher in discovery.
    discovery: Arc<Publisher>,
    /// The publishers, by topic. A topic has one once it has a writer.
    publishers: Mutex<BTreeMap<(usize, u64), Arc<Publisher>>>,
    /// Held while a publisher is being opened or a topic is about to be followed.
    opening: Mutex<()>,
    timers: Option<JoinHandle<()>>,
}

impl OutsideParticipant {
    participant_calls!();

    /// Finds a member of a domain, and receives its state. Writers and readers later connect to
    /// members that have the topic in question: a writer, for example, to a member that publishes
    /// in its topic.
    ///
    /// # Errors
    /// [`DdsError::Outside`]: no member takes it, or no topic of the domain has `clients = true`.
    pub fn connect(members: Members) -> Result<Self, DdsError> {
        let discovery = members.clone().subgroup(DISCOVERY);
        let mut subscriber = Subscriber::follow(discovery.clone())?;
        let state = begin(&mut subscriber, STATE_WAIT)?;
        let facts = facts_of(&state)?;
        let members = members.group(&facts.name);
        let publisher = Publisher::open(discovery, PublisherOptions::default())?;
        let id = publisher.id();
        let shared = Arc::new(ParticipantState::new(facts, ParticipantId::Client(id)));
        shared.take_over_discovery(&state)?;
        follow_discovery(&shared, subscriber)?;
        let timers = Some(timers::start(&shared)?);
        Ok(Self {
            shared,
            members,
            id,
            discovery: Arc::new(publisher),
            publishers: Mutex::default(),
            opening: Mutex::default(),
            timers,
        })
    }

    fn find(&self, name: &str) -> Result<(usize, u64, TopicDescription), DdsError> {
        let known = self.shared.known.lock();
        let found = known.directory.find(name).filter(|_| known.has_open(name));
        let Some((index, generation, topic)) = found else {
            return Err(DdsError::PreconditionNotMet(format!(
                "the domain declares no topic \"{name}\", and no topic of that name has been \
                 created; check the name"
            )));
        };
        if topic.clients {
            return Ok((index, generation, topic.clone()));
        }
        Err(DdsError::PreconditionNotMet(format!(
            "topic \"{name}\" does not admit external participants; set clients = true for it in \
             the domain, or when you create it"
        )))
    }

    /// Returns the members, with a request for a topic.
    fn members_of(
        &self,
        (index, generation): (usize, u64),
        described: &TopicDescription,
    ) -> Members {
        let name = Domain::subgroup_name(index, described, generation);
        self.members.clone().subgroup(&name)
    }

    /// Waits until a member has a topic created at run time: first, a view must open its place.
    /// Does not wait for a deleted topic.
    fn await_open(
        &self,
        topic: (usize, u64),
        described: &TopicDescription,
    ) -> Result<(), DdsError> {
        let until = Instant::now() + STATE_WAIT;
        loop {
            let is_written = self.shared.known.lock().directory.is_written(topic.0, topic.1);
            match is_written.then(|| query(self.members_of(topic, described).time_limit(LOOK))) {
                None => return Err(DdsError::TopicDeleted),
                Some(Ok(_)) => return Ok(()),
                Some(Err(ConnectError::NoMember { .. })) if Instant::now() < until => {}
                Some(Err(error)) => return Err(DdsError::Outside(error)),
            }
        }
    }

    /// Returns the reason that no member has a topic, which may have been deleted.
    fn not_there(&self, (index, generation): (usize, u64), error: ConnectError) -> DdsError {
        let is_written = self.shared.known.lock().directory.is_written(index, generation);
        if is_written { DdsError::Outside(error) } else { DdsError::TopicDeleted }
    }

    /// Returns this participant's identity in the domain.
    #[must_use]
    pub const fn id(&self) -> ParticipantId {
        ParticipantId::Client(self.id)
    }

    /// Returns the reason that no member accepts this participant any longer, or `None` if one
    /// does. If there is a reason, its readers consider all writers gone.
    #[must_use]
    pub fn stopped(&self) -> Option<DdsError> {
        self.shared.life.lost().map(DdsError::Outside)
    }

    /// Waits until all samples of this participant have been delivered, for at most `timeout`, and
    /// ends.
    ///
    /// # Errors
    /// [`DdsError::NotPublished`]: samples may still be in flight, but it has ended anyway.
    pub fn close(self, timeout: Duration) -> Result<(), DdsError> {
        let until = until(timeout);
        self.forget_deleted();
        let publishers: Vec<_> = lock(&self.publishers).values().cloned().collect();
        for publisher in publishers.iter().chain([&self.discovery]) {
            publisher.wait(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }

    /// Samples in flight in deleted topics will never be delivered.
    fn forget_deleted(&self) {
        let mut topics: Vec<_> = lock(&self.publishers).keys().copied().collect();
        let known = self.shared.known.lock();
        topics.retain(|(index, generation)| !known.directory.is_written(*index, *generation));
        drop(known);
        for topic in topics {
            let gone = lock(&self.publishers).remove(&topic);
            // Dropped without holding the lock, because the drop waits for a thread.
            drop(gone);
        }
    }
}

impl Host for OutsideParticipant {
    fn shared(&self) -> &Arc<ParticipantState> {
        &self.shared
    }

    fn described<T>(&self, topic: &Topic<T>) -> Result<TopicDescription, DdsError> {
        let known = self.shared.known.lock();
        match known.directory.topic(topic.index, topic.generation) {
            Some(of) if of.name == topic.name => Ok(of.clone()),
            None if topic.generation > 0 => Err(DdsError::TopicDeleted),
            _ => Err(DdsError::PreconditionNotMet(
                "this topic handle belongs to another participant; get it from this participant"
                    .into(),
            )),
        }
    }

    fn discovery(&self) -> Voice {
        Voice::Client(Arc::clone(&self.discovery))
    }

    /// All writers in a topic share one publisher.
    fn voice(&self, topic: (usize, u64), described: &TopicDescription) -> Result<Voice, DdsError> {
        self.forget_deleted();
        let _one_at_a_time = lock(&self.opening);
        if let Some(publisher) = lock(&self.publishers).get(&topic) {
            return Ok(Voice::Client(Arc::clone(publisher)));
        }
        if topic.1 > 0 {
            self.await_open(topic, described)?;
        }
        let level = match described.level {
            Level::Logged => Reach::DurableMajority,
            _ => Reach::Delivered,
        };
        let options = PublisherOptions { level, id: Some(self.id) };
        let opened = Publisher::open(self.members_of(topic, described), options);
        let publisher = Arc::new(opened.map_err(|error| self.not_there(topic, error))?);
        lock(&self.publishers).insert(topic, Arc::clone(&publisher));
        Ok(Voice::Client(publisher))
    }

    /// Follows a topic, if it is not followed yet.
    fn hear(&self, topic: (usize, u64), described: &TopicDescription) -> Result<(), DdsError> {
        let _one_at_a_time = lock(&self.opening);
        if lock(&self.shared.followed).contains(&topic) {
            return Ok(());
        }
        let (index, generation) = topic;
        if generation > 0 {
            self.await_open(topic, described)?;
        }
        let followed = Subscriber::follow(self.members_of(topic, described));
        let mut subscriber = followed.map_err(|error| self.not_there(topic, error))?;
        let state = begin(&mut subscriber, STATE_WAIT)?;
        let taken = self.shared.with_topic(index, |of| {
            let is_it = of.generation() == generation;
            if is_it { of.take_over(&state, Now::read()) } else { Ok(false) }
        });
        if !taken.unwrap_or(Ok(false))? {
            return Err(DdsError::TopicDeleted);
        }
        Ok(follow_topic(&self.shared, topic, subscriber)?)
    }

    fn log(
        &self,
        index: usize,
        described: &TopicDescription,
        before: u64,
    ) -> Result<LogSource, DdsError> {
        // Logged topics are always declared.
        let members = self.members_of((index, 0), described);
        // The topic's own subscriber also receives messages as soon as they are delivered.
        let subscriber = Subscriber::open_at(members, Some(before), Reach::Delivered)?;
        Ok(LogSource::OfMember(subscriber))
    }
}

impl Drop for OutsideParticipant {
    fn drop(&mut self) {
        self.shared.life.end();
        self.shared.alarm.ring();
        self.shared.life.join();
        // The thread ends after the last of the participant's entities is dropped.
        drop(self.timers.take());
    }
}

impl std::fmt::Debug for OutsideParticipant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OutsideParticipant").field("id", &self.id).finish_non_exhaustive()
    }
}
