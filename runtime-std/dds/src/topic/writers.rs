//! The writers of a topic, as the topic's own messages tell of them.
//!
//! A writer announces itself in the topic, before all that it writes there: so at the ordered
//! levels all members know the same writers at the same place of the order.

use std::time::Duration;

use crate::participant::PublicationHandle;
use crate::qos::{LivelinessKind, WriterQos};
use crate::time::INFINITE;

/// A writer.
#[derive(Clone, Debug)]
pub(crate) struct KnownWriter {
    pub(crate) handle: PublicationHandle,
    pub(crate) qos: WriterQos,
    /// The number of its last message that was handed over here.
    pub(crate) sequence: u64,
    /// It has kept to its lease.
    pub(crate) is_alive: bool,
    /// When it last said something.
    heard: Duration,
    /// Messages of the topic are missing since its last one: which of them were its own is not
    /// known.
    is_behind_gap: bool,
}

impl KnownWriter {
    pub(crate) fn new(
        handle: PublicationHandle,
        qos: WriterQos,
        sequence: u64,
        now: Duration,
    ) -> Self {
        Self { handle, qos, sequence, is_alive: true, heard: now, is_behind_gap: false }
    }
}

/// What a message told of its writer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Messages of it that did not arrive before this one.
    pub(crate) lost: u64,
    /// It had not kept to its lease, and lives again.
    pub(crate) revived: bool,
}

/// All of them.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWriters(Vec<KnownWriter>);

impl KnownWriters {
    /// A writer announced itself.
    pub(crate) fn add(
        &mut self,
        handle: PublicationHandle,
        qos: WriterQos,
        sequence: u64,
        now: Duration,
    ) {
        self.put(KnownWriter::new(handle, qos, sequence, now));
    }

    /// The same with all that is known of it.
    pub(crate) fn put(&mut self, writer: KnownWriter) {
        self.0.retain(|known| known.handle != writer.handle);
        self.0.push(writer);
    }

    /// A writer has written up to that number, as others say.
    pub(crate) fn went_on(&mut self, handle: PublicationHandle, sequence: u64, now: Duration) {
        if let Some(known) = self.0.iter_mut().find(|known| known.handle == handle) {
            (known.sequence, known.heard) = (sequence, now);
        }
    }

    /// Messages of the topic are missing, whosever they were.
    pub(crate) fn are_behind_a_gap(&mut self) {
        self.0.iter_mut().for_each(|known| known.is_behind_gap = true);
    }

    pub(crate) fn get(&self, handle: PublicationHandle) -> Option<&KnownWriter> {
        self.0.iter().find(|known| known.handle == handle)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KnownWriter> {
        self.0.iter()
    }

    /// A message of that writer came, with this number if it has one. Nothing if it is unknown.
    pub(crate) fn heard(
        &mut self,
        handle: PublicationHandle,
        sequence: Option<u64>,
        now: Duration,
    ) -> Option<Heard> {
        let at = self.0.iter().position(|known| known.handle == handle)?;
        let known = self.0.get_mut(at)?;
        let mut heard = Heard { lost: 0, revived: !known.is_alive };
        if let Some(sequence) = sequence {
            if !std::mem::take(&mut known.is_behind_gap) {
                heard.lost = sequence.saturating_sub(known.sequence).saturating_sub(1);
            }
            known.sequence = known.sequence.max(sequence);
        }
        (known.heard, known.is_alive) = (now, true);
        if known.qos.liveliness.kind == LivelinessKind::ManualByParticipant {
            for other in &mut self.0 {
                if other.handle.participant == handle.participant
                    && other.qos.liveliness.kind == LivelinessKind::ManualByParticipant
                    && other.is_alive
                {
                    other.heard = now;
                }
            }
        }
        Some(heard)
    }

    pub(crate) fn remove(&mut self, handle: PublicationHandle) -> Option<KnownWriter> {
        let at = self.0.iter().position(|known| known.handle == handle)?;
        Some(self.0.remove(at))
    }

    /// Writers that have not kept to their lease since this was last asked.
    pub(crate) fn silent(&mut self, now: Duration) -> Vec<PublicationHandle> {
        let mut silent = Vec::new();
        for known in &mut self.0 {
            let Some(due) = due(known) else { continue };
            if known.is_alive && due <= now {
                known.is_alive = false;
                silent.push(known.handle);
            }
        }
        silent
    }

    /// When the next lease ends.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.0.iter().filter(|known| known.is_alive).filter_map(due).min()
    }
}

/// When a writer's lease ends, if the application has to say that it lives: that a member lives,
/// the group says.
fn due(known: &KnownWriter) -> Option<Duration> {
    let liveliness = &known.qos.liveliness;
    let is_manual = liveliness.kind != LivelinessKind::Automatic;
    (is_manual && liveliness.lease_duration != INFINITE)
        .then(|| known.heard.saturating_add(liveliness.lease_duration))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::participant::ParticipantId;
    use crate::qos::Liveliness;

    const fn ms(count: u64) -> Duration {
        Duration::from_millis(count)
    }

    fn handle(participant: u32, writer: u32) -> PublicationHandle {
        PublicationHandle { participant: ParticipantId::Node(participant), writer }
    }

    fn manual(kind: LivelinessKind) -> WriterQos {
        let liveliness = Liveliness { kind, lease_duration: ms(10) };
        WriterQos { liveliness, ..WriterQos::default() }
    }

    #[test]
    fn number_gaps_are_counted_per_writer() {
        let mut writers = KnownWriters::default();
        for writer in 0..2 {
            writers.add(handle(0, writer), WriterQos::default(), 0, ms(0));
        }
        let mut lost = |writer, sequence| {
            writers.heard(handle(0, writer), Some(sequence), ms(1)).expect("known").lost
        };
        assert_eq!([lost(0, 1), lost(1, 3), lost(0, 2), lost(0, 6), lost(1, 4)], [0, 2, 0, 3, 0]);
        assert_eq!(writers.heard(handle(1, 0), Some(1), ms(1)), None);
    }

    #[test]
    fn manual_writer_is_silent_after_its_lease() {
        let mut writers = KnownWriters::default();
        writers.add(handle(0, 0), manual(LivelinessKind::ManualByTopic), 0, ms(0));
        writers.add(handle(0, 1), WriterQos::default(), 0, ms(0));
        assert_eq!(writers.next_due(), Some(ms(10)));
        assert_eq!(writers.silent(ms(9)), []);
        assert_eq!(writers.silent(ms(10)), [handle(0, 0)]);
        assert_eq!(writers.silent(ms(30)), [], "told once");
        let heard = writers.heard(handle(0, 0), None, ms(31)).expect("known");
        assert!(heard.revived);
        assert_eq!(writers.next_due(), Some(ms(41)));
    }

    #[test]
    fn participant_liveliness_covers_all_its_manual_writers() {
        let kinds = [
            (LivelinessKind::ManualByParticipant, [handle(1, 0)]),
            (LivelinessKind::ManualByTopic, [handle(0, 1)]),
        ];
        for (kind, silent) in kinds {
            let mut writers = KnownWriters::default();
            for known in [handle(0, 0), handle(0, 1), handle(1, 0)] {
                writers.add(known, manual(kind), 0, ms(0));
            }
            writers.heard(handle(0, 0), None, ms(5));
            if kind == LivelinessKind::ManualByTopic {
                writers.heard(handle(1, 0), None, ms(5));
            }
            assert_eq!(writers.silent(ms(12)), silent, "{kind:?}");
        }
    }
}
