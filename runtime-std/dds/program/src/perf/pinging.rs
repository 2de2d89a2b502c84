//! One publisher whose samples are answered. Each ping is sent after all subscribers have answered
//! the previous one. The publisher and the subscribers write from their listeners, as in `ddsperf`.

use std::sync::mpsc::{SyncSender, sync_channel};
use std::time::{Duration, Instant};

use tramontane_dds::{
    DataReaderListener, DataWriter, Disposition, DomainParticipant, Lent, Level, Octets, OctetsRef,
    ReaderQos, WriterQos,
};
use tramontane_local::crew::Worker;

use super::messages::{ANSWERS, DATA, PerfFigures, PerfParticipant, PerfTask};
use super::participant::{begin, finish, nothing, read, wait_for_readers};
use tramontane_local::exit::{Failure, Status};

/// Maximum number of round trips recorded.
const ROUND_TRIPS_MAX: usize = 1 << 20;

/// Runs this participant's side of the measurement.
pub(super) fn run(
    participant: &DomainParticipant,
    task: &PerfTask,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    if task.node == 0 { ping(participant, task, worker) } else { pong(participant, task, worker) }
}

fn writer_qos(task: &PerfTask) -> WriterQos {
    WriterQos::of(task.topics.first().map_or(Level::Atomic, |topic| topic.level))
}

fn ping(
    participant: &DomainParticipant,
    task: &PerfTask,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    let data = participant.topic::<Octets>(DATA)?;
    let answers = participant.topic::<Octets>(ANSWERS)?;
    let mut writer = participant.create_datawriter(&data, writer_qos(task))?;
    let peers = u32::try_from(task.group.nodes.len()).unwrap_or(u32::MAX) - 1;
    wait_for_readers(&writer, peers)?;
    let (done, finished) = sync_channel(1);
    let pinging = Pinging {
        bytes: task.bytes,
        time: task.time,
        peers,
        missing: peers,
        sent: Instant::now(),
        begun: None,
        seen: PerfFigures { round_trips_ns: Vec::with_capacity(ROUND_TRIPS_MAX), ..nothing() },
        writer: participant.create_datawriter(&data, writer_qos(task))?,
        done,
    };
    let reader =
        participant.create_datareader_with_listener(&answers, ReaderQos::default(), pinging)?;
    if !begin(worker)? {
        return Ok(());
    }
    // This thread sends the first ping. The listener has a writer of its own, and sends the others.
    write(&mut writer, task.bytes, 0)?;
    let seen = finished.recv_timeout(task.time + Duration::from_secs(30)).map_err(|_| {
        Failure::new(Status::PeerLost, "an answer did not arrive", "check the subscribers")
    })?;
    finish(worker, seen)?;
    drop(reader);
    Ok(())
}

fn pong(
    participant: &DomainParticipant,
    task: &PerfTask,
    worker: &Worker<PerfParticipant>,
) -> Result<(), Failure> {
    let data = participant.topic::<Octets>(DATA)?;
    let answers = participant.topic::<Octets>(ANSWERS)?;
    let writer = participant.create_datawriter(&answers, writer_qos(task))?;
    let ponging = Ponging { writer };
    let reader =
        participant.create_datareader_with_listener(&data, ReaderQos::default(), ponging)?;
    if !begin(worker)? {
        return Ok(());
    }
    finish(worker, nothing())?;
    drop(reader);
    Ok(())
}

fn write(writer: &mut DataWriter<Octets>, bytes: usize, sample: u64) -> Result<(), Failure> {
    let mut loan = writer.loan_octets(bytes)?;
    loan.bytes().fill(1);
    if let Some(first) = loan.bytes().first_chunk_mut() {
        *first = sample.to_ne_bytes();
    }
    Ok(loan.write()?)
}

/// The publisher's side.
struct Pinging {
    bytes: usize,
    time: Duration,
    peers: u32,
    /// Number of answers still missing to the current ping.
    missing: u32,
    sent: Instant,
    begun: Option<Instant>,
    seen: PerfFigures,
    writer: DataWriter<Octets>,
    done: SyncSender<PerfFigures>,
}

impl DataReaderListener<Octets> for Pinging {
    #[inline]
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        let Ok(OctetsRef(bytes)) = sample.view() else { return Disposition::Taken };
        std::hint::black_box(read(bytes));
        self.missing -= 1;
        if self.missing > 0 {
            return Disposition::Taken;
        }
        let now = Instant::now();
        // Another thread sent the first ping.
        match self.begun {
            None => self.begun = Some(now),
            Some(begun) => {
                let took_ns = (now - self.sent).as_nanos();
                self.seen.round_trips_ns.push(u32::try_from(took_ns).unwrap_or(u32::MAX));
                self.seen.samples += 1;
                self.seen.elapsed = now - begun;
            }
        }
        let is_over =
            self.seen.elapsed >= self.time || self.seen.round_trips_ns.len() >= ROUND_TRIPS_MAX;
        if is_over {
            let _ = self.done.try_send(std::mem::take(&mut self.seen));
            return Disposition::Taken;
        }
        (self.missing, self.sent) = (self.peers, Instant::now());
        if let Err(failure) = write(&mut self.writer, self.bytes, self.seen.samples) {
            tracing::error!(text = failure.text(), "a ping was not sent");
        }
        Disposition::Taken
    }
}

/// The subscriber's side.
struct Ponging {
    writer: DataWriter<Octets>,
}

impl DataReaderListener<Octets> for Ponging {
    #[inline]
    fn on_sample(&mut self, sample: &Lent<'_, Octets>) -> Disposition {
        if let Ok(OctetsRef(bytes)) = sample.view()
            && let Err(failure) = answer(&mut self.writer, bytes)
        {
            tracing::error!(text = failure.text(), "a ping was not answered");
        }
        Disposition::Taken
    }
}

/// Sends the received bytes back.
fn answer(writer: &mut DataWriter<Octets>, bytes: &[u8]) -> Result<(), Failure> {
    let mut loan = writer.loan_octets(bytes.len())?;
    loan.bytes().copy_from_slice(bytes);
    Ok(loan.write()?)
}
