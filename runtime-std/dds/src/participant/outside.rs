//! The participant of a program that is no member of the domain's group (EXT-1, DDS-1).

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::sync::{Arc, Mutex};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use tramontane_client::{
    ClientId, Level as Reach, Members, Publisher, PublisherOptions, Subscriber,
};

use super::discovery::facts_of;
use super::domain_participant::{Topic, check_type};
use super::entities::{create_reader, create_reader_that, create_writer};
use super::following::{Life, begin, follow_discovery, follow_topic};
use super::handles::ParticipantId;
use super::history::History;
use super::shared::{Shared, check_not_in_listener, upcall};
use super::timers;
use super::voice::Voice;
use crate::cdr::TypeSupport;
use crate::domain::{DISCOVERY, Level, TopicDescription};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos, check_reader, check_writer};
use crate::reader::{AnyListener, DataReader, DataReaderListener, ReaderCore};
use crate::time::Now;
use crate::topic::TopicState;
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
    /// By topic, once there is a reader: the threads that follow it.
    followed: Mutex<BTreeMap<usize, JoinHandle<()>>>,
    follows_discovery: Option<JoinHandle<()>>,
    /// The threads that read logs.
    histories: Mutex<Vec<JoinHandle<()>>>,
    timers: Option<JoinHandle<()>>,
    life: Arc<Life>,
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
        let life = Arc::new(Life::default());
        let follows_discovery = Some(follow_discovery(&shared, &life, subscriber)?);
        let timers = Some(timers::start(&shared)?);
        Ok(Self {
            shared,
            members,
            id,
            discovery: Arc::new(publisher),
            publishers: Mutex::default(),
            followed: Mutex::default(),
            follows_discovery,
            histories: Mutex::default(),
            timers,
            life,
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

    fn described<T>(&self, topic: &Topic<T>) -> Result<&TopicDescription, DdsError> {
        let found = self.shared.facts.topics.get(topic.index);
        found.filter(|of| topic.generation == 0 && of.name == topic.name).ok_or_else(|| {
            DdsError::PreconditionNotMet("the topic is another participant's; find it here".into())
        })
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
        check_not_in_listener("create_datawriter")?;
        let described = self.described(topic)?;
        check_writer(&qos, &self.shared.writer_bounds(described.level))?;
        let voice = Voice::Client(self.publisher(topic.index, described)?);
        create_writer(&self.shared, topic, described, voice, qos)
    }

    /// What publishes in a topic, for all writers there.
    fn publisher(
        &self,
        topic: usize,
        described: &TopicDescription,
    ) -> Result<Arc<Publisher>, DdsError> {
        let mut publishers = lock(&self.publishers);
        if let Some(publisher) = publishers.get(&topic) {
            return Ok(Arc::clone(publisher));
        }
        let level = match described.level {
            Level::Logged => Reach::DurableMajority,
            _ => Reach::Delivered,
        };
        let members = self.members.clone().subgroup(&described.name);
        let options = PublisherOptions { level, id: Some(self.id) };
        let publisher = Arc::new(Publisher::open(members, options)?);
        publishers.insert(topic, Arc::clone(&publisher));
        Ok(publisher)
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
        self.create_reader(topic, qos, |_| None)
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
        self.create_reader(topic, qos, |core| {
            Some(Box::new(DataReader::<T>::any_listener(core, listener)))
        })
    }

    fn create_reader<T: TypeSupport>(
        &self,
        topic: &Topic<T>,
        qos: ReaderQos,
        listener: impl FnOnce(&Arc<ReaderCore>) -> Option<Box<dyn AnyListener>>,
    ) -> Result<DataReader<T>, DdsError> {
        check_not_in_listener("create_datareader")?;
        let described = self.described(topic)?;
        check_reader(&qos, &self.shared.reader_bounds(described.level))?;
        self.follow(topic.index, &described.name)?;
        let discovery = Voice::Client(Arc::clone(&self.discovery));
        create_reader(&self.shared, topic, discovery, qos, listener)
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
        check_not_in_listener("create_datareader_from")?;
        let described = self.described(topic)?;
        let level = described.level;
        check_reader(&qos, &self.shared.reader_bounds(level))?;
        if level != Level::Logged {
            return Err(DdsError::PreconditionNotMet(format!(
                "topic \"{}\" has no log to begin at a place of; raise its level to logged",
                topic.name
            )));
        }
        self.follow(topic.index, &described.name)?;
        let so_far = self.shared.with_topic(topic.index, |of| of.ordinal()).unwrap_or(0);
        let before = first.saturating_sub(1);
        if before > so_far {
            return Err(DdsError::PreconditionNotMet(format!(
                "topic \"{}\" has {so_far} messages so far; begin with one of those",
                topic.name
            )));
        }
        let discovery = Voice::Client(Arc::clone(&self.discovery));
        let members = self.members.clone().subgroup(&described.name);
        let subscriber = Subscriber::open(members, Some(before))?;
        let attach = |core| {
            let told = TopicState::behind(before, level, core);
            let (shared, life) = (Arc::clone(&self.shared), Arc::clone(&self.life));
            let history = History { shared, life, topic: topic.index, subscriber, told };
            lock(&self.histories).push(history.start()?);
            Ok(())
        };
        create_reader_that(&self.shared, topic, discovery, qos, |_| None, attach)
    }

    /// Follows a topic from now on, if it is not followed yet.
    fn follow(&self, topic: usize, name: &str) -> Result<(), DdsError> {
        let mut followed = lock(&self.followed);
        if followed.contains_key(&topic) {
            return Ok(());
        }
        let mut subscriber = Subscriber::follow(self.members.clone().subgroup(name))?;
        let state = begin(&mut subscriber, STATE_WAIT)?;
        let taken = self.shared.with_topic(topic, |of| of.take_over(&state, Now::read()));
        taken.unwrap_or(Ok(()))?;
        followed.insert(topic, follow_topic(&self.shared, &self.life, topic, subscriber)?);
        Ok(())
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
        self.life.lost().map(DdsError::Outside)
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

impl Drop for OutsideParticipant {
    fn drop(&mut self) {
        self.life.end();
        self.shared.alarm.ring();
        let followed = std::mem::take(&mut *lock(&self.followed));
        let histories = std::mem::take(&mut *lock(&self.histories));
        for thread in followed.into_values().chain(self.follows_discovery.take()).chain(histories) {
            // A panic of it has been reported by itself.
            let _ = thread.join();
        }
        // The thread ends once the last of the participant's entities is gone.
        drop(self.timers.take());
    }
}

impl std::fmt::Debug for OutsideParticipant {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("OutsideParticipant").field("id", &self.id).finish_non_exhaustive()
    }
}
