//! Waits for a member's sockets, and for the bell that is rung by threads of its own process.
//!
//! Sockets are watched for changes rather than states: a call returns what has become readable or
//! writable since the last call, and costs the same however many peers there are. The kernel need
//! not be informed when a queue fills or empties.
//!
//! The bell works as follows. A thread that is about to sleep raises a flag, checks once more, and
//! then sleeps. A thread that rings first stores something, and then checks the flag. Both have a
//! full fence between store and check, so at least one of the two sees the other (IDL-1).

use std::mem::MaybeUninit;
use std::net::TcpStream;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering, fence};
use std::time::Duration;

use rustix::event::epoll::{self, Event, EventData, EventFlags};
use rustix::event::{EventfdFlags, Timespec, eventfd};
use rustix::io::Errno;

use tramontane_core::fabric::LocalBell;

/// The maximum number of changes taken in one call. The rest are taken by the next call.
const CHANGES_MAX: usize = 64;

/// Represents the bell among the sockets.
const BELL: u64 = u64::MAX;

/// A change of a socket or the bell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Change {
    /// The bell was rung.
    Rung,
    /// This socket may be read or written, or was closed at one end.
    Socket { index: usize, readable: bool, writable: bool, hung_up: bool },
}

/// Watches the sockets and the bell of one member.
#[derive(Debug)]
pub(super) struct Watch {
    epoll: OwnedFd,
    bell: Bell,
}

/// A member's bell, which other threads of its process ring.
#[derive(Clone, Debug)]
pub struct Bell {
    shared: Arc<BellParts>,
}

#[derive(Debug)]
struct BellParts {
    is_asleep: AtomicBool,
    event: OwnedFd,
}

impl LocalBell for Bell {
    #[inline]
    fn ring_if_asleep(&self) {
        fence(Ordering::SeqCst);
        if self.shared.is_asleep.load(Ordering::Relaxed) {
            self.ring();
        }
    }
}

impl Bell {
    fn new() -> Result<Self, Errno> {
        let event = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { shared: Arc::new(BellParts { is_asleep: AtomicBool::new(false), event }) })
    }

    #[cold]
    fn ring(&self) {
        // If several threads see the flag, one of them makes the call.
        if self.shared.is_asleep.swap(false, Ordering::SeqCst) {
            // This fails only if the counter is full, which takes longer than any machine lasts.
            let _ = rustix::io::write(&self.shared.event, &1_u64.to_ne_bytes());
        }
    }

    /// Raises the flag: another thread's store now rings, unless the next check finds it.
    pub(super) fn raise(&self) {
        self.shared.is_asleep.store(true, Ordering::SeqCst);
        fence(Ordering::SeqCst);
    }

    pub(super) fn lower(&self) {
        self.shared.is_asleep.store(false, Ordering::Relaxed);
    }
}

impl AsFd for Watch {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.epoll.as_fd()
    }
}

impl Watch {
    pub(super) fn new() -> Result<Self, Errno> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let bell = Bell::new()?;
        let flags = EventFlags::IN | EventFlags::ET;
        epoll::add(&epoll, &bell.shared.event, EventData::new_u64(BELL), flags)?;
        Ok(Self { epoll, bell })
    }

    pub(super) const fn bell(&self) -> &Bell {
        &self.bell
    }

    /// Watches a socket from now on, until it is closed.
    pub(super) fn add(&self, index: usize, stream: &TcpStream) -> Result<(), Errno> {
        let flags = EventFlags::IN | EventFlags::OUT | EventFlags::RDHUP | EventFlags::ET;
        let data = EventData::new_u64(u64::try_from(index).map_err(|_| Errno::INVAL)?);
        epoll::add(&self.epoll, stream, data, flags)
    }

    /// Reports what changed since the last call, and waits for changes for at most `timeout`.
    /// Returns how many there were.
    pub(super) fn wait(&self, timeout: Duration, mut changed: impl FnMut(Change)) -> usize {
        let mut room = [const { MaybeUninit::<Event>::uninit() }; CHANGES_MAX];
        let timeout = Timespec::try_from(timeout)
            .unwrap_or(Timespec { tv_sec: i64::from(u32::MAX), tv_nsec: 0 });
        // After an interrupted wait, nothing has changed. All other errors are caused by a wrong
        // descriptor.
        let Ok((events, _)) = epoll::wait(&self.epoll, &mut room, Some(&timeout)) else { return 0 };
        for &Event { flags, data } in &*events {
            let data = data.u64();
            let Some(index) = usize::try_from(data).ok().filter(|_| data != BELL) else {
                changed(Change::Rung);
                continue;
            };
            let hung_up = flags.intersects(EventFlags::RDHUP | EventFlags::HUP | EventFlags::ERR);
            changed(Change::Socket {
                index,
                readable: hung_up || flags.contains(EventFlags::IN),
                writable: flags.contains(EventFlags::OUT),
                hung_up,
            });
        }
        events.len()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn rung(watch: &Watch) -> bool {
        let mut rung = false;
        watch.wait(Duration::ZERO, |change| rung |= change == Change::Rung);
        rung
    }

    #[test]
    fn doorbell_wakes_only_sleeping_threads() {
        let watch = Watch::new().expect("descriptors");
        let bell = watch.bell().clone();
        bell.ring_if_asleep();
        assert!(!rung(&watch), "awake");
        watch.bell().raise();
        bell.ring_if_asleep();
        bell.ring_if_asleep();
        assert!(rung(&watch));
        assert!(!rung(&watch), "told once");
        watch.bell().raise();
        watch.bell().lower();
        bell.ring_if_asleep();
        assert!(!rung(&watch), "awake again");
    }
}
