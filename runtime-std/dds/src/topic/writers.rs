//! The writers of a topic, according to the topic's own messages.
//!
//! A writer announces itself in the topic before it writes anything there. So at the ordered
//! levels, all members know the same writers at the same position in the order.

use std::time::Duration;

use crate::participant::PublicationHandle;
use crate::qos::{LivelinessKind, WriterQos};
use crate::time::INFINITE;

/// A writer of the topic.
#[derive(Clone, Debug)]
pub(crate) struct KnownWriter {
    pub(crate) handle: PublicationHandle,
    pub(crate) qos: WriterQos,
    /// The number of the writer's last message that was delivered here.
    pub(crate) sequence: u64,
    /// Whether the writer has kept its lease.
    pub(crate) is_alive: bool,
    /// The time of the writer's last message.
    heard: Duration,
    /// Whether messages of the topic have been missed since the writer's last message, without
    /// knowing which of them were the writer's.
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

/// The consequences of a message for its writer.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Heard {
    /// Number of the writer's messages, before this one, that did not arrive.
    pub(crate) lost: u64,
    /// Writers that had missed their leases and are alive again: this one, or others of its
    /// participant for which it spoke.
    pub(crate) revived: Vec<PublicationHandle>,
}

/// All known writers.
#[derive(Clone, Debug, Default)]
pub(crate) struct KnownWriters(Vec<KnownWriter>);

impl KnownWriters {
    /// Adds a writer that has announced itself.
    pub(crate) fn add(
        &mut self,
        handle: PublicationHandle,
        qos: WriterQos,
        sequence: u64,
        now: Duration,
    ) {
        self.put(KnownWriter::new(handle, qos, sequence, now));
    }

    /// Adds a writer with its complete state.
    pub(crate) fn put(&mut self, writer: KnownWriter) {
        self.0.retain(|known| known.handle != writer.handle);
        self.0.push(writer);
    }

    /// Records that a writer has written up to this number, according to other members.
    pub(crate) fn went_on(&mut self, handle: PublicationHandle, sequence: u64, now: Duration) {
        if let Some(known) = self.0.iter_mut().find(|known| known.handle == handle) {
            (known.sequence, known.heard) = (sequence, now);
        }
    }

    /// Records that messages of the topic, from unknown writers, are missing.
    pub(crate) fn are_behind_a_gap(&mut self) {
        self.0.iter_mut().for_each(|known| known.is_behind_gap = true);
    }

    pub(crate) fn get(&self, handle: PublicationHandle) -> Option<&KnownWriter> {
        self.0.iter().find(|known| known.handle == handle)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = &KnownWriter> {
        self.0.iter()
    }

    /// Records a message from this writer, with its number if it has one. Returns `None` if the
    /// writer is unknown.
    pub(crate) fn heard(
        &mut self,
        handle: PublicationHandle,
        sequence: Option<u64>,
        now: Duration,
    ) -> Option<Heard> {
        let at = self.0.iter().position(|known| known.handle == handle)?;
        let known = self.0.get_mut(at)?;
        let mut heard = Heard::default();
        if !known.is_alive {
            heard.revived.push(handle);
        }
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
                {
                    other.heard = now;
                    if !std::mem::replace(&mut other.is_alive, true) {
                        heard.revived.push(other.handle);
                    }
                }
            }
        }
        Some(heard)
    }

    pub(crate) fn remove(&mut self, handle: PublicationHandle) -> Option<KnownWriter> {
        let at = self.0.iter().position(|known| known.handle == handle)?;
        Some(self.0.remove(at))
    }

    /// Returns the writers that have missed their lease since the last call.
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

    /// Returns when the next lease expires.
    pub(crate) fn next_due(&self) -> Option<Duration> {
        self.0.iter().filter(|known| known.is_alive).filter_map(due).min()
    }
}

/// Returns when a writer's lease expires, if the application must assert its liveliness. Otherwise,
/// the group reports whether the writer's member is alive.
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
    fn sequence_number_gaps_are_counted_per_writer() {
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
        assert_eq!(heard.revived, [handle(0, 0)]);
        assert_eq!(writers.next_due(), Some(ms(41)));
    }

    #[test]
    fn participant_liveliness_covers_all_manual_writers() {
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

    #[test]
    fn participant_revives_all_its_writers_of_that_kind() {
        let kind = LivelinessKind::ManualByParticipant;
        let mut writers = KnownWriters::default();
        let all = [handle(0, 0), handle(0, 1), handle(1, 0)];
        all.into_iter().for_each(|known| writers.add(known, manual(kind), 0, ms(0)));
        assert_eq!(writers.silent(ms(10)), all);
        let heard = writers.heard(handle(0, 1), None, ms(20)).expect("known");
        assert_eq!(heard.revived, [handle(0, 1), handle(0, 0)]);
        assert_eq!(writers.silent(ms(30)), [handle(0, 0), handle(0, 1)], "again silent");
    }
}
