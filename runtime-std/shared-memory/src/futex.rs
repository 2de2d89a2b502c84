//! The doorbell's machine on Linux: a futex, and the choice of which end pays for the fences.
//!
//! The argument in [`doorbell`](super::doorbell) needs a full fence at both ends. A ringer's end is
//! on the path of every message, where such a fence waits until the guard's store has reached the
//! cache; the sleeper's end comes after an idle time. `membarrier` moves the cost to where there is
//! time: the sleeper asks the kernel to put a full barrier into every processor that runs a
//! registered process, and the ringer's fence shrinks to one that the compiler alone must keep.
//!
//! Why that is the same: the kernel's barrier falls, in each ringer, between two instructions. If
//! it falls before the ringer's load of the word, that load sees `ASLEEP`, which was stored before
//! the barrier was asked for. If it falls after, then it falls after the data's store too, which
//! comes first in the program: so the data are visible before the sleeper looks.
//!
//! A ringer goes without its fence only if its own process is registered *and* the sleeper has
//! said, in its header, that it asks for the barrier at every sleep. If either cannot, both fences
//! are full ones.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
use std::time::Duration;

use rustix::thread::{MembarrierCommand, Timespec, futex, membarrier};
use tramontane_core::layout::CACHE_LINE;

use super::doorbell::{Doorbell, Machine};
use super::map::Map;

/// Which end pays for the fences of the doorbells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fences {
    /// The sleeper, by a system call at each sleep, wherever the kernel has it. Ringing costs one
    /// load.
    #[default]
    Sleeper,
    /// Both ends: for a machine where interrupting other processors is dearer than fencing each
    /// post.
    Both,
}

impl Fences {
    /// Whether this process, as a sleeper, will ask for the barrier at every sleep.
    pub(super) fn sleeper_barrier(self) -> bool {
        self == Self::Sleeper && process_is_registered()
    }
}

/// Registers this process to take others' barriers, once. False where the kernel does not have it.
fn process_is_registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok())
}

/// Makes the barrier ready by which sleepers pay for their wake-up, if the kernel has it. It is
/// made ready anyway where it is needed; but a process that does it before it starts a thread need
/// not wait. Later the kernel waits until every processor has been through its scheduler, and so
/// has every task that was preempted at a wrong moment: milliseconds, and on a machine with far too
/// much to do more than half a minute.
pub fn register_barrier() {
    let _ = process_is_registered();
}

/// Linux, with one end's choice of fences.
#[derive(Clone, Copy, Debug)]
struct Linux {
    /// The sleeper asks for the barrier, and the ringer goes without a fence.
    sleeper_pays: bool,
}

impl Machine for Linux {
    type Word = AtomicU32;

    #[inline]
    fn load(&self, word: &AtomicU32) -> u32 {
        word.load(Ordering::Relaxed)
    }

    fn swap(&self, word: &AtomicU32, value: u32) -> u32 {
        word.swap(value, Ordering::SeqCst)
    }

    fn exchange(&self, word: &AtomicU32, from: u32, to: u32) -> bool {
        word.compare_exchange(from, to, Ordering::SeqCst, Ordering::SeqCst).is_ok()
    }

    #[inline]
    fn ringer_fence(&self) {
        if self.sleeper_pays {
            compiler_fence(Ordering::SeqCst);
        } else {
            fence(Ordering::SeqCst);
        }
    }

    fn sleeper_fence(&self) -> bool {
        fence(Ordering::SeqCst);
        !self.sleeper_pays || membarrier(MembarrierCommand::GlobalExpedited).is_ok()
    }

    fn wait(&self, word: &AtomicU32, value: u32, timeout: Duration) {
        let timeout = Timespec::try_from(timeout)
            .unwrap_or(Timespec { tv_sec: i64::from(u32::MAX), tv_nsec: 0 });
        // Woken, rung before, interrupted, or the time is up: the caller looks at the word in any
        // case.
        let _ = futex::wait(word, futex::Flags::empty(), value, Some(&timeout));
    }

    fn wake(&self, word: &AtomicU32) {
        // It can only fail on an address that is not mapped, and this one is.
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// A handle on one member's doorbell, for as long as it is kept: its memory does not go away under
/// it.
///
/// An application thread that makes a message ready holds a clone, to wake the poller of its own
/// process.
#[derive(Clone, Debug)]
pub struct Bell {
    map: Arc<Map>,
    machine: Linux,
}

impl Bell {
    /// The bell of a mapped file. `sleeper_pays` only if the sleeper asks for the barrier at every
    /// sleep; that this process is registered is seen to here.
    pub(super) fn new(map: Arc<Map>, sleeper_pays: bool) -> Self {
        Self { map, machine: Linux { sleeper_pays: sleeper_pays && process_is_registered() } }
    }

    /// After something was stored for the member: wakes it if it sleeps. A load, or a fence and a
    /// load, if it does not; one system call if it does.
    #[inline]
    pub fn ring_if_asleep(&self) {
        self.doorbell().ring_if_asleep();
    }

    /// Rings, whether the member sleeps or not: its next `arm` fails, and its next `poll` says
    /// `Woken`.
    pub fn ring(&self) {
        self.doorbell().ring();
    }

    /// Rings, and says that there is something to look for: memory that was sent, a right that was
    /// given. A look goes through all views, so a ring alone is no reason for one.
    pub(super) fn ring_for_news(&self) {
        self.news().store(1, Ordering::Release);
        self.ring();
    }

    /// For the member that was rung: whether there is something to look for.
    pub(super) fn take_news(&self) -> bool {
        self.news().swap(0, Ordering::AcqRel) != 0
    }

    fn news(&self) -> &AtomicU64 {
        self.map.cell(CACHE_LINE)
    }

    /// The protocol on this bell.
    #[inline]
    pub(super) fn doorbell(&self) -> Doorbell<'_, impl Machine> {
        Doorbell::new(&self.machine, self.map.word())
    }
}

const _: () = {
    const fn is_shared<T: Send + Sync + Clone>() {}
    is_shared::<Bell>();
};

#[cfg(test)]
mod tests {
    use super::*;
    use crate::doorbell::AWAKE;

    #[test]
    fn a_ring_stays_until_it_is_taken() {
        let word = AtomicU32::new(AWAKE);
        let machine = Linux { sleeper_pays: Fences::Sleeper.sleeper_barrier() };
        let bell = Doorbell::new(&machine, &word);
        assert!(!bell.take());
        bell.ring_if_asleep();
        assert!(!bell.take(), "nobody sleeps, so nobody is rung");
        bell.ring();
        assert!(!bell.arm(), "something came already");
        assert!(bell.take());
        assert!(bell.arm());
        bell.ring_if_asleep();
        assert!(bell.sleep(Duration::from_secs(60)), "a ring after arming ends the sleep at once");
        bell.disarm();
        assert!(bell.take());
    }

    #[test]
    fn a_sleep_ends_with_its_timeout() {
        let word = AtomicU32::new(AWAKE);
        let machine = Linux { sleeper_pays: false };
        let bell = Doorbell::new(&machine, &word);
        assert!(bell.arm());
        assert!(!bell.sleep(Duration::from_millis(2)));
        bell.disarm();
        assert!(!bell.take());
    }

    #[test]
    fn rubbish_in_the_word_is_a_ring() {
        let word = AtomicU32::new(77);
        let machine = Linux { sleeper_pays: false };
        let bell = Doorbell::new(&machine, &word);
        assert!(!bell.arm());
        assert!(bell.take());
        assert!(bell.arm());
    }
}
