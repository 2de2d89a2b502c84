//! The feed from the thread that drives a member to the thread that serves its clients.
//!
//! # Invariants
//! - The driving thread never waits for the serving thread, except to acquire a lock that is held
//!   no longer than it takes to copy a few messages.
//! - A batch is reported only after the application has returned, so everything reported has been
//!   delivered.

use std::collections::{BTreeMap, BTreeSet};
use std::io::Read;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tramontane_control::Wakeup;
use tramontane_control::client_messages::{
    ClientLife, ClientRefusal, Position, Reached, ViewBegun,
};
use tramontane_core::ids::{DurableCount, NodeId, SubgroupId};
use tramontane_core::node::DurableCounts;

use super::notices::{Notice, Notices};

use super::retained::Retained;
use super::retained::RetainedMessage;
use super::table::{Attachment, Known};
use super::words::Words;
use crate::group::delivery::message::ViewChanged;
use crate::group::description::view::View;
use crate::group::durable::comparison::{SharedLog, SharedLogs};

/// The outcome of a client's request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum ClientOutcome {
    /// This member has attached a client, or the group has refused to attach it.
    Attached { life: ClientLife, attached: Result<Attachment, ClientRefusal> },
    /// A client's message was delivered. Its number in the log is `record`.
    Delivered { life: ClientLife, ordinal: u64, record: u64 },
}

impl ClientOutcome {
    pub(crate) const fn life(&self) -> ClientLife {
        match self {
            Self::Attached { life, .. } | Self::Delivered { life, .. } => *life,
        }
    }
}

/// The events of a subgroup since the last report.
#[derive(Debug, Default)]
pub(crate) struct News {
    /// New messages, each with the digest of the order up to and including it.
    pub(crate) delivered: Vec<(RetainedMessage, u64)>,
    pub(crate) outcomes: Vec<ClientOutcome>,
    /// The current position of the order.
    pub(crate) position: Position,
    /// The number of client control messages before these events.
    pub(crate) words_before: u64,
    /// The new records that are client control messages.
    pub(crate) words: Vec<u64>,
    /// Notices for followers, each with its position between messages.
    pub(crate) notices: Vec<(u64, Notice)>,
    /// Whether the set of known clients has changed, or any client has moved to another member.
    pub(crate) has_changed: bool,
    /// All known clients, if they have changed.
    pub(crate) known: Vec<Known>,
    /// Whether the state was received from another member. If so, everything kept so far belongs to
    /// another history.
    pub(crate) is_restored: bool,
}

/// Everything reported about a subgroup.
#[derive(Default)]
pub(crate) struct SubgroupFeed {
    pub(crate) retained: Retained,
    pub(crate) notices: Notices,
    /// The application's state for a follower that waits for it.
    pub(crate) state: StateSupply,
    /// Outcomes that the serving thread has not handled yet. Each message of a client attached here
    /// has one outcome, and clients have a window, so the list is bounded.
    pub(crate) outcomes: Vec<ClientOutcome>,
    pub(crate) known: Arc<[Known]>,
    pub(crate) words: Words,
    /// The numbers of durable records, if there is a log.
    pub(crate) durable: DurableCounts,
    /// The clients attached to this member, whose outcomes are reported.
    pub(crate) served: BTreeSet<ClientLife>,
    pub(crate) standing: Standing,
}

/// Whether a subgroup has members. A reserved subgroup may be closed and reopened.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Standing {
    /// The number of times that the subgroup has been opened since this process became a member.
    /// Anything that clients knew of an earlier era belongs to another history.
    pub(crate) era: u64,
    pub(crate) is_open: bool,
    /// Whether the subgroup was open in this era, so that clients that followed it then can still
    /// receive the remaining messages.
    pub(crate) has_rest: bool,
}

/// The application's state on its way to a follower.
#[derive(Default)]
pub(crate) enum StateSupply {
    /// No follower is waiting for a state.
    #[default]
    Idle,
    /// The driving thread has been asked to take the state.
    Wanted,
    /// The state has been taken at this position, and waits to be fetched.
    Taken(Position, Box<dyn Read + Send>),
}

impl SubgroupFeed {
    /// Begins a view in which the subgroup is open or closed.
    fn begin_view(&mut self, begun: &ViewBegun, is_open: bool, is_first: bool) {
        let was_open = std::mem::replace(&mut self.standing.is_open, is_open);
        if is_first {
            // This member knows nothing of earlier views.
            self.notices.begin_at(self.retained.end());
        } else if is_open && !was_open {
            let era = self.standing.era.saturating_add(1);
            let standing = Standing { era, ..self.standing };
            *self = Self { standing, ..Self::default() };
        }
        let place = self.retained.end();
        self.notices.add(place, Notice::View(begun.clone()));
        if was_open && !is_open {
            self.notices.add(place, Notice::Closed);
            // The clients of a closed subgroup receive nothing further.
            (self.known, self.outcomes) = (Arc::default(), Vec::new());
            self.served.clear();
        }
        self.standing.has_rest |= is_open;
    }

    /// Returns the number of durable messages.
    fn durable_messages(&self) -> DurableCounts {
        let messages = |count: DurableCount| DurableCount(self.words.messages_among(count.0));
        let DurableCounts { here, majority, everywhere } = self.durable;
        DurableCounts {
            here: messages(here),
            majority: messages(majority),
            everywhere: messages(everywhere),
        }
    }

    /// Returns the number of messages that have reached each level.
    pub(crate) fn reached(&self) -> Reached {
        let DurableCounts { here, majority, everywhere } = self.durable_messages();
        Reached {
            delivered: self.retained.end(),
            durable_here: here.0,
            durable_majority: majority.0,
            durable_everywhere: everywhere.0,
        }
    }
}

/// Everything reported, for all subgroups that accept clients.
#[derive(Default)]
pub(crate) struct Told {
    pub(crate) subgroups: BTreeMap<SubgroupId, SubgroupFeed>,
    /// The current view, or `None` before the first.
    pub(crate) view: Option<Arc<View>>,
    /// The logs of the logged subgroups.
    pub(crate) logs: SharedLogs,
}

impl Told {
    /// Returns the number of the current view, or zero before the first.
    pub(crate) fn view_number(&self) -> u64 {
        self.view.as_ref().map_or(0, |view| view.id.0)
    }
}

/// The feed between the two threads.
pub(crate) struct Feed {
    told: Mutex<Told>,
    wakeup: Wakeup,
    is_asleep: AtomicBool,
    /// Whether a follower of any subgroup needs the application's state.
    wants_state: AtomicBool,
    /// The number of states that are being sent or awaited.
    states_under_way: Arc<AtomicUsize>,
}

impl Feed {
    pub(crate) fn new(
        subgroups: impl IntoIterator<Item = SubgroupId>,
    ) -> std::io::Result<Arc<Self>> {
        let subgroups = subgroups.into_iter().map(|id| (id, SubgroupFeed::default())).collect();
        let told = Mutex::new(Told { subgroups, view: None, logs: SharedLogs::default() });
        let (is_asleep, wants_state) = (AtomicBool::new(false), AtomicBool::new(false));
        let states_under_way = Arc::default();
        Ok(Arc::new(Self {
            told,
            wakeup: Wakeup::new()?,
            is_asleep,
            wants_state,
            states_under_way,
        }))
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Told> {
        // A panic leaves no half-finished change here.
        self.told.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Reports new events.
    pub(crate) fn tell(&self, subgroup: SubgroupId, news: News) {
        if let Some(feed) = self.lock().subgroups.get_mut(&subgroup) {
            if news.is_restored {
                let records = news.position.place.saturating_add(news.words_before);
                feed.words.begin_at(records, news.words_before);
                feed.retained.begin_at(news.position);
                feed.notices.begin_at(news.position.place);
            }
            news.notices.into_iter().for_each(|(place, notice)| feed.notices.add(place, notice));
            news.words.into_iter().for_each(|word| feed.words.add(word));
            for (message, digest) in news.delivered {
                feed.retained.add(message, digest);
            }
            let ours =
                news.outcomes.into_iter().filter(|outcome| feed.served.contains(&outcome.life()));
            feed.outcomes.extend(ours);
            if news.has_changed {
                feed.known = news.known.into();
            }
        }
        self.wake();
    }

    /// Reports how many records are durable, and returns the number of messages among them.
    pub(crate) fn tell_durable(
        &self,
        subgroup: SubgroupId,
        durable: &DurableCounts,
    ) -> DurableCounts {
        let mut told = self.lock();
        let Some(feed) = told.subgroups.get_mut(&subgroup) else { return *durable };
        feed.durable = *durable;
        let messages = feed.durable_messages();
        drop(told);
        self.wake();
        messages
    }

    /// Returns the first sequence position that is still kept, in memory or in a log.
    pub(crate) fn first(&self, subgroup: SubgroupId) -> u64 {
        let of = |told: &Told| {
            let of = told.subgroups.get(&subgroup)?;
            let log = told.logs.get(subgroup);
            Some((log, of.words.first_known(), of.retained.first()))
        };
        let Some((log, known, retained)) = of(&self.lock()) else { return 0 };
        // The log may be busy with a disk, and the driving thread must not wait for that.
        let Some(first) = log.as_ref().map(SharedLog::first) else { return retained };
        let told = self.lock();
        let messages = |of: &SubgroupFeed| of.words.messages_among(known.max(first));
        told.subgroups.get(&subgroup).map_or(retained, messages).min(retained)
    }

    /// Reports that a view has begun.
    pub(crate) fn begin_view(&self, change: &ViewChanged<'_>) {
        let numbers =
            |nodes: &[NodeId]| -> Vec<u32> { nodes.iter().map(|node| node.get()).collect() };
        let mut told = self.lock();
        let is_first = told.view.replace(Arc::new(change.view.clone())).is_none();
        // The members of the first view did not join in it: they were there from the start.
        let joined = if is_first { Vec::new() } else { numbers(change.joined) };
        let members = numbers(&change.view.members);
        let begun = ViewBegun { view: change.view.id.0, members, joined };
        for (id, feed) in &mut told.subgroups {
            feed.begin_view(&begun, !change.view.is_closed(*id), is_first);
        }
        drop(told);
        self.wake();
    }

    /// Returns whether a subgroup has members.
    pub(crate) fn standing(&self, subgroup: SubgroupId) -> Standing {
        self.lock().subgroups.get(&subgroup).map_or_else(Standing::default, |of| of.standing)
    }

    /// Returns the number of states that are being sent to followers or awaited.
    pub(crate) const fn states_under_way(&self) -> &Arc<AtomicUsize> {
        &self.states_under_way
    }

    /// Asks the driving thread for the application's state. Returns false if another follower is
    /// already waiting for it.
    pub(crate) fn want_state(&self, subgroup: SubgroupId) -> bool {
        let mut told = self.lock();
        let Some(feed) = told.subgroups.get_mut(&subgroup) else { return false };
        let is_idle = matches!(feed.state, StateSupply::Idle);
        if is_idle {
            feed.state = StateSupply::Wanted;
            self.wants_state.store(true, Ordering::Release);
        }
        is_idle
    }

    /// Returns a subgroup whose state is wanted. The driving thread calls this once per turn.
    #[inline]
    pub(crate) fn take_wanted_state(&self) -> Option<SubgroupId> {
        if !self.wants_state.load(Ordering::Acquire) {
            return None;
        }
        let told = self.lock();
        let is_wanted = |of: &SubgroupFeed| matches!(of.state, StateSupply::Wanted);
        let mut wanted = told.subgroups.iter().filter(|(_, of)| is_wanted(of)).map(|(id, _)| *id);
        let first = wanted.next();
        self.wants_state.store(wanted.next().is_some(), Ordering::Release);
        first
    }

    /// Passes on the application's state.
    pub(crate) fn tell_state(
        &self,
        subgroup: SubgroupId,
        position: Position,
        state: Box<dyn Read + Send>,
    ) {
        if let Some(feed) = self.lock().subgroups.get_mut(&subgroup)
            && matches!(feed.state, StateSupply::Wanted)
        {
            feed.state = StateSupply::Taken(position, state);
        }
        self.wake();
    }

    /// Takes the requested state once it is available.
    pub(crate) fn take_state(
        &self,
        subgroup: SubgroupId,
    ) -> Option<(Position, Box<dyn Read + Send>)> {
        let mut told = self.lock();
        let supply = &mut told.subgroups.get_mut(&subgroup)?.state;
        match std::mem::take(supply) {
            StateSupply::Taken(position, state) => Some((position, state)),
            other => {
                *supply = other;
                None
            }
        }
    }

    /// Withdraws the request for a state.
    pub(crate) fn forgo_state(&self, subgroup: SubgroupId) {
        if let Some(feed) = self.lock().subgroups.get_mut(&subgroup) {
            feed.state = StateSupply::Idle;
        }
    }

    /// Wakes the serving thread if it is asleep.
    pub(crate) fn wake(&self) {
        if self.is_asleep.swap(false, Ordering::SeqCst) {
            self.wakeup.ring();
        }
    }

    /// Returns the event that the serving thread waits for, in addition to its clients. From then
    /// on, new reports wake the thread, but it must still check for earlier ones.
    pub(crate) fn fall_asleep(&self) -> &Wakeup {
        self.wakeup.take();
        self.is_asleep.store(true, Ordering::SeqCst);
        &self.wakeup
    }

    /// Marks the serving thread as awake: it need not be woken.
    pub(crate) fn stay_awake(&self) {
        self.is_asleep.store(false, Ordering::SeqCst);
    }
}
