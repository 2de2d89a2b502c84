//! Scrubbing: the whole log is read again, damage is reported, and damage that can be repaired from
//! the log itself is repaired. Damaged records must be copied from a peer ([`Log::replace`]).
//!
//! Reads may be served from the system's memory. So data that a disk has lost is detected only when
//! its blocks are really read, which is at the latest after the machine has been restarted.

use crate::damage::{Damage, Damaged};
use crate::error::{At, ScrubError};
use crate::examine::{ExamineError, examine};
use crate::index::BadPlace;
use crate::layer::FileLayer;
use crate::log::Log;
use crate::metadata::{self, FoundMetadata};
use crate::segment::segment_name;

impl<L: FileLayer> Log<L> {
    /// Reads every byte of the log. Damaged records are reported, and are not served until they
    /// have been replaced. All other damage is repaired by rewriting, unless the log is open
    /// read-only.
    pub fn scrub(&mut self) -> Result<Vec<Damage>, ScrubError> {
        let content = &self.metadata.content;
        let mut found = examine(&self.layer, content, self.end()).map_err(|error| {
            let (file, source) = match error {
                ExamineError::Io { file, source } => (file, source),
                ExamineError::Newer { file, .. } => {
                    (file, std::io::Error::other("its format has changed since the start"))
                }
            };
            let at = At { path: self.layer.path(), file: &file, action: "read" };
            ScrubError::Read(at.read_error(source))
        })?;
        let mut damage = self.metadata_damage();
        let is_metadata_damaged = !damage.is_empty();
        damage.append(&mut found.damage);
        // The missing records were durable, but now the file looks as if they had never been
        // written.
        let (end, lost) = (self.end(), found.index.end());
        if lost < end {
            let tail = found.tail.as_ref().map_or((0, 0), |tail| (tail.number, tail.used));
            let place = BadPlace { segment: tail.0, offset: tail.1 };
            found.index.go_on_at(end, place);
            let (file, what) = (segment_name(tail.0), Damaged::Records { first: lost, end });
            damage.push(Damage { file, offset: tail.1, what });
        }
        self.index = found.index;
        self.snapshot = found.snapshot;
        if self.writable().is_ok() {
            let mended = self.mend(&found.mends).map_err(|(action, file, error)| {
                At { path: self.layer.path(), file: &file, action }.write_error(error)
            });
            let mended = self.done(mended).and_then(|()| match is_metadata_damaged {
                true => self.set_values(&[]),
                false => Ok(()),
            });
            if let Err(source) = mended {
                return Err(ScrubError::Mend { damage, source });
            }
        }
        Ok(damage)
    }

    fn metadata_damage(&self) -> Vec<Damage> {
        match metadata::find(&self.layer, true) {
            Ok(FoundMetadata::Metadata { damage, .. }) => damage,
            // The content is in memory, and is rewritten to both copies.
            Ok(FoundMetadata::Nothing) | Err(_) => metadata::COPIES
                .iter()
                .map(|copy| Damage { file: (*copy).into(), offset: 0, what: Damaged::Metadata })
                .collect(),
        }
    }
}
