//! Defects of a member.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::mpsc::Sender;
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use super::mutation::{Mutant, Mutation};
use super::siblings::Course;
use crate::protocol::{Init, Line, RunGroup, payload, say};
use crate::step::Step;
use crate::storage::{Kept, UNTOLD_MAX};
use crate::wire::{Entry, Up};

/// The message with which most mutants are wrong: the fifth that the node delivers or sends.
pub(super) const ODD: u64 = 5;

/// The first message with which `deliver-alone` is wrong.
const ALONE_FROM: u64 = 33;

/// The delay of `deliver-alone` between delivering and sending a message.
const ALONE_DELAY: Duration = Duration::from_millis(100);

/// How long `deliver-pending` continues to accept messages after it was removed.
const PENDING_DELAY: Duration = Duration::from_millis(50);

/// How long `stall` still passes on messages that were sent before the crash.
const STALL_DELAY: Duration = Duration::from_millis(20);

/// How long `hang` does not stop: longer than any driver waits, but limited.
const HANG: Duration = Duration::from_secs(600);

/// How long the other nodes of `lose-before-stop` continue after the request to stop.
const STOP_DELAY: Duration = Duration::from_millis(300);

/// Locks the member's spoiler for one of its threads.
pub fn lock(spoiler: &Mutex<Spoiler>) -> MutexGuard<'_, Spoiler> {
    spoiler.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The defect as far as it concerns one member. Without a mutant, or at another node, it changes
/// nothing.
#[derive(Default)]
pub struct Spoiler {
    /// The defect at this node.
    pub(super) mutant: Option<Mutant>,
    /// The state on which some defects depend.
    pub(super) course: Course,
    /// Number of answers to withhold from the driver, because it has already received other ones.
    pub(super) unheard: u64,
    node: String,
    /// Whether this is the node with the defect.
    is_at: bool,
    /// That node.
    gone: String,
    /// The last view of each group, and its members.
    installed: BTreeMap<String, (u64, Vec<String>)>,
    /// The other members of each group.
    others: BTreeMap<String, BTreeSet<String>>,
    /// Number of messages that the node was asked to send.
    pub(super) sent: u64,
    /// Number of its messages that were reported stable.
    answered: u64,
    /// Number of messages that it delivered.
    pub(super) delivered: u64,
    /// Whether the node knows of an earlier incarnation.
    replayed: bool,
    /// Whether the defect has already occurred.
    done: bool,
    /// A message to send after the next one.
    pub(super) kept_back: Option<Up>,
    /// A message that is delivered but not sent.
    unsent: Option<Up>,
    /// A message to deliver after the next one.
    held: Option<Entry>,
    /// Number of upcalls that have no position in a log.
    extra: u64,
    /// Local messages that were sent and not yet delivered, by name.
    pending: Vec<(String, Entry)>,
    /// The channel for steps that the defect invents.
    own_steps: Option<Sender<Step>>,
    /// Each group's size, and the time since which it is smaller than before.
    sizes: BTreeMap<String, usize>,
    shrunk: Option<Instant>,
}

impl Spoiler {
    /// Creates the spoiler of this node.
    pub fn new(mutation: Option<&Mutation>, init: &Init) -> Self {
        use Mutant::{
            Chatter, ForgetAll, IgnoreFullDisk, JoinLate, LoseBeforeStop, LoseOnRestart,
            LoseOnSecondRestart, ReorderOnRestart, ReplayAsNew, Stall, ViewBack,
        };
        let everywhere = |mutant| {
            matches!(
                mutant,
                Chatter
                    | ForgetAll
                    | IgnoreFullDisk
                    | JoinLate
                    | LoseBeforeStop
                    | LoseOnRestart
                    | LoseOnSecondRestart
                    | ReorderOnRestart
                    | ReplayAsNew
                    | Stall
                    | ViewBack
            )
        };
        let at = mutation.and_then(|mutation| mutation.at.as_deref());
        let here = |mutation: &&Mutation| {
            // A node that was killed for delivering early behaves correctly when it comes back.
            let made_up_for = mutation.mutant == Mutant::DeliverEarly && init.inc > 1;
            let is_named = mutation.at.as_deref().is_some_and(|at| at == init.node || at == "all");
            let is_meant = is_named && !made_up_for;
            let is_early = mutation.mutant == Mutant::LoseOnSecondRestart && init.inc < 3;
            !is_early && (everywhere(mutation.mutant) || is_meant)
        };
        let of_others = |group: &RunGroup| {
            let others = group.members.iter().filter(|member| **member != init.node);
            (group.group.clone(), others.cloned().collect())
        };
        Self {
            mutant: mutation.filter(here).map(|mutation| mutation.mutant),
            node: init.node.clone(),
            is_at: at.is_some_and(|at| at == init.node || at == "all"),
            gone: at.unwrap_or_default().to_owned(),
            course: Course::of(init.join),
            others: init
                .groups
                .iter()
                .filter(|group| group.all_members.contains(&init.node))
                .map(of_others)
                .collect(),
            ..Self::default()
        }
    }

    /// Returns the messages to send to the sequencer instead of this one.
    pub fn sends(&mut self, up: Up) -> Vec<Up> {
        self.sent += 1;
        let odd = self.sent == ODD;
        if let Some(wrong) = self.send_wrongly(&up) {
            return wrong;
        }
        match self.mutant {
            // MUTANT: the message is accepted, and goes nowhere.
            Some(Mutant::DropEverywhere | Mutant::LoseFromClient | Mutant::LoseBeforeStop)
                if odd && self.is_at =>
            {
                Self::pretend(&up)
            }
            // MUTANT: no message is sent from now on, but the first is still delivered.
            Some(Mutant::DeliverEarly | Mutant::DeliverAfterLeaving) => {
                self.unsent = Some(up).filter(|_| self.sent == 1).or(self.unsent.take());
                Vec::new()
            }
            // MUTANT: the messages are accepted, and go nowhere.
            Some(Mutant::ForgetAtLeave) if self.sent >= ODD => Self::pretend(&up),
            Some(Mutant::DeliverPending) => {
                self.remember(&up);
                vec![up]
            }
            Some(Mutant::DeliverAlone) => {
                // Otherwise the message would overtake earlier ones and break the sender's order
                // too.
                let alone = self.sent >= ALONE_FROM && self.pending.is_empty();
                self.remember(&up);
                if alone {
                    self.deliver_first(&up);
                }
                vec![up]
            }
            Some(Mutant::Stall)
                if self.shrunk.is_some_and(|since| since.elapsed() > STALL_DELAY) =>
            {
                Self::pretend(&up)
            }
            // MUTANT: the message is sent after the next one.
            Some(Mutant::SwapSender) if odd => {
                self.kept_back = Some(up);
                Vec::new()
            }
            Some(Mutant::SwapSender) => {
                [Some(up), self.kept_back.take()].into_iter().flatten().collect()
            }
            _ => vec![up],
        }
    }

    /// Sets the channel for steps that the defect invents.
    pub fn connect(&mut self, steps: Sender<Step>) {
        self.own_steps = Some(steps);
    }

    /// Returns the delay before a message is sent to the sequencer.
    pub fn send_delay(&self) -> Duration {
        let waits = self.mutant == Some(Mutant::DeliverAlone) && self.sent >= ALONE_FROM;
        if waits { ALONE_DELAY } else { Duration::ZERO }
    }

    /// MUTANT `deliver-alone`, `deliver-pending`: stores a message until it is delivered.
    fn remember(&mut self, up: &Up) {
        if let Up::Send { message, groups, payload } = up {
            let (groups, payload) = (groups.clone(), payload.clone());
            let entry = Entry::Message { sender: self.node.clone(), groups, payload };
            self.pending.push((message.clone(), entry));
        }
    }

    /// MUTANT `deliver-alone`: delivers a message before it is sent.
    fn deliver_first(&mut self, up: &Up) {
        let (Up::Send { groups, payload, .. }, Some(steps)) = (up, &self.own_steps) else {
            return;
        };
        let (groups, payload) = (groups.clone(), payload.clone());
        let sender = self.node.clone();
        let _ = steps.send(Step::Entry(Entry::Message { sender, groups, payload }));
    }

    /// MUTANT `no-answer`: returns whether the driver gets an answer to an accepted message.
    pub fn answers(&mut self) -> bool {
        self.answered += 1;
        // The answers of one connection arrive in message order.
        if self.unheard > 0 && self.answered == ODD {
            return false;
        }
        !(self.mutant == Some(Mutant::NoAnswer) && self.answered == ODD)
    }

    pub(super) fn pretend(up: &Up) -> Vec<Up> {
        if let Up::Send { message, .. } = up {
            say(&Line::Ok { message: Some(message) });
        }
        Vec::new()
    }

    /// Returns the member's next steps instead of this one.
    pub fn steps(&mut self, step: Step) -> Vec<Step> {
        match step {
            Step::Entry(entry @ Entry::Message { .. }) => self.message(entry),
            Step::Entry(Entry::View { group, view, members }) => self.view(group, view, members),
            Step::Halt(_) if self.mutant == Some(Mutant::DeliverPending) => {
                let pending = std::mem::take(&mut self.pending).into_iter();
                pending.map(|(_, entry)| Step::Entry(entry)).chain([step]).collect()
            }
            Step::Entry(Entry::Left)
            | Step::State(_)
            | Step::Current
            | Step::Leads { .. }
            | Step::Halt(_) => vec![step],
        }
    }

    fn message(&mut self, entry: Entry) -> Vec<Step> {
        let Entry::Message { sender, groups, payload: text } = entry.clone() else {
            return Vec::new();
        };
        let name = crate::protocol::name(&text);
        self.pending.retain(|(pending, _)| Some(pending.as_str()) != name);
        let before = self.unsent();
        self.delivered += 1;
        let odd = self.delivered == ODD;
        if let Some(wrong) = self.deliver_wrongly(&entry) {
            return before.into_iter().chain(wrong).map(Step::Entry).collect();
        }
        let other = |sender: &str, payload: String| Entry::Message {
            sender: sender.to_owned(),
            groups: groups.clone(),
            payload,
        };
        let entries = match self.mutant {
            Some(
                Mutant::Drop
                | Mutant::DifferentSet
                | Mutant::GapBeforeCrash
                | Mutant::GapBeforeLeaderCrash,
            ) if odd => Vec::new(),
            Some(
                Mutant::Swap
                | Mutant::ReorderAcrossGroups
                | Mutant::ReorderAfterCrash
                | Mutant::LateView
                | Mutant::SwapAfterView
                | Mutant::SwapOutsider,
            ) => self.hold(entry),
            Some(Mutant::Duplicate) if odd => self.with(entry.clone(), entry),
            Some(Mutant::Invent) if odd => {
                self.with(entry, other(&sender, payload("nobody/1/0", 64)))
            }
            Some(Mutant::LeakNull) if odd => self.with(entry, other(&sender, String::new())),
            Some(Mutant::Corrupt) if self.delivered >= ODD && !self.done && text.len() > 1 => {
                self.done = true;
                vec![other(&sender, format!("{}!", &text[..text.len() - 1]))]
            }
            Some(Mutant::WrongSender)
                if self.delivered >= ODD && !self.done && sender != self.node =>
            {
                self.done = true;
                vec![other(&self.node, text)]
            }
            Some(Mutant::GiveUp) if odd => {
                return vec![Step::Entry(entry), Step::Halt("no cause".to_owned())];
            }
            _ => vec![entry],
        };
        before.into_iter().chain(entries).map(Step::Entry).collect()
    }

    /// MUTANT `deliver-early`, `deliver-after-leaving`: takes the unsent message, to deliver it
    /// before anything else.
    fn unsent(&mut self) -> Option<Entry> {
        match self.unsent.take() {
            Some(Up::Send { groups, payload, .. }) => {
                Some(Entry::Message { sender: self.node.clone(), groups, payload })
            }
            _ => None,
        }
    }

    /// Adds an extra upcall.
    fn with(&mut self, entry: Entry, extra: Entry) -> Vec<Entry> {
        self.extra += 1;
        vec![entry, extra]
    }

    /// MUTANT `swap`, `reorder-across-groups`, `late-view`: once, delays an entry until after the
    /// next one.
    fn hold(&mut self, entry: Entry) -> Vec<Entry> {
        let Some(held) = self.held.take() else {
            if self.done || !self.is_to_be_held(&entry) {
                return vec![entry];
            }
            self.held = Some(entry);
            return Vec::new();
        };
        if self.may_swap(&held, &entry) {
            self.done = true;
            return vec![entry, held];
        }
        if self.mutant == Some(Mutant::LateView) {
            self.held = Some(held);
            return vec![entry];
        }
        self.held = Some(entry);
        vec![held]
    }

    /// Returns whether the entry may be swapped with the next one. An entry held at the end of the
    /// run would be lost, which is a different defect, so entries are held only as needed.
    fn is_to_be_held(&self, entry: &Entry) -> bool {
        match self.mutant {
            Some(Mutant::SwapAfterView | Mutant::SwapOutsider) => self.may_begin_swap(entry),
            Some(Mutant::LateView) => false,
            Some(Mutant::ReorderAfterCrash) => self.shrunk.is_some(),
            _ => self.delivered >= ODD,
        }
    }

    fn may_swap(&self, held: &Entry, next: &Entry) -> bool {
        match (self.mutant, held, next) {
            (
                Some(Mutant::Swap),
                Entry::Message { sender: one, groups, .. },
                Entry::Message { sender: two, groups: also, .. },
            ) => one != two && groups == also,
            (
                Some(Mutant::ReorderAcrossGroups | Mutant::ReorderAfterCrash),
                Entry::Message { groups, .. },
                Entry::Message { groups: others, .. },
            ) => {
                !groups.iter().any(|group| others.contains(group))
                    && self.someone_has_both(groups, others)
            }
            (
                Some(Mutant::SwapAfterView | Mutant::SwapOutsider),
                Entry::Message { sender: one, .. },
                Entry::Message { sender: two, .. },
            ) => one != two,
            (Some(Mutant::LateView), Entry::View { group, .. }, Entry::Message { groups, .. }) => {
                groups.contains(group)
            }
            _ => false,
        }
    }

    /// Returns whether the node is a member of a group.
    pub(super) fn has(&self, group: &str) -> bool {
        self.others.contains_key(group)
    }

    /// Returns whether another node delivers messages to both lists of groups.
    fn someone_has_both(&self, one: &[String], two: &[String]) -> bool {
        let others = |groups: &[String]| -> BTreeSet<&String> {
            groups.iter().filter_map(|group| self.others.get(group)).flatten().collect()
        };
        !others(one).is_disjoint(&others(two))
    }

    fn view(&mut self, group: String, view: u64, mut members: Vec<String>) -> Vec<Step> {
        let former = self.sizes.insert(group.clone(), members.len());
        if former.is_some_and(|former| members.len() < former) {
            self.shrunk = Some(Instant::now());
            // A member that has gone delivers nothing more, so its order cannot differ.
            let others = members.iter().filter(|member| **member != self.node).cloned();
            self.others.insert(group.clone(), others.collect());
        }
        let other = members.iter().position(|member| *member != self.node);
        if let Some(other) = other.filter(|_| self.mutant == Some(Mutant::ViewMismatch)) {
            members.remove(other);
        }
        self.view_wrongly(&mut members);
        self.installed.insert(group.clone(), (view, members.clone()));
        let held = self.held.take();
        let entry = Entry::View { group, view, members };
        if self.mutant == Some(Mutant::LateView) && self.delivered > 0 && !self.done {
            self.held = Some(entry);
            return held.into_iter().map(Step::Entry).collect();
        }
        // MUTANT `view-back`: the view is installed again.
        let again = self.replayed && self.mutant == Some(Mutant::ViewBack);
        let again = (again && !std::mem::replace(&mut self.done, true)).then(|| entry.clone());
        held.into_iter().chain([entry]).chain(again).map(Step::Entry).collect()
    }

    /// Returns the replays instead of these.
    pub fn replays(&mut self, mut kept: Vec<Kept>) -> Vec<Kept> {
        self.replayed = !kept.is_empty();
        match self.mutant {
            // With fewer, each of them might not have been reported durable yet.
            Some(Mutant::LoseOnRestart | Mutant::LoseOnSecondRestart) => {
                kept.truncate(kept.len().saturating_sub(UNTOLD_MAX + 1));
            }
            Some(Mutant::ForgetAll) => kept.clear(),
            Some(Mutant::ReorderOnRestart) => {
                // Replaying another sender's message first preserves each sender's own order.
                let other = kept.iter().position(|delivery| delivery.sender != kept[0].sender);
                if let Some(other) = other {
                    kept[..=other].rotate_right(1);
                }
            }
            _ => {}
        }
        kept
    }

    /// Returns the last durable position instead of this one.
    pub fn durable(&self, upto: u64) -> u64 {
        match self.mutant {
            Some(Mutant::DurableAhead) => upto + 3,
            Some(Mutant::DurableOfAll) => upto.max(self.delivered - 1),
            // The other mutants report the true position.
            _ => upto.saturating_sub(self.extra),
        }
    }

    /// MUTANT `chatter`: returns whether to post needless messages.
    pub fn chatters(&self) -> bool {
        self.mutant == Some(Mutant::Chatter)
    }

    /// MUTANT `deliver-pending`: returns how long the member continues after it was removed.
    pub fn halt_delay(&self) -> Duration {
        let waits = self.mutant == Some(Mutant::DeliverPending);
        if waits { PENDING_DELAY } else { Duration::ZERO }
    }

    /// Notes that the member is about to stop; returns how long stopping takes.
    pub fn stopping(&mut self) -> Duration {
        match self.mutant {
            Some(Mutant::Hang) => HANG,
            // MUTANT `lose-before-stop`: the other nodes continue without the first one that stops.
            Some(Mutant::LoseBeforeStop) if !self.is_at => {
                // If that node has not stopped by then, the views look like its removal.
                std::thread::sleep(STOP_DELAY);
                for (group, (view, mut members)) in std::mem::take(&mut self.installed) {
                    members.retain(|member| *member != self.gone);
                    let entry = Entry::View { group, view: view + 1, members };
                    self.own_steps.iter().for_each(|steps| {
                        let _ = steps.send(Step::Entry(entry.clone()));
                    });
                }
                STOP_DELAY
            }
            _ => Duration::ZERO,
        }
    }
}
