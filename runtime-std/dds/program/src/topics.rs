//! `tramontane-dds topics`: lists a domain's topics, and creates and deletes topics at run time.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tramontane_dds::{Domain, DomainParticipant, Level, TopicDescription};

use super::part::PartOptions;
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::options::seconds;
use tramontane_local::table::Table;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 4] =
    [Status::Resources, Status::Group, Status::PeerLost, Status::Out];

pub(super) const EXAMPLES: &str = "  tramontane-dds topics --domain flight.toml --id 4
      the topics of the domain, one per line, including those created at run time
  tramontane-dds topics --domain flight.toml --id 4 --create Alarms --type Alarm --level volatile
      creates a topic at one of the domain's [[places]]: it exists until it is deleted, or no
      participant is left
  tramontane-dds topics --domain flight.toml --id 4 --delete Alarms --json
      deletes it, and prints the others as JSON";

/// Print a domain's topics, and create or delete one at run time
#[derive(Args, Debug)]
pub(crate) struct TopicsOptions {
    #[command(flatten)]
    part: PartOptions,
    /// A topic to create; an existing one with the same type and level is left unchanged
    #[arg(long, value_name = "TOPIC", requires = "type_name")]
    create: Option<String>,
    /// The type name of the created topic
    #[arg(long = "type", value_name = "TYPE", requires = "create")]
    type_name: Option<String>,
    /// The topic's level: unordered, atomic or volatile. The domain must have a place of that level
    #[arg(long, value_name = "LEVEL", requires = "create", default_value = "atomic",
          value_parser = level)]
    level: Level,
    /// Allow external participants. The domain must have a place with clients = true
    #[arg(long, requires = "create")]
    clients: bool,
    /// A topic to delete; it must have been created at run time
    #[arg(long, value_name = "TOPIC", conflicts_with = "create")]
    delete: Option<String>,
    /// The time limit in seconds
    #[arg(long, value_name = "SECONDS", default_value = "30", allow_negative_numbers = true,
          value_parser = seconds)]
    timeout: Duration,
    /// Print one JSON object per topic
    #[arg(long)]
    json: bool,
}

fn level(name: &str) -> Result<Level, String> {
    let levels = [Level::Unordered, Level::Atomic, Level::Volatile];
    let found = levels.into_iter().find(|level| level.name() == name);
    found.ok_or_else(|| {
        "give unordered, atomic or volatile: logged topics are declared in the domain".to_owned()
    })
}

/// A topic as `--json` prints it.
#[derive(Debug, Serialize)]
struct TopicLine<'t> {
    topic: &'t str,
    r#type: &'t str,
    level: &'static str,
    declared: bool,
}

/// Joins the domain, creates or deletes a topic, prints the topics, and leaves.
pub(super) fn run(arguments: &TopicsOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let domain = arguments.part.domain()?;
    arguments.part.as_member(&domain, &interrupts, |participant| {
        change(participant, arguments)?;
        interrupts.check()?;
        list(participant, &domain, arguments.json)
    })
}

fn list(participant: &DomainParticipant, domain: &Domain, json: bool) -> Result<(), Failure> {
    let topics = participant.topics();
    let lines = topics.iter().map(|topic| TopicLine {
        topic: &topic.name,
        r#type: &topic.type_name,
        level: topic.level.name(),
        declared: domain.topic(&topic.name).is_some(),
    });
    print(lines, json).map_err(|error| Failure::output(&error))
}

fn change(participant: &DomainParticipant, arguments: &TopicsOptions) -> Result<(), Failure> {
    if let (Some(name), Some(type_name)) = (&arguments.create, &arguments.type_name) {
        // The place determines the topic's other properties.
        let places = participant.domain().places().iter();
        let place = places
            .filter(|place| place.level == arguments.level && place.clients == arguments.clients);
        let place = place.max_by_key(|place| (place.sample_max, place.window));
        let mut topic = TopicDescription::new(name, type_name).level(arguments.level);
        topic = topic.clients(arguments.clients);
        if let Some(place) = place {
            topic = topic.window(place.window).sample_max(place.sample_max);
        }
        participant.create_untyped_topic(&topic, arguments.timeout)?;
    }
    if let Some(name) = &arguments.delete {
        participant.delete_topic(name, arguments.timeout)?;
    }
    Ok(())
}

fn print<'t>(lines: impl Iterator<Item = TopicLine<'t>>, json: bool) -> io::Result<()> {
    let mut out = io::stdout().lock();
    let mut table = Table::new("topic  type  level  declared", &[0, 1, 2, 3]);
    for line in lines {
        if json {
            writeln!(out, "{}", serde_json::to_string(&line)?)?;
        }
        let declared = if line.declared { "yes" } else { "no" };
        table.row([line.topic, line.r#type, line.level, declared].map(str::to_owned));
    }
    if !json {
        write!(out, "{table}")?;
    }
    out.flush()
}
