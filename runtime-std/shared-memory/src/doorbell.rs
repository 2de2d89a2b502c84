//! The doorbell: how a member that sleeps is woken by what others write, and never misses it
//! (IDL-1).
//!
//! One word a member, which everybody in the group may write, with three values:
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
//! - The sleeper: `arm`; looks for work once more; `sleep`; `disarm`; `take`.
//! - A ringer: stores its data; then `ring_if_asleep`.
//!
//! # Why no wake-up is lost
//! Between the ringer's store of data *D* and its load of the word stands a fence *R*; between the
//! sleeper's exchange of the word and its look at *D* stands a fence *S*; both sequentially
//! consistent, so one comes first. Take the last `arm` before a sleep.
//! - *S* before *R*: the ringer's load sees `ASLEEP` or something later. `ASLEEP`: it rings.
//!   `RUNG`: another ringer did, after this `arm`. `AWAKE`: the sleep is over already. In all three
//!   the sleeper wakes, and looks again after it armed again; for that later `arm` the argument
//!   starts anew.
//! - *R* before *S*: the sleeper's look sees *D*, and it does not sleep.
//!
//! Between look and sleep the kernel compares the word with `ASLEEP` under the lock that a wake
//! takes too: a ring before the comparison makes it fail, a ring after it finds the sleeper in the
//! queue.
//!
//! A `ring` on an awake member stays (`RUNG`) until it is taken, and no `arm` succeeds before: so
//! a member that rings without data to show, as [`Doorbell::ring`] allows, is not lost either.
//!
//! A ring is a store and then a call of the kernel. Between the two the sleeper may find the store,
//! go on and sleep again; the call then ends a sleep that it was not meant for. So sleeps may end
//! for no reason.
//!
//! Only the ring that finds `ASLEEP` calls the kernel: one call a sleep, whoever and however many
//! ring. A faulty process can write anything into the word. The worst that follows is a sleep that
//! ends early, or lasts until its timeout; so no sleep is without one.
//!
//! The protocol is generic over [`Machine`], so that the very same code runs under loom:
//! `shared_memory_doorbell_loom`, one of the ordinary tests.

use std::time::Duration;

/// The member is at work and looks by itself.
pub const AWAKE: u32 = 0;
/// The member sleeps, or is about to.
pub const ASLEEP: u32 = 1;
/// Somebody rang, and the member has not taken it yet.
pub const RUNG: u32 = 2;

/// What the protocol needs of a machine: a word, two fences, and a wait that compares before it
/// sleeps.
pub trait Machine {
    /// A word of 32 bits that several processes share.
    type Word;

    /// Loads the word; no order is asked for.
    fn load(&self, word: &Self::Word) -> u32;

    /// Stores the word and gives what it was; sequentially consistent.
    fn swap(&self, word: &Self::Word, value: u32) -> u32;

    /// Stores `to` if the word is `from`, and says whether it was; sequentially consistent.
    fn exchange(&self, word: &Self::Word, from: u32, to: u32) -> bool;

    /// The fence between a ringer's data and its look at the word.
    fn ringer_fence(&self);

    /// The fence between arming and looking for data. False if it cannot be had: then nobody may
    /// sleep.
    fn sleeper_fence(&self) -> bool;

    /// Sleeps while the word is `value`: until woken, or for `timeout`, or for no reason at all.
    fn wait(&self, word: &Self::Word, value: u32, timeout: Duration);

    /// Wakes the threads that wait on the word.
    fn wake(&self, word: &Self::Word);
}

/// A member's doorbell, from either side of it.
#[derive(Debug)]
pub struct Doorbell<'w, M: Machine> {
    machine: &'w M,
    word: &'w M::Word,
}

impl<'w, M: Machine> Doorbell<'w, M> {
    /// The doorbell on a word that starts as [`AWAKE`], which is zero.
    pub const fn new(machine: &'w M, word: &'w M::Word) -> Self {
        Self { machine, word }
    }

    /// For a ringer, after it stored something: rings if the member sleeps. A fence and a load if
    /// not.
    #[inline]
    pub fn ring_if_asleep(&self) {
        self.machine.ringer_fence();
        if self.machine.load(self.word) == ASLEEP {
            self.ring();
        }
    }

    /// For a ringer: rings, whether the member sleeps or not.
    #[cold]
    pub fn ring(&self) {
        if self.machine.swap(self.word, RUNG) == ASLEEP {
            self.machine.wake(self.word);
        }
    }

    /// For the member: says that it is about to sleep. After this it must look for work once more.
    /// False, and nothing is armed, if somebody rang already.
    pub fn arm(&self) -> bool {
        if !self.machine.exchange(self.word, AWAKE, ASLEEP) {
            // A ring that was not taken; or a word that only a faulty process can have written, and
            // which would stay for ever if it were not replaced.
            self.machine.swap(self.word, RUNG);
            return false;
        }
        let fenced = self.machine.sleeper_fence();
        if !fenced {
            self.disarm();
        }
        fenced
    }

    /// For the member, armed and having looked: sleeps until somebody rings, at most `timeout`.
    /// True if somebody rang.
    pub fn sleep(&self, timeout: Duration) -> bool {
        self.machine.wait(self.word, ASLEEP, timeout);
        self.machine.load(self.word) != ASLEEP
    }

    /// For the member: says that it is awake. A ring that came meanwhile stays for
    /// [`take`](Self::take).
    pub fn disarm(&self) {
        self.machine.exchange(self.word, ASLEEP, AWAKE);
    }

    /// For the member: whether somebody rang since this was last asked. A load if not.
    #[inline]
    pub fn take(&self) -> bool {
        self.machine.load(self.word) == RUNG && self.machine.exchange(self.word, RUNG, AWAKE)
    }
}
