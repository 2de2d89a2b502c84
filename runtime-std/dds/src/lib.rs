//! DDS on Tramontane's groups: topics, data writers and data readers, as in the OMG's DCPS, with
//! one order over all writers of a topic that is the same for all its readers.
//!
//! A [`Domain`] lists the nodes and the topics. A [`DomainParticipant`] is a member of the domain's
//! group; an [`OutsideParticipant`] is a program that is not a member. A topic is a subgroup of its
//! publishers and subscribers, and has a [`Level`]. Names are those of DDS, except that there are
//! no publishers and subscribers: the order across writers, which would be one of their policies,
//! is a policy of writers and readers here ([`Presentation`]).
//!
//! # Example
//! A participant alone in its domain writes a sample, and reads it:
//!
//! ```
//! # use std::time::Duration;
//! use tramontane::{Description, StartOptions};
//! use tramontane_dds::{
//!     Domain, DomainParticipant, Level, Octets, ReaderQos, Selection, TopicDescription, WaitSet,
//!     WriterQos,
//! };
//!
//! let name = format!("page-dds-{}", std::process::id());
//! let alarms = TopicDescription::new("Alarms", "Octets").level(Level::Volatile);
//! let domain = Domain::new(Description::builder(&name).nodes(1), [alarms])?;
//! let participant = DomainParticipant::join(&domain, StartOptions::new(0))?;
//! let alarms = participant.topic::<Octets>("Alarms")?;
//! let reader = participant.create_datareader(&alarms, ReaderQos::default())?;
//! let mut writer = participant.create_datawriter(&alarms, WriterQos::of(Level::Volatile))?;
//! writer.write(&Octets(vec![7]))?;
//!
//! let mut set = WaitSet::new();
//! set.attach(reader.read_condition(Selection::unread()));
//! set.wait(Duration::from_secs(10)).first().expect("a sample comes");
//! let samples = reader.take(&Selection::default());
//! assert_eq!(samples[0].data()?, Octets(vec![7]));
//! drop((reader, writer));
//! participant.leave(Duration::from_secs(10))?;
//! # Ok::<(), tramontane_dds::DdsError>(())
//! ```
//!
//! # The path of a sample
//! 1. A [`DataWriter`] reserves a slot of the group's ring and builds the sample's CDR there: from
//!    a value by serde, or in place ([`DataWriter::loan`]).
//! 2. The group orders the sample. At the level unordered, the sample is delivered on receipt.
//! 3. A reader's [listener](DataReaderListener::on_sample) borrows the sample in place; over shared
//!    memory, it lies in the writer's own ring. A sample that no listener takes is copied once, for
//!    all readers of the process and the topic's store together, and waits for
//!    [`DataReader::take`].
//!
//! | module | subject |
//! |---|---|
//! | `domain` | domains, topics and levels, as files and programs describe them |
//! | `participant` | participants, and the messages between them |
//! | `topic` | a topic as a member sees it: its writers, and the samples kept for late readers |
//! | `reader`, `writer` | readers and writers |
//! | `qos` | the policies, their matching, and refused ones |
//! | `cdr`, `wire` | types and their CDR; the header before it in a message |
//! | `gateway` | mirroring of topics to an RTPS domain, as a feature |
//! | `status`, `waitset`, `time`, `error` | statuses; conditions; times; errors |
//! | `sync` | locks, replaced by loom's when interleavings are explored |

mod cdr;
mod domain;
mod error;
#[cfg(feature = "rtps")]
pub mod gateway;
#[cfg(doctest)]
mod guide;
mod participant;
mod qos;
mod reader;
mod status;
mod sync;
mod time;
mod topic;
mod waitset;
mod wire;
mod writer;

pub use cdr::{
    Encoding, InstanceHandle, Octets, OctetsRef, PlainType, TypeSupport, decode, encode,
};
pub use domain::{Domain, Level, SAMPLE_MAX_DEFAULT, TopicDescription, TopicPlaces};
pub use error::DdsError;
pub use participant::{
    DomainParticipant, OutsideParticipant, ParticipantId, PublicationData, PublicationHandle,
    SubscriptionData, SubscriptionHandle, Topic,
};
pub use qos::{
    AccessScope, Deadline, DestinationOrder, Durability, History, LatencyBudget, Lifespan,
    Liveliness, LivelinessKind, Ownership, PolicyId, Presentation, ReaderDataLifecycle, ReaderQos,
    Reliability, ReliabilityKind, ResourceLimits, TimeBasedFilter, WriterDataLifecycle, WriterQos,
    incompatible,
};
pub use reader::{
    DataReader, DataReaderListener, Disposition, InstanceStates, Lent, OnSample, Sample,
    SampleInfo, SampleStates, Selection, ViewStates,
};
pub use status::{
    DeadlineMissedStatus, IncompatibleQosStatus, LivelinessChangedStatus, LivelinessLostStatus,
    MatchedStatus, RejectedReason, SampleLostStatus, SampleRejectedStatus, StatusMask,
};
pub use time::{INFINITE, Timestamp};
/// The members that an external participant may connect to, their key, and the identity of the
/// external participant.
pub use tramontane_client::{Members, SharedKey};
pub use waitset::{Condition, GuardCondition, WaitSet};
pub use wire::Origin;
pub use writer::{DataWriter, DataWriterListener, Loan, OctetsLoan};
