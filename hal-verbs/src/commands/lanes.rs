//! Workers in virtual time, where the speed of threads must not matter. Jobs wait in order for a
//! lane, and the outcome of a job is available after the time of its commands has passed.

use std::collections::VecDeque;
use std::io;
use std::os::fd::OwnedFd;
use std::sync::{Arc, Mutex, PoisonError};

use rustix::event::{EventfdFlags, eventfd};

use super::JobOutcome;
use super::workers::{Reply, Task};
use crate::fake::WorkTime;

/// The lanes of a site.
#[derive(Debug)]
pub(super) struct Lanes {
    time: WorkTime,
    work: Mutex<Work>,
    news: Arc<OwnedFd>,
}

#[derive(Debug)]
struct Work {
    /// Waiting jobs, each with the time of its arrival.
    waiting: VecDeque<(u64, Task)>,
    /// The time at which each lane becomes free.
    free_at: Vec<u64>,
    /// Job results, each with the time at which it is reported.
    done: Vec<(u64, Reply, JobOutcome)>,
}

impl Lanes {
    pub(super) fn new(time: WorkTime, lanes: usize) -> io::Result<Self> {
        let flags = EventfdFlags::CLOEXEC | EventfdFlags::NONBLOCK;
        let work =
            Work { waiting: VecDeque::new(), free_at: vec![0; lanes.max(1)], done: Vec::new() };
        Ok(Self { time, work: Mutex::new(work), news: Arc::new(eventfd(0, flags)?) })
    }

    pub(super) const fn news(&self) -> &Arc<OwnedFd> {
        &self.news
    }

    pub(super) fn hand_in(&self, task: Task) {
        let now = self.time.now_ns();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        work.waiting.push_back((now, task));
        drop(work);
        self.go_on();
    }

    /// Starts the jobs for which a lane is now free, and reports the results that are now due.
    pub(super) fn go_on(&self) {
        let now = self.time.now_ns();
        let mut work = self.work.lock().unwrap_or_else(PoisonError::into_inner);
        while let Some((lane, at)) = work.next_start(now) {
            let Some((_, task)) = work.waiting.pop_front() else { break };
            let ((reply, outcome), cost_ns) = self.time.measure(|| task.finish());
            let done_at = at.saturating_add(cost_ns);
            work.free_at[lane] = done_at;
            work.done.push((done_at, reply, outcome));
            self.time.ring_at(done_at, &self.news);
        }
        let (told, rest) =
            std::mem::take(&mut work.done).into_iter().partition(|(at, ..)| *at <= now);
        work.done = rest;
        drop(work);
        let mut told: Vec<(u64, Reply, JobOutcome)> = told;
        told.sort_by_key(|(at, ..)| *at);
        told.into_iter().for_each(|(_, mut reply, outcome)| reply.send(outcome));
    }
}

impl Work {
    /// Returns the lane in which the next job starts and the start time, if that time has come.
    fn next_start(&self, now: u64) -> Option<(usize, u64)> {
        let since = self.waiting.front()?.0;
        let free = self.free_at.iter().copied().enumerate();
        let (lane, free_at) = free.min_by_key(|(lane, at)| (*at, *lane))?;
        let at = free_at.max(since);
        (at <= now).then_some((lane, at))
    }
}
