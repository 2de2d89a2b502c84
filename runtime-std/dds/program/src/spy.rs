//! `tramontane-dds spy`: prints the samples of a topic, without knowing its type.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tramontane_dds::{
    DataReader, DdsError, DomainParticipant, History, InstanceStates, Octets, OutsideParticipant,
    ReaderQos, ResourceLimits, Sample, Selection, Topic, TopicDescription, WaitSet,
};

use super::outside::OutsideOptions;
use super::part::{LEAVE, OptionalPart};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::until_interrupted::until_interrupted;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Out, Status::Changed];

pub(super) const EXAMPLES: &str = "  tramontane-dds spy --domain flight.toml --id 4 Tracks
      the samples of a topic, one per line, beginning with the kept ones
  tramontane-dds spy --domain flight.toml --id 4 --data /var/lib/spy Records
      the same in a domain with logged topics: logged samples come first, even from before a restart
  tramontane-dds spy --domain flight.toml --id 4 Tracks --count 10 --json
      ten of them as JSON, with their CDR in hexadecimal
  tramontane-dds spy --to 10.9.0.1:7000,10.9.0.2:7000 --key-file key Tracks
      as an external participant, which needs no domain file: for a topic with clients = true";

/// Interval between checks for signals and of the group.
const TICK: Duration = Duration::from_millis(50);

/// Maximum number of samples that wait to be printed.
const WAITING_MAX: u32 = 10_000;

/// Number of bytes of a value that are printed.
const SHOWN_MAX: usize = 16;

/// Print the samples of a topic: writer, position in the order, instance and its state
#[derive(Args, Debug)]
pub(crate) struct SpyOptions {
    #[command(flatten)]
    part: OptionalPart,
    #[command(flatten)]
    outside: OutsideOptions,
    /// The topic
    topic: String,
    /// Exit after this many samples
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u64).range(1..))]
    count: Option<u64>,
    /// Print one JSON object per sample
    #[arg(long)]
    json: bool,
}

/// A sample as `--json` prints it.
#[derive(Debug, Serialize)]
struct SpyLine {
    ordinal: u64,
    view: u64,
    place: u64,
    writer: String,
    sequence: u64,
    source_timestamp_ns: i64,
    instance: String,
    instance_state: &'static str,
    valid_data: bool,
    historical: bool,
    bytes: usize,
    cdr: String,
}

/// Joins or connects, prints, and leaves.
pub(super) fn run(arguments: &SpyOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let participant = match arguments.part.part() {
        Some(part) => Looker::Member(part.join(&part.domain()?, &interrupts)?),
        None => {
            let members = arguments.outside.members()?;
            let connect = || OutsideParticipant::connect(members).map_err(Failure::from);
            Looker::Outside(until_interrupted(&interrupts, "tramontane-spy", connect)?)
        }
    };
    let done = print_samples(&participant, arguments, &interrupts);
    // A member that disappears silently counts as failed.
    let left = participant.leave();
    done?;
    left
}

fn print_samples(
    participant: &Looker,
    arguments: &SpyOptions,
    interrupts: &Interrupts,
) -> Result<(), Failure> {
    let topics = participant.topics();
    let described = topics.iter().find(|topic| topic.name == arguments.topic);
    let level = described.map(|topic| topic.level).unwrap_or_default();
    let topic = participant.untyped_topic(&arguments.topic)?;
    let qos = ReaderQos {
        durability: level.durability(),
        presentation: level.presentation(),
        history: History::KeepAll,
        resource_limits: ResourceLimits {
            max_samples: Some(WAITING_MAX),
            ..ResourceLimits::default()
        },
        ..ReaderQos::default()
    };
    let reader = participant.create_datareader(&topic, qos)?;
    let mut set = WaitSet::new();
    set.attach(reader.read_condition(Selection::unread()));
    let mut left = arguments.count.unwrap_or(u64::MAX);
    let mut out = io::stdout().lock();
    while left > 0 {
        interrupts.check()?;
        if let Some(stopped) = participant.stopped() {
            return Err(stopped);
        }
        if let Some(from) = reader.sample_lost_status().history_changed_from {
            let what = format_args!(
                "the topic has lost samples that were printed, and its history has changed, \
                 starting with number {from}"
            );
            let advice = "discard the output from that number on, and start this command again";
            return Err(Failure::new(Status::Changed, what, advice));
        }
        let is_over = reader.is_topic_deleted();
        if set.wait(TICK).is_empty() {
            if is_over {
                return Err(DdsError::TopicDeleted.into());
            }
            continue;
        }
        let most = usize::try_from(left).unwrap_or(usize::MAX);
        let taken = reader.take(&Selection::default().at_most(most));
        left -= taken.len() as u64;
        for sample in &taken {
            print(&mut out, sample, arguments.json).map_err(|error| Failure::output(&error))?;
        }
        out.flush().map_err(|error| Failure::output(&error))?;
    }
    Ok(())
}

/// The participant of the command.
#[allow(clippy::large_enum_variant, reason = "there is one, and it stays where it is")]
enum Looker {
    Member(DomainParticipant),
    Outside(OutsideParticipant),
}

impl Looker {
    fn topics(&self) -> Vec<TopicDescription> {
        match self {
            Self::Member(member) => member.topics(),
            Self::Outside(outside) => outside.topics(),
        }
    }

    fn untyped_topic(&self, name: &str) -> Result<Topic<Octets>, DdsError> {
        match self {
            Self::Member(member) => member.untyped_topic(name),
            Self::Outside(outside) => outside.untyped_topic(name),
        }
    }

    fn create_datareader(
        &self,
        topic: &Topic<Octets>,
        qos: ReaderQos,
    ) -> Result<DataReader<Octets>, DdsError> {
        match self {
            Self::Member(member) => member.create_datareader(topic, qos),
            Self::Outside(outside) => outside.create_datareader(topic, qos),
        }
    }

    /// Returns the reason that the participant receives nothing more, if there is one.
    fn stopped(&self) -> Option<Failure> {
        match self {
            Self::Member(member) => member.stopped().map(Failure::from),
            Self::Outside(outside) => outside.stopped().map(Failure::from),
        }
    }

    fn leave(self) -> Result<(), Failure> {
        match self {
            Self::Member(member) => Ok(member.leave(LEAVE)?),
            Self::Outside(outside) => Ok(outside.close(LEAVE)?),
        }
    }
}

fn print(out: &mut impl io::Write, sample: &Sample<Octets>, json: bool) -> io::Result<()> {
    let line = SpyLine::of(sample);
    if json {
        return writeln!(out, "{}", serde_json::to_string(&line)?);
    }
    let shown =
        line.cdr.get(..SHOWN_MAX * 2).map_or_else(|| line.cdr.clone(), |cdr| format!("{cdr}..."));
    writeln!(
        out,
        "{:>8}  view {} place {:<8} writer {:<6} #{:<8} instance {} {:<10} {:>7} bytes  {shown}",
        line.ordinal,
        line.view,
        line.place,
        line.writer,
        line.sequence,
        line.instance,
        line.instance_state,
        line.bytes,
    )
}

impl SpyLine {
    fn of(sample: &Sample<Octets>) -> Self {
        use std::fmt::Write as _;
        let info = &sample.info;
        let bytes = sample.lend().cdr();
        let mut cdr = String::with_capacity(bytes.len() * 2);
        for byte in bytes {
            // Writing to a string cannot fail.
            let _ = write!(cdr, "{byte:02x}");
        }
        Self {
            ordinal: info.ordinal,
            view: info.place.0.get(),
            place: info.place.1.get(),
            writer: info.publication_handle.to_string(),
            sequence: info.sequence,
            source_timestamp_ns: info.source_timestamp.0,
            instance: info.instance_handle.to_string(),
            instance_state: state(info.instance_state),
            valid_data: info.valid_data,
            historical: info.is_historical,
            bytes: bytes.len(),
            cdr,
        }
    }
}

fn state(state: InstanceStates) -> &'static str {
    match state {
        InstanceStates::ALIVE => "alive",
        InstanceStates::NOT_ALIVE_DISPOSED => "disposed",
        _ => "no-writers",
    }
}
