//! Delivery: what is stable goes to the application, then to the log, and then it is told to be
//! durable.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Receiver;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use crate::mutants::{Spoiler, lock};
use crate::protocol::{Line, digest, halt, name, say};
use crate::storage::{Kept, Log};
use crate::wire::Entry;

/// So many deliveries are told to be durable at the latest.
const UNTOLD_MAX: u64 = 16;

/// What the member does next.
#[derive(Clone, Debug)]
pub enum Step {
    /// A stable entry.
    Entry(Entry),
    /// The member gives up.
    Halt(String),
}

/// The member's application side.
pub struct Delivery {
    log: Log,
    pause_ms: Arc<AtomicU64>,
    spoiler: Arc<Mutex<Spoiler>>,
    /// The installed view of each group of the member.
    views: BTreeMap<String, u64>,
    /// How much was delivered in each group since the start, replays included.
    delivered: BTreeMap<String, u64>,
    /// Groups in which something is durable and not yet said to be.
    untold: BTreeSet<String>,
    untold_count: u64,
}

impl Delivery {
    /// Nothing is delivered yet.
    pub fn new(log: Log, pause_ms: Arc<AtomicU64>, spoiler: Arc<Mutex<Spoiler>>) -> Self {
        Self {
            log,
            pause_ms,
            spoiler,
            views: BTreeMap::new(),
            delivered: BTreeMap::new(),
            untold: BTreeSet::new(),
            untold_count: 0,
        }
    }

    /// Delivers again what earlier starts of the node delivered.
    fn replay(&mut self, kept: Vec<Kept>) {
        let replays = lock(&self.spoiler).replays(kept);
        for delivery in replays {
            self.deliver(&delivery, true);
        }
        self.tell_durable();
    }

    /// Greets the driver once the member has its first view, if it is to have any, and takes steps
    /// until the member is at its end.
    pub fn run(mut self, kept: Vec<Kept>, outsider: bool, steps: &Receiver<Step>) {
        if outsider {
            crate::member::greet();
        }
        let mut next = steps.recv();
        if !outsider {
            crate::member::greet();
        }
        self.replay(kept);
        while let Ok(step) = next {
            let spoiled = lock(&self.spoiler).steps(step);
            for step in spoiled {
                self.take(step);
            }
            if self.untold_count >= UNTOLD_MAX {
                self.tell_durable();
            }
            next = steps.try_recv().or_else(|_| {
                // What came in one go is told to be durable in one go.
                self.tell_durable();
                steps.recv()
            });
        }
    }

    fn take(&mut self, step: Step) {
        match step {
            Step::Entry(Entry::Message { sender, groups, payload }) => {
                let mine = groups.iter().find(|group| self.views.contains_key(*group));
                let Some(group) = mine.or(groups.first()).cloned() else { return };
                let delivery =
                    Kept { view: self.views.get(&group).copied(), group, sender, payload };
                self.deliver(&delivery, false);
                if let Err(error) = self.log.keep(&delivery) {
                    halt("halted", &format!("the log cannot be written: {error}"));
                }
                std::thread::sleep(Duration::from_millis(self.pause_ms.swap(0, Ordering::Relaxed)));
            }
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

    /// Calls the application, which is the driver.
    fn deliver(&mut self, delivery: &Kept, replayed: bool) {
        let Kept { group, view, sender, payload } = delivery;
        let sequence = self.delivered.entry(group.clone()).or_default();
        say(&Line::Deliver {
            message: name(payload),
            sender,
            group,
            view: *view,
            sequence: Some(*sequence),
            bytes: payload.len(),
            digest: digest(payload.as_bytes()),
            replayed,
        });
        *sequence += 1;
        self.untold.insert(group.clone());
        self.untold_count += 1;
    }

    fn tell_durable(&mut self) {
        self.untold_count = 0;
        for group in std::mem::take(&mut self.untold) {
            let upto = self.delivered.get(&group).map_or(0, |count| count - 1);
            let upto = lock(&self.spoiler).durable(upto);
            say(&Line::Durable { group: &group, upto });
        }
    }
}
