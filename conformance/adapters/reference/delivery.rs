//! Delivery: stable entries go to the application, then to the log, and are then reported durable.

use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::greeting::{Greeting, greet};
use crate::mutants::{Spoiler, lock};
use crate::protocol::{Line, digest, halt, name, say};
use crate::step::Step;
use crate::storage::{DeliveryFile, Kept, UNTOLD_MAX};
use crate::wire::Entry;

/// The application side of a member.
pub struct ReferenceDelivery {
    /// The log of deliveries, if the member keeps one.
    log: Option<DeliveryFile>,
    /// The groups of the member.
    own: Vec<String>,
    pause_ms: Arc<AtomicU64>,
    spoiler: Arc<Mutex<Spoiler>>,
    /// The installed view of each group of the member.
    views: BTreeMap<String, u64>,
    /// Number of deliveries in each group since the start, including replays.
    delivered: BTreeMap<String, u64>,
    /// Groups with durable deliveries that are not reported yet.
    untold: BTreeSet<String>,
    untold_count: usize,
}

impl ReferenceDelivery {
    /// Creates the application side without deliveries.
    pub fn new(
        log: Option<DeliveryFile>,
        own: Vec<String>,
        pause_ms: Arc<AtomicU64>,
        spoiler: Arc<Mutex<Spoiler>>,
    ) -> Self {
        Self {
            log,
            own,
            pause_ms,
            spoiler,
            views: BTreeMap::new(),
            delivered: BTreeMap::new(),
            untold: BTreeSet::new(),
            untold_count: 0,
        }
    }

    /// Replays the deliveries of earlier incarnations of the node.
    fn replay(&mut self, kept: Vec<Kept>) {
        let replays = lock(&self.spoiler).replays(kept);
        for delivery in replays {
            self.deliver(&delivery, true);
        }
        self.tell_durable();
    }

    /// Greets the driver at the right time, and handles steps until the member ends.
    pub fn run(mut self, kept: Vec<Kept>, greeting: Greeting, steps: &Receiver<Step>) {
        if greeting == Greeting::AtOnce {
            self.greet();
        }
        let mut next = steps.recv();
        if greeting == Greeting::WithFirstStep {
            self.greet();
        }
        self.replay(kept);
        while let Ok(step) = next {
            if matches!(step, Step::Current) && greeting == Greeting::WhenCurrent {
                self.greet();
            }
            let spoiled = lock(&self.spoiler).steps(step);
            for step in spoiled {
                self.take(step);
            }
            if self.untold_count >= UNTOLD_MAX {
                self.tell_durable();
            }
            next = steps.try_recv().or_else(|_| {
                // Steps that arrive together are reported durable together.
                self.tell_durable();
                steps.recv()
            });
        }
    }

    /// A member without storage has no views.
    fn greet(&self) {
        greet(self.log.is_none());
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Entry(Entry::Message { sender, groups, payload }) => {
                let Some(group) = self.group_of(&groups) else { return };
                let delivery =
                    Kept { view: self.views.get(&group).copied(), group, sender, payload };
                self.deliver(&delivery, false);
                let kept = self.log.as_mut().map(|log| log.keep(&delivery));
                self.mind(kept);
                std::thread::sleep(Duration::from_millis(self.pause_ms.swap(0, Ordering::Relaxed)));
            }
            Step::State(Entry::Message { sender, groups, payload }) => {
                let Some(group) = self.group_of(&groups) else { return };
                self.deliver(&Kept { view: None, group, sender, payload }, true);
            }
            Step::State(_) | Step::Current => {}
            Step::Leads { group, term } => say(&Line::Leader { group: &group, term: Some(term) }),
            Step::Entry(Entry::View { group, view, members }) => {
                say(&Line::View { group: &group, view, members: &members });
                self.views.insert(group, view);
            }
            Step::Entry(Entry::Left) => {
                self.tell_durable();
                halt("left", "");
            }
            Step::Halt(text) => halt("halted", &text),
        }
    }

    /// Returns the group through which a message for these groups is delivered.
    fn group_of(&self, groups: &[String]) -> Option<String> {
        let has_view = |group: &&String| self.views.contains_key(*group);
        let is_own = |group: &&String| self.own.contains(*group);
        let mine = groups.iter().find(has_view).or_else(|| groups.iter().find(is_own));
        mine.or(groups.first()).cloned()
    }

    /// Calls the application, which is the driver.
    fn deliver(&mut self, delivery: &Kept, replayed: bool) {
        let Kept { group, view, sender, payload } = delivery;
        let (view, replayed) = {
            let spoiler = lock(&self.spoiler);
            (spoiler.view_named(*view), replayed && spoiler.marks_replays())
        };
        let sequence = self.delivered.entry(group.clone()).or_default();
        say(&Line::Deliver {
            message: name(payload),
            sender,
            group,
            view,
            sequence: Some(*sequence),
            bytes: payload.len(),
            digest: digest(payload.as_bytes()),
            replayed,
        });
        *sequence += 1;
        self.untold.insert(group.clone());
        self.untold_count += 1;
    }

    /// Halts if the log could not be written.
    fn mind(&self, written: Option<io::Result<()>>) {
        if let Some(Err(error)) = written
            && lock(&self.spoiler).minds_a_full_disk()
        {
            halt("halted", &format!("cannot write the log: {error}"));
        }
    }

    fn tell_durable(&mut self) {
        if self.untold.is_empty() {
            return;
        }
        self.untold_count = 0;
        if lock(&self.spoiler).syncs() {
            self.mind(self.log.as_ref().map(DeliveryFile::sync));
        }
        for group in std::mem::take(&mut self.untold) {
            let upto = self.delivered.get(&group).map_or(0, |count| count - 1);
            let upto = lock(&self.spoiler).durable(upto);
            say(&Line::Durable { group: &group, upto });
        }
    }
}
