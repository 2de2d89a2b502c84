//! What a fabric brings to be judged by the clauses about regions: a few processes, and time.

use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use tramontane_core::fabric::{Fabric, HostRegions};
use tramontane_core::ids::NodeId;

use crate::report::Breach;
use crate::testbed::Next;

/// How many processes a bench has.
pub const PROCESSES: usize = 3;

/// One of a bench's processes: below [`PROCESSES`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Process(pub usize);

impl std::fmt::Display for Process {
    fn fmt(&self, out: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(out, "process {}", self.0)
    }
}

/// Makes processes of one fabric, in one setting.
pub trait RegionTestbed {
    /// Processes of this fabric.
    type Bench<'b>: RegionBench;

    /// Makes fresh processes and shows them to `scene`, once.
    fn with(&self, scene: impl FnOnce(&mut Self::Bench<'_>));
}

/// Processes of one fabric that reach each other. None of them has made a region or a view.
pub trait RegionBench {
    /// The fabric that is judged.
    type Fabric: HostRegions;

    /// The processes' node ids.
    fn nodes(&self) -> [NodeId; PROCESSES];

    /// A process's fabric.
    fn fabric(&mut self, process: Process) -> &mut Self::Fabric;

    /// Lets a little time pass, and does what hosts do beside polling (a timer that looks for
    /// peers). It does not poll: a clause decides who does.
    fn pass(&mut self);

    /// After so many passes, with polls between them, all that is under way has come.
    fn passes_to_settle(&self) -> u32;

    /// Ends a process without a word, with all that it has. It is not used afterwards.
    ///
    /// # Errors
    /// Why that cannot be provoked.
    fn lose(&mut self, process: Process) -> Result<(), &'static str>;

    /// How many rounds a search for rare interleavings takes: as many as are done in about a
    /// second.
    fn rounds(&self) -> u64;

    /// After so many passes without it, what time should bring about counts as never.
    fn patience_passes(&self) -> u32 {
        200_000
    }

    /// How many views a clause tries to have open at each process.
    fn views_tried(&self) -> usize {
        48
    }

    /// Runs two processes at the same time, or one turn after the other ([`interleave`]). A fabric
    /// that threads can share takes [`race_in_threads`].
    ///
    /// # Errors
    /// The first breach that one of them finds; or that they did not end.
    fn race(&mut self, actors: [(Process, Turns<'_, Self::Fabric>); 2]) -> Result<(), Breach>;
}

/// What an actor does of a process, one turn after the other. It polls by itself.
pub type Turns<'t, F> = &'t mut (dyn FnMut(&mut F) -> Result<Next, Breach> + Send);

/// Turns of an interleaved race, after which it counts as one that never ends.
const TURNS_MAX: u64 = 20_000_000;

/// How long a race in threads may take.
const RACE_MAX: Duration = Duration::from_secs(120);

/// Turns in a thread between two moments at which the other may have the processor.
const TURNS_PER_LOOK: u32 = 256;

/// A race without threads: each has a turn, then a little time passes.
///
/// # Errors
/// As [`RegionBench::race`].
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
    Err(Breach(format!("after {TURNS_MAX} turns the two processes are not done")))
}

/// A race in two threads.
///
/// # Errors
/// As [`RegionBench::race`].
///
/// # Panics
/// If an actor does.
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

/// Gives an actor its turns until both are done, or the other found a breach.
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
                return Err(Breach(format!("after {RACE_MAX:?} the two processes are not done")));
            }
            std::thread::yield_now();
        }
    }
    Ok(())
}

/// What a process does whose actor is done: the other may wait for what it still carries.
fn carry_on<F: Fabric>(fabric: &mut F) {
    while fabric.poll().is_some() {}
}
