//! The participant of a program that is no member of the domain's group (EXT-1, DDS-1).

use std::collections::{BTreeMap, BTreeSet};
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_client::{
    ClientId, Level as Reach, Members, Publisher, PublisherOptions, Subscriber,
};

use super::discovery::facts_of;
use super::domain_participant::{Topic, check_type};
use super::entities::{
    create_reader, create_reader_from, create_reader_with_listener, create_writer,
};
use super::following::{begin, follow_discovery, follow_topic};
use super::handles::ParticipantId;
use super::history::LogSource;
use super::host::Host;
use super::shared::{Shared, upcall};
use super::timers;
use super::voice::Voice;
use crate::cdr::TypeSupport;
use crate::domain::{DISCOVERY, Level, TopicDescription};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};
use crate::reader::{DataReader, DataReaderListener};
use crate::time::Now;
use crate::waitset::lock;
use crate::writer::DataWriter;

/// How long it may take until a member tells what it knows.
const STATE_WAIT: Duration = Duration::from_secs(30);

/// A participant outside: a client of the domain's group, which is at one of its members and goes
/// to another one if that is lost. It writes and reads the declared topics that have
/// `clients = true`.
///
/// Its readers are handed what members' readers are, in the same order. What its writers write is
/// delivered once. The group never waits for it. Dropping it ends it: its readers are given nothing
/// more, and the domain forgets it with the last of its writers and readers.
///
/// ```
/// use std::time::Duration;
/// use tramontane::group::ControlEndpoints;
/// use tramontane::{Description, Root, StartOptions};
/// use tramontane_dds::{
///     Domain, DomainParticipant, Level, Members, Octets, OutsideParticipant, ReaderQos,
///     Selection, TopicDescription, WaitSet, WriterQos,
/// };
///
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// // A domain of one member, so that this runs by itself.
/// let name = format!("doc-outside-{}", std::process::id());
/// let topic = TopicDescription::new("Pings", "Octets").clients(true);
/// let domain = Domain::new(Description::builder(&name).nodes(1), [topic])?;
/// let member = DomainParticipant::join(&domain, StartOptions::new(0))?;
/// let pings = member.topic::<Octets>("Pings")?;
/// let reader = member.create_datareader(&pings, ReaderQos::default())?;
///
/// // Another program has the addresses of some members, and no file.
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
    shared: Arc<Shared>,
    members: Members,
    id: ClientId,
    /// What is said in discovery.
    discovery: Arc<Publisher>,
    /// By topic, once there is a writer.
    publishers: Mutex<BTreeMap<usize, Arc<Publisher>>>,
    /// The topics that are followed, once there is a reader.
    followed: Mutex<BTreeSet<usize>>,
    timers: Option<JoinHandle<()>>,
}

impl OutsideParticipant {
    /// Finds a member of a domain, and takes over what it knows. Of the members only those matter
    /// that have the topics: a writer goes to one that publishes in its topic.
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
        let shared = Arc::new(Shared::new(facts, Vec::new(), ParticipantId::Client(id)));
        upcall(|| lock(&shared.discovery).take_over(&state))?;
        follow_discovery(&shared, subscriber)?;
        let timers = Some(timers::start(&shared)?);
        Ok(Self {
            shared,
            members,
            id,
            discovery: Arc::new(publisher),
            publishers: Mutex::default(),
            followed: Mutex::default(),
            timers,
        })
    }

    /// The topic of that name, if it has this type.
    ///
    /// # Errors
    /// [`DdsError::PreconditionNotMet`]: it is not declared in the domain, has another type, or
    /// takes no participants outside.
    pub fn topic<T: TypeSupport>(&self, name: &str) -> Result<Topic<T>, DdsError> {
        let (index, description) = self.find(name)?;
        check_type::<T>(description)?;
        Ok(Topic { index, generation: 0, name: name.to_owned(), sample: PhantomData })
    }

    /// The topic of that name, for programs that do not know its type: see
    /// [`DomainParticipant::untyped_topic`](crate::DomainParticipant::untyped_topic).
    ///
    /// # Errors
    /// As [`OutsideParticipant::topic`], but for the type.
    pub fn untyped_topic(&self, name: &str) -> Result<Topic<crate::Octets>, DdsError> {
        let (index, _) = self.find(name)?;
        Ok(Topic { index, generation: 0, name: name.to_owned(), sample: PhantomData })
    }

    fn find(&self, name: &str) -> Result<(usize, &TopicDescription), DdsError> {
        let topics = &self.shared.facts.topics;
        let found = topics.iter().enumerate().find(|(_, topic)| topic.name == name);
        let (index, topic) = found.ok_or_else(|| {
            DdsError::PreconditionNotMet(format!(
                "the domain declares no topic \"{name}\", and one that was created at run time is for members alone; declare it"
            ))
        })?;
        if !topic.clients {
            return Err(DdsError::PreconditionNotMet(format!(
                "topic \"{name}\" takes no participants outside; set clients = true for it in the domain"
            )));
        }
        Ok((index, topic))
    }

    /// A writer on a topic. Its samples are lines of a client: a member puts them into its slots.
    /// What is under way is bounded by 4096 samples or 4 MiB a topic, not by the topic's window.
    ///
    /// # Errors
    /// [`DdsError`]: policies that are refused; no member that publishes there takes it.
    pub fn create_datawriter<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: WriterQos,
    ) -> Result<DataWriter<T>, DdsError> {
        create_writer(self, topic, qos)
    }

    /// A reader on a topic. On a topic that keeps samples, one that asks for them is given those
    /// first, each once.
    ///
    /// # Errors
    /// [`DdsError`]: policies that are refused; no member that has the topic takes it.
    pub fn create_datareader<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: ReaderQos,
    ) -> Result<DataReader<T>, DdsError> {
        create_reader(self, topic, qos)
    }

    /// The same with a listener, which misses nothing. It is called from the thread that receives,
    /// and lent samples in this process's memory; what it does not do soon holds nobody else back.
    ///
    /// # Errors
    /// As [`OutsideParticipant::create_datareader`].
    pub fn create_datareader_with_listener<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: ReaderQos,
        listener: impl DataReaderListener<T> + 'static,
    ) -> Result<DataReader<T>, DdsError> {
        create_reader_with_listener(self, topic, qos, listener)
    }

    /// A reader that begins with the message of that number of the topic's order
    /// ([`SampleInfo::ordinal`](crate::SampleInfo::ordinal)), from 1: what the log of its member
    /// still has of it comes first, whatever the topic keeps in memory and whatever `durability`
    /// the reader asks for, and then what is written from now on, each once and in order. What the
    /// log does not have any more is told as lost.
    ///
    /// A writer that announced itself before that message, and is unknown therefore, is taken to
    /// offer all that the level gives, until the reader has come to the present.
    ///
    /// # Errors
    /// As [`OutsideParticipant::create_datareader`]; [`DdsError::PreconditionNotMet`] if the topic
    /// is not logged, or has not come so far.
    pub fn create_datareader_from<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: ReaderQos,
        first: u64,
    ) -> Result<DataReader<T>, DdsError> {
        create_reader_from(self, topic, qos, first)
    }

    /// The declared topics of the domain.
    #[must_use]
    pub fn topics(&self) -> Vec<TopicDescription> {
        self.shared.facts.topics.clone()
    }

    /// As what it is known in the domain.
    #[must_use]
    pub const fn id(&self) -> ParticipantId {
        ParticipantId::Client(self.id)
    }

    /// Why no member takes this participant any more, if none does: then all writers that it knew
    /// are gone for its readers.
    #[must_use]
    pub fn stopped(&self) -> Option<DdsError> {
        self.shared.life.lost().map(DdsError::Outside)
    }

    /// Waits until all that was written is delivered, at most `timeout`, and ends.
    ///
    /// # Errors
    /// [`DdsError::NotPublished`]: something may still be under way, and it has ended all the same.
    pub fn close(self, timeout: Duration) -> Result<(), DdsError> {
        let until = Instant::now() + timeout;
        let publishers: Vec<_> = lock(&self.publishers).values().cloned().collect();
        for publisher in publishers.iter().chain([&self.discovery]) {
            publisher.wait(until.saturating_duration_since(Instant::now()))?;
        }
        Ok(())
    }
}

impl Host for OutsideParticipant {
    fn shared(&self) -> &Arc<Shared> {
        &self.shared
    }

    fn described<T>(&self, topic: &Topic<T>) -> Result<TopicDescription, DdsError> {
        let found = self.shared.facts.topics.get(topic.index);
        let found = found.filter(|of| topic.generation == 0 && of.name == topic.name);
        found.cloned().ok_or_else(|| {
            DdsError::PreconditionNotMet("the topic is another participant's; find it here".into())
        })
    }

    fn discovery(&self) -> Voice {
        Voice::Client(Arc::clone(&self.discovery))
    }

    /// What publishes in a topic is one for all writers there.
    fn voice(&self, topic: usize, described: &TopicDescription) -> Result<Voice, DdsError> {
        let mut publishers = lock(&self.publishers);
        if let Some(publisher) = publishers.get(&topic) {
            return Ok(Voice::Client(Arc::clone(publisher)));
        }
        let level = match described.level {
            Level::Logged => Reach::DurableMajority,
            _ => Reach::Delivered,
        };
        let members = self.members.clone().subgroup(&described.name);
        let options = PublisherOptions { level, id: Some(self.id) };
        let publisher = Arc::new(Publisher::open(members, options)?);
        publishers.insert(topic, Arc::clone(&publisher));
        Ok(Voice::Client(publisher))
    }

    /// Follows a topic from now on, if it is not followed yet.
    fn hear(&self, topic: usize, described: &TopicDescription) -> Result<(), DdsError> {
        let mut followed = lock(&self.followed);
        if followed.contains(&topic) {
            return Ok(());
        }
        let members = self.members.clone().subgroup(&described.name);
        let mut subscriber = Subscriber::follow(members)?;
        let state = begin(&mut subscriber, STATE_WAIT)?;
        let taken = self.shared.with_topic(topic, |of| of.take_over(&state, Now::read()));
        taken.unwrap_or(Ok(()))?;
        follow_topic(&self.shared, topic, subscriber)?;
        followed.insert(topic);
        Ok(())
    }

    fn log(
        &self,
        _: usize,
        described: &TopicDescription,
        before: u64,
    ) -> Result<LogSource, DdsError> {
        let members = self.members.clone().subgroup(&described.name);
        Ok(LogSource::OfMember(Subscriber::open(members, Some(before))?))
    }
}

impl Drop for OutsideParticipant {
    fn drop(&mut self) {
        self.shared.life.end();
        self.shared.alarm.ring();
        self.shared.life.join();
        // The thread ends once the last of the participant's entities is gone.
        drop(self.timers.take());
    }
}

impl std::fmt::Debug for OutsideParticipant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OutsideParticipant").field("id", &self.id).finish_non_exhaustive()
    }
}
