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
//! samples, and tells a sample's writer and number. (Dust DDS, as well kept, needs each topic's
//! type at compile time.)
//!
//! # Limits
//! - Topics without a key: where a key lies in a sample, only its type says. Plain CDR (XCDR1), the
//!   least significant byte first. RTPS ends that are reliable, and ask for no samples from before
//!   their time. Others do not match, and are named ([`Gateway::mismatches`]).
//! - A sample that is larger than the topic's `sample_max`, with the bytes by which its writer
//!   fills it up to a multiple of four, is left out and counted ([`Gateway::counts`]).
//! - Samples that RTPS writers wrote while no gateway ran do not enter.
//!
//! | file | subject |
//! |---|---|
//! | `ledger` | what is passed on, and what was: a state machine without I/O |
//! | `rtps` | the RTPS end |
//! | `discovery` | who else is a gateway, and which RTPS ends do not match |
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

use self::discovery::{Discovery, Names};
use self::ledger::Ledger;
use self::mirror::{Mirror, Tally};
use self::rtps::RtpsTopic;
pub use self::{discovery::Mismatch, mirror::MirrorCounts};
use crate::error::DdsError;
use crate::participant::DomainParticipant;
use crate::qos::{History, ReaderQos, WriterQos};
use crate::sync::lock;

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
    discovery: Arc<Mutex<Discovery>>,
    ends: Arc<AtomicBool>,
    mirrors: Vec<Running>,
}

/// The thread of a topic.
struct Running {
    topic: String,
    tally: Arc<Tally>,
    /// Nothing once its end was reported.
    thread: Option<JoinHandle<Result<(), DdsError>>>,
}

/// A thread of RustDDS has panicked. Its calls go on as if nothing had happened, so this is the
/// only sign of it.
static LIBRARY_ENDED: AtomicBool = AtomicBool::new(false);

/// How RustDDS names its threads.
const LIBRARY_THREADS: &str = "RustDDS";

/// Takes note of panics in RustDDS's threads from now on.
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
    /// Takes part in an RTPS domain.
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
        let level = described.level;
        let sample_max = usize::try_from(described.sample_max).unwrap_or(usize::MAX);
        let names = Names {
            reads: mirrored.reads.clone(),
            writes: mirrored.writes.clone(),
            type_name: described.type_name.clone(),
            sample_max,
        };
        let place = (participant.domain().group().name.as_str(), mirrored.topic.as_str());
        let rtps = RtpsTopic::open(&self.rtps, Arc::clone(&self.discovery), place, names)?;
        let topic = participant.untyped_topic(&mirrored.topic)?;
        let mut qos = WriterQos::of(level);
        // What came from RTPS outlives this gateway.
        qos.writer_data_lifecycle.autodispose_unregistered_instances = false;
        // The mirror tries again by itself, and looks at RTPS meanwhile.
        qos.reliability.max_blocking_time = Duration::from_millis(5);
        let writer = participant.create_datawriter(&topic, qos)?;
        let tally = Arc::default();
        let (listener, ordered) = mirror::ordered(&tally);
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

    /// Why this gateway passes nothing on any more; nothing as long as it does. A program whose
    /// gateway has failed ends, or leaves the domain at least: the other gateways take over once
    /// it is no member.
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

    /// What each mirror has done so far, by topic.
    #[must_use]
    pub fn counts(&self) -> Vec<(String, MirrorCounts)> {
        let counts = |mirror: &Running| (mirror.topic.clone(), mirror.tally.counts());
        self.mirrors.iter().map(counts).collect()
    }

    /// The writers and readers on RTPS that were seen and do not match.
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
            // A panic of it has been reported by itself.
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

    /// Names of this process's threads, as the system has them.
    fn threads() -> Vec<String> {
        let tasks = std::fs::read_dir("/proc/self/task").expect("tasks");
        let name = |task: std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).ok();
        tasks.filter_map(|task| name(task.expect("a task"))).collect()
    }

    #[test]
    fn panic_of_a_library_thread_is_a_failure() {
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
