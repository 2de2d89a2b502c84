//! The machine's limit: every receiver has a message from one shared mapping in one of several [`Way`]s, all at once,
//! with nothing of a group between them.

use std::fs::File;
use std::os::fd::{AsFd as _, AsRawFd as _, BorrowedFd};
use std::ptr::NonNull;
use std::time::{Duration, Instant};

use rustix::fs::{MemfdFlags, ftruncate, memfd_create};
use rustix::mm::{MapFlags, ProtFlags, mmap, munmap};
use tramontane_core::ids::Rank;
use tramontane_core::layout::CACHE_LINE;
use tramontane_core::memory::OutOfRow;

use super::clock::{is_marked, mark, now_ns, worked_ns};
use super::member::LIMIT;
use super::way::Way;
use crate::bench::worker::{Outcome, Task, meet};
use crate::bench::{BenchError, touch};
use crate::shared_memory::Mappings;
use crate::shared_memory::copying::copy;

/// Where the sender says which file it is: behind what says how far a process is, and when it was.
const FILE_CELL: usize = 2 * CACHE_LINE;

/// Where a receiver says how many pieces it has copied, of all messages together.
const PIECES_CELL: usize = 2 * CACHE_LINE;

/// Bits of a descriptor's number beside the process's.
const DESCRIPTOR_BITS: u32 = 20;

/// Between two looks of the sender.
const LOOK_INTERVAL: Duration = Duration::from_micros(50);

/// Runs one process.
pub(in crate::bench) fn run(task: &Task, warm_ups: u64, way: Way) -> Result<Outcome, BenchError> {
    let mappings = meet(task)?;
    let outcome = if mappings.own() == Rank(0) {
        send(&mappings, task, warm_ups)
    } else {
        Receiver::new(&mappings, task, way).and_then(|mut receiver| receiver.run(warm_ups))
    };
    mappings.leave();
    outcome
}

/// Waits until a process is so far.
fn wait(
    mappings: &Mappings,
    rank: usize,
    place: usize,
    least: u64,
    pause: impl Fn(),
) -> Result<u64, BenchError> {
    let cell = mappings.rows().get(rank).ok_or(OutOfRow)?.cell(place)?;
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

fn send(mappings: &Mappings, task: &Task, warm_ups: u64) -> Result<Outcome, BenchError> {
    let failed = |error: rustix::io::Errno| {
        BenchError::Setup(format!("cannot make the probe's memory: {error}"))
    };
    let file = memfd_create("tramontane-limit", MemfdFlags::CLOEXEC).map_err(failed)?;
    ftruncate(&file, task.bytes as u64).map_err(failed)?;
    let mut memory = Mapped::new(file.as_fd(), task.bytes, ProtFlags::READ | ProtFlags::WRITE)?;
    memory.bytes_mut().fill(1);
    let descriptor = u64::from(file.as_raw_fd().unsigned_abs());
    let row = mappings.row();
    row.cell(FILE_CELL)?.publish(u64::from(std::process::id()) << DESCRIPTOR_BITS | descriptor);
    let others = 1..task.group.members.len();
    let mut latency_ns = Vec::new();
    for message in 0..=warm_ups + task.messages {
        // The first wait is for receivers that have mapped it.
        let mut last_ns = 0;
        for rank in others.clone() {
            wait(mappings, rank, 0, message + 1, || std::thread::sleep(LOOK_INTERVAL))?;
            last_ns =
                last_ns.max(mappings.rows().get(rank).ok_or(OutOfRow)?.cell(CACHE_LINE)?.load());
        }
        if message > warm_ups {
            let sent_ns = row.cell(CACHE_LINE)?.load();
            latency_ns.push(last_ns.saturating_sub(sent_ns).try_into().unwrap_or(u32::MAX));
        }
        mark(memory.bytes_mut(), message);
        row.cell(CACHE_LINE)?.publish(now_ns());
        row.cell(0)?.publish(message + 1);
    }
    Ok(Outcome { latency_ns, ..Outcome::default() })
}

/// A process that has what the sender has.
struct Receiver<'r> {
    mappings: &'r Mappings,
    task: &'r Task,
    way: Way,
    source: Source,
    target: Vec<u8>,
    /// Processor time of a message's copies that only waited for others.
    waited_ns: u64,
}

/// Where a receiver's bytes come from.
enum Source {
    Senders(Mapped),
    Own(Vec<u8>),
}

impl Source {
    fn bytes(&self) -> &[u8] {
        match self {
            Self::Senders(mapped) => mapped.bytes(),
            Self::Own(bytes) => bytes,
        }
    }
}

impl<'r> Receiver<'r> {
    fn new(mappings: &'r Mappings, task: &'r Task, way: Way) -> Result<Self, BenchError> {
        let place = wait(mappings, 0, FILE_CELL, 1, std::thread::yield_now)?;
        let source = if way == Way::Own {
            Source::Own(vec![1; task.bytes])
        } else {
            let path = format!(
                "/proc/{}/fd/{}",
                place >> DESCRIPTOR_BITS,
                place & ((1 << DESCRIPTOR_BITS) - 1)
            );
            let file = File::open(&path)
                .map_err(|error| BenchError::Setup(format!("cannot open {path}: {error}")))?;
            Source::Senders(Mapped::new(file.as_fd(), task.bytes, ProtFlags::READ)?)
        };
        Ok(Self { mappings, task, way, source, target: vec![1; task.bytes], waited_ns: 0 })
    }

    /// Takes all messages.
    fn run(&mut self, warm_ups: u64) -> Result<Outcome, BenchError> {
        let row = self.mappings.row();
        let (mut sum, mut copying_ns) = (0_u64, 0);
        row.cell(0)?.publish(1);
        for message in 0..warm_ups + self.task.messages {
            if let Source::Own(bytes) = &mut self.source {
                mark(bytes, message);
            }
            wait(self.mappings, 0, 0, message + 1, std::thread::yield_now)?;
            let began_ns = worked_ns();
            self.waited_ns = 0;
            if self.way == Way::Lent {
                sum = sum.wrapping_add(touch::read(self.source.bytes()));
            } else {
                self.copy(message)?;
            }
            row.cell(CACHE_LINE)?.publish(now_ns());
            if message >= warm_ups {
                copying_ns += worked_ns().saturating_sub(began_ns + self.waited_ns);
            }
            if self.way != Way::Lent && !is_marked(&self.target, message) {
                return Err(BenchError::Broken("a copy is not what was copied".into()));
            }
            row.cell(0)?.publish(message + 2);
        }
        Ok(Outcome { sum, copying_ns, ..Outcome::default() })
    }

    fn copy(&mut self, message: u64) -> Result<(), BenchError> {
        let piece_bytes = self.way.piece_bytes(self.task.bytes);
        let before = message * self.task.bytes.div_ceil(piece_bytes) as u64;
        for (done, begin) in (before..).zip((0..self.task.bytes).step_by(piece_bytes)) {
            if self.way.is_together() {
                self.await_others(done)?;
            }
            let end = self.task.bytes.min(begin + piece_bytes);
            let source = NonNull::from(&self.source.bytes()[begin..end]).cast();
            let target = NonNull::from(&mut self.target[begin..end]).cast();
            // SAFETY: two slices of one length; the target is this process's alone, and so does not overlap.
            unsafe { copy(source, target, end - begin, self.way.stores()) };
            if self.way.is_together() {
                self.mappings.row().cell(PIECES_CELL)?.publish(done + 1);
            }
        }
        Ok(())
    }

    /// Waits until every receiver has copied so many pieces.
    fn await_others(&mut self, pieces: u64) -> Result<(), BenchError> {
        let began_ns = worked_ns();
        for rank in 1..self.task.group.members.len() {
            wait(self.mappings, rank, PIECES_CELL, pieces, std::thread::yield_now)?;
        }
        self.waited_ns += worked_ns().saturating_sub(began_ns);
        Ok(())
    }
}

/// A file's bytes.
struct Mapped {
    base: NonNull<u8>,
    length: usize,
}

impl Mapped {
    fn new(file: BorrowedFd<'_>, length: usize, protection: ProtFlags) -> Result<Self, BenchError> {
        // SAFETY: the kernel chooses the address, so nothing that is mapped already is touched.
        let mapped = unsafe {
            mmap(
                std::ptr::null_mut(),
                length,
                protection,
                MapFlags::SHARED | MapFlags::POPULATE,
                file,
                0,
            )
        };
        let base = mapped.ok().and_then(|base| NonNull::new(base.cast::<u8>()));
        let base = base.ok_or_else(|| BenchError::Setup("cannot map the probe's memory".into()))?;
        Ok(Self { base, length })
    }

    fn bytes(&self) -> &[u8] {
        // SAFETY: mapped for so long; the sender writes only between the last receiver's word and its own next.
        unsafe { std::slice::from_raw_parts(self.base.as_ptr(), self.length) }
    }

    /// For the sender, which mapped it to be written.
    fn bytes_mut(&mut self) -> &mut [u8] {
        // SAFETY: as above; receivers read only after the sender's word.
        unsafe { std::slice::from_raw_parts_mut(self.base.as_ptr(), self.length) }
    }
}

impl Drop for Mapped {
    fn drop(&mut self) {
        // SAFETY: exactly what was mapped, and no slice of it outlives this.
        let unmapped = unsafe { munmap(self.base.as_ptr().cast(), self.length) };
        debug_assert_eq!(unmapped, Ok(()));
    }
}
