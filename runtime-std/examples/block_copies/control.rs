//! How the processes start a case together, keep step, and say when they were done.

use std::fs::OpenOptions;
use std::path::Path;
use std::sync::atomic::{AtomicU64, Ordering};

use rustix::mm::{MapFlags, ProtFlags, mmap};
use rustix::time::{ClockId, clock_gettime};

const BYTES: usize = 64 << 10;
const MEMBERS_MAX: usize = 64;

/// What a receiver says, in cache lines of its own.
#[repr(align(64))]
struct Report {
    /// One more than the case it waits for.
    ready: AtomicU64,
    /// One more than the case it is done with.
    done: AtomicU64,
    began_ns: AtomicU64,
    ended_ns: AtomicU64,
    /// Processor time of the copies.
    copying_ns: AtomicU64,
    /// The case in the upper half, blocks that are done in the lower.
    blocks: AtomicU64,
}

#[repr(align(64))]
struct Start(AtomicU64);

struct Shared {
    start: Start,
    reports: [Report; MEMBERS_MAX],
}

const _: () = assert!(size_of::<Shared>() <= BYTES);

/// What all processes share beside the memory that is copied.
pub struct Control(&'static Shared);

fn now_ns() -> u64 {
    read_ns(ClockId::Monotonic)
}

/// Processor time that this thread has had: what others take of the processor is not in it.
pub fn worked_ns() -> u64 {
    read_ns(ClockId::ThreadCPUTime)
}

fn read_ns(clock: ClockId) -> u64 {
    let now = clock_gettime(clock);
    u64::try_from(now.tv_sec).unwrap_or(0) * 1_000_000_000 + u64::try_from(now.tv_nsec).unwrap_or(0)
}

/// Looks again and again, and lets others run between.
fn until(mut condition: impl FnMut() -> bool) {
    while !condition() {
        std::thread::yield_now();
    }
}

impl Control {
    pub fn make(folder: &Path) -> Self {
        let file = std::fs::File::create_new(folder.join("control")).expect("a file");
        file.set_len(BYTES as u64).expect("its length");
        Self::open(folder)
    }

    pub fn open(folder: &Path) -> Self {
        let file = OpenOptions::new().read(true).write(true).open(folder.join("control")).expect("the file");
        let access = ProtFlags::READ | ProtFlags::WRITE;
        // SAFETY: the kernel chooses the address.
        let base = unsafe { mmap(std::ptr::null_mut(), BYTES, access, MapFlags::SHARED, &file, 0) };
        // SAFETY: mapped for as long as the process runs, on a page, long enough, and made of atomics.
        Self(unsafe { base.expect("mapped").cast::<Shared>().as_ref() }.expect("an address"))
    }

    fn reports(&self, receivers: u16) -> &[Report] {
        &self.0.reports[1..=usize::from(receivers)]
    }

    fn report(&self, rank: u16) -> &Report {
        &self.0.reports[usize::from(rank)]
    }

    pub fn ready(&self, case: usize, rank: u16) {
        self.report(rank).blocks.store((case as u64) << 32, Ordering::Relaxed);
        self.report(rank).ready.store(case as u64 + 1, Ordering::Release);
    }

    pub fn await_ready(&self, case: usize, receivers: u16) {
        let is_ready = |report: &Report| report.ready.load(Ordering::Acquire) > case as u64;
        until(|| self.reports(receivers).iter().all(is_ready));
    }

    pub fn start(&self, case: usize) {
        self.0.start.0.store(case as u64 + 1, Ordering::Release);
    }

    pub fn await_start(&self, case: usize) {
        until(|| self.0.start.0.load(Ordering::Acquire) > case as u64);
    }

    pub fn began(&self, rank: u16) {
        self.report(rank).began_ns.store(now_ns(), Ordering::Relaxed);
    }

    pub fn block_done(&self, case: usize, rank: u16, blocks: usize) {
        self.report(rank).blocks.store((case as u64) << 32 | blocks as u64, Ordering::Release);
    }

    /// Until all have done so many blocks of the case.
    pub fn await_blocks(&self, case: usize, blocks: usize, receivers: u16) {
        let awaited = (case as u64) << 32 | blocks as u64;
        let is_there = |report: &Report| report.blocks.load(Ordering::Acquire) >= awaited;
        until(|| self.reports(receivers).iter().all(is_there));
    }

    pub fn done(&self, case: usize, rank: u16, copying_ns: u64) {
        self.report(rank).copying_ns.store(copying_ns, Ordering::Relaxed);
        self.report(rank).ended_ns.store(now_ns(), Ordering::Relaxed);
        self.report(rank).done.store(case as u64 + 1, Ordering::Release);
    }

    /// Nanoseconds from the first that began to the last that ended, and the processor time of all copies.
    pub fn await_done(&self, case: usize, receivers: u16) -> (f64, f64) {
        let is_done = |report: &Report| report.done.load(Ordering::Acquire) > case as u64;
        while !self.reports(receivers).iter().all(is_done) {
            // The receivers want the processors.
            std::thread::sleep(std::time::Duration::from_micros(200));
        }
        let began =
            self.reports(receivers).iter().map(|report| report.began_ns.load(Ordering::Relaxed)).min();
        let ended =
            self.reports(receivers).iter().map(|report| report.ended_ns.load(Ordering::Relaxed)).max();
        let copying = self.reports(receivers).iter().map(|report| report.copying_ns.load(Ordering::Relaxed));
        let copying: u64 = copying.sum();
        (ended.zip(began).map_or(f64::NAN, |(ended, began)| (ended - began) as f64), copying as f64)
    }
}
