//! A writer's condition, for wait sets.

use std::sync::Arc;

use super::core::WriterCore;
use crate::status::StatusMask;
use crate::sync::lock;
use crate::waitset::{Bell, Condition};

/// A condition that is true while one of the enabled statuses has changed.
#[derive(Debug)]
pub(super) struct WriterStatusCondition {
    pub(super) writer: Arc<WriterCore>,
    pub(super) enabled: StatusMask,
}

impl Condition for WriterStatusCondition {
    fn trigger_value(&self) -> bool {
        lock(&self.writer.statuses).changed.intersects(self.enabled)
    }

    fn watch(&self, bell: &Arc<Bell>) {
        self.writer.bells.add(bell);
    }
}
