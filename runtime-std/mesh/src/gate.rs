//! Who may be in, of those who connect: strangers in their first words, and those who are known.
//!
//! Both have a bound of their own. A stranger that comes when all places for strangers are taken gets that of the one
//! who has been there longest, whose connection is closed: so strangers who say nothing cannot keep out a member, which
//! is known within a few round trips. The bound is one of threads too: a place is free only once its thread is done.

use std::net::Shutdown;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use rustix::event::PollFlags;

use super::address::Address;
use super::listener::Listener;
use super::patience::SLICE;
use super::stream::{Stream, wait};

/// How long one greeting may take, from the first byte to the last verdict.
pub(super) const GREETING_MAX: Duration = Duration::from_secs(5);

/// The places of one listener.
#[derive(Debug)]
pub(super) struct Gate {
    strangers_max: usize,
    known_max: usize,
    inside: Mutex<Inside>,
    vacated: Condvar,
}

#[derive(Debug, Default)]
struct Inside {
    is_closed: bool,
    next: u64,
    /// Who came first is first.
    places: Vec<Place>,
}

impl Inside {
    fn strangers(&self) -> usize {
        self.places.iter().filter(|place| place.stranger.is_some()).count()
    }

    fn known(&self) -> usize {
        self.places.len() - self.strangers()
    }

    /// Ends the stranger that has been there longest; its thread gives up the place.
    fn send_away_oldest(&mut self) {
        let oldest = self.places.iter().find_map(|place| Some((place, place.stranger.as_ref()?)));
        if let Some((place, stream)) = oldest {
            place.stop.store(true, Ordering::Relaxed);
            stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct Place {
    number: u64,
    stop: Arc<AtomicBool>,
    /// A handle of the connection, by which to end it, until it is known whose it is.
    stranger: Option<Stream>,
}

impl Gate {
    pub(super) fn new(strangers_max: usize, known_max: usize) -> Self {
        let (inside, vacated) = (Mutex::default(), Condvar::new());
        Self { strangers_max: strangers_max.max(1), known_max, inside, vacated }
    }

    /// Lets nobody in any more, and tells all who are in to stop.
    pub(super) fn close(&self) {
        let mut inside = self.inside();
        inside.is_closed = true;
        for place in &inside.places {
            place.stop.store(true, Ordering::Relaxed);
        }
    }

    fn is_closed(&self) -> bool {
        self.inside().is_closed
    }

    fn inside(&self) -> MutexGuard<'_, Inside> {
        // Nothing in here is left half done by a panic.
        self.inside.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A place for one who comes; none once the gate is closed, or if the system has no handle left.
    fn take(&self, stream: &Stream) -> Option<Taken<'_>> {
        let handle = stream.try_clone().ok()?;
        let mut inside = self.inside();
        while inside.strangers() >= self.strangers_max {
            inside.send_away_oldest();
            let waited = self.vacated.wait_timeout(inside, SLICE);
            inside = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(inside, _)| inside);
        }
        if inside.is_closed {
            return None;
        }
        let (number, stop) = (inside.next, Arc::new(AtomicBool::new(false)));
        inside.next += 1;
        inside.places.push(Place { number, stop: Arc::clone(&stop), stranger: Some(handle) });
        Some(Taken { gate: self, number, stop })
    }
}

/// A place that is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Taken<'g> {
    gate: &'g Gate,
    number: u64,
    stop: Arc<AtomicBool>,
}

impl Taken<'_> {
    /// Becomes true when whoever has the place is to go.
    pub(super) const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// It is no stranger any more. Says no if there are too many of those whom we know, with `kept` places left to others;
    /// or if it is to go.
    pub(super) fn become_known(&self, kept: usize) -> bool {
        let mut inside = self.gate.inside();
        let is_full = inside.known().saturating_add(kept) >= self.gate.known_max;
        if is_full || self.stop.load(Ordering::Relaxed) {
            return false;
        }
        if let Some(place) = inside.places.iter_mut().find(|place| place.number == self.number) {
            place.stranger = None;
        }
        drop(inside);
        self.gate.vacated.notify_all();
        true
    }
}

impl Drop for Taken<'_> {
    fn drop(&mut self) {
        self.gate.inside().places.retain(|place| place.number != self.number);
        self.gate.vacated.notify_all();
    }
}

/// Accepts whoever comes, each on a thread of its own that calls `greet`, until the gate is closed.
pub(super) fn welcome<'s, 'e: 's, G>(
    scope: &'s Scope<'s, 'e>,
    listener: &Listener,
    gate: &'e Gate,
    greet: &'e G,
) where
    G: Fn(Stream, Address, &Taken<'e>) + Sync,
{
    while !gate.is_closed() {
        wait(listener, PollFlags::IN, SLICE);
        let (stream, address) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // Out of descriptors, say: whoever waits goes on waiting, and we do not spin.
                tracing::debug!(%error, "cannot accept a connection");
                std::thread::sleep(SLICE);
                continue;
            }
        };
        let Some(taken) = gate.take(&stream) else { continue };
        let spawned = std::thread::Builder::new()
            .name("tramontane-greet".into())
            .spawn_scoped(scope, move || greet(stream, address, &taken));
        if let Err(error) = spawned {
            tracing::debug!(%error, "cannot greet somebody");
        }
    }
}
