//! A member, with its disk, its log, and its answers.

use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{Batch, Log, Record, Sequence};

use super::answers::{Disk, OwnedLog};
use super::values;
use crate::support::{Chance, SMALL, identity};

/// The error when power is lost at all members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PowerCut;

/// A message, with the view in which it was delivered.
pub type MessageInView = (u64, Vec<u8>);

pub struct LoggedMember {
    pub disk: PowerLossFolder,
    /// The member's log; `None` while power is off.
    pub log: Option<Log<PowerLossFolder>>,
    /// Deliveries that have not been committed.
    batch: Batch,
}

impl LoggedMember {
    pub fn new() -> Self {
        let disk = PowerLossFolder::new(Faults::default());
        Self { disk, log: None, batch: Batch::new() }
    }

    /// Loses and restores power. Power is cut again at the operation with the given number.
    pub fn lose_power(&mut self, chance: &mut Chance, power_cut_at: Option<u64>) {
        self.log = None;
        self.batch.clear();
        let faults = Faults { power_cut_at, ..Faults::default() };
        self.disk = self.disk.after_power_loss(|| chance.is_one_of(2), faults);
    }

    /// Ends the member's process, which loses uncommitted deliveries.
    pub fn kill(&mut self) {
        self.batch.clear();
    }

    /// Opens the log in the next process.
    pub fn open(&mut self) -> Result<(), PowerCut> {
        let opened = Log::open(self.disk.clone(), &identity(), SMALL);
        self.log = Some(opened.map_err(|_| PowerCut)?.0);
        Ok(())
    }

    pub fn log(&mut self) -> &mut Log<PowerLossFolder> {
        self.log.as_mut().expect("power is on")
    }

    /// Returns the number of delivered messages.
    pub fn delivered(&mut self) -> u64 {
        self.batch.next().unwrap_or(self.log().end()).0
    }

    pub fn durable(&mut self) -> u64 {
        self.log().end().0
    }

    pub fn deliver(&mut self, message: &MessageInView) {
        let sequence = self.delivered();
        self.batch.push(&record(sequence, message)).expect("in order");
    }

    pub fn commit(&mut self) -> Result<(), PowerCut> {
        let Self { log, batch, .. } = self;
        log.as_mut().expect("power is on").commit(batch).map_err(|_| PowerCut)?;
        Ok(())
    }

    /// Returns the member's answer in a restart.
    pub fn answer(&mut self) -> Disk {
        let log = self.log();
        let damaged = log.damaged().map(|run| (run.0.0, run.1.0)).collect();
        let (first, end) = (log.first().0, log.end().0);
        let sound = (first..end).rev().find_map(|at| Some(read(log, at)?.0));
        let decided = values::decided(log);
        let has_log = decided.is_some() || end > 0;
        let state =
            OwnedLog { first, view: sound.unwrap_or(0), end, damaged, ..OwnedLog::default() };
        Disk {
            decided,
            promise: values::promise(log),
            heard: values::heard(log),
            logs: vec![has_log.then_some(state)],
            with_less: None,
        }
    }

    /// Replaces damaged messages with those of another member.
    pub fn repair(&mut self, from: u64, messages: &[MessageInView]) -> Result<(), PowerCut> {
        let records: Vec<_> = (from..).zip(messages).map(|(at, of)| record(at, of)).collect();
        self.log().replace(&records).map_err(|_| PowerCut)
    }

    pub fn cut(&mut self, end: u64) -> Result<bool, PowerCut> {
        Ok(self.log().cut(Sequence(end)).map_err(|_| PowerCut)?.is_some())
    }

    /// Returns all messages up to an end, none of which may be damaged.
    pub fn messages(&mut self, end: u64) -> Vec<MessageInView> {
        let log = self.log();
        (0..end).map(|at| read(log, at).unwrap_or_else(|| panic!("{at} is damaged"))).collect()
    }

    pub fn message(&mut self, at: u64) -> Option<MessageInView> {
        read(self.log(), at)
    }
}

fn read(log: &Log<PowerLossFolder>, at: u64) -> Option<MessageInView> {
    let mut records = log.records(Sequence(at)).ok()?;
    let record = records.read_next()?.ok()?;
    Some((record.view.0, record.bytes.to_vec()))
}

fn record(sequence: u64, (view, bytes): &MessageInView) -> Record<'_> {
    Record {
        sequence: Sequence(sequence),
        view: ViewId(*view),
        place: Place(sequence),
        sender: NodeId(0),
        is_large: false,
        bytes,
    }
}
