//! One group at one member: a connection of its own, and a thread that tells the driver what comes.
//!
//! CPG has one group for each connection (cpg_join(3)), and nothing orders the upcalls of two.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::Sender;
use std::time::Duration;

use crate::Event;
use crate::cpg::{Address, Change, Connection, CorosyncError, GroupName, Inbox, Ring, Upcalls};
use crate::members::Members;
use crate::protocol::{self, Line, tell};
use crate::views::{Numbering, View};

/// Between two looks at whether the program ends.
const TICK: Duration = Duration::from_millis(500);

/// What a group's thread says to the main one.
#[derive(Debug)]
pub enum Notice {
    /// A view was installed, with so many members.
    View {
        /// The group.
        group: String,
        /// How many.
        members: usize,
    },
    /// This member has left.
    Left,
    /// The daemon is gone, or the driver.
    Lost(String),
}

/// The side that joins, sends and leaves.
pub struct Group {
    /// Its name in the run.
    pub name: String,
    /// Its name in Corosync.
    corosync_name: GroupName,
    connection: Connection,
}

impl Group {
    /// A group that was not joined yet.
    #[must_use]
    pub fn new(name: String, corosync_name: GroupName, connection: Connection) -> Self {
        Self { name, corosync_name, connection }
    }

    /// Asks to be a member.
    ///
    /// # Errors
    /// Corosync's.
    pub fn join(&self) -> Result<(), CorosyncError> {
        self.connection.join(&self.corosync_name)
    }

    /// Asks to be none.
    ///
    /// # Errors
    /// Corosync's.
    pub fn leave(&self) -> Result<(), CorosyncError> {
        self.connection.leave(&self.corosync_name)
    }

    /// Sends.
    ///
    /// # Errors
    /// Corosync's.
    pub fn multicast(&self, payload: &[u8]) -> Result<(), CorosyncError> {
        self.connection.multicast(payload)
    }
}

/// The side that is told.
pub struct Deliveries {
    /// The group.
    pub group: String,
    /// This member's process.
    pub myself: Address,
    /// The names of processes.
    pub members: Members,
    /// Ids for views.
    pub numbering: Numbering,
    /// How much longer the next upcall takes, in milliseconds.
    pub pause_ms: Arc<AtomicU64>,
    /// The main thread.
    pub notices: Sender<Event>,
    /// Whether this member has left, or nobody listens any more.
    pub over: bool,
}

impl Deliveries {
    /// Makes upcalls until this member has left or the daemon is gone.
    pub fn run(mut self, mut inbox: Inbox) {
        while !self.over {
            if let Err(error) = inbox.dispatch(TICK, &mut self) {
                self.notify(Notice::Lost(format!("{}: the daemon: {error}", self.group)));
                return;
            }
        }
    }

    fn notify(&mut self, notice: Notice) {
        // The main thread is gone only when the program ends.
        self.over |= self.notices.send(Event::Notice(notice)).is_err();
    }

    fn say(&mut self, answer: &Line<'_>) {
        if let Err(error) = tell(answer) {
            self.notify(Notice::Lost(format!("the driver: {error}")));
            self.over = true;
        }
    }

    fn installed(&mut self, view: &View) {
        let members: Vec<String> =
            view.members.iter().map(|of| self.members.name(*of).to_owned()).collect();
        let group = self.group.clone();
        self.say(&Line::View { group: &group, view: view.id, members: &members });
        self.notify(Notice::View { group, members: members.len() });
    }
}

impl Upcalls for Deliveries {
    fn deliver(&mut self, from: Address, payload: &[u8]) {
        if self.numbering.holds() {
            eprintln!("{}: a message between a change of membership and its ring", self.group);
        }
        // What is no text is shown as well as can be.
        let text = String::from_utf8_lossy(payload);
        let sender = self.members.name(from).to_owned();
        let group = self.group.clone();
        self.say(&Line::Deliver {
            message: protocol::name(&text),
            sender: &sender,
            group: &group,
            bytes: payload.len(),
            digest: protocol::digest(payload),
            view: None,
            sequence: None,
            replayed: false,
        });
        let pause_ms = self.pause_ms.swap(0, Ordering::Relaxed);
        if pause_ms > 0 {
            std::thread::sleep(Duration::from_millis(pause_ms));
        }
    }

    fn change(&mut self, change: Change) {
        eprintln!("{}: {change:?}", self.group);
        let left: Vec<Address> = change.left.iter().map(|(of, _)| *of).collect();
        if left.contains(&self.myself) {
            // "A process is only deemed to have left the group once it has been notified": no view
            // of its own.
            self.over = true;
            return self.notify(Notice::Left);
        }
        if let Some(view) = self.numbering.change(change) {
            self.installed(&view);
        }
        for gone in left {
            self.members.forget(gone);
        }
    }

    fn ring(&mut self, ring: Ring) {
        eprintln!("{}: {ring:?}", self.group);
        for view in self.numbering.ring(ring) {
            self.installed(&view);
        }
    }

    fn is_over(&self) -> bool {
        self.over
    }
}
