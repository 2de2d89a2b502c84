//! Sleep, and the descriptors that end it: the completion channel and the own bell.

use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, epoll, poll};

use super::{Life, Stage, Verbs};
use crate::ffi::CompletionQueue;
use crate::protocol::Bell;

/// What a descriptor is, in the number that the kernel hands back.
const CHANNEL: u64 = u64::MAX;
const BELL: u64 = u64::MAX - 1;

/// All that a sleeper waits for.
#[derive(Debug)]
pub(crate) struct Descriptors {
    epoll: OwnedFd,
}

/// What ended a wait.
#[derive(Clone, Copy, Debug, Default)]
struct Found {
    channel: bool,
    bell: bool,
}

impl Descriptors {
    /// Watches them all.
    pub(crate) fn new(channel: &CompletionQueue, bell: &Bell) -> std::io::Result<Self> {
        let epoll = epoll::create(epoll::CreateFlags::CLOEXEC)?;
        let flags = epoll::EventFlags::IN;
        epoll::add(&epoll, channel.as_fd(), epoll::EventData::new_u64(CHANNEL), flags)?;
        epoll::add(&epoll, bell.as_fd(), epoll::EventData::new_u64(BELL), flags)?;
        Ok(Self { epoll })
    }

    fn wait(&self, timeout: Duration) -> Found {
        const EVENTS_MAX: usize = 8;
        let blank =
            epoll::Event { flags: epoll::EventFlags::empty(), data: epoll::EventData::new_u64(0) };
        let mut events = [blank; EVENTS_MAX];
        let timeout = timespec(timeout);
        let count = epoll::wait(&self.epoll, &mut events, Some(&timeout)).unwrap_or(0);
        let mut found = Found::default();
        for event in events.iter().take(count) {
            match event.data.u64() {
                CHANNEL => found.channel = true,
                _ => found.bell = true,
            }
        }
        found
    }
}

fn timespec(duration: Duration) -> Timespec {
    Timespec {
        tv_sec: i64::try_from(duration.as_secs()).unwrap_or(i64::MAX),
        tv_nsec: duration.subsec_nanos().into(),
    }
}

impl Verbs {
    /// A handle on the own bell, for application threads of this process.
    #[must_use]
    pub fn bell(&self) -> Bell {
        self.bell.clone()
    }

    /// Whether something came that `poll` has not told.
    fn has_news(&self) -> bool {
        !self.done.is_empty()
            || self.untold > 0
            || self.rung
            || self.bell.is_rung()
            || self.blocks.has_news()
            || self.permissions.has_news()
    }

    pub(super) fn arm_for_sleep(&mut self) -> bool {
        // Rings that are taken before this member is armed are dropped: it looks once more, after
        // this.
        self.collect();
        if self.has_news() || std::mem::take(&mut self.retry_due) || !self.bell.arm() {
            return false;
        }
        self.armed = true;
        if self.life == Life::Retired {
            return true;
        }
        // Asked for first and then looked: what comes between the two is seen.
        let notified = self.completions.notify();
        self.collect();
        if notified.is_err() || self.has_news() || self.retry_due {
            self.armed = false;
            self.bell.disarm();
            return false;
        }
        if matches!(self.life, Life::Open(_)) {
            self.say_asleep();
        }
        true
    }

    /// Tells all peers that are there, unless they know.
    fn say_asleep(&mut self) {
        for rank in 0..self.peers.len() {
            let Some(index) = self.rows_to[rank] else { continue };
            if self.peers[rank].stage == Stage::Live {
                self.peers[rank].doorbell.arm();
                self.send_notices(index);
            }
        }
    }

    /// Sleeps until a peer, a thread of this process or the kernel has something, at most
    /// `timeout`. Between a successful `arm`, followed by one more look for work, and `disarm`.
    /// True if there is something.
    pub fn sleep(&mut self, timeout: Duration) -> bool {
        let until = Instant::now() + timeout;
        loop {
            if self.has_news() || std::mem::take(&mut self.retry_due) {
                return true;
            }
            let left = until.saturating_duration_since(Instant::now());
            let found = self.descriptors.wait(left);
            if found.bell {
                self.bell.drain();
            }
            if found.channel {
                self.take_channel();
            }
            if !(found.bell || found.channel) && Instant::now() >= until {
                return false;
            }
        }
    }

    /// Takes the channel's events and what they speak of, and asks for the next. Notices are
    /// answered here: a member that sleeps goes on sleeping when a peer goes to sleep too.
    fn take_channel(&mut self) {
        while self.completions.take_event() {}
        if self.completions.notify().is_err() {
            self.lose_all(tramontane_core::fabric::LossCause::Unreachable);
        }
        self.collect();
    }

    /// Waits until a completion comes, at most `timeout`.
    pub(super) fn wait_for_completions(&mut self, timeout: Duration) {
        if self.completions.notify().is_err() {
            return;
        }
        let before = self.in_flight();
        self.collect();
        if self.in_flight() != before {
            return;
        }
        let mut descriptors = [PollFd::new(&*self.completions, PollFlags::IN)];
        // An interrupted wait is a short one.
        let _ = poll(&mut descriptors, Some(&timespec(timeout)));
        while self.completions.take_event() {}
    }
}

/// Becomes readable when there is something that [`Verbs::sleep`] would wake for, after
/// [`Fabric::arm`] said yes: for callers that wait for other things too.
///
/// [`Fabric::arm`]: tramontane_core::fabric::Fabric::arm
impl AsFd for Verbs {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.descriptors.epoll.as_fd()
    }
}
