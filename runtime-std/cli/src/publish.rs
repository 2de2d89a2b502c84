//! `tramontane publish`: sends lines to a group without being a member.

use std::io::{self, Write as _};
use std::time::Duration;

use clap::Args;
use serde::Serialize;
use tramontane_client::{Publisher, PublisherOptions};

use tramontane_local::client_options::{ClientOptions, LevelName};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;
use tramontane_local::lines::{Line, each_line};
use tramontane_local::output::print_result;
use tramontane_local::until_interrupted::until_interrupted;

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 5] =
    [Status::Input, Status::Resources, Status::Group, Status::PeerLost, Status::Out];

pub(super) const EXAMPLES: &str = "  tramontane publish --config group.toml 'a line' 'another one'
  tramontane publish --config group.toml --name feed <lines.txt
  tramontane publish --to 10.9.0.1:7000,10.9.0.2:7000 --key-file key --level delivered <lines.txt

The group must accept clients: set clients = true in a subgroup of its group file.
If the member that this command uses dies, the command continues with another member. Each line is \
delivered once. It exits with 0 when all lines have reached the level. A line that is too long is \
refused, with its number, and the command continues; it exits with 3 at the end. If no line makes \
progress for as long as the group remembers a client (client_lease_ms), it exits with 6: \
unacknowledged lines may have been delivered.";

/// Publish lines to a group, as a client that is not a member
#[derive(Args, Debug)]
pub(super) struct PublishOptions {
    #[command(flatten)]
    client: ClientOptions,
    /// Lines to publish [default: the lines of standard input]
    #[arg(value_name = "LINE")]
    lines: Vec<String>,
    /// Level that each line must reach
    #[arg(long, value_name = "LEVEL", value_enum, default_value = "delivered")]
    level: LevelName,
    /// Print the result as JSON
    #[arg(long)]
    json: bool,
}

/// The result of publishing.
#[derive(Serialize)]
struct Published {
    client: String,
    lines: u64,
    level: &'static str,
}

/// Publishes lines, and waits until every line has reached its level.
pub(super) fn run(arguments: &PublishOptions) -> Result<(), Failure> {
    let interrupts = Interrupts::watch()?;
    let members = arguments.client.members()?;
    let (lines, level) = (arguments.lines.clone(), arguments.level);
    let (report, refused) = until_interrupted(&interrupts, "tramontane-publish", move || {
        let options = PublisherOptions { level: level.level(), ..PublisherOptions::default() };
        let publisher = Publisher::open(members, options)?;
        publish(publisher, &lines, level)
    })?;
    print_result(arguments.json, &report, |report| {
        let noun = if report.lines == 1 { "line" } else { "lines" };
        format!("{} {noun} {}", report.lines, report.level)
    })?;
    // Each refused line has already been reported.
    if refused > 0 { Err(Failure::silent(Status::Input)) } else { Ok(()) }
}

/// Publishes all lines. Returns the result and the number of refused lines.
fn publish(
    publisher: Publisher,
    lines: &[String],
    level: LevelName,
) -> Result<(Published, u64), Failure> {
    let (mut published, mut refused) = (0, 0);
    let limit = publisher.line_max();
    let mut each = |number: u64, line: Line<'_>| -> Result<(), Failure> {
        match line {
            Line::Whole(line) if line.len() <= limit => {
                publisher.publish(line)?;
                published += 1;
            }
            _ => {
                refused += 1;
                // If standard error fails, there is nowhere else to write.
                let _ = writeln!(
                    io::stderr(),
                    "line {number} was not published: it is longer than {limit} bytes; raise \
                     message_max in the group file of all members"
                );
            }
        }
        Ok(())
    };
    if lines.is_empty() {
        each_line(io::stdin().lock(), limit, &mut each)?;
    } else {
        for (number, line) in (1..).zip(lines) {
            each(number, Line::Whole(line.as_bytes()))?;
        }
    }
    let client = publisher.id().to_string();
    // The publisher gives up of its own accord if the group has forgotten it.
    publisher.close(Duration::MAX)?;
    Ok((Published { client, lines: published, level: level.reached() }, refused))
}
