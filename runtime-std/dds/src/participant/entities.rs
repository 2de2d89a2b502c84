//! How writers and readers are made: alike for a member and for one outside, which only say
//! differently that they are there.

use std::sync::Arc;

use super::domain_participant::Topic;
use super::shared::{ANNOUNCE, Attachment, Shared, WriterAttachment, upcall};
use super::voice::Voice;
use crate::cdr::TypeSupport;
use crate::domain::TopicDescription;
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos};
use crate::reader::{AnyListener, DataReader, ReaderCore};
use crate::time::Now;
use crate::topic::TopicState;
use crate::waitset::lock;
use crate::wire::{Kind, ReaderAnnouncement, Word, encode_writer};
use crate::writer::{DataWriter, Outlet, WriterCore};

/// Makes a writer, whose policies were checked, and announces it in its topic.
pub(super) fn create_writer<T: TypeSupport>(
    shared: &Arc<Shared>,
    topic: &Topic<T>,
    described: &TopicDescription,
    voice: Voice,
    qos: WriterQos,
) -> Result<DataWriter<T>, DdsError> {
    let announcement = encode_writer(&qos)?;
    let place = (topic.index, topic.generation);
    let core = Arc::new(WriterCore::new(shared.next_publication(), place, qos, Now::read()));
    let mut outlet = Outlet::new(voice, Arc::clone(&core));
    // Before it says anything: from here on it is stopped if the topic is deleted.
    upcall(|| lock(&shared.discovery).add_writer(&core));
    let is_there = shared.known.lock().directory.is_written(topic.index, topic.generation);
    let said = if is_there {
        outlet.say(Kind::Announce, &announcement, ANNOUNCE)
    } else {
        Err(DdsError::TopicDeleted)
    };
    if let Err(error) = said {
        lock(&shared.discovery).remove_writer(core.handle);
        return Err(error);
    }
    shared.alarm.ring();
    let sample_max = usize::try_from(described.sample_max).unwrap_or(usize::MAX);
    let attachment = WriterAttachment { shared: Arc::clone(shared), level: described.level };
    Ok(DataWriter::new(outlet, attachment, sample_max))
}

/// Makes a reader, whose policies were checked, and announces it in discovery.
pub(super) fn create_reader<T: TypeSupport>(
    shared: &Arc<Shared>,
    topic: &Topic<T>,
    discovery: Voice,
    qos: ReaderQos,
    listener: impl FnOnce(&Arc<ReaderCore>) -> Option<Box<dyn AnyListener>>,
) -> Result<DataReader<T>, DdsError> {
    let attach = |core| {
        let attach = |state: &mut TopicState| state.attach(topic.generation, core, Now::read());
        match shared.with_topic(topic.index, attach) {
            Some(true) => Ok(()),
            _ => Err(DdsError::TopicDeleted),
        }
    };
    create_reader_that(shared, topic, discovery, qos, listener, attach)
}

/// The same, where it is said how the reader is attached.
pub(super) fn create_reader_that<T: TypeSupport>(
    shared: &Arc<Shared>,
    topic: &Topic<T>,
    mut discovery: Voice,
    qos: ReaderQos,
    listener: impl FnOnce(&Arc<ReaderCore>) -> Option<Box<dyn AnyListener>>,
    attach: impl FnOnce(Arc<ReaderCore>) -> Result<(), DdsError>,
) -> Result<DataReader<T>, DdsError> {
    let handle = shared.next_subscription();
    let announcement = Word::Reader(ReaderAnnouncement {
        topic: u32::try_from(topic.index).unwrap_or(u32::MAX),
        generation: topic.generation,
        reader: handle.reader,
        qos: Some(qos.clone()),
    });
    let announcement = announcement.encode()?;
    let core = Arc::new(ReaderCore::new(handle, qos, shared.patience_max()));
    core.set_listener(listener(&core));
    attach(Arc::clone(&core))?;
    // From here on the attachment deletes it.
    let attachment = Attachment {
        shared: Arc::clone(shared),
        topic: topic.index,
        generation: topic.generation,
        reader: handle,
        discovery: discovery.clone(),
    };
    let reader = DataReader::new(core, attachment);
    discovery.say(&announcement, ANNOUNCE)?;
    shared.alarm.ring();
    Ok(reader)
}
