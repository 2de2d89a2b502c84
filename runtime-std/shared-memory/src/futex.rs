//! The doorbell's machine on Linux: a futex, and a choice of which side pays for the fences.
//!
//! The argument in [`doorbell`](super::doorbell) needs a full fence on both sides. The ringer's
//! fence is on the path of every message, where it waits until the guard's store has reached the
//! cache. The sleeper's fence comes only after an idle time. `membarrier` moves the cost to the
//! sleeper: it asks the kernel for a full barrier on every processor that runs a registered
//! process, and the ringer's fence then only has to restrain the compiler.
//!
//! This is equivalent, because the kernel's barrier falls between two instructions of each ringer.
//! If it falls before the ringer's load of the word, that load sees `ASLEEP`, which was stored
//! before the barrier was requested. If it falls after the load, it also falls after the data's
//! store, which precedes the load in the program. The data is then visible before the sleeper
//! checks.
//!
//! A ringer omits its fence only if its own process is registered *and* the sleeper has declared in
//! its header that it requests the barrier at every sleep. Otherwise both fences are full ones.

use std::sync::Arc;
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU32, AtomicU64, Ordering, compiler_fence, fence};
use std::time::Duration;

use rustix::thread::{MembarrierCommand, Timespec, futex, membarrier};
use tramontane_core::layout::CACHE_LINE;

use super::doorbell::{Doorbell, Machine};
use super::map::Map;

/// The side that pays for the fences of the doorbells.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Fences {
    /// The sleeper, by a system call at each sleep, if the kernel supports it. Ringing costs one
    /// load.
    #[default]
    Sleeper,
    /// Both sides, for a machine on which interrupting other processors costs more than a fence per
    /// post.
    Both,
}

impl Fences {
    /// Returns whether this process, as a sleeper, will request the barrier at every sleep.
    pub(super) fn sleeper_barrier(self) -> bool {
        self == Self::Sleeper && process_is_registered()
    }
}

/// Registers this process for other processes' barriers, once. Returns false if the kernel does not
/// support it.
fn process_is_registered() -> bool {
    static REGISTERED: OnceLock<bool> = OnceLock::new();
    *REGISTERED.get_or_init(|| membarrier(MembarrierCommand::RegisterGlobalExpedited).is_ok())
}

/// Prepares the barrier by which sleepers pay for their wakeup, if the kernel supports it. The
/// barrier is otherwise prepared when it is first needed, but a process that prepares it before
/// starting a thread need not wait. Later, the kernel waits until every processor has been through
/// its scheduler, and so has every task that was preempted at the wrong moment. This takes
/// milliseconds, and on a heavily overloaded machine more than half a minute.
pub fn register_barrier() {
    let _ = process_is_registered();
}

/// The machine of Linux, with one side's choice of fences.
#[derive(Clone, Copy, Debug)]
struct Linux {
    /// Whether the sleeper requests the barrier, so that the ringer needs no fence.
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
        // Woken, already rung, interrupted or timed out. The caller checks the word in any case.
        let _ = futex::wait(word, futex::Flags::empty(), value, Some(&timeout));
    }

    fn wake(&self, word: &AtomicU32) {
        // The call can fail only for an unmapped address, and this one is mapped.
        let _ = futex::wake(word, futex::Flags::empty(), 1);
    }
}

/// A handle to one member's doorbell. The doorbell's memory stays mapped as long as the handle is
/// kept.
///
/// An application thread that marks messages as ready holds a clone, to wake the poller of its own
/// process.
#[derive(Clone, Debug)]
pub struct Bell {
    map: Arc<Map>,
    machine: Linux,
}

impl Bell {
    /// Creates the bell of a mapped file. Set `sleeper_pays` only if the sleeper requests the
    /// barrier at every sleep. Registers this process if needed.
    pub(super) fn new(map: Arc<Map>, sleeper_pays: bool) -> Self {
        Self { map, machine: Linux { sleeper_pays: sleeper_pays && process_is_registered() } }
    }

    /// Wakes the member, if it is asleep, after something has been stored for it. This costs a
    /// load, or a fence and a load, if the member is awake, and one system call if it is asleep.
    #[inline]
    pub fn ring_if_asleep(&self) {
        self.doorbell().ring_if_asleep();
    }

    /// Rings, whether or not the member is asleep: its next `arm` fails, and its next `poll`
    /// returns `Woken`.
    pub fn ring(&self) {
        self.doorbell().ring();
    }

    /// Rings, and notes that there is news: memory that has been sent, or a right that has been
    /// granted. A check goes through all views, so a plain ring does not cause one.
    pub(super) fn ring_for_news(&self) {
        self.news().store(1, Ordering::Release);
        self.ring();
    }

    /// Returns whether there is news. Called by the member that has been rung.
    pub(super) fn take_news(&self) -> bool {
        self.news().swap(0, Ordering::AcqRel) != 0
    }

    fn news(&self) -> &AtomicU64 {
        self.map.cell(CACHE_LINE)
    }

    /// Returns the protocol on this bell.
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
    fn doorbell_ring_persists_until_taken() {
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
    fn sleep_ends_with_its_timeout() {
        let word = AtomicU32::new(AWAKE);
        let machine = Linux { sleeper_pays: false };
        let bell = Doorbell::new(&machine, &word);
        assert!(bell.arm());
        assert!(!bell.sleep(Duration::from_millis(2)));
        bell.disarm();
        assert!(!bell.take());
    }

    #[test]
    fn unexpected_futex_value_counts_as_wakeup() {
        let word = AtomicU32::new(77);
        let machine = Linux { sleeper_pays: false };
        let bell = Doorbell::new(&machine, &word);
        assert!(!bell.arm());
        assert!(bell.take());
        assert!(bell.arm());
    }
}
