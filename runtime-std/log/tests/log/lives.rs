//! Successive processes that use the same log. Each performs random actions chosen by a seed until
//! power is cut.

use tramontane_core::ids::ViewId;
use tramontane_log::power_loss::{Faults, PowerLossFolder};
use tramontane_log::{Batch, LetGoError, Log, Sequence, WriteError};

use crate::model::{CutOperation, Model, draw};
use crate::support::{Chance, SMALL, identity};

/// A disk, and the content that its log should have.
pub struct LogRun {
    pub folder: PowerLossFolder,
    pub model: Model,
    pub under_way: CutOperation,
    chance: Chance,
    drawn: u64,
    /// Event counts, which show that a search has reached its goals.
    pub reached: LivesReached,
}

/// Event counts.
#[derive(Clone, Copy, Debug, Default)]
pub struct LivesReached {
    pub crashes: u64,
    pub torn: u64,
    pub unknown: u64,
    pub recycled: u64,
    pub cuts: u64,
}

impl LogRun {
    pub fn new(seed: u64) -> Self {
        Self {
            folder: PowerLossFolder::new(Faults::default()),
            model: Model::default(),
            under_way: CutOperation::Nothing,
            chance: Chance::new(seed),
            drawn: 0,
            reached: LivesReached::default(),
        }
    }

    /// Opens the log in a new process, compares it with the model, and performs up to `deeds`
    /// actions. If a number is given, power is cut at the operation with that number. Returns the
    /// number of operations.
    pub fn live(&mut self, deeds: u64, power_cut_at: Option<u64>) -> u64 {
        self.folder = self.folder.after_process_end(Faults { power_cut_at, ..Faults::default() });
        let opened = Log::open(self.folder.clone(), &identity(), SMALL);
        if let Err(error) = &opened {
            let is_cut = power_cut_at.is_some_and(|at| at <= self.folder.operations());
            assert!(is_cut, "it does not open: {error}");
        }
        if let Ok((mut log, recovery)) = opened {
            self.model.accept(&log, &self.under_way);
            self.under_way = CutOperation::Nothing;
            self.reached.torn += u64::from(recovery.is_torn);
            if self.settle(&mut log) {
                for _ in 0..deeds {
                    if !self.deed(&mut log) {
                        break;
                    }
                }
            }
        }
        let operations = self.folder.operations();
        if power_cut_at.is_some_and(|at| at <= operations) {
            self.lose_power();
        }
        operations
    }

    /// Loses power. Unsynced data is lost or kept, in one of several patterns.
    pub fn lose_power(&mut self) {
        self.reached.crashes += 1;
        let in_ten = [0, 1, 5, 9, 10][self.chance.below(5) as usize];
        let chance = &mut self.chance;
        self.folder = self.folder.after_power_loss(|| chance.below(10) < in_ten, Faults::default());
    }

    /// Behaves like a node that asks its peers, none of which have the damaged records, so the
    /// records are cut.
    fn settle(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        let Some((first, _)) = log.damaged().next() else { return true };
        self.reached.unknown += 1;
        self.cut(log, first.0)
    }

    /// Performs one action. Returns false if power has been cut.
    fn deed(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        let end = log.end().0;
        match self.chance.below(20) {
            0 | 1 => {
                let least = log.first().0.max(self.model.snapshot.as_ref().map_or(0, |at| at.0));
                let below = self.chance.below(1 + (end - least).min(6));
                self.cut(log, end - below)
            }
            2 => self.value(log),
            3 | 4 => self.snapshot(log),
            5 => self.let_go(log),
            _ => self.commit(log),
        }
    }

    fn commit(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        let count = 1 + self.chance.below(5);
        let records = draw(&mut self.chance, count, &self.model, &mut self.drawn);
        let mut batch = Batch::new();
        for (sequence, record) in (log.end().0..).zip(&records) {
            batch.push(&record.lent(sequence)).expect("in order");
        }
        let spares_before = spares(&self.folder);
        match log.commit(&mut batch) {
            Ok(end) => {
                self.reached.recycled += u64::from(spares(&self.folder) < spares_before);
                self.model.records.extend(records);
                assert_eq!(end.0, self.model.records.len() as u64);
                true
            }
            Err(error) => self.stopped(log, &error, CutOperation::Commit(records)),
        }
    }

    fn cut(&mut self, log: &mut Log<PowerLossFolder>, next: u64) -> bool {
        self.reached.cuts += 1;
        if log.cut(Sequence(next)).is_ok() {
            self.model.records.truncate(next as usize);
            return true;
        }
        self.under_way = CutOperation::Cut(next);
        false
    }

    fn value(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        self.drawn += 1;
        let value = vec![self.drawn as u8; 1 + (self.drawn * 37 % 5000) as usize];
        match log.set_values(&[("view", Some(&value))]) {
            Ok(()) => {
                self.model.value = Some(value);
                true
            }
            Err(error) => self.stopped(log, &error, CutOperation::Value(value)),
        }
    }

    fn snapshot(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        self.drawn += 1;
        let end = log.end();
        let state = vec![self.drawn as u8; (self.drawn * 91 % 3000) as usize];
        let mut snap = || {
            let mut writer = log.write_snapshot(end, ViewId(1))?;
            writer.write(&state)?;
            let written = writer.finish()?;
            log.install_snapshot(written)
        };
        match snap() {
            Ok(()) => {
                self.model.snapshot = Some((end.0, state));
                true
            }
            Err(_) => {
                self.under_way = CutOperation::Snapshot(end.0, state);
                false
            }
        }
    }

    fn let_go(&mut self, log: &mut Log<PowerLossFolder>) -> bool {
        let Some((at, _)) = self.model.snapshot else { return true };
        let at = at.min(log.end().0);
        match log.let_go_below(Sequence(at)) {
            Ok(()) => self.model.base = self.model.base.max(at),
            Err(LetGoError::Write(error)) => {
                return self.stopped(log, &error, CutOperation::LetGo(at));
            }
            Err(error) => panic!("{error}"),
        }
        true
    }

    /// Handles a loss of power: all further operations fail, and nothing more is reported.
    fn stopped(
        &mut self,
        log: &mut Log<PowerLossFolder>,
        error: &WriteError,
        under_way: CutOperation,
    ) -> bool {
        assert!(matches!(error, WriteError::Io { .. } | WriteError::Sync { .. }), "{error}");
        assert!(matches!(log.set_values(&[]), Err(WriteError::Failed { .. })));
        self.under_way = under_way;
        false
    }
}

fn spares(folder: &PowerLossFolder) -> usize {
    use tramontane_log::FileLayer as _;
    let names = folder.list().unwrap_or_default();
    names.iter().filter(|name| name.starts_with("spare-")).count()
}
