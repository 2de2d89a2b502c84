//! A member that has joined: carries out commands until it is over.

use std::collections::VecDeque;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;

use crate::cpg::CorosyncError;
use crate::daemon::Daemon;
use crate::group::{Group, Notice};
use crate::protocol::{Command, Line, payload, tell};
use crate::{Event, Events};

/// Between two tries of a send that Corosync had no room for.
const RETRY: Duration = Duration::from_millis(1);

/// Between two looks when nothing is waiting.
const TICK: Duration = Duration::from_secs(1);

/// How long a member that has stopped stays in its groups: all are told to stop at once, and one
/// that was told later would still see the others go, view by view, and lose its majority.
const LINGER: Duration = Duration::from_millis(200);

/// Something that Corosync may put off; done in the order in which it was asked for.
#[derive(Debug)]
enum Work {
    Multicast { message: String, group: String, payload: Vec<u8> },
    Leave,
}

/// How a member comes to its end.
enum Over {
    Done,
    Left,
    Halted(String),
}

/// A member.
pub struct Member {
    groups: Vec<Group>,
    daemon: Option<Daemon>,
    pause_ms: Arc<AtomicU64>,
    inbox: Events,
    work: VecDeque<Work>,
    /// Groups that were not left yet, once this member leaves.
    leaving: Option<usize>,
    early: Vec<Event>,
}

impl Member {
    /// A member of `groups`. `early` is what came before it was one.
    #[must_use]
    pub fn new(
        groups: Vec<Group>,
        daemon: Option<Daemon>,
        pause_ms: Arc<AtomicU64>,
        inbox: Events,
        early: Vec<Event>,
    ) -> Self {
        Self { groups, daemon, pause_ms, inbox, work: VecDeque::new(), leaving: None, early }
    }

    /// Carries out commands until it is over.
    ///
    /// # Errors
    /// The driver is gone.
    pub fn run(mut self) -> Result<(), String> {
        let over = self.serve().map_err(|error| format!("the driver: {error}"))?;
        let (reason, text) = match &over {
            Over::Done => ("done", ""),
            Over::Left => ("left", ""),
            Over::Halted(text) => ("halted", text.as_str()),
        };
        tell(&Line::Halt { reason, text }).map_err(|error| error.to_string())?;
        if matches!(over, Over::Done) {
            match &mut self.daemon {
                Some(daemon) => daemon.kill(),
                None => std::thread::sleep(LINGER),
            }
        }
        drop(self.daemon.take());
        // The groups' threads sit in waits; the process's end is theirs.
        std::process::exit(0)
    }

    fn serve(&mut self) -> std::io::Result<Over> {
        for event in std::mem::take(&mut self.early) {
            if let Some(over) = self.event(event)? {
                return Ok(over);
            }
        }
        loop {
            let patience = if self.work.is_empty() { TICK } else { RETRY };
            match self.inbox.recv_timeout(patience) {
                Ok(event) => {
                    if let Some(over) = self.event(event)? {
                        return Ok(over);
                    }
                }
                Err(RecvTimeoutError::Timeout) => {}
                Err(RecvTimeoutError::Disconnected) => return Ok(Over::Done),
            }
            while let Some(work) = self.work.pop_front() {
                if let Some(put_off) = self.try_to(work)? {
                    self.work.push_front(put_off);
                    break;
                }
            }
            if self.leaving == Some(0) {
                return Ok(Over::Left);
            }
        }
    }

    fn event(&mut self, event: Event) -> std::io::Result<Option<Over>> {
        match event {
            Event::Command(line) => self.command(&line),
            Event::InputOver => Ok(Some(Over::Done)),
            Event::Notice(Notice::View { .. }) => Ok(None),
            Event::Notice(Notice::Lost(text)) => Ok(Some(Over::Halted(text))),
            Event::Notice(Notice::Left) => {
                let remaining = self.leaving.map_or(0, |count| count.saturating_sub(1));
                self.leaving = Some(remaining);
                Ok(None)
            }
        }
    }

    fn command(&mut self, line: &str) -> std::io::Result<Option<Over>> {
        match serde_json::from_str(line) {
            Ok(Command::Multicast { message, groups, bytes }) => {
                self.multicast(message, groups, bytes)?
            }
            Ok(Command::Pause { ms }) => {
                self.pause_ms.fetch_add(ms, Ordering::Relaxed);
                tell(&Line::Ok { message: None })?;
            }
            Ok(Command::Leave) => self.work.push_back(Work::Leave),
            Ok(Command::Stop) => return Ok(Some(Over::Done)),
            Ok(Command::Stats) => refuse("unsupported", None, "CPG counts nothing")?,
            Ok(Command::Init(_)) => refuse("again", None, "a second init")?,
            Ok(Command::Unknown) => refuse("unsupported", None, "no such command here")?,
            Err(error) => refuse("unsupported", None, &format!("{error}"))?,
        }
        Ok(None)
    }

    fn multicast(
        &mut self,
        message: String,
        groups: Vec<String>,
        bytes: usize,
    ) -> std::io::Result<()> {
        let [group] = <[String; 1]>::try_from(groups).unwrap_or_default();
        if self.groups.iter().any(|joined| joined.name == group) {
            let payload = payload(&message, bytes).into_bytes();
            self.work.push_back(Work::Multicast { message, group, payload });
            return Ok(());
        }
        refuse(
            "unsupported",
            Some(&message),
            "a message is for one group that its sender has joined",
        )
    }

    /// Does it, or gives it back if Corosync cannot do it yet.
    fn try_to(&mut self, work: Work) -> std::io::Result<Option<Work>> {
        match &work {
            Work::Multicast { message, group, payload } => {
                let joined = self.groups.iter().find(|joined| joined.name == *group);
                match joined.map_or(Ok(()), |joined| joined.multicast(payload)) {
                    Ok(()) => tell(&Line::Ok { message: Some(message) })?,
                    Err(CorosyncError::TRY_AGAIN) => return Ok(Some(work)),
                    Err(error) => {
                        let text = error.to_string();
                        let definite = error.is_definite();
                        tell(&Line::Error {
                            code: error.name(),
                            definite,
                            message: Some(message),
                            text: &text,
                        })?;
                    }
                }
            }
            Work::Leave => {
                let count = self.leaving.get_or_insert(self.groups.len());
                // Groups are left from the last to the first; one that cannot be left yet is tried
                // again.
                while let Some(group) = self.groups.last() {
                    match group.leave() {
                        Err(CorosyncError::TRY_AGAIN) => return Ok(Some(work)),
                        Err(error) => {
                            eprintln!("{}: cpg_leave: {error}", group.name);
                            *count = count.saturating_sub(1);
                        }
                        Ok(()) => {}
                    }
                    self.groups.pop();
                }
            }
        }
        Ok(None)
    }
}

fn refuse(code: &str, message: Option<&str>, text: &str) -> std::io::Result<()> {
    tell(&Line::Error { code, definite: true, message, text })
}
