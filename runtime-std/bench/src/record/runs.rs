//! Runs by case and seed. Each is done only once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::case::Case;
use super::figures::Figures;
use super::machines::Machines;
use crate::error::BenchError;
use crate::spread::median;

/// The completed runs.
pub(super) struct Cache<'m> {
    machines: &'m Machines,
    done: Mutex<BTreeMap<(Case, u64), Figures>>,
}

/// The runs that a query uses.
#[derive(Clone, Copy)]
pub(super) enum Runs<'c> {
    /// Completed runs with some seeds. A figure is the median over them.
    Done(&'c Cache<'c>, &'c [u64]),
    /// No runs: requested cases are collected, and every figure is 1.
    Asked(&'c Mutex<BTreeSet<Case>>),
}

/// A figure's name, and the largest size of the batches that count, if the figure is their share.
type FigureName<'n> = (&'n str, Option<u64>);

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'m> Cache<'m> {
    /// Creates a cache without runs.
    pub(super) fn new(machines: &'m Machines) -> Self {
        Self { machines, done: Mutex::default() }
    }

    /// Returns the number of completed runs.
    pub(super) fn runs(&self) -> usize {
        lock(&self.done).len()
    }

    /// Carries out runs in advance, as many at a time as there are processors. `after` is called
    /// after each run.
    ///
    /// # Errors
    /// Fails with the error of the first run that failed.
    pub(super) fn prepare(
        &self,
        cases: &BTreeSet<Case>,
        seeds: &[u64],
        after: &(dyn Fn() + Sync),
    ) -> Result<(), BenchError> {
        let all: Vec<_> =
            cases.iter().flat_map(|case| seeds.iter().map(move |seed| (case, *seed))).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((case, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.figure(case, *seed, None)?;
                after();
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let broken = |_| Err(BenchError::Setup("a simulated run panicked".into()));
            let ends = threads.into_iter().map(|thread| thread.join().unwrap_or_else(broken));
            ends.collect::<Vec<_>>().into_iter().collect()
        })
    }

    /// Returns a figure of a case, after running the case if necessary. Without a name, only checks
    /// that the case runs.
    fn figure(
        &self,
        case: &Case,
        seed: u64,
        name: Option<FigureName<'_>>,
    ) -> Result<f64, BenchError> {
        let key = (*case, if case.has_own_seed() { 0 } else { seed });
        let of = |figures: &Figures| match name {
            None => Ok(0.0),
            Some((name, up_to)) => figures.figure(name, up_to).ok_or_else(|| {
                BenchError::Arguments(format!("there is no figure '{name}' for {case:?}"))
            }),
        };
        if let Some(figures) = lock(&self.done).get(&key) {
            return of(figures);
        }
        let figures = self.run(case, seed);
        let figures = figures
            .map_err(|error| BenchError::Setup(format!("{error} ({case:?}, seed {seed})")))?;
        let figure = of(&figures);
        lock(&self.done).insert(key, figures);
        figure
    }

    fn run(&self, case: &Case, seed: u64) -> Result<Figures, BenchError> {
        match case {
            Case::Sending(sending) => sending.run(self.machines.named("spindle")?, seed),
            Case::Transfer(transfer) => transfer.run(self.machines, seed),
            Case::Breakdown(breakdown) => breakdown.run(self.machines, seed),
            Case::Storage(storage) => storage.run(self.machines, seed),
            Case::Overlay(ordered) => ordered.run(self.machines, seed),
            Case::Writes(writes) => writes.run(self.machines, seed),
            Case::LeaderChange(change) => change.run(self.machines),
        }
    }
}

impl Runs<'_> {
    /// Returns a figure of a case.
    ///
    /// # Errors
    /// Fails with the error of a run, or with [`BenchError::Arguments`] if the case has no such
    /// figure.
    pub(super) fn figure(&self, case: Case, name: FigureName<'_>) -> Result<f64, BenchError> {
        match self {
            Self::Done(cache, seeds) => {
                let one = |seed: &u64| cache.figure(&case, *seed, Some(name));
                Ok(median(&seeds.iter().map(one).collect::<Result<Vec<_>, _>>()?))
            }
            Self::Asked(cases) => {
                lock(cases).insert(case);
                Ok(1.0)
            }
        }
    }
}
