//! A client that sends each line of its input to a set of groups, and prints which replicas
//! delivered it.

use std::collections::BTreeMap;
use std::io::{self, Write as _};
use std::path::PathBuf;
use std::sync::mpsc::{Receiver, RecvTimeoutError, TryRecvError, sync_channel};
use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde::Serialize;
use tramontane_local::options::DeviceArguments;
use tramontane_runtime::shards::{
    Answered, Answers, Client, Destinations, MessageId, Places, SendError, StartOptions,
};

use super::overlay_file::read_with_device;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::lines::{Line, each_line};
use tramontane_local::options::seconds;

/// Maximum number of lines that may wait to be sent.
const LINES_MAX: usize = 1024;

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(20);

/// Interval between two steps of a client that waits for input. Many such clients may share a
/// processor.
const IDLE_TICK: Duration = Duration::from_millis(200);

/// Time allowed for the groups to remove the client.
const LEAVE: Duration = Duration::from_secs(5);

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 6] = [
    Status::Input,
    Status::Resources,
    Status::Group,
    Status::PeerLost,
    Status::Device,
    Status::Out,
];

pub(super) const EXAMPLES: &str =
    "  printf 'a line\\nanother\\n' | tramontane shards send --config overlay.toml --to g1,g3
      each line to both groups
  tramontane shards send --config overlay.toml --to g2 --answers all --json <lines.txt";

#[derive(Args, Debug)]
pub(super) struct SendOptions {
    /// The overlay file
    #[arg(long, value_name = "FILE")]
    config: PathBuf,
    /// Groups that deliver each line
    #[arg(long, value_name = "GROUPS", value_delimiter = ',', required = true)]
    to: Vec<String>,
    /// Replicas that must deliver a line before it counts as answered: one of each group, the
    /// leaders, or all that are connected
    #[arg(long, value_enum, default_value_t = AwaitedReplicas::One)]
    answers: AwaitedReplicas,
    /// Time limit for the groups to answer at the start, and for each line, in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true,
          value_parser = seconds)]
    time_limit: Duration,
    /// Print the replicas that delivered as JSON, one object per line
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    device: DeviceArguments,
}

/// The replicas whose answers a line waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum AwaitedReplicas {
    One,
    Leaders,
    All,
}

impl AwaitedReplicas {
    const fn answers(self) -> Answers {
        match self {
            Self::One => Answers::OneOfEach,
            Self::Leaders => Answers::Leaders,
            Self::All => Answers::All,
        }
    }
}

/// The report on a line in JSON.
#[derive(Serialize)]
struct SentReport {
    line: u64,
    id: String,
    delivered: Vec<String>,
}

/// A line of the input with its number, or the reason why there is none.
type Input = Result<(u64, Option<Vec<u8>>), Failure>;

/// Sends all lines.
pub(super) fn run(arguments: &SendOptions) -> Result<(), Failure> {
    let description = read_with_device(&arguments.config, &arguments.device)?;
    let places = Places::new(&description, description.overlay()?);
    let to = places.destinations(arguments.to.iter().map(String::as_str))?;
    let interrupts = Interrupts::watch()?;
    let mut options = StartOptions::default();
    options.time_limit = arguments.time_limit;
    options.cancel = interrupts.flag();
    let client = match Client::connect(&description, to, options) {
        Ok(client) => client,
        Err(error) => {
            interrupts.check()?;
            return Err(error.into());
        }
    };
    let limit = usize::try_from(description.message_max).unwrap_or(usize::MAX);
    let lines = read_lines(limit)?;
    let sent = BTreeMap::new();
    let mut sending = SendingClient { arguments, client, places, to, sent, refused: 0 };
    let outcome = sending.send_all(&lines, &interrupts);
    // If the client cannot announce its departure now, its lease expires later.
    let _ = sending.client.leave(LEAVE);
    outcome?;
    match sending.refused {
        0 => Ok(()),
        count => {
            let noun = if count == 1 { "line is" } else { "lines are" };
            let what = format_args!("{count} {noun} longer than {limit} bytes");
            Err(Failure::new(Status::Input, what, "send shorter lines, or raise message_max"))
        }
    }
}

/// Reads the input in a separate thread.
fn read_lines(limit: usize) -> Result<Receiver<Input>, Failure> {
    let (sender, lines) = sync_channel(LINES_MAX);
    let read = move || {
        let each = |number, line: Line<'_>| {
            let line = match line {
                Line::Whole(bytes) => Some(bytes.to_vec()),
                Line::TooLong => None,
            };
            // The command has ended, so no more lines are needed.
            sender.send(Ok((number, line))).map_err(|_| Failure::silent(Status::Other))
        };
        if let Err(failure) = each_line(io::stdin().lock(), limit, each) {
            let _ = sender.send(Err(failure));
        }
    };
    std::thread::Builder::new()
        .name("tramontane-input".into())
        .spawn(read)
        .map_err(|error| Failure::system("cannot start a thread", &error))?;
    Ok(lines)
}

/// The results of asking for the next line.
enum NextLine {
    /// A line with its number.
    Line(u64, Vec<u8>),
    NotYet,
    /// The input has ended.
    Ended,
}

/// A client that is sending.
struct SendingClient<'a> {
    arguments: &'a SendOptions,
    client: Client,
    places: Places,
    to: Destinations,
    /// Unanswered lines, each with the time at which it was sent.
    sent: BTreeMap<u64, (u64, Instant)>,
    refused: u64,
}

impl SendingClient<'_> {
    fn send_all(
        &mut self,
        lines: &Receiver<Input>,
        interrupts: &Interrupts,
    ) -> Result<(), Failure> {
        let mut next = None;
        let mut has_ended = false;
        while !has_ended || !self.sent.is_empty() {
            interrupts.check()?;
            if next.is_none() && !has_ended {
                match self.next_line(lines)? {
                    NextLine::Line(number, line) => next = Some((number, line)),
                    NextLine::NotYet => {}
                    NextLine::Ended => has_ended = true,
                }
            }
            if let Some((number, line)) = next.take()
                && !self.send(number, &line)?
            {
                next = Some((number, line));
                self.take_answer(TICK)?;
            } else if next.is_none() {
                self.take_answer(if has_ended { TICK } else { Duration::ZERO })?;
            }
            self.check_patience()?;
        }
        Ok(())
    }

    /// Takes the next line. Waits for one if there is nothing else to do.
    fn next_line(&mut self, lines: &Receiver<Input>) -> Result<NextLine, Failure> {
        let received = if self.sent.is_empty() {
            match lines.recv_timeout(IDLE_TICK) {
                Err(RecvTimeoutError::Timeout) => {
                    self.client.step()?;
                    return Ok(NextLine::NotYet);
                }
                Err(RecvTimeoutError::Disconnected) => return Ok(NextLine::Ended),
                Ok(received) => received,
            }
        } else {
            match lines.try_recv() {
                Err(TryRecvError::Empty) => return Ok(NextLine::NotYet),
                Err(TryRecvError::Disconnected) => return Ok(NextLine::Ended),
                Ok(received) => received,
            }
        };
        match received? {
            (number, Some(line)) => Ok(NextLine::Line(number, line)),
            (number, None) => {
                self.refused += 1;
                eprintln!("tramontane: line {number} is too long, and was not sent");
                Ok(NextLine::NotYet)
            }
        }
    }

    /// Sends a line. Returns `false` if there is currently no room for it.
    fn send(&mut self, number: u64, line: &[u8]) -> Result<bool, Failure> {
        match self.client.multicast(self.to, line, self.arguments.answers.answers()) {
            Ok(MessageId { number: message, .. }) => {
                self.sent.insert(message, (number, Instant::now()));
                Ok(true)
            }
            Err(SendError::Full) => Ok(false),
            Err(error) => {
                let what = format_args!("line {number} was not sent: {error}");
                Err(Failure::new(Status::Out, what, "run the command again, and resend the line"))
            }
        }
    }

    /// Receives one answer and prints it.
    fn take_answer(&mut self, timeout: Duration) -> Result<(), Failure> {
        match self.client.wait(timeout)? {
            Some(answered) => self.print(&answered).map_err(|error| Failure::output(&error)),
            None => Ok(()),
        }
    }

    fn print(&mut self, answered: &Answered) -> io::Result<()> {
        let Some((line, _)) = self.sent.remove(&answered.id.number) else { return Ok(()) };
        let by = self.client.deliveries(answered);
        let delivered = by.iter().map(|by| {
            let mark = if by.leads { "*" } else { "" };
            format!("{}{mark}", self.places.name(by.replica))
        });
        let delivered: Vec<String> = delivered.collect();
        let mut output = io::stdout().lock();
        if self.arguments.json {
            let id = answered.id;
            let id = format!("{}/{}/{}", id.client, id.incarnation, id.number);
            serde_json::to_writer(&mut output, &SentReport { line, id, delivered })?;
            writeln!(output)
        } else {
            writeln!(output, "{line} {}", delivered.join(" "))
        }
    }

    /// Fails if a line has waited too long.
    fn check_patience(&self) -> Result<(), Failure> {
        let limit = self.arguments.time_limit;
        let is_over = |sent: &&(u64, Instant)| sent.1.elapsed() > limit;
        match self.sent.values().find(is_over) {
            None => Ok(()),
            Some((line, _)) => {
                let what = format_args!("line {line} was not answered within {limit:?}");
                let advice = "it may still be delivered; see 'tramontane shards status'";
                Err(Failure::peer_lost(what, advice))
            }
        }
    }
}
