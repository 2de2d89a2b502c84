//! Who may be in, of those who connect: strangers in their first words, and those who are known.
//!
//! Both have a bound of their own. A stranger that comes when all places for strangers are taken
//! gets one of those that the host with the most of them has: the one of who has been there
//! longest, whose connection is closed. So strangers who say nothing cannot keep out a member,
//! which is known within a few round trips; and a host that comes again and again takes its places
//! from itself, not from others. The bound is one of threads too: a place is free only once its
//! thread is done.

use std::net::{IpAddr, Shutdown};
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

    /// How many strangers a host has here.
    fn strangers_of(&self, host: Option<IpAddr>) -> usize {
        self.places.iter().filter(|place| place.stranger.is_some() && place.host == host).count()
    }

    /// Ends a stranger: of those of the host with the most, the one that has been there longest.
    /// Its thread gives up the place.
    fn send_one_away(&mut self) {
        let strangers = self.places.iter().filter(|place| place.stranger.is_some());
        // The last of the largest: seen from the end that is who came first.
        let chosen = strangers.rev().max_by_key(|place| self.strangers_of(place.host));
        if let Some((place, stream)) =
            chosen.and_then(|place| Some((place, place.stranger.as_ref()?)))
        {
            place.stop.store(true, Ordering::Relaxed);
            stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct Place {
    number: u64,
    stop: Arc<AtomicBool>,
    /// From where it came; none is this machine, by a Unix socket.
    host: Option<IpAddr>,
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

    /// A place for one who comes; none once the gate is closed, or if the system has no handle
    /// left.
    fn take(&self, stream: &Stream, address: &Address) -> Option<Taken<'_>> {
        let handle = stream.try_clone().ok()?;
        let mut inside = self.inside();
        while inside.strangers() >= self.strangers_max {
            inside.send_one_away();
            let waited = self.vacated.wait_timeout(inside, SLICE);
            inside = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(inside, _)| inside);
        }
        if inside.is_closed {
            return None;
        }
        let (number, stop) = (inside.next, Arc::new(AtomicBool::new(false)));
        inside.next += 1;
        let host = match address {
            Address::Tcp(address) => Some(address.ip()),
            Address::Unix(_) => None,
        };
        inside.places.push(Place { number, stop: Arc::clone(&stop), host, stranger: Some(handle) });
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

    /// It is no stranger any more. Says no if there are too many of those whom we know, with `kept`
    /// places left to others; or if it is to go.
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
        let Some(taken) = gate.take(&stream, &address) else { continue };
        let spawned = std::thread::Builder::new()
            .name("tramontane-greet".into())
            .spawn_scoped(scope, move || greet(stream, address, &taken));
        if let Err(error) = spawned {
            tracing::debug!(%error, "cannot greet somebody");
        }
    }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;
    use std::os::unix::net::UnixStream;

    use super::*;

    fn host(number: u8) -> Address {
        SocketAddr::from(([10, 0, 0, number], 7000)).into()
    }

    /// Lets somebody in from a host. The other end is kept, so that only the gate closes it.
    fn come<'g>(gate: &'g Gate, from: u8, ends: &mut Vec<UnixStream>) -> Taken<'g> {
        let (stream, end) = UnixStream::pair().expect("sockets");
        ends.push(end);
        gate.take(&Stream::Unix(stream), &host(from)).expect("the gate is open")
    }

    #[test]
    fn a_host_that_comes_again_and_again_takes_places_from_itself() {
        let (gate, mut ends) = (Gate::new(4, 4), Vec::new());
        let member = come(&gate, 1, &mut ends);
        let mut flood: Vec<Taken<'_>> = (0..3).map(|_| come(&gate, 2, &mut ends)).collect();
        for _ in 0..20 {
            let next = std::thread::scope(|scope| {
                let next = scope.spawn(|| come(&gate, 2, &mut Vec::new()));
                // Whoever is told to go goes: the oldest of that host.
                while !flood[0].stop().load(Ordering::Relaxed) {
                    std::thread::yield_now();
                }
                drop(flood.remove(0));
                next.join().expect("no panic")
            });
            flood.push(next);
        }
        assert!(!member.stop().load(Ordering::Relaxed), "a member of another host was sent away");
        assert!(member.become_known(0));
    }
}
