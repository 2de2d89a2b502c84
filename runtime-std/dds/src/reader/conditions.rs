//! A reader's conditions, for wait sets.

use std::sync::Arc;

use super::core::SharedReader;
use super::selection::Selection;
use crate::status::StatusMask;
use crate::sync::lock;
use crate::waitset::{Bell, Condition};

/// A condition that is true while the selection has samples.
#[derive(Debug)]
pub(super) struct ReadCondition {
    pub(super) reader: SharedReader,
    pub(super) selection: Selection,
}

/// A condition that is true while one of the enabled statuses has changed.
#[derive(Debug)]
pub(super) struct ReaderStatusCondition {
    pub(super) reader: SharedReader,
    pub(super) enabled: StatusMask,
}

impl Condition for ReadCondition {
    fn trigger_value(&self) -> bool {
        self.reader.has(&self.selection)
    }

    fn watch(&self, bell: &Arc<Bell>) {
        self.reader.bells.add(bell);
    }
}

impl Condition for ReaderStatusCondition {
    fn trigger_value(&self) -> bool {
        lock(&self.reader.statuses).changed.intersects(self.enabled)
    }

    fn watch(&self, bell: &Arc<Bell>) {
        self.reader.bells.add(bell);
    }
}
