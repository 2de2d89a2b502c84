//! Small defects as in real multicasts: at a change of views, at the wrap of a counter, after a
//! pause, with sizes at a limit, at a second start.

use std::time::{Duration, Instant};

use super::mutation::Mutant;
use super::spoiler::Spoiler;
use crate::wire::{Entry, Up};

/// The length to which `truncate-large` cuts longer messages.
const LARGE_BYTES: usize = 8192;

/// `lose-thousandth` loses one message in every `THOUSAND` messages.
const THOUSAND: u64 = 1000;

/// `lose-kibibyte` loses messages of this size.
const KIBIBYTE: usize = 1024;

/// `corrupt-huge` corrupts messages from this size on.
const HUGE_BYTES: usize = 1 << 20;

/// A counter of one byte wraps after this many messages.
const WRAP: u64 = 256;

/// The window's length: the message after it reuses the first slot.
const WINDOW: u64 = 64;

/// A consumer that took longer than this is slow.
const SLOW: Duration = Duration::from_millis(200);

/// Number of messages that `join-late` leaves out.
const LATE: u64 = 3;

/// The state on which these defects depend.
#[derive(Default)]
pub struct Course {
    /// Number of views that the member installed, in all groups.
    views: u64,
    /// Number of messages since the last view.
    since_view: u64,
    /// The previous message, and its arrival time.
    last: Option<(Entry, Instant)>,
    /// Whether the node joined running groups.
    joined: bool,
    /// The members of all groups.
    members: std::collections::BTreeSet<String>,
}

impl Course {
    /// Creates the state of a node; `joined` says whether it joined running groups.
    pub(super) fn of(joined: bool) -> Self {
        Self { joined, ..Self::default() }
    }
}

impl Spoiler {
    /// Returns the entries that the member delivers instead of this one, if one of these defects
    /// applies.
    pub(super) fn deliver_wrongly(&mut self, entry: &Entry) -> Option<Vec<Entry>> {
        let Entry::Message { sender, groups, payload } = entry else { return None };
        let now = Instant::now();
        let before = self.course.last.replace((entry.clone(), now));
        self.course.since_view += 1;
        let later_view = self.course.views > 1 && self.course.since_view == 1;
        let was_slow = before.as_ref().is_some_and(|(_, time)| now - *time > SLOW);
        let name = crate::protocol::name(payload).unwrap_or_default();
        let with = |payload: String| {
            let (sender, groups) = (sender.clone(), groups.clone());
            Some(vec![Entry::Message { sender, groups, payload }])
        };
        match self.mutant? {
            Mutant::LoseAfterView if later_view => Some(Vec::new()),
            Mutant::DuplicateAfterView if later_view => {
                Some(before.map(|(entry, _)| entry).into_iter().chain([entry.clone()]).collect())
            }
            Mutant::LoseAfterPause if was_slow => Some(Vec::new()),
            Mutant::TruncateLarge if payload.len() > LARGE_BYTES => {
                with(payload[..LARGE_BYTES].to_owned())
            }
            Mutant::CorruptHuge if payload.len() > HUGE_BYTES => {
                with(format!("{}!", &payload[..payload.len() - 1]))
            }
            Mutant::LoseKibibyte if payload.len() == KIBIBYTE => Some(Vec::new()),
            Mutant::LoseEmpty if payload.is_empty() => Some(Vec::new()),
            Mutant::LoseAtWrap if self.delivered == WRAP => Some(Vec::new()),
            Mutant::JoinLate if self.course.joined && self.delivered <= LATE => Some(Vec::new()),
            Mutant::LoseSecondStart if name.split('/').nth(1).is_some_and(|inc| inc != "1") => {
                Some(Vec::new())
            }
            Mutant::LoseClientAgain
                if !self.course.members.contains(sender)
                    && name.split('/').nth(1).is_some_and(|inc| inc != "1") =>
            {
                Some(Vec::new())
            }
            Mutant::TwiceInTwoGroups if groups.len() > 1 => {
                let alone = |group: &String| Entry::Message {
                    sender: sender.clone(),
                    groups: vec![group.clone()],
                    payload: payload.clone(),
                };
                Some(groups.iter().filter(|group| self.has(group)).map(alone).collect())
            }
            _ => None,
        }
    }

    /// Returns whether a message is the first of two that one of these defects swaps.
    pub(super) fn may_begin_swap(&self, entry: &Entry) -> bool {
        let Entry::Message { sender, .. } = entry else { return false };
        match self.mutant {
            Some(Mutant::SwapAfterView) => self.course.views > 1 && self.course.since_view == 1,
            _ => !self.course.members.contains(sender),
        }
    }

    /// Returns the messages that go to the sequencer instead of this one, if one of these defects
    /// applies.
    pub(super) fn send_wrongly(&mut self, up: &Up) -> Option<Vec<Up>> {
        match self.mutant? {
            Mutant::SwapAtWindow if self.sent == WINDOW + 1 => {
                self.kept_back = Some(up.clone());
                Some(Vec::new())
            }
            Mutant::SwapAtWindow => {
                Some([Some(up.clone()), self.kept_back.take()].into_iter().flatten().collect())
            }
            Mutant::LoseThousandth if self.sent.is_multiple_of(THOUSAND) => Some(Self::pretend(up)),
            Mutant::RefuseAndSend if self.sent == super::spoiler::ODD => {
                if let Up::Send { message, .. } = up {
                    let text = "no room";
                    crate::protocol::say(&crate::protocol::Line::Error {
                        code: "full",
                        definite: true,
                        message: Some(message),
                        text,
                    });
                }
                self.unheard += 1;
                Some(vec![up.clone()])
            }
            _ => None,
        }
    }

    /// Notes a view, and applies defects to its members.
    pub(super) fn view_wrongly(&mut self, members: &mut [String]) {
        self.course.views += 1;
        self.course.since_view = 0;
        self.course.members.extend(members.iter().cloned());
        if self.mutant == Some(Mutant::ViewOrder) && self.course.views > 1 {
            members.reverse();
        }
    }

    /// MUTANT `ignore-leave`: returns whether the member leaves when it is asked to.
    pub fn leaves(&self) -> bool {
        self.mutant != Some(Mutant::IgnoreLeave)
    }

    /// MUTANT `ignore-full-disk`: returns whether the member halts when its log cannot be written.
    pub fn minds_a_full_disk(&self) -> bool {
        self.mutant != Some(Mutant::IgnoreFullDisk)
    }

    /// MUTANT `durable-unsynced`: returns whether the log is synced before deliveries are reported
    /// durable.
    pub fn syncs(&self) -> bool {
        self.mutant != Some(Mutant::DurableUnsynced)
    }

    /// MUTANT `old-view`: returns the view that a delivery names.
    pub fn view_named(&self, view: Option<u64>) -> Option<u64> {
        let is_old = self.mutant == Some(Mutant::OldView)
            && self.course.views > 1
            && self.course.since_view <= 1;
        view.map(|view| if is_old { view - 1 } else { view })
    }

    /// MUTANT `replay-as-new`: returns whether the member marks replays.
    pub fn marks_replays(&self) -> bool {
        self.mutant != Some(Mutant::ReplayAsNew)
    }
}
