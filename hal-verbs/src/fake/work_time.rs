//! What the commands of workers cost in virtual time: there is no other thread, and whoever stands
//! for one asks here how long it would take.

use std::os::fd::OwnedFd;
use std::sync::Arc;

use super::context::Context;
use super::hardware::FakeEvent;

/// The time of such work on one context.
#[derive(Clone, Debug)]
pub(crate) struct WorkTime(Context);

impl Context {
    /// The time of workers, if that is virtual.
    pub(crate) fn work_time(&self) -> Option<WorkTime> {
        self.0.core.is_virtual().then(|| WorkTime(self.clone()))
    }
}

impl WorkTime {
    /// The present.
    pub(crate) fn now_ns(&self) -> u64 {
        self.0.0.core.with(|hardware| hardware.now)
    }

    /// Does some work, and gives what its commands cost, which the polling thread does not pay.
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

    /// Makes a descriptor readable at a moment.
    pub(crate) fn ring_at(&self, ns: u64, channel: &Arc<OwnedFd>) {
        self.0.0.core.with(|hardware| {
            let at = ns.max(hardware.now);
            hardware.agenda.enter(at, FakeEvent::Ring(Arc::clone(channel)));
        });
    }
}
