//! The components of every member when it starts, with fixed or changing membership.

use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use tramontane_core::fabric::HostFabric as _;
use tramontane_core::ids::{Position, SubgroupId};
use tramontane_core::node::{Progress, Undelivered};

use super::participant::Participant;
use super::request::Request;
use crate::fabric::AnyFabric;
use crate::group::clients::order::served::Served;
use crate::group::delivery::application::Application;
use crate::group::description::terms::Membership;
use crate::group::durable::Logs;
use crate::group::send::subgroup_sending::{SubgroupSending, Unsent};
use crate::group::status::statistics::Statistics;
use crate::member::Stopped;
use crate::poll::{Done, guarded};

/// The components of both kinds of member.
pub(crate) struct Parts<A> {
    pub(crate) participant: Arc<Participant>,
    pub(crate) fabric: AnyFabric,
    pub(crate) sending: Vec<SubgroupSending>,
    pub(crate) requests: Receiver<Request>,
    pub(crate) application: Served<A>,
    /// The logs of logged subgroups that this node belongs to.
    pub(crate) logs: Logs,
    pub(crate) statistics: Statistics,
    /// The list that receives the messages still unsent when this member ends.
    pub(crate) unsent: Arc<Mutex<Vec<Unsent>>>,
    pub(crate) idle_time: Option<Duration>,
    /// The subgroup in which a reservation has been reported as held for too long.
    pub(crate) overdue: Option<SubgroupId>,
}

impl<A> Parts<A> {
    /// Returns the time without work after which this member sleeps.
    pub(crate) fn idle_time(&self) -> Duration {
        self.idle_time.unwrap_or_else(|| self.fabric.idle_time())
    }

    /// Updates the delivered counts of receipts.
    #[inline]
    pub(crate) fn note_delivered(&mut self, delivered: impl Fn(SubgroupId) -> Option<Position>) {
        for sending in &mut self.sending {
            if let Some(position) = delivered(sending.subgroup()) {
                sending.delivered(position.0, self.logs.records(sending.subgroup()));
            }
        }
    }

    /// Adds the results of a step to the statistics.
    #[inline]
    pub(crate) fn count(&mut self, progress: &Progress) {
        self.statistics.add(progress);
        let has_freed = progress.freed > 0;
        self.sending.iter_mut().for_each(|sending| sending.look_for_waits(has_freed));
        if progress.overdue != self.overdue {
            self.report_overdue(progress.overdue);
        }
    }

    /// Reports once when a reservation holds back the messages after it, and once when it no longer
    /// does (SMC-3).
    #[cold]
    fn report_overdue(&mut self, overdue: Option<SubgroupId>) {
        match overdue {
            Some(subgroup) => {
                tracing::warn!(%subgroup, "a reservation is held, and later messages wait for it");
            }
            None => tracing::info!("the held reservation ended"),
        }
        self.overdue = overdue;
    }

    /// Returns committed but undelivered messages to the caller, because this member has ended
    /// (VIE-7), and informs the application. `large` provides the bytes of large messages.
    pub(crate) fn give_back(
        &mut self,
        why: &Stopped,
        undelivered: impl Fn(SubgroupId) -> Option<Undelivered>,
        mut large: impl FnMut(SubgroupId, u64) -> Option<Vec<u8>>,
    ) where
        A: Application,
    {
        // With fixed membership, the others may deliver what this member has sent before it left.
        let is_changing = self.participant.description.membership == Membership::Changing;
        let has_left = is_changing && *why == Stopped::Left;
        let mut unsent = self.unsent.lock().unwrap_or_else(PoisonError::into_inner);
        for sending in &mut self.sending {
            let subgroup = sending.subgroup();
            sending.end(undelivered(subgroup));
            sending.give_back(has_left, &mut unsent, |ordinal| large(subgroup, ordinal));
        }
        drop(unsent);
        // The member has ended whether this call panics or not.
        let _ = guarded(|| {
            self.application.ended(why);
            Ok(())
        });
    }
}

/// The results of one step of a member.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Step {
    /// The protocol's progress: messages sent, received and delivered, and writes posted.
    pub progress: Progress,
    /// Whether large messages made progress.
    pub moved_large: bool,
}

impl Step {
    /// Returns whether nothing was done. Further steps would find no work either until something
    /// arrives.
    #[inline]
    #[must_use]
    pub const fn is_idle(&self) -> bool {
        self.progress.is_idle() && !self.moved_large
    }
}

impl Done for Step {
    #[inline]
    fn is_idle(&self) -> bool {
        Step::is_idle(self)
    }
}
