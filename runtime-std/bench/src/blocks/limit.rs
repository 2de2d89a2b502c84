//! The machine's limit: all receivers read a message from one shared mapping by one [`Method`], at
//! the same time and without a group.

use std::fs::File;
use std::os::fd::AsRawFd as _;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use serde::{Deserialize, Serialize};
use tramontane_core::fabric::ViewMemory;
use tramontane_core::ids::Rank;
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::OutOfRow;

use super::mark::{is_marked, mark};
use super::task::LIMIT;
use crate::error::BenchError;
use crate::experiment::{Experiment, ExperimentMember, Kind};
use crate::touch;
use tramontane_local::clock::{now_ns, thread_time_ns};
use tramontane_local::mapped::Mapped;
use tramontane_runtime::group::Running;

/// The offset at which the sender publishes its file, after its progress and the time of that
/// progress.
const FILE_CELL: usize = 2 * CACHE_LINE;

/// Number of bits for a descriptor's number; the remaining bits hold the process id.
const DESCRIPTOR_BITS: u32 = 20;

/// Interval between checks of the sender.
const LOOK_INTERVAL: Duration = Duration::from_micros(50);

/// How receivers get a message from a sender's memory. `docs/lab-notes/blocks-on-shared-memory.md`
/// lists other ways that were tried before one was chosen for the fabric.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Method {
    /// A memcpy of the whole message.
    Memcpy,
    /// No copy: every byte is read in the sender's memory.
    Lent,
}

impl Method {
    /// Both methods, in the order in which they are listed beside a group.
    pub(super) const ALL: [Self; 2] = [Self::Memcpy, Self::Lent];
}

/// Messages from one mapping, received by one method.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(crate) struct CopyLimit {
    pub(super) message_bytes: usize,
    /// Number of measured messages.
    pub(super) messages: u64,
    /// Number of messages before the measured ones.
    pub(super) warm_ups: u64,
    /// The method of each receiver.
    pub(super) method: Method,
}

/// The measurements of one process of [`CopyLimit`].
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct CopyFigures {
    /// At the sender: time from the start of each measured message until the last receiver has
    /// finished.
    pub(super) latency_ns: Vec<u32>,
    /// At a receiver: processor time of the measured copies.
    pub(super) copying_ns: u64,
    /// A checksum of the bytes read, so that the reads are not optimised away.
    pub(super) checksum: u64,
}

impl Experiment for CopyLimit {
    const KIND: Kind = Kind::CopyLimit;
    type Outcome = CopyFigures;

    fn run(&self, own: &ExperimentMember) -> Result<(CopyFigures, Option<Running>), BenchError> {
        let connected = own.connect()?;
        let memory = connected.memory();
        let outcome = if memory.own == Rank(0) {
            send(&memory, self)
        } else {
            Receiver::new(&memory, self).and_then(|mut receiver| receiver.run())
        };
        connected.leave();
        Ok((outcome?, None))
    }
}

/// Waits until a process has reached `least`.
fn wait(
    memory: &ViewMemory<'_>,
    rank: usize,
    place: usize,
    least: u64,
    pause: impl Fn(),
) -> Result<u64, BenchError> {
    let cell = memory.rows.get(rank).ok_or(OutOfRow)?.cell(place)?;
    let until = Instant::now() + LIMIT;
    loop {
        let value = cell.load();
        if value >= least {
            return Ok(value);
        }
        if Instant::now() >= until {
            return Err(BenchError::Probe);
        }
        pause();
    }
}

fn send(memory: &ViewMemory<'_>, task: &CopyLimit) -> Result<CopyFigures, BenchError> {
    let failed = |error: rustix::io::Errno| {
        BenchError::Setup(format!("cannot create the probe's memory: {error}"))
    };
    let file = memfd_create("tramontane-limit", MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(&file, task.message_bytes as u64).map_err(failed)?;
    let mut mapped = Mapped::writable(&file, task.message_bytes).map_err(unmappable)?;
    // SAFETY: no receiver knows of the mapping yet.
    unsafe { mapped.bytes_mut() }.fill(1);
    let descriptor = u64::from(file.as_raw_fd().unsigned_abs());
    let row = memory.row;
    row.cell(FILE_CELL)?.publish(u64::from(std::process::id()) << DESCRIPTOR_BITS | descriptor);
    let others = 1..memory.members.len();
    let mut latency_ns = Vec::new();
    for message in 0..=task.warm_ups + task.messages {
        // The first wait is longer, because receivers must map the file.
        let mut last_ns = 0;
        for rank in others.clone() {
            wait(memory, rank, 0, message + 1, || std::thread::sleep(LOOK_INTERVAL))?;
            last_ns = last_ns.max(memory.rows.get(rank).ok_or(OutOfRow)?.cell(CACHE_LINE)?.load());
        }
        if message > task.warm_ups {
            let sent_ns = row.cell(CACHE_LINE)?.load();
            latency_ns.push(last_ns.saturating_sub(sent_ns).try_into().unwrap_or(u32::MAX));
        }
        // SAFETY: receivers read only after the store below, and all have finished with the
        // previous message.
        mark(unsafe { mapped.bytes_mut() }, message);
        row.cell(CACHE_LINE)?.publish(now_ns());
        row.cell(0)?.publish(message + 1);
    }
    Ok(CopyFigures { latency_ns, ..CopyFigures::default() })
}

/// A process that receives the sender's messages.
struct Receiver<'r> {
    memory: &'r ViewMemory<'r>,
    task: &'r CopyLimit,
    source: Mapped,
    target: Vec<u8>,
}

impl<'r> Receiver<'r> {
    fn new(memory: &'r ViewMemory<'r>, task: &'r CopyLimit) -> Result<Self, BenchError> {
        let place = wait(memory, 0, FILE_CELL, 1, std::thread::yield_now)?;
        let descriptor = place & ((1 << DESCRIPTOR_BITS) - 1);
        let path = format!("/proc/{}/fd/{descriptor}", place >> DESCRIPTOR_BITS);
        let file = File::open(&path)
            .map_err(|error| BenchError::Setup(format!("cannot open {path}: {error}")))?;
        let source = Mapped::read_only(&file, task.message_bytes).map_err(unmappable)?;
        Ok(Self { memory, task, source, target: vec![1; task.message_bytes] })
    }

    /// Receives all messages.
    fn run(&mut self) -> Result<CopyFigures, BenchError> {
        let row = self.memory.row;
        let (mut checksum, mut copying_ns) = (0_u64, 0);
        let warm_ups = self.task.warm_ups;
        row.cell(0)?.publish(1);
        for message in 0..warm_ups + self.task.messages {
            wait(self.memory, 0, 0, message + 1, std::thread::yield_now)?;
            let began_ns = thread_time_ns();
            // SAFETY: the sender writes only between the last receiver's store and its own next
            // one.
            let source = unsafe { self.source.bytes() };
            match self.task.method {
                Method::Memcpy => self.target.copy_from_slice(source),
                Method::Lent => checksum = checksum.wrapping_add(touch::read(source)),
            }
            row.cell(CACHE_LINE)?.publish(now_ns());
            if message >= warm_ups {
                copying_ns += thread_time_ns().saturating_sub(began_ns);
            }
            if self.task.method == Method::Memcpy && !is_marked(&self.target, message) {
                return Err(BenchError::Broken("a copy differs from its source".into()));
            }
            row.cell(0)?.publish(message + 2);
        }
        Ok(CopyFigures { checksum, copying_ns, ..CopyFigures::default() })
    }
}

fn unmappable(_: std::io::Error) -> BenchError {
    BenchError::Setup("cannot map the probe's memory".into())
}
