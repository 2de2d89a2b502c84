//! RamCast, Skeen's protocol and ByzCast over shared memory and TCP: replicas and clients are
//! threads of this process.
//!
//! Each thread has a fabric of its own: over TCP with a connection to each process that it shares a
//! view with, over the loopback. The protocols and their costs are those of the simulator
//! ([`tramontane_fixtures::baselines`]).
//!
//! | file | what it holds |
//! |---|---|
//! | `carrying` | fabrics of threads, and how two of them meet |
//! | `meeting` | fabrics and views, before the first step |
//! | `driving` | the threads of replicas and clients |

mod carrying;
mod driving;
mod meeting;

use std::collections::BTreeMap;
use std::sync::atomic::AtomicUsize;
use std::time::{Duration, Instant};

use tramontane_core::ids::GroupId;
use tramontane_core::tram::{Destinations, Group, Limits, MessageId, Overlay, ReplicaId};
use tramontane_fixtures::baselines::{Options, Party, Plan};
use tramontane_runtime::carrier::Carrier;

use crate::BenchError;
use crate::low_rate::percentile;
use carrying::{Carrying, SharedMemoryCarrying, TcpCarrying};
use driving::{Load, Over, run_client, run_replica};

/// What is run.
#[derive(Clone, Debug)]
pub struct Settings {
    /// What carries the writes.
    pub carrier: Carrier,
    /// The protocol, batched or not.
    pub options: Options,
    /// The parent of each group. Without a tree it does not matter.
    pub parents: Vec<Option<GroupId>>,
    /// Replicas of each group: one, where the protocol is not replicated.
    pub replicas: u16,
    /// How many clients there are.
    pub clients: u16,
    /// How many messages of a client are under way at a time.
    pub window: u32,
    /// How many messages each client multicasts.
    pub messages: u32,
    /// To how many groups each goes, chosen anew each time.
    pub destinations: u32,
    /// Bytes of a message.
    pub payload_bytes: u32,
    /// What decides the destinations.
    pub seed: u64,
    /// After how long the run is given up.
    pub time_limit: Duration,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Report {
    /// Messages that were answered, by all clients together.
    pub messages: u64,
    /// From the first message to the last answer.
    pub seconds: f64,
    /// From a multicast to the answers of all destinations: the median, the 99th percentile, and
    /// the longest.
    pub latency_us: [f64; 3],
    /// What each replica delivered, in its order.
    pub orders: BTreeMap<ReplicaId, Vec<MessageId>>,
    /// For which groups each message was.
    pub sent: BTreeMap<MessageId, Destinations>,
}

/// Runs a protocol.
///
/// # Errors
/// Settings that make no run, what the system says of sockets, a process that cannot go on, or a
/// run that takes too long.
pub fn run(settings: &Settings) -> Result<Report, BenchError> {
    match settings.carrier {
        Carrier::SharedMemory => run_over(settings, &SharedMemoryCarrying::new()?),
        Carrier::Tcp => run_over(settings, &TcpCarrying),
        Carrier::Verbs => Err(BenchError::Arguments("baselines do not run over verbs".into())),
    }
}

fn run_over<C: Carrying>(settings: &Settings, carrying: &C) -> Result<Report, BenchError> {
    let overlay = overlay_of(settings)?;
    let unsuited = "this protocol's groups have one replica: set replicas to 1";
    let plan = Plan::new(&overlay, settings.options.protocol)
        .ok_or_else(|| BenchError::Arguments(unsuited.into()))?;
    let mut seats = meeting::meet(carrying, &plan, settings.options)?;
    let clients_left = AtomicUsize::new(usize::from(settings.clients));
    let over = Over { clients_left, at: Instant::now() + settings.time_limit };
    std::thread::scope(|scope| {
        let mut replicas = Vec::new();
        let mut clients = Vec::new();
        for seat in seats.drain(..) {
            let over = &over;
            match seat.party {
                Party::Replica(id) => {
                    replicas.push((id, scope.spawn(move || run_replica::<C>(seat, over))));
                }
                Party::Client(client) => {
                    let load = Load::of(settings, client);
                    clients.push(scope.spawn(move || run_client::<C>(seat, load, over)));
                }
            }
        }
        let mut waited_us = Vec::new();
        let mut sent = BTreeMap::new();
        let (mut begun, mut ended) = (over.at, Instant::now());
        let mut failed = None;
        for client in clients {
            match joined(client.join()) {
                Ok(done) => {
                    begun = begun.min(done.begun);
                    ended = ended.max(done.ended);
                    waited_us.extend(done.waited_us);
                    sent.extend(done.sent);
                }
                Err(error) => failed = failed.or(Some(error)),
            }
        }
        let mut orders = BTreeMap::new();
        for (id, replica) in replicas {
            match joined(replica.join()) {
                Ok(order) => drop(orders.insert(id, order)),
                // It is why the clients failed, if they did.
                Err(error) => failed = Some(error),
            }
        }
        if let Some(error) = failed {
            return Err(error);
        }
        let latency_us = [50, 99, 100].map(|percent| percentile(waited_us.clone(), percent));
        let seconds = ended.saturating_duration_since(begun).as_secs_f64();
        Ok(Report { messages: waited_us.len() as u64, seconds, latency_us, orders, sent })
    })
}

fn joined<T>(result: std::thread::Result<Result<T, BenchError>>) -> Result<T, BenchError> {
    result.unwrap_or_else(|_| Err(BenchError::Broken("a process of the run panicked".into())))
}

fn overlay_of(settings: &Settings) -> Result<Overlay, BenchError> {
    let group = |parent: &Option<GroupId>| Group { parent: *parent, replicas: settings.replicas };
    let groups: Vec<Group> = settings.parents.iter().map(group).collect();
    let limits = Limits {
        clients: settings.clients,
        log_entries: LOG_ENTRIES.max(4 * settings.window),
        client_window: settings.window.max(CLIENT_WINDOW),
        parent_window: PARENT_WINDOW,
        payload_max: settings.payload_bytes.max(1),
    };
    let is_possible = (1..=groups.len() as u32).contains(&settings.destinations);
    if !is_possible {
        let text = format!("messages can go to 1 to {} groups", groups.len());
        return Err(BenchError::Arguments(text));
    }
    Overlay::new(&groups, limits).map_err(|error| BenchError::Arguments(error.to_string()))
}

/// Slots between two replicas.
const LOG_ENTRIES: u32 = 1024;
/// Messages of a client under way, at least: one, and those that slow replicas have not answered.
const CLIENT_WINDOW: u32 = 8;
/// Messages on their way to a child.
const PARENT_WINDOW: u32 = 256;

#[cfg(test)]
mod tests {
    use super::*;
    use tramontane_fixtures::baselines::Protocol;

    fn settings(carrier: Carrier, protocol: Protocol, batching: bool) -> Settings {
        let parents = [None, Some(0), Some(0), Some(2)];
        Settings {
            carrier,
            window: 4,
            options: Options { protocol, batching },
            parents: parents.map(|parent| parent.map(GroupId)).to_vec(),
            replicas: if protocol.is_replicated() { 3 } else { 1 },
            clients: 3,
            messages: 60,
            destinations: 2,
            payload_bytes: 64,
            seed: 1,
            time_limit: Duration::from_secs(60),
        }
    }

    /// The messages that both have, in the order of the first, are in that order in the second too.
    fn agree(first: &[MessageId], second: &[MessageId]) -> bool {
        let has =
            |order: &[MessageId]| order.iter().copied().collect::<std::collections::BTreeSet<_>>();
        let common = |order: &[MessageId], other: &[MessageId]| {
            let other = has(other);
            order.iter().copied().filter(|id| other.contains(id)).collect::<Vec<_>>()
        };
        common(first, second) == common(second, first)
    }

    fn cases() -> impl Iterator<Item = (Protocol, Carrier)> {
        let over_each = |protocol| [Carrier::SharedMemory, Carrier::Tcp].map(|of| (protocol, of));
        Protocol::ALL.into_iter().flat_map(over_each)
    }

    #[test]
    fn over_each_fabric_all_destinations_deliver_all_messages_in_one_order() {
        for (protocol, carrier) in cases() {
            for batching in [false, true] {
                let settings = settings(carrier, protocol, batching);
                let report = run(&settings).expect("it runs");
                assert_eq!(report.messages, 180);
                for (id, order) in &report.orders {
                    let due = report.sent.iter().filter(|(_, to)| to.contains(id.group)).count();
                    assert_eq!(order.len(), due, "{protocol:?}, {id}");
                    assert!(order.iter().all(|message| report.sent[message].contains(id.group)));
                    for other in report.orders.values() {
                        assert!(agree(order, other), "{protocol:?}, batching {batching}, {id}");
                    }
                }
            }
        }
    }

    #[test]
    fn settings_that_make_no_run_are_refused() {
        let refused = |settings: &Settings| match run(settings) {
            Err(BenchError::Arguments(text)) => text,
            other => panic!("{other:?}"),
        };
        let skeen = Settings { replicas: 3, ..settings(Carrier::Tcp, Protocol::Skeen, true) };
        assert!(refused(&skeen).contains("one replica"));
        let far = Settings { destinations: 5, ..settings(Carrier::Tcp, Protocol::RamCast, true) };
        assert!(refused(&far).contains("1 to 4 groups"));
    }
}
