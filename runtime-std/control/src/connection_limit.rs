//! How many connections a listener holds: strangers, which are still in their greeting, and known
//! clients.
//!
//! Both have a bound of their own. When a stranger comes and all slots for strangers are taken, the
//! host with the most strangers loses the slot of its oldest one, whose connection is closed. So
//! silent strangers cannot keep out a member, which is known within a few round trips. A host that
//! connects again and again takes slots from itself, not from others. The bound is one of threads
//! too: a slot is free only once its thread is done.

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

/// How long one greeting may take, from the first byte to the last verdict.
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
    /// Oldest first.
    slots: Vec<Slot>,
}

impl LimitState {
    fn strangers(&self) -> usize {
        self.slots.iter().filter(|slot| slot.stranger.is_some()).count()
    }

    fn known(&self) -> usize {
        self.slots.len() - self.strangers()
    }

    /// How many slots of strangers a host holds.
    fn strangers_of(&self, host: Option<IpAddr>) -> usize {
        self.slots.iter().filter(|slot| slot.stranger.is_some() && slot.host == host).count()
    }

    /// Ends the oldest stranger of the host with the most of them. Its thread gives up the slot.
    fn send_one_away(&mut self) {
        let strangers = self.slots.iter().filter(|slot| slot.stranger.is_some());
        // `max_by_key` takes the last of the largest: in reverse order that is the oldest.
        let chosen = strangers.rev().max_by_key(|slot| self.strangers_of(slot.host));
        if let Some((slot, stream)) = chosen.and_then(|slot| Some((slot, slot.stranger.as_ref()?)))
        {
            slot.stop.store(true, Ordering::Relaxed);
            stream.shutdown(Shutdown::Both);
        }
    }
}

#[derive(Debug)]
struct Slot {
    number: u64,
    stop: Arc<AtomicBool>,
    /// Where it connected from; none is this machine, over a Unix socket.
    host: Option<IpAddr>,
    /// A handle of the connection to end it by, as long as it is a stranger's.
    stranger: Option<Stream>,
}

impl ConnectionLimit {
    pub(super) fn new(strangers_max: usize, known_max: usize) -> Self {
        let (state, vacated, shortage) = Default::default();
        Self { strangers_max: strangers_max.max(1), known_max, state, vacated, shortage }
    }

    /// Gives no more slots, and tells all holders to stop.
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
        // Nothing in here is left half done by a panic.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Refuses a connection because something ran out, and ends a stranger, which has some of it.
    fn lacks(&self, what: &std::io::Error) {
        self.shortage.refuse(what);
        self.state().send_one_away();
    }

    /// A slot for a new connection; none once this is closed, or if the system has no handle left.
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
        state.slots.push(Slot { number, stop: Arc::clone(&stop), host, stranger: Some(handle) });
        Some(Permit { limit: self, number, stop })
    }
}

/// A slot that is taken, until this is dropped.
#[derive(Debug)]
pub(super) struct Permit<'g> {
    limit: &'g ConnectionLimit,
    number: u64,
    stop: Arc<AtomicBool>,
}

impl Permit<'_> {
    /// Becomes true when the holder of the slot is to stop.
    pub(super) const fn stop(&self) -> &Arc<AtomicBool> {
        &self.stop
    }

    /// Where refusals are counted.
    pub(super) const fn shortage(&self) -> &Shortage {
        &self.limit.shortage
    }

    /// The client is no stranger any more. False if there are too many known clients, with `kept`
    /// slots left to others, or if the holder is to stop.
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

/// Accepts connections, each on a thread of its own that calls `greet`, until the limit is closed.
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
                // Out of descriptors, for example: clients go on waiting, and this loop does not
                // spin.
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

    /// A connection from a host. The other end is kept, so that only the limit closes it.
    fn connect<'g>(limit: &'g ConnectionLimit, from: u8, ends: &mut Vec<UnixStream>) -> Permit<'g> {
        let (stream, end) = UnixStream::pair().expect("sockets");
        ends.push(end);
        limit.acquire(&Stream::Unix(stream), &host(from)).expect("the limit is open")
    }

    #[test]
    fn a_host_that_connects_again_and_again_takes_slots_from_itself() {
        let (limit, mut ends) = (ConnectionLimit::new(4, 4), Vec::new());
        let member = connect(&limit, 1, &mut ends);
        let mut flood: Vec<Permit<'_>> = (0..3).map(|_| connect(&limit, 2, &mut ends)).collect();
        for _ in 0..20 {
            let next = std::thread::scope(|scope| {
                let next = scope.spawn(|| connect(&limit, 2, &mut Vec::new()));
                // The oldest stranger of that host is told to stop, and stops.
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
