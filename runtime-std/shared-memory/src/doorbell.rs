//! The doorbell, which lets the writes of others wake a sleeping member without any wakeup being
//! missed (IDL-1).
//!
//! Each member has one word, which all members of the group may write. It has three values:
//!
//! ```text
//!            arm                    ring
//!  AWAKE ----------> ASLEEP -----------------> RUNG     (this ring also calls the kernel)
//!    |  <----------             ring             |
//!    |     disarm    AWAKE --------------------> |
//!    +<------------------------------------------+
//!                         take
//! ```
//!
//! - The sleeper calls `arm`, checks for work once more, and calls `sleep`, `disarm`, and `take`.
//! - A ringer stores its data, and then calls `ring_if_asleep`.
//!
//! # Why no wakeup is lost
//! The ringer has a fence *R* between its store of data *D* and its load of the word. The sleeper
//! has a fence *S* between its exchange of the word and its check of *D*. Both are sequentially
//! consistent, so one comes first. Consider the last `arm` before a sleep.
//! - *S* before *R*: the ringer's load sees `ASLEEP` or a later value. If it sees `ASLEEP`, it
//!   rings. `RUNG` means that another ringer has rung after this `arm`. `AWAKE` means that the
//!   sleep is already over. In all three cases, the sleeper wakes and checks again after its next
//!   `arm`, for which the argument starts anew.
//! - *R* before *S*: the sleeper's check sees *D*, so the sleeper does not sleep.
//!
//! Between the check and the sleep, the kernel compares the word with `ASLEEP` under the lock that
//! a wake also takes. A ring before the comparison makes the comparison fail, and a ring after it
//! finds the sleeper in the queue.
//!
//! When an awake member is rung, the ring stays (`RUNG`) until it is taken, and no `arm` succeeds
//! before that. So a ring without accompanying data, which [`Doorbell::ring`] allows, is not missed
//! either.
//!
//! A ring is a store followed by a system call. Between the two, the sleeper may find the store,
//! continue, and sleep again. The system call then ends the second sleep, so a sleep may end
//! without a cause.
//!
//! Only the ring that finds `ASLEEP` makes a system call, so there is one call per sleep, however
//! many members ring. A faulty process can write anything into the word. At worst, a sleep ends
//! early or lasts until its timeout; therefore, every sleep has a timeout.
//!
//! The protocol is generic over [`Machine`], so that the same code also runs under loom, in the
//! ordinary test `shared_memory_doorbell_loom`.

use std::time::Duration;

/// The member is working, and checks for work by itself.
pub const AWAKE: u32 = 0;
/// The member is asleep, or about to sleep.
pub const ASLEEP: u32 = 1;
/// A member has rung, but the owner has not taken the ring yet.
pub const RUNG: u32 = 2;

/// The primitives that the protocol needs: a word, two fences, and a wait that compares before it
/// sleeps.
pub trait Machine {
    /// A word of 32 bits that several processes share.
    type Word;

    /// Loads the word, with no ordering.
    fn load(&self, word: &Self::Word) -> u32;

    /// Stores the word and returns its old value. Sequentially consistent.
    fn swap(&self, word: &Self::Word, value: u32) -> u32;

    /// Stores `to` if the word is `from`, and returns whether it was. Sequentially consistent.
    fn exchange(&self, word: &Self::Word, from: u32, to: u32) -> bool;

    /// The fence between a ringer's data and its load of the word.
    fn ringer_fence(&self);

    /// The fence between arming and the check for data. Returns false if the fence is not
    /// available; in that case, nobody may sleep.
    fn sleeper_fence(&self) -> bool;

    /// Sleeps until woken or for at most `timeout`, provided that the word is still `value`. The
    /// sleep may also end early without a cause.
    fn wait(&self, word: &Self::Word, value: u32, timeout: Duration);

    /// Wakes the threads that wait on the word.
    fn wake(&self, word: &Self::Word);
}

/// A member's doorbell, seen from either side.
#[derive(Debug)]
pub struct Doorbell<'w, M: Machine> {
    machine: &'w M,
    word: &'w M::Word,
}

impl<'w, M: Machine> Doorbell<'w, M> {
    /// Creates the doorbell on a word that starts as [`AWAKE`], which is zero.
    pub const fn new(machine: &'w M, word: &'w M::Word) -> Self {
        Self { machine, word }
    }

    /// Rings if the member is asleep; otherwise, this costs only a fence and a load. Called by a
    /// ringer after it has stored something.
    #[inline]
    pub fn ring_if_asleep(&self) {
        self.machine.ringer_fence();
        if self.machine.load(self.word) == ASLEEP {
            self.ring();
        }
    }

    /// Rings, whether or not the member is asleep. Called by a ringer.
    #[cold]
    pub fn ring(&self) {
        if self.machine.swap(self.word, RUNG) == ASLEEP {
            self.machine.wake(self.word);
        }
    }

    /// Announces that the member is about to sleep. After that, the member must check for work once
    /// more. Returns false without arming if a ring is pending. Called by the member.
    pub fn arm(&self) -> bool {
        if !self.machine.exchange(self.word, AWAKE, ASLEEP) {
            // Either a ring that has not been taken, or a value that only a faulty process can have
            // written, and that would stay forever if it were not replaced.
            self.machine.swap(self.word, RUNG);
            return false;
        }
        let fenced = self.machine.sleeper_fence();
        if !fenced {
            self.disarm();
        }
        fenced
    }

    /// Sleeps until a ring arrives, for at most `timeout`. Returns true if a ring has arrived.
    /// Called by the member after it has armed and checked.
    pub fn sleep(&self, timeout: Duration) -> bool {
        self.machine.wait(self.word, ASLEEP, timeout);
        self.machine.load(self.word) != ASLEEP
    }

    /// Announces that the member is awake. A ring that came in the meantime stays for
    /// [`take`](Self::take). Called by the member.
    pub fn disarm(&self) {
        self.machine.exchange(self.word, ASLEEP, AWAKE);
    }

    /// Returns whether a ring has arrived since the last call. If none has, this costs only a load.
    /// Called by the member.
    #[inline]
    pub fn take(&self) -> bool {
        self.machine.load(self.word) == RUNG && self.machine.exchange(self.word, RUNG, AWAKE)
    }
}
