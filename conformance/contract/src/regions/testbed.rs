//! The interface through which the clauses about regions judge a fabric: a few processes, and time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Fabric, HostRegions};
use tramontane_core::ids::NodeId;

use crate::report::Breach;
use crate::testbed::Next;

/// Number of processes in a bench.
pub const PROCESSES: usize = 3;

/// The number of one of a bench's processes, which is less than [`PROCESSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process(pub usize);

impl std::fmt::Display for Process {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "process {}", self.0)
    }
}

/// Creates processes of one fabric, in one configuration.
pub trait RegionTestbed {
    /// Processes of this fabric.
    type Bench<'b>: RegionBench;

    /// Creates fresh processes and passes them to `scene`, once.
    fn with(&self, scene: impl FnOnce(&mut Self::Bench<'_>));
}

/// Processes of one fabric that can reach each other. None of them has created a region or opened a
/// view.
pub trait RegionBench {
    /// The fabric under test.
    type Fabric: HostRegions;

    /// The processes' node ids.
    fn nodes(&self) -> [NodeId; PROCESSES];

    /// A process's fabric.
    fn fabric(&mut self, process: Process) -> &mut Self::Fabric;

    /// Lets a little time pass, and does what hosts do in addition to polling, such as running a
    /// timer that looks for peers. It does not poll, because the clause decides which processes
    /// poll.
    fn pass(&mut self);

    /// Number of passes, with polls between them, after which all writes in flight have landed if
    /// the processes are also quiet.
    fn passes_to_settle(&self) -> u32;

    /// Returns whether nothing that a process has posted is known to be in flight. Needed only by
    /// fabrics whose writes may take longer than the passes.
    fn is_quiet(&self, process: Process) -> bool {
        let _ = process;
        true
    }

    /// Ends a process and everything that it has, without notice. The process is not used
    /// afterwards.
    ///
    /// # Errors
    /// Fails with the reason why this cannot be provoked.
    fn lose(&mut self, process: Process) -> Result<(), &'static str>;

    /// Number of rounds of a search for rare interleavings, chosen so that the search takes about a
    /// second.
    fn rounds(&self) -> u64;

    /// Number of passes after which an expected event counts as never happening.
    fn patience_passes(&self) -> u32 {
        200_000
    }

    /// Number of views that a clause tries to open on each process.
    fn views_tried(&self) -> usize {
        48
    }

    /// Runs two processes concurrently, or turn by turn ([`interleave`]). A fabric that threads can
    /// share uses [`race_in_threads`].
    ///
    /// # Errors
    /// Fails with the first breach found, or because the actors did not end.
    fn race(&mut self, actors: [(Process, Turns<'_, Self::Fabric>); 2]) -> Result<(), Breach>;
}

/// An actor's actions on a process, one turn at a time. The actor polls by itself.
pub type Turns<'t, F> = &'t mut (dyn FnMut(&mut F) -> Result<Next, Breach> + Send);

/// Limit of turns in an interleaved race; after that it counts as endless.
const TURNS_MAX: u64 = 20_000_000;

/// Time limit for a race between threads.
const RACE_MAX: Duration = Duration::from_secs(120);

/// Number of turns before a thread yields the processor.
const TURNS_PER_LOOK: u32 = 256;

/// Runs a race without threads: the actors take turns, and a little time passes after each turn.
///
/// # Errors
/// Fails as [`RegionBench::race`] does.
pub fn interleave<B: RegionBench + ?Sized>(
    bench: &mut B,
    mut actors: [(Process, Turns<'_, B::Fabric>); 2],
) -> Result<(), Breach> {
    let mut done = [false; 2];
    for _ in 0..TURNS_MAX {
        for ((process, actor), done) in actors.iter_mut().zip(&mut done) {
            let fabric = bench.fabric(*process);
            if *done {
                carry_on(fabric);
            } else {
                *done = actor(fabric)? == Next::Done;
            }
        }
        if done == [true; 2] {
            return Ok(());
        }
        bench.pass();
    }
    Err(Breach(format!("the two processes have not finished after {TURNS_MAX} turns")))
}

/// Runs a race in two threads.
///
/// # Errors
/// Fails as [`RegionBench::race`] does.
///
/// # Panics
/// Panics if an actor panics.
pub fn race_in_threads<F: Fabric + Send>(
    fabrics: [&mut F; 2],
    actors: [Turns<'_, F>; 2],
) -> Result<(), Breach> {
    let (stop, done) = (AtomicBool::new(false), AtomicUsize::new(0));
    let (stop, done) = (&stop, &done);
    std::thread::scope(|scope| {
        let [first, second] = fabrics;
        let [one, other] = actors;
        let start = |fabric, actor| {
            scope.spawn(move || {
                let ended = act(fabric, actor, stop, done);
                stop.fetch_or(ended.is_err(), Ordering::Relaxed);
                ended
            })
        };
        let threads = [start(first, one), start(second, other)];
        let [first, second] = threads.map(|thread| thread.join().expect("no panic"));
        first.and(second)
    })
}

/// Runs an actor's turns until both actors are done or the other found a breach.
fn act<F: Fabric>(
    fabric: &mut F,
    actor: Turns<'_, F>,
    stop: &AtomicBool,
    done: &AtomicUsize,
) -> Result<(), Breach> {
    let until = Instant::now() + RACE_MAX;
    let (mut turns, mut is_done) = (0_u32, false);
    while !stop.load(Ordering::Relaxed) && done.load(Ordering::Relaxed) < 2 {
        if is_done {
            carry_on(fabric);
        } else if actor(fabric)? == Next::Done {
            is_done = true;
            done.fetch_add(1, Ordering::Relaxed);
        }
        turns = turns.wrapping_add(1);
        if is_done || turns.is_multiple_of(TURNS_PER_LOOK) {
            if Instant::now() > until {
                return Err(Breach(format!(
                    "the two processes have not finished after {RACE_MAX:?}"
                )));
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// Polls for an actor that is done, because the other may wait for writes that this process still
/// carries.
fn carry_on<F: Fabric>(fabric: &mut F) {
    while fabric.poll().is_some() {}
}
