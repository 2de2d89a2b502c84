//! Limits on the connections that a listener holds, which belong to unauthenticated peers (those
//! still being greeted) and to known clients.
//!
//! Each kind has its own limit. If an unauthenticated peer connects when all slots for such peers
//! are taken, the host that holds the most of them loses its oldest one, whose connection is
//! closed. So silent peers cannot keep out a member, which becomes known within a few round trips,
//! and a host that connects repeatedly takes slots only from itself. The limit also bounds the
//! number of threads, because a slot becomes free only when its thread has finished.

use std::net::{IpAddr, Shutdown};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread::Scope;
use std::time::Duration;

use super::address::Address;
use super::deadline::SLICE;
use super::descriptors::Shortage;
use super::listener::Listener;
use super::stream::Stream;

/// The maximum duration of a greeting, from the first byte to the last verdict.
pub(super) const GREETING_MAX: Duration = Duration::from_secs(5);

/// The slots of one listener.
#[derive(Debug)]
pub(super) struct ConnectionLimit {
    strangers_max: usize,
    known_max: usize,
    state: Mutex<LimitState>,
    vacated: Condvar,
    shortage: Shortage,
}

#[derive(Debug, Default)]
struct LimitState {
    is_closed: bool,
    next: u64,
    /// The slots, starting with the oldest.
    slots: Vec<LimitedConnection>,
}

impl LimitState {
    fn strangers(&self) -> usize {
        self.slots.iter().filter(|slot| slot.stranger.is_some()).count()
    }

    fn known(&self) -> usize {
        self.slots.len() - self.strangers()
    }

    /// Returns the number of slots held by a host's unauthenticated peers.
    fn strangers_of(&self, host: Option<IpAddr>) -> usize {
        self.slots.iter().filter(|slot| slot.stranger.is_some() && slot.host == host).count()
    }

    /// Disconnects the oldest unauthenticated peer of the host that has the most of them. The
    /// peer's thread frees the slot.
    fn send_one_away(&mut self) {
        let strangers = self.slots.iter().filter(|slot| slot.stranger.is_some());
        // `max_by_key` returns the last of several maxima, which is the oldest in reverse order.
        let chosen = strangers.rev().max_by_key(|slot| self.strangers_of(slot.host));
        if let Some((slot, stream)) = chosen.and_then(|slot| Some((slot, slot.stranger.as_ref()?)))
        {
            slot.stop.store(true, Ordering::Relaxed);
            stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct LimitedConnection {
    number: u64,
    stop: Arc<AtomicBool>,
    /// The host that connected, or `None` for this machine, over a Unix socket.
    host: Option<IpAddr>,
    /// A handle to close the connection while its peer is unauthenticated.
    stranger: Option<Stream>,
}

impl ConnectionLimit {
    pub(super) fn new(strangers_max: usize, known_max: usize) -> Self {
        let (state, vacated, shortage) = Default::default();
        Self { strangers_max: strangers_max.max(1), known_max, state, vacated, shortage }
    }

    /// Grants no more slots, and tells all holders to stop.
    pub(super) fn close(&self) {
        let mut state = self.state();
        state.is_closed = true;
        for slot in &state.slots {
            slot.stop.store(true, Ordering::Relaxed);
        }
    }

    fn is_closed(&self) -> bool {
        self.state().is_closed
    }

    fn state(&self) -> MutexGuard<'_, LimitState> {
        // A panic leaves no partial change here.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a connection because a resource is exhausted, and disconnects an unauthenticated
    /// peer, which holds some of that resource.
    fn lacks(&self, what: &std::io::Error) {
        self.shortage.refuse(what);
        self.state().send_one_away();
    }

    /// Acquires a slot for a new connection. Returns `None` if the limit has been closed, or the
    /// system has no descriptor available.
    fn acquire(&self, stream: &Stream, address: &Address) -> Option<Permit<'_>> {
        let handle = stream.try_clone().inspect_err(|error| self.lacks(error)).ok()?;
        let mut state = self.state();
        while state.strangers() >= self.strangers_max {
            state.send_one_away();
            let waited = self.vacated.wait_timeout(state, SLICE);
            state = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(state, _)| state);
        }
        if state.is_closed {
            return None;
        }
        let (number, stop) = (state.next, Arc::new(AtomicBool::new(false)));
        state.next += 1;
        let host = address.ip();
        state.slots.push(LimitedConnection {
            number,
            stop: Arc::clone(&stop),
            host,
            stranger: Some(handle),
        });
        Some(Permit { limit: self, number, stop })
    }
}

/// A slot, which is freed when the permit is dropped.
#[derive(Debug)]
pub(super) struct Permit<'g> {
    limit: &'g ConnectionLimit,
    number: u64,
    stop: Arc<AtomicBool>,
}

impl Permit<'_> {
    /// Returns the flag that becomes true when the holder of the slot must stop.
    pub(super) const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Returns the counter of refused connections.
    pub(super) const fn shortage(&self) -> &Shortage {
        &self.limit.shortage
    }

    /// Marks the client as known. Returns false if there are too many known clients, with `kept`
    /// slots reserved for others, or if the holder must stop.
    pub(super) fn become_known(&self, kept: usize) -> bool {
        let mut state = self.limit.state();
        let is_full = state.known().saturating_add(kept) >= self.limit.known_max;
        if is_full || self.stop.load(Ordering::Relaxed) {
            return false;
        }
        if let Some(slot) = state.slots.iter_mut().find(|slot| slot.number == self.number) {
            slot.stranger = None;
        }
        drop(state);
        self.limit.vacated.notify_all();
        true
    }
}

impl Drop for Permit<'_> {
    fn drop(&mut self) {
        self.limit.state().slots.retain(|slot| slot.number != self.number);
        self.limit.vacated.notify_all();
    }
}

/// Accepts connections until the limit is closed. Each connection is greeted by `greet` on a
/// separate thread.
pub(super) fn accept_connections<'s, 'e: 's, G>(
    scope: &'s Scope<'s, 'e>,
    listener: &Listener,
    limit: &'e ConnectionLimit,
    greet: &'e G,
) where
    G: Fn(Stream, Address, &Permit<'e>) + Sync,
{
    while !limit.is_closed() {
        listener.wait(SLICE);
        let (stream, address) = match listener.accept() {
            Ok(accepted) => accepted,
            Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => continue,
            Err(error) => {
                // The system may have run out of descriptors, for example. Clients keep waiting,
                // and this loop does not spin.
                limit.lacks(&error);
                std::thread::sleep(SLICE);
                continue;
            }
        };
        let Some(permit) = limit.acquire(&stream, &address) else { continue };
        let spawned = std::thread::Builder::new()
            .name("tramontane-greet".into())
            .spawn_scoped(scope, move || greet(stream, address, &permit));
        if let Err(error) = spawned {
            limit.lacks(&error);
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

    /// Connects from a host. The other end is kept, so that only the limit closes the connection.
    fn connect<'g>(limit: &'g ConnectionLimit, from: u8, ends: &mut Vec<UnixStream>) -> Permit<'g> {
        let (stream, end) = UnixStream::pair().expect("sockets");
        ends.push(end);
        limit.acquire(&Stream::Unix(stream), &host(from)).expect("the limit is open")
    }

    #[test]
    fn flooding_host_loses_only_its_own_slots() {
        let (limit, mut ends) = (ConnectionLimit::new(4, 4), Vec::new());
        let member = connect(&limit, 1, &mut ends);
        let mut flood: Vec<Permit<'_>> = (0..3).map(|_| connect(&limit, 2, &mut ends)).collect();
        for _ in 0..20 {
            let next = std::thread::scope(|scope| {
                let next = scope.spawn(|| connect(&limit, 2, &mut Vec::new()));
                // The oldest peer of that host is told to stop, and stops.
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
