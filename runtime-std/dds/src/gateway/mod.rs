//! A gateway to other implementations of DDS, over RTPS: topics of the domain and topics of an RTPS
//! domain, mirrored in both directions. Needs the feature `rtps`.
//!
//! Samples of RTPS writers enter the group's order. If a topic is mirrored to an RTPS topic with
//! another name, the whole order is written to it through one RTPS writer. So RTPS readers of that
//! topic, in any implementation, see the samples of all RTPS writers and of all writers in the
//! domain in one sequence. If a topic is mirrored under the same name, samples from RTPS are not
//! written back.
//!
//! Several nodes may be gateways for the same topics. The first that is a member of the view is
//! active, and the others take over without repeating samples. The last writes of a failed gateway
//! may have reached some RTPS readers but not the next gateway. Those samples are then written
//! again, with the same numbers in the order.
//!
//! The gateway is built on RustDDS, which is released every few weeks under Apache 2.0, does not
//! need a type to read and write samples, and reports a sample's writer and number. (Dust DDS,
//! which is maintained as well, needs each topic's type at compile time.)
//!
//! # Limits
//! - Topics must have no key: only a type could tell where the key is in a sample. Samples must be
//!   plain CDR (XCDR1), least significant byte first. RTPS writers and readers must be reliable,
//!   and readers must not request samples from before their creation. Writers and readers that do
//!   not match are listed ([`Gateway::mismatches`]).
//! - A sample larger than the topic's `sample_max` is dropped and counted ([`Gateway::counts`]).
//!   The size includes the padding with which its writer extends it to a multiple of four.
//! - Samples that RTPS writers write while no gateway is running do not enter the order.
//!
//! | file | subject |
//! |---|---|
//! | `ledger` | samples passed on and to pass on: a state machine without I/O |
//! | `rtps` | the RTPS side |
//! | `discovery` | other gateways, and RTPS ends that do not match |
//! | `mirror` | the thread of one topic |

mod discovery;
mod ledger;
mod mirror;
mod rtps;

use std::net::IpAddr;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, Once};
use std::thread::JoinHandle;
use std::time::Duration;

use self::discovery::{Discovery, MirroredTopics};
use self::ledger::Ledger;
use self::mirror::{Mirror, Tally};
use self::rtps::RtpsTopic;
pub use self::{discovery::Mismatch, mirror::MirrorCounts};
use crate::error::DdsError;
use crate::participant::DomainParticipant;
use crate::qos::{History, ReaderQos, WriterQos};
use crate::sync::lock;

/// The RTPS domain, and the nodes that are gateways to it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GatewayOptions {
    /// The number of the RTPS domain.
    pub rtps_domain: u16,
    /// The nodes that are gateways for the same topics, in order of preference. Must be the same on
    /// all of them.
    pub gateways: Vec<u32>,
    /// The address of the network to use; `None` uses all networks.
    pub network: Option<IpAddr>,
}

/// The mirroring of a topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MirrorOptions {
    /// The topic of the domain. This node publishes and subscribes to it.
    pub topic: String,
    /// The RTPS topic whose samples enter the order.
    pub reads: String,
    /// The RTPS topic to which the order is written. If it differs from `reads`, samples from RTPS
    /// are written too, at their position in the order.
    pub writes: String,
}

impl MirrorOptions {
    /// Mirrors a topic under its own name, in both directions.
    #[must_use]
    pub fn same(topic: &str) -> Self {
        Self { topic: topic.to_owned(), reads: topic.to_owned(), writes: topic.to_owned() }
    }
}

/// A running gateway. Dropping it stops the gateway.
pub struct Gateway {
    options: GatewayOptions,
    rtps: rustdds::DomainParticipant,
    discovery: Arc<Mutex<Discovery>>,
    ends: Arc<AtomicBool>,
    mirrors: Vec<Running>,
}

/// A topic's thread.
struct Running {
    topic: String,
    tally: Arc<Tally>,
    /// `None` once the end of the thread has been reported.
    thread: Option<JoinHandle<Result<(), DdsError>>>,
}

/// Whether a thread of RustDDS has panicked. Calls to RustDDS continue as if nothing had happened,
/// so this flag is the only sign.
static LIBRARY_ENDED: AtomicBool = AtomicBool::new(false);

/// The prefix of the names of RustDDS's threads.
const LIBRARY_THREADS: &str = "RustDDS";

/// Records panics in RustDDS's threads from then on.
fn watch_library() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        let before = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            let thread = std::thread::current();
            if thread.name().is_some_and(|name| name.starts_with(LIBRARY_THREADS)) {
                LIBRARY_ENDED.store(true, Ordering::Release);
            }
            before(panic);
        }));
    });
}

impl Gateway {
    /// Joins an RTPS domain.
    ///
    /// # Errors
    /// [`DdsError::Rtps`].
    pub fn open(options: GatewayOptions) -> Result<Self, DdsError> {
        watch_library();
        let mut builder = rustdds::DomainParticipantBuilder::new(options.rtps_domain);
        if let Some(network) = options.network {
            builder = builder.with_only_networks([network]);
        }
        let rtps = builder.build().map_err(|error| DdsError::Rtps(error.to_string()))?;
        let discovery = Arc::new(Mutex::new(Discovery::new(&rtps)));
        Ok(Self { options, rtps, discovery, ends: Arc::default(), mirrors: Vec::new() })
    }

    /// Begins to mirror a topic.
    ///
    /// # Errors
    /// [`DdsError`]: this node does not publish and subscribe to it, or RTPS refuses it.
    pub fn mirror(
        &mut self,
        participant: &DomainParticipant,
        mirrored: &MirrorOptions,
    ) -> Result<(), DdsError> {
        let described = participant.domain().topic(&mirrored.topic).ok_or_else(|| {
            DdsError::PreconditionNotMet(format!(
                "the domain has no topic \"{}\"; add it to the domain's description",
                mirrored.topic
            ))
        })?;
        let level = described.level;
        let sample_max = usize::try_from(described.sample_max).unwrap_or(usize::MAX);
        let names = MirroredTopics {
            reads: mirrored.reads.clone(),
            writes: mirrored.writes.clone(),
            type_name: described.type_name.clone(),
            sample_max,
        };
        let place = (participant.domain().group().name.as_str(), mirrored.topic.as_str());
        let rtps = RtpsTopic::open(&self.rtps, Arc::clone(&self.discovery), place, names)?;
        let topic = participant.untyped_topic(&mirrored.topic)?;
        let mut qos = WriterQos::of(level);
        // Samples from RTPS stay valid after this gateway has ended.
        qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        // The mirror retries by itself, and reads from RTPS in between.
        qos.reliability.max_blocking_time = Duration::from_millis(5);
        let writer = participant.create_datawriter(&topic, qos)?;
        let tally = Arc::default();
        let (listener, ordered) = mirror::ordered(&tally);
        // The kept samples are read too: they show which samples from RTPS are already in the
        // order.
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
            ledger: Ledger::new(mirrored.reads != mirrored.writes, sample_max),
            sample_max,
            rtps,
            writer,
            reader,
            ordered,
            tally: Arc::clone(&tally),
            ends: Arc::clone(&self.ends),
        };
        let thread = std::thread::Builder::new().name("tramontane-rtps".into());
        let thread = Some(thread.spawn(move || mirror.run())?);
        self.mirrors.push(Running { topic: mirrored.topic.clone(), tally, thread });
        Ok(())
    }

    /// Returns why this gateway has stopped, or `None` while it is working. A program whose gateway
    /// has failed should end, or at least leave the domain: the other gateways take over once it is
    /// no longer a member.
    pub fn failure(&mut self) -> Option<DdsError> {
        if LIBRARY_ENDED.load(Ordering::Acquire) {
            return Some(DdsError::Rtps("a thread of RustDDS has panicked; restart".into()));
        }
        self.mirrors.iter_mut().find_map(|mirror| {
            let thread = mirror.thread.take_if(|thread| thread.is_finished())?;
            match thread.join() {
                Ok(outcome) => outcome.err(),
                Err(_) => Some(DdsError::Rtps("a mirror's thread has panicked; restart".into())),
            }
        })
    }

    /// Returns the counters of each mirror, by topic.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, MirrorCounts)> {
        let counts = |mirror: &Running| (mirror.topic.clone(), mirror.tally.counts());
        self.mirrors.iter().map(counts).collect()
    }

    /// Returns the RTPS writers and readers that have been seen but do not match.
    #[must_use]
    pub fn mismatches(&self) -> Vec<Mismatch> {
        lock(&self.discovery).mismatches().to_vec()
    }
}

impl Drop for Gateway {
    fn drop(&mut self) {
        self.ends.store(true, Ordering::Release);
        for thread in self.mirrors.drain(..).filter_map(|mirror| mirror.thread) {
            thread.thread().unpark();
            // A panic of the thread has already been reported.
            let _ = thread.join();
        }
    }
}

impl std::fmt::Debug for Gateway {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        out.debug_struct("Gateway").field("options", &self.options).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Returns the names that the system has for this process's threads.
    fn threads() -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
        tasks.filter_map(|task| name(task.expect("a task"))).collect()
    }

    #[test]
    fn panic_in_library_thread_fails_the_gateway() {
        let network = Some(std::net::Ipv4Addr::LOCALHOST.into());
        let options = GatewayOptions { network, rtps_domain: 87, gateways: vec![0] };
        let mut gateway = Gateway::open(options).expect("RTPS");
        assert!(gateway.failure().is_none());
        let own: Vec<String> = threads();
        let named = own.iter().filter(|name| name.starts_with(LIBRARY_THREADS)).count();
        assert!(named >= 2, "RustDDS names its threads in another way: {own:?}");
        let thread = std::thread::Builder::new().name(format!("{LIBRARY_THREADS} planted"));
        let planted = thread.spawn(|| panic!("planted")).expect("a thread");
        planted.join().expect_err("it panics");
        assert!(gateway.failure().is_some());
    }
}
