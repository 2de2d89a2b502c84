//! Creation of writers and readers, for members and for external participants.

use std::sync::Arc;

use super::history::History;
use super::host::Host;
use super::shared::{ANNOUNCE, Attachment, WriterAttachment};
use super::typed_topic::Topic;
use super::upcall::{check_not_in_listener, upcall};
use crate::cdr::TypeSupport;
use crate::domain::{Level, TopicDescription};
use crate::error::DdsError;
use crate::qos::{ReaderQos, WriterQos, check_reader, check_writer};
use crate::reader::{AnyListener, DataReader, DataReaderListener, ReaderCore};
use crate::sync::lock;
use crate::time::Now;
use crate::topic::TopicState;
use crate::wire::{Kind, ReaderAnnouncement, Word, encode_writer};
use crate::writer::{DataWriter, Outlet, WriterCore};

/// Creates a writer, and announces it in its topic.
pub(super) fn create_writer<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: WriterQos,
) -> Result<DataWriter<T>, DdsError> {
    check_not_in_listener("create_datawriter")?;
    let (described, shared) = (host.described(topic)?, host.shared());
    check_writer(&qos, &shared.writer_bounds(described.level))?;
    let place = (topic.index, topic.generation);
    let voice = host.voice(place, &described)?;
    let announcement = encode_writer(&qos)?;
    let core = Arc::new(WriterCore::new(shared.next_publication(), place, qos, Now::read()));
    let mut outlet = Outlet::new(voice, Arc::clone(&core));
    // Added before the first announcement. From here on, the writer is stopped if the topic is
    // deleted.
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

/// Creates a reader, and announces it in discovery.
pub(super) fn create_reader<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: ReaderQos,
) -> Result<DataReader<T>, DdsError> {
    create_present_reader(host, topic, qos, |_| None)
}

/// Creates a reader with a listener.
pub(super) fn create_reader_with_listener<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: ReaderQos,
    listener: impl DataReaderListener<T> + 'static,
) -> Result<DataReader<T>, DdsError> {
    create_present_reader(host, topic, qos, |core| {
        Some(Box::new(DataReader::<T>::any_listener(core, listener)))
    })
}

fn create_present_reader<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: ReaderQos,
    listener: impl FnOnce(&Arc<ReaderCore>) -> Option<Box<dyn AnyListener>>,
) -> Result<DataReader<T>, DdsError> {
    let described = check_reads(host, topic, &qos, "create_datareader")?;
    host.hear((topic.index, topic.generation), &described)?;
    let attach = |core| {
        let attach = |state: &mut TopicState| state.attach(topic.generation, core, Now::read());
        match host.shared().with_topic(topic.index, attach) {
            Some(true) => Ok(()),
            _ => Err(DdsError::TopicDeleted),
        }
    };
    announce_reader(host, topic, qos, listener, attach)
}

/// Creates a reader that begins at a position in the log of its topic.
pub(super) fn create_reader_from<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: ReaderQos,
    first: u64,
) -> Result<DataReader<T>, DdsError> {
    let described = check_reads(host, topic, &qos, "create_datareader_from")?;
    if described.level != Level::Logged {
        return Err(DdsError::PreconditionNotMet(format!(
            "topic \"{}\" has no log, so a reader cannot begin in the middle; raise its level to \
             logged",
            topic.name
        )));
    }
    host.hear((topic.index, topic.generation), &described)?;
    let shared = host.shared();
    let so_far = shared.with_topic(topic.index, |of| of.ordinal()).unwrap_or(0);
    let before = first.saturating_sub(1);
    if before > so_far {
        return Err(DdsError::PreconditionNotMet(format!(
            "topic \"{}\" has only {so_far} messages so far; begin at one of them",
            topic.name
        )));
    }
    let source = host.log(topic.index, &described, before)?;
    let begin = (described.level, before);
    let attach = |core| History::new(shared, topic.index, begin, source, core).start();
    announce_reader(host, topic, qos, |_| None, attach)
}

/// Returns the topic's description, if this participant can create a reader with these policies.
fn check_reads<T>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: &ReaderQos,
    call: &'static str,
) -> Result<TopicDescription, DdsError> {
    check_not_in_listener(call)?;
    let described = host.described(topic)?;
    check_reader(qos, &host.shared().reader_bounds(described.level))?;
    Ok(described)
}

/// Creates a reader, attaches it, and announces it.
fn announce_reader<T: TypeSupport>(
    host: &impl Host,
    topic: &Topic<T>,
    qos: ReaderQos,
    listener: impl FnOnce(&Arc<ReaderCore>) -> Option<Box<dyn AnyListener>>,
    attach: impl FnOnce(Arc<ReaderCore>) -> Result<(), DdsError>,
) -> Result<DataReader<T>, DdsError> {
    let (shared, mut discovery) = (host.shared(), host.discovery());
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
    // From here on, dropping the attachment deletes the reader.
    let attachment = Attachment {
        shared: Arc::clone(shared),
        topic: topic.index,
        generation: topic.generation,
        reader: Arc::clone(&core),
        discovery: discovery.clone(),
    };
    let reader = DataReader::new(core, attachment);
    discovery.say(&announcement, ANNOUNCE)?;
    shared.alarm.ring();
    Ok(reader)
}
