//! `tramontane subscribe`: prints the order of a group without being a member.

use std::io::{self, BufWriter, Write};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tramontane_client::{Event, Received, SubscribeError, Subscriber};

use tramontane_local::client_options::{ClientOptions, LevelName};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::lines::add_message;
use tramontane_local::record::Bytes;
use tramontane_local::until_interrupted::{LOOK_PAUSE, until_interrupted};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Out, Status::Changed];

pub(super) const EXAMPLES: &str = "  tramontane subscribe --config group.toml
  tramontane subscribe --config group.toml --from 0 --count 100
  tramontane subscribe --to 10.9.0.1:7000,10.9.0.2:7000 --key-file key --json

The group must accept clients: set clients = true in a subgroup of its group file.
Positions count the messages since the group began. If the member that this command uses dies, the \
command continues with another member, at the next position. If messages are no longer available, \
it reports their positions on standard error or as {\"event\":\"gap\"}, and continues. If the \
group's history now differs from the printed one, it reports the first changed position, or prints \
{\"event\":\"changed\"}, and exits with status 11. A client that reads too slowly is disconnected, \
and never slows the group down.";

/// Print the messages of a group in order, as a client that is not a member
#[derive(Args, Debug)]
pub(super) struct SubscribeOptions {
    #[command(flatten)]
    client: ClientOptions,
    /// First position to print: a number, or now
    #[arg(long, value_name = "now|N", default_value = "now", value_parser = first_place)]
    from: First,
    /// Level that messages must have reached [default: majority in a logged subgroup, else
    /// delivered]
    #[arg(long, value_name = "LEVEL", value_enum)]
    level: Option<LevelName>,
    /// End after N messages
    #[arg(long, value_name = "N")]
    count: Option<u64>,
    /// Print JSON, one object per line
    #[arg(long)]
    json: bool,
}

/// The position at which the subscription begins.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum First {
    Now,
    Place(u64),
}

fn first_place(text: &str) -> Result<First, String> {
    match text {
        "now" => Ok(First::Now),
        _ => text.parse().map(First::Place).map_err(|_| "neither 'now' nor a position".to_owned()),
    }
}

/// A line of JSON.
#[derive(Serialize)]
#[serde(tag = "event", rename_all = "lowercase")]
enum SubscriberLine<'l> {
    Subscribed {
        /// The next position to be delivered.
        next: u64,
        /// Level of the printed messages.
        level: &'static str,
    },
    Message {
        place: u64,
        view: u64,
        sender: u32,
        #[serde(skip_serializing_if = "Option::is_none")]
        client: Option<String>,
        #[serde(flatten)]
        record: Bytes<'l>,
    },
    Gap {
        from: u64,
        to: u64,
    },
    Changed {
        /// The first position whose message differs or is missing.
        from: u64,
    },
}

/// Prints messages until the requested number has been printed or a signal arrives.
pub(super) fn run(arguments: &SubscribeOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let from = match arguments.from {
        First::Now => None,
        First::Place(place) => Some(place),
    };
    let members = arguments.client.members()?;
    let level = arguments.level;
    let mut subscriber = until_interrupted(&interrupts, "tramontane-subscribe", move || {
        let opened = match level {
            Some(level) => Subscriber::open_at(members, from, level.level()),
            None => Subscriber::open(members, from),
        };
        opened.map_err(Failure::from)
    })?;
    let to = BufWriter::new(io::stdout().lock());
    let mut printed = Printed { json: arguments.json, to, text: Vec::new() };
    let (begin, level) = (subscriber.begin(), LevelName::of(subscriber.level()));
    printed.begin(begin, level).map_err(|error| Failure::output(&error))?;
    let mut left = arguments.count.unwrap_or(u64::MAX);
    while left > 0 {
        interrupts.check()?;
        let event = match subscriber.next_within(Duration::ZERO) {
            Err(SubscribeError::TimeUp) => {
                // Makes printed messages visible before the next wait.
                printed.to.flush().map_err(|error| Failure::output(&error))?;
                subscriber.next_within(LOOK_PAUSE)
            }
            event => event,
        };
        let shown = match event {
            Ok(Event::Message(message)) => {
                left -= 1;
                printed.message(&message)
            }
            Ok(Event::Gap { from, to }) => printed.gap(from, to),
            Ok(Event::Changed { from }) => {
                printed.changed(from).map_err(|error| Failure::output(&error))?;
                return Err(changed(from));
            }
            // Notices are for subscribers that follow the group.
            Ok(_) => Ok(()),
            Err(SubscribeError::TimeUp) => Ok(()),
            Err(error) => return Err(error.into()),
        };
        shown.map_err(|error| Failure::output(&error))?;
    }
    printed.to.flush().map_err(|error| Failure::output(&error))
}

/// Reports that the printed messages are no longer the group's order.
fn changed(from: u64) -> Failure {
    let what = format_args!(
        "the group has lost messages that were printed, and its history has changed, starting with \
         position {from}"
    );
    let advice = format!(
        "discard the output from that position on, and subscribe again with --from {from}; --level \
         majority prints only messages that no crash can undo"
    );
    Failure::new(Status::Changed, what, &advice)
}

/// The output of messages.
struct Printed<W: Write> {
    json: bool,
    to: W,
    /// Buffer for a line, which is reused.
    text: Vec<u8>,
}

impl<W: Write> Printed<W> {
    /// Tells programs that may be waiting for the subscription at which position it begins.
    fn begin(&mut self, next: u64, level: &'static str) -> io::Result<()> {
        if self.json { self.line(&SubscriberLine::Subscribed { next, level }) } else { Ok(()) }
    }

    fn message(&mut self, message: &Received) -> io::Result<()> {
        if !self.json {
            self.text.clear();
            add_message(&message.payload, &mut self.text);
            return self.to.write_all(&self.text);
        }
        self.line(&SubscriberLine::Message {
            place: message.place,
            view: message.view,
            sender: message.sender,
            client: message.client.map(|client| client.to_string()),
            record: Bytes::of(&message.payload),
        })
    }

    fn gap(&mut self, from: u64, to: u64) -> io::Result<()> {
        if self.json {
            return self.line(&SubscriberLine::Gap { from, to });
        }
        self.to.flush()?;
        // If standard error fails, there is nowhere else to write.
        let _ = writeln!(
            io::stderr(),
            "positions {from} to {} are no longer available; a member with a log may still have \
             them",
            to.saturating_sub(1)
        );
        Ok(())
    }

    fn changed(&mut self, from: u64) -> io::Result<()> {
        if self.json {
            self.line(&SubscriberLine::Changed { from })?;
        }
        self.to.flush()
    }

    fn line(&mut self, line: &SubscriberLine<'_>) -> io::Result<()> {
        serde_json::to_writer(&mut self.to, line)?;
        self.to.write_all(b"\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn first_position_must_be_number_or_now() {
        assert_eq!(first_place("now"), Ok(First::Now));
        assert_eq!(first_place("7"), Ok(First::Place(7)));
        assert!(first_place("-1").is_err() && first_place("then").is_err());
    }

    #[test]
    fn messages_and_gaps_are_printed() {
        let message = Received {
            place: 4,
            view: 2,
            place_in_view: 3,
            sender: 1,
            client: Some(tramontane_client::ClientId(10)),
            payload: b"a".to_vec(),
        };
        let print = |json, message: &Received| {
            let mut printed = Printed { json, to: Vec::new(), text: Vec::new() };
            printed.begin(4, "delivered").and_then(|()| printed.message(message)).expect("memory");
            if json {
                printed.gap(5, 7).expect("memory");
            }
            String::from_utf8(printed.to).expect("text")
        };
        assert_eq!(print(false, &message), "a\n");
        let broken = Received { payload: b"a\nb\n".to_vec(), ..message.clone() };
        assert_eq!(print(false, &broken), "a\\nb\\n\n", "one message, one line");
        let lines = print(true, &message);
        assert_eq!(
            lines,
            "{\"event\":\"subscribed\",\"next\":4,\"level\":\"delivered\"}\n\
             {\"event\":\"message\",\"place\":4,\"view\":2,\"sender\":1,\
             \"client\":\"000000000000000a\",\"text\":\"a\"}\n\
             {\"event\":\"gap\",\"from\":5,\"to\":7}\n"
        );
    }
}
