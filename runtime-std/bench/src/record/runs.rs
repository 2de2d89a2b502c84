//! Runs by case and seed, each done once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use super::case::{Case, Figure};
use crate::error::BenchError;
use crate::spread::median;

/// The figures of one run.
pub(super) type Figures = BTreeMap<Figure, f64>;

/// Why there is no figure.
#[derive(Debug, thiserror::Error)]
pub(super) enum Missing {
    /// This model has no such figure, or cannot run such a case.
    #[error("{0}")]
    NotThere(String),
    /// The run failed.
    #[error(transparent)]
    Failed(#[from] BenchError),
}

/// What runs cases.
pub(super) trait Model: Sync {
    /// Runs a case with a seed.
    ///
    /// # Errors
    /// [`Missing`].
    fn run(&self, case: &Case, seed: u64) -> Result<Figures, Missing>;
}

type Done = BTreeMap<(Case, u64), Result<Figures, String>>;

/// Done runs.
pub(super) struct Cache<'m> {
    model: &'m dyn Model,
    /// Cases that cannot be run are kept too, with the reason.
    done: Mutex<Done>,
}

/// The runs that a claim looks at.
pub(super) struct Runs<'c> {
    source: Source<'c>,
    seeds: &'c [u64],
}

enum Source<'c> {
    Done(&'c Cache<'c>),
    /// Nothing is run: what is asked for is written down, and every figure is one.
    Asked(&'c Mutex<BTreeSet<Case>>),
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl<'m> Cache<'m> {
    /// Nothing is done yet.
    pub(super) fn new(model: &'m dyn Model) -> Self {
        Self { model, done: Mutex::default() }
    }

    /// How many runs were done.
    pub(super) fn runs(&self) -> usize {
        lock(&self.done).values().filter(|figures| figures.is_ok()).count()
    }

    /// Does runs ahead, as many at a time as there are processors. `after` is called after each.
    ///
    /// # Errors
    /// That of the first run that failed.
    pub(super) fn prepare(
        &self,
        cases: &[Case],
        seeds: &[u64],
        after: &(dyn Fn() + Sync),
    ) -> Result<(), BenchError> {
        let all: Vec<_> =
            cases.iter().flat_map(|case| seeds.iter().map(move |seed| (case, *seed))).collect();
        let next = AtomicUsize::new(0);
        let work = || {
            while let Some((case, seed)) = all.get(next.fetch_add(1, Ordering::Relaxed)) {
                self.run(case, *seed)?;
                after();
            }
            Ok(())
        };
        let threads = std::thread::available_parallelism().map_or(1, usize::from);
        std::thread::scope(|scope| {
            let threads: Vec<_> = (0..threads).map(|_| scope.spawn(work)).collect();
            let ends = threads.into_iter().map(|thread| {
                thread
                    .join()
                    .unwrap_or_else(|_| Err(BenchError::Setup("a simulated run broke off".into())))
            });
            ends.collect::<Vec<_>>().into_iter().collect()
        })
    }

    fn run(&self, case: &Case, seed: u64) -> Result<(), BenchError> {
        let key = (*case, seed);
        if lock(&self.done).contains_key(&key) {
            return Ok(());
        }
        let figures = match self.model.run(case, seed) {
            Err(Missing::Failed(error)) => {
                return Err(BenchError::Setup(format!("{error} ({case:?}, seed {seed})")));
            }
            Err(Missing::NotThere(reason)) => Err(reason),
            Ok(figures) => Ok(figures),
        };
        lock(&self.done).insert(key, figures);
        Ok(())
    }

    fn figure(&self, case: &Case, seed: u64, figure: Figure) -> Result<f64, Missing> {
        self.run(case, seed)?;
        match lock(&self.done).get(&(*case, seed)) {
            Some(Ok(figures)) => figures.get(&figure).copied().ok_or_else(|| {
                Missing::NotThere(format!("the model has no figure {figure:?} of such a run"))
            }),
            Some(Err(reason)) => Err(Missing::NotThere(reason.clone())),
            None => Err(Missing::NotThere("it was not run".into())),
        }
    }
}

impl<'c> Runs<'c> {
    /// Those of some seeds: a figure is the median over them.
    pub(super) const fn new(cache: &'c Cache<'c>, seeds: &'c [u64]) -> Self {
        Self { source: Source::Done(cache), seeds }
    }

    /// Those that are asked for and not run.
    pub(super) const fn asked(cases: &'c Mutex<BTreeSet<Case>>) -> Self {
        Self { source: Source::Asked(cases), seeds: &[] }
    }

    /// A figure of a case.
    ///
    /// # Errors
    /// [`Missing`].
    pub(super) fn figure(&self, case: Case, figure: Figure) -> Result<f64, Missing> {
        match self.source {
            Source::Done(cache) => {
                let one = |seed: &u64| cache.figure(&case, *seed, figure);
                Ok(median(&self.seeds.iter().map(one).collect::<Result<Vec<_>, _>>()?))
            }
            Source::Asked(cases) => {
                lock(cases).insert(case);
                Ok(1.0)
            }
        }
    }
}

/// The cases that a measure asks for, as far as they do not depend on figures.
pub(super) fn asked(ask: impl Fn(&Runs<'_>)) -> Vec<Case> {
    let cases = Mutex::default();
    ask(&Runs::asked(&cases));
    cases.into_inner().unwrap_or_else(PoisonError::into_inner).into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::case::{Sending, Variant, Way};
    use super::*;

    struct Seeds(AtomicUsize);

    impl Model for Seeds {
        fn run(&self, case: &Case, seed: u64) -> Result<Figures, Missing> {
            self.0.fetch_add(1, Ordering::Relaxed);
            match case {
                Case::Sending(_) => Ok(Figures::from([(Figure::BytesPerSecond, seed as f64)])),
                Case::Storage(Way::Tree) => Err(Missing::NotThere("not here".into())),
                _ => Err(BenchError::Setup("it stalled".into()).into()),
            }
        }
    }

    const CASE: Case = Case::Sending(Sending::new(Variant::Spindle, 4));

    #[test]
    fn a_case_is_run_once_for_each_seed_and_the_median_counts() {
        let model = Seeds(AtomicUsize::new(0));
        let cache = Cache::new(&model);
        let runs = Runs::new(&cache, &[1, 2, 9]);
        for _ in 0..3 {
            assert_eq!(runs.figure(CASE, Figure::BytesPerSecond).expect("there"), 2.0);
        }
        let one = Runs::new(&cache, &[9]);
        assert_eq!(one.figure(CASE, Figure::BytesPerSecond).expect("there"), 9.0);
        assert!(matches!(one.figure(CASE, Figure::LatencyUs), Err(Missing::NotThere(_))));
        assert_eq!((model.0.load(Ordering::Relaxed), cache.runs()), (3, 3));
        for _ in 0..2 {
            let missing = one.figure(Case::Storage(Way::Tree), Figure::LatencyUs);
            assert!(matches!(missing, Err(Missing::NotThere(reason)) if reason == "not here"));
        }
        assert_eq!((model.0.load(Ordering::Relaxed), cache.runs()), (4, 3));
    }

    #[test]
    fn runs_that_are_done_ahead_are_not_done_again_and_their_failures_are_told() {
        let model = Seeds(AtomicUsize::new(0));
        let cache = Cache::new(&model);
        let done = AtomicUsize::new(0);
        let after = || {
            done.fetch_add(1, Ordering::Relaxed);
        };
        cache.prepare(&[CASE], &[1, 2, 3], &after).expect("all went well");
        assert_eq!(done.load(Ordering::Relaxed), 3);
        let runs = Runs::new(&cache, &[1, 2, 3]);
        assert_eq!(runs.figure(CASE, Figure::BytesPerSecond).expect("there"), 2.0);
        assert_eq!(model.0.load(Ordering::Relaxed), 3);
        let failed = cache.prepare(&[Case::Storage(Way::Chain)], &[7], &after);
        let text = failed.expect_err("it stalled").to_string();
        assert!(text.contains("it stalled") && text.contains("seed 7"), "{text}");
    }

    #[test]
    fn what_a_measure_asks_for_is_known_before_anything_runs() {
        let other = Case::Sending(Sending::new(Variant::Baseline, 4));
        let cases = asked(|runs| {
            let of = |case| runs.figure(case, Figure::BytesPerSecond).expect("one");
            assert_eq!(of(CASE) / of(other) / of(CASE), 1.0);
        });
        assert_eq!(cases.len(), 2);
        assert!(cases.contains(&CASE) && cases.contains(&other));
    }
}
