//! One process of `bench durable`.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tramontane_core::ids::SubgroupId;
use tramontane_core::node::DurableCounts;
use xxhash_rust::xxh3::xxh3_64_with_seed;

use crate::durable::events::{Delivered, DurableMember, Order, Report, Task};
use crate::error::BenchError;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::Worker;
use tramontane_runtime::group::{Application, Forming, Messages, Running, StartOptions, start};
use tramontane_runtime::shared_memory::Root;

const GROUP: SubgroupId = SubgroupId(0);

/// Time limit for a start or a send, generous because a long log is read first.
const PATIENCE: Duration = Duration::from_secs(600);

/// Interval between checks for durable messages.
const LOOK_PAUSE: Duration = Duration::from_micros(200);

/// The observations of the member.
#[derive(Default)]
struct Seen {
    delivered: Mutex<Delivered>,
    durable_everywhere: AtomicU64,
    /// Number of times that more messages became durable at this member, each time by one sync.
    syncs: AtomicU64,
}

impl Seen {
    fn delivered(&self) -> MutexGuard<'_, Delivered> {
        self.delivered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The application.
struct Digesting {
    seen: Arc<Seen>,
    durable_here: u64,
}

impl Application for Digesting {
    fn deliver(&mut self, messages: &mut Messages<'_, '_>) {
        let mut delivered = self.seen.delivered();
        for message in messages {
            let seed = delivered.digest ^ u64::from(message.sender.get());
            delivered.digest = xxh3_64_with_seed(message.payload, seed);
            delivered.count += 1;
        }
    }

    fn durable_changed(&mut self, _: SubgroupId, durable: &DurableCounts) {
        if durable.here.0 > self.durable_here {
            self.durable_here = durable.here.0;
            self.seen.syncs.fetch_add(1, Ordering::Relaxed);
        }
        self.seen.durable_everywhere.fetch_max(durable.everywhere.0, Ordering::Release);
    }
}

/// Runs one process, until its parent releases or kills it.
///
/// # Errors
/// [`BenchError`].
pub(crate) fn run(task: &str) -> Result<(), BenchError> {
    let (task, worker) = Worker::<DurableMember>::attach(task)?;
    let Err(error) = take_part(&task, &worker) else { return Ok(()) };
    // The parent reports the error, once.
    worker.report(&Report::Failed(format!("node {}: {error}", task.node)))?;
    Ok(())
}

fn take_part(task: &Task, worker: &Worker<DurableMember>) -> Result<(), BenchError> {
    let seen = Arc::new(Seen::default());
    let options = StartOptions {
        root: Root::under(&task.memory),
        time_limit: PATIENCE,
        cancel: worker.released(),
        forming: Forming { new_group: task.is_first_start, ..Forming::default() },
        data: Some(task.data.clone()),
        ..StartOptions::new(task.node)
    };
    let application = Digesting { seen: Arc::clone(&seen), durable_here: 0 };
    let running = start(task.description.clone(), options, application)?;
    worker.report(&Report::Joined { at_ns: now_ns() })?;
    while let Some(order) = worker.next_order() {
        let report = match order {
            Order::Send { messages, total } => send(task, &running, &seen, messages, total)?,
            Order::Tell => Report::Delivered(*seen.delivered()),
        };
        worker.report(&report)?;
    }
    Ok(())
}

fn send(
    task: &Task,
    running: &Running,
    seen: &Seen,
    messages: u64,
    total: u64,
) -> Result<Report, BenchError> {
    let from_ns = now_ns();
    let syncs_before = seen.syncs.load(Ordering::Relaxed);
    let sender = running.sender_of(GROUP);
    let mut sender = sender.ok_or_else(|| BenchError::Setup("this node does not send".into()))?;
    for number in 0..messages {
        sender.send_with(task.message_bytes as usize, PATIENCE, |payload| {
            payload.fill(number as u8);
            let name = number.to_le_bytes();
            let length = name.len().min(payload.len());
            payload[..length].copy_from_slice(&name[..length]);
        })?;
    }
    while seen.durable_everywhere.load(Ordering::Acquire) < total {
        if let Some(stopped) = running.stopped() {
            return Err(stopped.into());
        }
        std::thread::sleep(LOOK_PAUSE);
    }
    let syncs = seen.syncs.load(Ordering::Relaxed) - syncs_before;
    Ok(Report::Sent { from_ns, until_ns: now_ns(), syncs })
}
