//! The cost of workers' commands in virtual time. There are no other threads, so the code that acts
//! as a worker asks this module how long the commands would take.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::context::Context;
use super::hardware::FakeEvent;

/// The time of workers on one context.
#[derive(Clone, Debug)]
pub(crate) struct WorkTime(Context);

impl Context {
    /// Returns the workers' time, if it is virtual.
    pub(crate) fn work_time(&self) -> Option<WorkTime> {
        self.0.core.is_virtual().then(|| WorkTime(self.clone()))
    }
}

impl WorkTime {
    /// Returns the current time.
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.0.core.with(|hardware| hardware.now)
    }

    /// Does some work and returns the time that its commands cost. The polling thread is not
    /// charged for it.
    pub(crate) fn measure<R>(&self, work: impl FnOnce() -> R) -> (R, u64) {
        self.set(Some(0));
        let result = work();
        (result, self.set(None).unwrap_or(0))
    }

    fn set(&self, worker_ns: Option<u64>) -> Option<u64> {
        let opened = &self.0.0;
        opened.core.with(|hardware| {
            let context = hardware.contexts.get_mut(&opened.id)?;
            std::mem::replace(&mut context.worker_ns, worker_ns)
        })
    }

    /// Makes a descriptor readable at the given time.
    pub(crate) fn ring_at(&self, ns: u64, channel: &Arc<OwnedFd>) {
        self.0.0.core.with(|hardware| {
            let at = ns.max(hardware.now);
            hardware.agenda.enter(at, FakeEvent::Ring(Arc::clone(channel)));
        });
    }
}
