//! A gateway to other implementations of DDS, over RTPS: topics of a domain and topics of an RTPS
//! domain, mirrored both ways. The feature `rtps`.
//!
//! What RTPS writers write enters the group's order. Where a topic is mirrored to one of another
//! name there, all of the order goes out to it, through one RTPS writer: so RTPS readers of that
//! topic, whichever implementation they belong to, see the samples of all RTPS writers and of all
//! writers here in one sequence. Where it is mirrored to the same name, what came from there does
//! not go back.
//!
//! Several nodes may be gateways for the same topics: the first of them that is a member of the
//! view is active, and the others take over without repeating a sample. What the active one wrote
//! on RTPS in its last moments may have reached some readers there and not the next gateway: those
//! samples go out again, with the number of the order that they had.
//!
//! RustDDS carries it: it is released every few weeks, Apache 2.0, needs no type to read and write
//! samples, and tells a sample's writer and number, and lets a writer say what a sample is related
//! to. (Dust DDS, as well kept, needs each topic's type at compile time.)
//!
//! # Limits
//! - Topics without a key: where a key lies in a sample, only its type says. Plain CDR, the least
//!   significant byte first.
//! - Samples that RTPS writers wrote while no gateway ran do not enter.
//!
//! | file | subject |
//! |---|---|
//! | `ledger` | what is passed on, and what was: a state machine without I/O |
//! | `rtps` | the RTPS end |
//! | `mirror` | the thread of one topic |

mod ledger;
mod mirror;
mod rtps;

use std::net::IpAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::JoinHandle;

use self::mirror::Mirror;
use self::rtps::RtpsTopic;
use crate::error::DdsError;
use crate::participant::DomainParticipant;
use crate::qos::{History, ReaderQos, WriterQos};

/// Which RTPS domain, and which nodes are gateways to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayOptions {
    /// The number of the RTPS domain.
    pub rtps_domain: u16,
    /// The nodes that are gateways for the same topics, the first first; all are told alike.
    pub gateways: Vec<u32>,
    /// The address of the network to use; all networks if left out.
    pub network: Option<IpAddr>,
}

/// How a topic is mirrored.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorOptions {
    /// The topic of the domain. This node publishes and subscribes to it.
    pub topic: String,
    /// The RTPS topic whose samples enter the order.
    pub reads: String,
    /// The RTPS topic that the order goes out to. If it is another one, what came from RTPS goes
    /// out too, in its place.
    pub writes: String,
}

impl MirrorOptions {
    /// Under its own name, both ways.
    #[must_use]
    pub fn same(topic: &str) -> Self {
        Self { topic: topic.to_owned(), reads: topic.to_owned(), writes: topic.to_owned() }
    }
}

/// A gateway. Dropping it ends it.
pub struct Gateway {
    options: GatewayOptions,
    rtps: rustdds::DomainParticipant,
    ends: Arc<AtomicBool>,
    mirrors: Vec<JoinHandle<()>>,
}

impl Gateway {
    /// Takes part in an RTPS domain.
    ///
    /// # Errors
    /// [`DdsError::Rtps`].
    pub fn open(options: GatewayOptions) -> Result<Self, DdsError> {
        let mut builder = rustdds::DomainParticipantBuilder::new(options.rtps_domain);
        if let Some(network) = options.network {
            builder = builder.with_only_networks([network]);
        }
        let rtps = builder.build().map_err(|error| DdsError::Rtps(error.to_string()))?;
        Ok(Self { options, rtps, ends: Arc::default(), mirrors: Vec::new() })
    }

    /// Mirrors a topic from now on.
    ///
    /// # Errors
    /// [`DdsError`]: this node does not publish and subscribe to it, or RTPS refuses it.
    pub fn mirror(
        &mut self,
        participant: &DomainParticipant,
        mirrored: &MirrorOptions,
    ) -> Result<(), DdsError> {
        let described = participant.domain().topic(&mirrored.topic).ok_or_else(|| {
            DdsError::PreconditionNotMet(format!("the domain has no topic \"{}\"", mirrored.topic))
        })?;
        let (level, type_name) = (described.level, described.type_name.clone());
        let names = (mirrored.reads.as_str(), mirrored.writes.as_str());
        let rtps = RtpsTopic::open(&self.rtps, names, &type_name)?;
        let topic = participant.untyped_topic(&mirrored.topic)?;
        let mut qos = WriterQos::of(level);
        // What came from RTPS outlives this gateway.
        qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        let writer = participant.create_datawriter(&topic, qos)?;
        let (listener, ordered) = mirror::ordered();
        // With what is kept: it says which samples of RTPS are in the order already.
        let qos = ReaderQos {
            durability: level.durability(),
            presentation: level.presentation(),
            history: History::KeepAll,
            ..ReaderQos::default()
        };
        let reader = participant.create_datareader_with_listener(&topic, qos, listener)?;
        let mirror = Mirror {
            own: participant.node(),
            gateways: self.options.gateways.clone(),
            status: participant.shared_status(),
            returns: mirrored.reads != mirrored.writes,
            rtps,
            writer,
            reader,
            ordered,
            ends: Arc::clone(&self.ends),
        };
        let thread = std::thread::Builder::new().name("tramontane-rtps".into());
        self.mirrors.push(thread.spawn(move || mirror.run())?);
        Ok(())
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        for mirror in self.mirrors.drain(..) {
            mirror.thread().unpark();
            // It has nothing to panic with.
            let _ = mirror.join();
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gateway").field("options", &self.options).finish_non_exhaustive()
    }
}
