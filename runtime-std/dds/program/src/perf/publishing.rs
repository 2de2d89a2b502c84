//! One publisher that writes without pause, and subscribers that count samples.
//!
//! A sample is built in its slot byte by byte, and read in place byte by byte.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tramontane_dds::{
    DataReaderListener, Disposition, DomainParticipant, Lent, Level, Octets, OctetsRef, ReaderQos,
    Reliability, SampleLostStatus, WriterQos,
};
use tramontane_local::crew::Worker;

use super::messages::{DATA, PerfFigures, PerfParticipant, PerfTask};
use super::participant::{begin, finish, nothing, number, read, wait_for_readers};
use tramontane_local::exit::{Failure, Status};

/// The number that marks the last sample.
const LAST: u64 = u64::MAX;

/// Number of samples between two readings of the clock.
const SAMPLES_PER_LOOK: u64 = 64;

/// Time limit for a write to wait for a slow subscriber.
const BLOCKING_MAX: Duration = Duration::from_secs(10);

/// Time limit for waiting for the last sample.
const LAST_LIMIT: Duration = Duration::from_secs(30);

/// Publishes or counts samples, depending on the node.
pub(super) fn run(
    participant: &DomainParticipant,
    task: &PerfTask,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    if task.node == 0 { publish(participant, task, worker) } else { subscribe(participant, worker) }
}

fn publish(
    participant: &DomainParticipant,
    task: &PerfTask,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    let topic = participant.topic::<Octets>(DATA)?;
    let level = task.topics.first().map_or(Level::Atomic, |topic| topic.level);
    let reliability = Reliability { max_blocking_time: BLOCKING_MAX, ..Reliability::default() };
    let qos = WriterQos { reliability, ..WriterQos::of(level) };
    let mut writer = participant.create_datawriter(&topic, qos)?;
    let subscribers = u32::try_from(task.group.nodes.len()).unwrap_or(u32::MAX) - 1;
    wait_for_readers(&writer, subscribers)?;
    if !begin(worker)? {
        return Ok(());
    }
    let started = Instant::now();
    let mut samples = 0_u64;
    while !samples.is_multiple_of(SAMPLES_PER_LOOK) || started.elapsed() < task.time {
        write(&mut writer, task.bytes, samples)?;
        samples += 1;
    }
    write(&mut writer, task.bytes, LAST)?;
    finish(worker, PerfFigures { samples, elapsed: started.elapsed(), ..nothing() })
}

fn write(
    writer: &mut tramontane_dds::DataWriter<Octets>,
    bytes: usize,
    sample: u64,
) -> Result<(), Failure> {
    let mut loan = writer.loan_octets(bytes)?;
    let place = loan.bytes();
    place.fill(u8::try_from(sample & 0xff).unwrap_or(0));
    if let Some(first) = place.first_chunk_mut() {
        *first = sample.to_ne_bytes();
    }
    Ok(loan.write()?)
}

fn subscribe(
    participant: &DomainParticipant,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    let topic = participant.topic::<Octets>(DATA)?;
    let (done, finished) = sync_channel(1);
    let counting = SampleCounter { seen: nothing(), first: None, checksum: 0, next: 0, done };
    let reader =
        participant.create_datareader_with_listener(&topic, ReaderQos::default(), counting)?;
    if !begin(worker)? {
        return Ok(());
    }
    let seen = finished.recv_timeout(LAST_LIMIT + Duration::from_secs(3600)).map_err(|_| {
        Failure::new(Status::PeerLost, "the last sample did not arrive", "check the publisher")
    })?;
    finish(worker, seen)?;
    drop(reader);
    Ok(())
}

/// State of a subscriber that counts samples.
struct SampleCounter {
    seen: PerfFigures,
    first: Option<Instant>,
    checksum: u64,
    next: u64,
    done: SyncSender<PerfFigures>,
}

impl DataReaderListener<Octets> for SampleCounter {
    #[inline]
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        let Ok(OctetsRef(bytes)) = sample.view() else { return Disposition::Taken };
        let number = number(bytes);
        self.checksum = self.checksum.wrapping_add(read(bytes));
        let first = *self.first.get_or_insert_with(Instant::now);
        if number == LAST {
            self.seen.elapsed = first.elapsed();
            std::hint::black_box(self.checksum);
            let _ = self.done.try_send(self.seen.clone());
            return Disposition::Taken;
        }
        self.seen.lost += number.saturating_sub(self.next);
        self.next = number + 1;
        self.seen.samples += 1;
        Disposition::Taken
    }

    fn on_sample_lost(&mut self, status: &SampleLostStatus) {
        tracing::warn!(lost = status.total_count, "samples were lost");
    }
}
