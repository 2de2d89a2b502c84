//! What the root says to each receiver, in a group for each: none of them waits for another, nor for what is copied. A
//! receiver that is stopped, or was killed, has its words wait, and nobody else's.

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use super::group::Job;
use super::messages::written;
use super::talk::Word;
use crate::blocks::{BlockNode, Buffer, Group, Recipient};
use crate::cli::exit::Failure;
use crate::joined::BlockStore;

/// Between two words that the root is there.
const STILL_HERE_INTERVAL: Duration = Duration::from_secs(2);

/// The way to one receiver.
struct Ear {
    group: Group,
    /// Words that are not through yet.
    under_way: Arc<AtomicUsize>,
}

/// The ways to all receivers.
pub(super) struct Telling {
    ears: Vec<Ear>,
    store: BlockStore,
    last: Instant,
}

impl Telling {
    pub(super) fn open(job: &Job, node: &BlockNode) -> Result<Self, Failure> {
        let ears = job.receivers().map(|receiver| {
            let under_way = Arc::new(AtomicUsize::new(0));
            let group = job.words(node, receiver, Through(Arc::clone(&under_way)))?;
            Ok(Ear { group, under_way })
        });
        let ears = ears.collect::<Result<_, Failure>>()?;
        Ok(Self { ears, store: node.store().clone(), last: Instant::now() })
    }

    /// Tells all receivers. Does not wait; who cannot be told has ended, which is told otherwise.
    pub(super) fn tell(&mut self, word: &Word) -> Result<(), Failure> {
        self.last = Instant::now();
        self.ears.iter().try_for_each(|ear| ear.tell(&self.store, word))
    }

    /// Tells who has taken all words so far that the root is there, now and then.
    pub(super) fn still_here(&mut self, now: Instant) -> Result<(), Failure> {
        if now.saturating_duration_since(self.last) < STILL_HERE_INTERVAL {
            return Ok(());
        }
        self.last = now;
        let mut idle = self.ears.iter().filter(|ear| ear.under_way.load(Ordering::Relaxed) == 0);
        idle.try_for_each(|ear| ear.tell(&self.store, &Word::StillHere))
    }

    /// Waits until all were told everything, at most `timeout` in all.
    pub(super) fn close(&self, timeout: Duration) {
        let until = Instant::now() + timeout;
        for ear in &self.ears {
            let _ = ear.group.close(Duration::ZERO);
        }
        for ear in &self.ears {
            let _ = ear.group.wait(until.saturating_duration_since(Instant::now()));
        }
    }
}

impl Ear {
    fn tell(&self, store: &BlockStore, word: &Word) -> Result<(), Failure> {
        let (buffer, bytes) = written(store, word)?;
        self.under_way.fetch_add(1, Ordering::Relaxed);
        let _ = self.group.send(buffer, bytes);
        Ok(())
    }
}

/// Counts words that are through.
struct Through(Arc<AtomicUsize>);

impl Recipient for Through {
    fn incoming(&mut self, _: u64, _: usize) -> Option<Buffer> {
        None
    }

    fn completed(&mut self, _: u64, _: Buffer, _: usize) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}
