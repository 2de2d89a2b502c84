//! A naive model of a log, which is a list of records, and the states that a log may have after a
//! crash.

use tramontane_core::ids::{NodeId, Place, ViewId};
use tramontane_log::power_loss::PowerLossFolder;
use tramontane_log::{Log, Record, Sequence};

use crate::support::Chance;

/// A record that owns its message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Owned {
    pub view: u64,
    pub place: u64,
    pub sender: u32,
    pub is_large: bool,
    pub bytes: Vec<u8>,
}

impl Owned {
    pub fn lent(&self, sequence: u64) -> Record<'_> {
        Record {
            sequence: Sequence(sequence),
            view: ViewId(self.view),
            place: Place(self.place),
            sender: NodeId(self.sender),
            is_large: self.is_large,
            bytes: &self.bytes,
        }
    }
}

/// The expected content of a log, with data that has never been reported but may be present.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Model {
    /// All records since the group began.
    pub records: Vec<Owned>,
    /// The first record that has not been discarded.
    pub base: u64,
    pub value: Option<Vec<u8>>,
    pub snapshot: Option<(u64, Vec<u8>)>,
}

/// The operation during which power was lost.
#[derive(Clone, Debug)]
pub enum CutOperation {
    Nothing,
    Commit(Vec<Owned>),
    Cut(u64),
    LetGo(u64),
    Value(Vec<u8>),
    Snapshot(u64, Vec<u8>),
}

/// Draws records that are unique within a run.
pub fn draw(chance: &mut Chance, count: u64, model: &Model, drawn: &mut u64) -> Vec<Owned> {
    let mut view = model.records.last().map_or(1, |last| last.view);
    let drawing = |_| {
        *drawn += 1;
        view += u64::from(chance.is_one_of(8));
        let length = [0, 1, 8, 60, 500, 3000][chance.below(6) as usize];
        let bytes = (0..length).map(|at| (*drawn * 131 + at * 17 + at / 256) as u8).collect();
        let sender = chance.below(4) as u32;
        Owned { view, place: *drawn, sender, is_large: chance.is_one_of(2), bytes }
    };
    (0..count).map(drawing).collect()
}

impl Model {
    /// Checks that a log's content after a crash is possible, and adopts it.
    pub fn accept(&mut self, log: &Log<PowerLossFolder>, under_way: &CutOperation) {
        let mut may_be = self.records.clone();
        let mut durable = may_be.len() as u64;
        let mut bases = vec![self.base];
        match under_way {
            CutOperation::Commit(records) => may_be.extend(records.iter().cloned()),
            CutOperation::Cut(next) => durable = *next,
            CutOperation::LetGo(base) => bases.push(*base),
            CutOperation::Nothing | CutOperation::Value(_) | CutOperation::Snapshot(..) => {}
        }
        let (first, end) = (log.first().0, log.end().0);
        assert!(bases.contains(&first), "the log begins at {first} and not at one of {bases:?}");
        assert!(end >= durable, "{durable} records were durable, and {end} are there");
        assert!(end <= may_be.len() as u64, "{end} records, and {} were given", may_be.len());
        if matches!(under_way, CutOperation::Cut(_)) {
            assert!(end == durable || end == self.records.len() as u64, "half a cut: {end}");
        }
        let mut damaged = None;
        let mut records = log.records(log.first()).expect("in range");
        while let Some((sequence, read)) = {
            let position = records.position().0;
            records.read_next().map(|read| (position, read))
        } {
            match read {
                Ok(read) => assert_eq!(read, may_be[sequence as usize].lent(sequence)),
                Err(error) => {
                    assert!(sequence >= durable, "{error}, and it was durable");
                    damaged = damaged.or(Some(sequence));
                }
            }
        }
        self.records = may_be[..end as usize].to_vec();
        self.base = first;
        self.accept_rest(log, under_way);
        assert_eq!(damaged.is_some(), log.damaged().next().is_some());
    }

    fn accept_rest(&mut self, log: &Log<PowerLossFolder>, under_way: &CutOperation) {
        let value = log.value("view").map(<[u8]>::to_vec);
        match under_way {
            CutOperation::Value(new) if value.as_ref() == Some(new) => self.value = value,
            _ => assert_eq!(value, self.value, "the value"),
        }
        let snapshot = log.snapshot().map(|place| {
            let (_, state) = log.read_snapshot().expect("it is sound");
            (place.sequence.0, state)
        });
        match under_way {
            CutOperation::Snapshot(at, state) if snapshot == Some((*at, state.clone())) => {
                self.snapshot = snapshot;
            }
            _ => assert_eq!(snapshot, self.snapshot, "the snapshot"),
        }
    }
}
