//! The bell that threads of the own process ring (IDL-1).
//!
//! The same three values and the same argument as in the runtime's shared-memory doorbell: between
//! a ringer's store and its look at the word stands a fence, between the sleeper's arming and its
//! look for work another. What differs is the sleep: it waits for a descriptor, since peers ring by
//! another one.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering, fence};

use rustix::event::{EventfdFlags, eventfd};
use rustix::io::{read, write};

const AWAKE: u32 = 0;
const ASLEEP: u32 = 1;
const RUNG: u32 = 2;

#[derive(Debug)]
struct Shared {
    word: AtomicU32,
    descriptor: OwnedFd,
}

/// A handle on the own member's bell, for any thread of this process.
#[derive(Clone, Debug)]
pub struct Bell {
    shared: Arc<Shared>,
}

impl Bell {
    pub(crate) fn new() -> rustix::io::Result<Self> {
        let descriptor = eventfd(0, EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK)?;
        Ok(Self { shared: Arc::new(Shared { word: AtomicU32::new(AWAKE), descriptor }) })
    }

    /// Rings if the member sleeps or is about to; what was stored before is seen when it wakes. A
    /// fence and a load if it is awake, and one system call a sleep if not.
    #[inline]
    pub fn ring_if_asleep(&self) {
        fence(Ordering::SeqCst);
        if self.shared.word.load(Ordering::Relaxed) == ASLEEP {
            self.ring();
        }
    }

    #[cold]
    fn ring(&self) {
        if self.shared.word.swap(RUNG, Ordering::SeqCst) == ASLEEP {
            // It cannot be full: only the ring that finds a sleeper adds to it.
            let _ = write(&self.shared.descriptor, &1_u64.to_ne_bytes());
        }
    }

    /// For the member: it is about to sleep, and looks once more after this. False if somebody
    /// rang.
    pub(crate) fn arm(&self) -> bool {
        let word = &self.shared.word;
        let armed =
            word.compare_exchange(AWAKE, ASLEEP, Ordering::SeqCst, Ordering::Relaxed).is_ok();
        fence(Ordering::SeqCst);
        armed
    }

    /// For the member: it is awake. A ring that came stays until it is taken.
    pub(crate) fn disarm(&self) {
        let word = &self.shared.word;
        // Rung meanwhile: it stays.
        let _ = word.compare_exchange(ASLEEP, AWAKE, Ordering::SeqCst, Ordering::Relaxed);
    }

    /// For the member: whether somebody rang since this was last asked.
    #[inline]
    pub(crate) fn take(&self) -> bool {
        let word = &self.shared.word;
        word.load(Ordering::Relaxed) == RUNG
            && word.compare_exchange(RUNG, AWAKE, Ordering::SeqCst, Ordering::Relaxed).is_ok()
    }

    /// For the member: whether a ring waits to be taken.
    pub(crate) fn is_rung(&self) -> bool {
        self.shared.word.load(Ordering::Acquire) == RUNG
    }

    /// For the member: makes the descriptor quiet again.
    pub(crate) fn drain(&self) {
        // Nothing there is as good.
        let _ = read(&self.shared.descriptor, &mut [0; 8]);
    }
}

impl AsFd for Bell {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.shared.descriptor.as_fd()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn is_readable(bell: &Bell) -> bool {
        let mut count = [0; 8];
        read(bell, &mut count).is_ok()
    }

    #[test]
    fn only_a_sleeper_costs_a_call() {
        let bell = Bell::new().expect("a descriptor");
        bell.ring_if_asleep();
        assert!(!is_readable(&bell) && !bell.take());
        assert!(bell.arm());
        let other = bell.clone();
        other.ring_if_asleep();
        other.ring_if_asleep();
        assert!(is_readable(&bell) && !is_readable(&bell));
        bell.disarm();
        assert!(!bell.arm(), "somebody rang");
        assert!(bell.take() && !bell.take());
        assert!(bell.arm());
        bell.disarm();
        bell.ring_if_asleep();
        assert!(!bell.take());
    }
}
