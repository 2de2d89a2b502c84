//! Small defects as real multicasts have them: at a change of views, when a counter wraps, after a
//! pause, with sizes at a limit, at a second start.

use std::time::{Duration, Instant};

use super::mutation::Mutant;
use super::spoiler::Spoiler;
use crate::wire::{Entry, Up};

/// What is longer than this is cut by `truncate-large`.
const LARGE_BYTES: usize = 8192;

/// Of each so many messages `lose-thousandth` loses one.
const THOUSAND: u64 = 1000;

/// What has this size is lost by `lose-kibibyte`.
const KIBIBYTE: usize = 1024;

/// From this size on `corrupt-huge` is wrong.
const HUGE_BYTES: usize = 1 << 20;

/// A counter of one byte begins anew after so many messages.
const WRAP: u64 = 256;

/// The window's length: the message after it takes the first slot again.
const WINDOW: u64 = 64;

/// A consumer that took longer than this is slow.
const SLOW: Duration = Duration::from_millis(200);

/// How many messages `join-late` leaves out.
const LATE: u64 = 3;

/// What these defects go by.
#[derive(Default)]
pub struct Course {
    /// How many views the member installed, in all groups.
    views: u64,
    /// Messages since the last of them.
    since_view: u64,
    /// The message before, and when it came.
    last: Option<(Entry, Instant)>,
    /// Whether the node joined running groups.
    joined: bool,
    /// Members of any group.
    members: std::collections::BTreeSet<String>,
}

impl Course {
    /// Of a node that joins running groups, or does not.
    pub(super) fn of(joined: bool) -> Self {
        Self { joined, ..Self::default() }
    }
}

impl Spoiler {
    /// What the member delivers in place of a message, if one of these defects decides.
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

    /// Whether a message is the first of two that change places for one of these defects.
    pub(super) fn may_begin_swap(&self, entry: &Entry) -> bool {
        let Entry::Message { sender, .. } = entry else { return false };
        match self.mutant {
            Some(Mutant::SwapAfterView) => self.course.views > 1 && self.course.since_view == 1,
            _ => !self.course.members.contains(sender),
        }
    }

    /// What goes to the sequencer in place of this, if one of these defects decides.
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

    /// Notes a view, and what is wrong with it.
    pub(super) fn view_wrongly(&mut self, members: &mut [String]) {
        self.course.views += 1;
        self.course.since_view = 0;
        self.course.members.extend(members.iter().cloned());
        if self.mutant == Some(Mutant::ViewOrder) && self.course.views > 1 {
            members.reverse();
        }
    }

    /// MUTANT `ignore-leave`: whether the member leaves when it is asked to.
    pub fn leaves(&self) -> bool {
        self.mutant != Some(Mutant::IgnoreLeave)
    }

    /// MUTANT `ignore-full-disk`: whether the member halts when its log cannot be written.
    pub fn minds_a_full_disk(&self) -> bool {
        self.mutant != Some(Mutant::IgnoreFullDisk)
    }

    /// MUTANT `durable-unsynced`: whether the log is synced before it is said to be durable.
    pub fn syncs(&self) -> bool {
        self.mutant != Some(Mutant::DurableUnsynced)
    }

    /// MUTANT `old-view`: the view that a delivery names.
    pub fn view_named(&self, view: Option<u64>) -> Option<u64> {
        let is_old = self.mutant == Some(Mutant::OldView)
            && self.course.views > 1
            && self.course.since_view <= 1;
        view.map(|view| if is_old { view - 1 } else { view })
    }

    /// MUTANT `replay-as-new`: whether the member says that a replay is one.
    pub fn marks_replays(&self) -> bool {
        self.mutant != Some(Mutant::ReplayAsNew)
    }
}
