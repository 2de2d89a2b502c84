//! `tramontane layout`: the memory map of a configuration, before anything is started (SMC-1).

mod map;

use std::fmt::Write as _;
use std::io::{self, Write as _};
use std::path::{Path, PathBuf};

use clap::Args;
use tramontane_core::layout::{MEMBERS_MAX, MESSAGE_MAX, WINDOW_MAX};

use super::exit::{Failure, Status};
use super::group_file;
use map::{MemoryMap, RowMap, What};
use tramontane_local::table::{Table, wrapped};
use tramontane_runtime::configuration::{GroupConfiguration, MESSAGE_MAX_DEFAULT, WINDOW_DEFAULT};
use tramontane_runtime::group::View;

pub(super) const EXAMPLES: &str = "  tramontane layout --nodes 4
      one group of four, all of which send
  tramontane layout --nodes 16 --senders 2 --window 64 --message-max 1024 --json
      as JSON
  tramontane layout --config group.toml
      a group file of 'tramontane node', in a view of all its nodes
  tramontane layout --config layout.toml
      any other group from a file (JSON if its name ends in .json), such as
        members = [1, 2, 3]
        [[subgroups]]
        members = [0, 1, 2]     # places in the list above, from 0
        senders = [0]
        window = 100            # may be left out, as may:
        message_max = 10240
        unordered = false";

/// Print the memory map of a group, and how much memory it takes.
#[derive(Args, Debug)]
pub(super) struct Arguments {
    /// The number of members
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u16).range(1..=MEMBERS_MAX as i64))]
    nodes: u16,
    /// How many of them send [default: all]
    #[arg(long, value_name = "S",
          value_parser = clap::value_parser!(u16).range(0..=MEMBERS_MAX as i64))]
    senders: Option<u16>,
    /// Slots of each sender's ring
    #[arg(long, value_name = "SLOTS", default_value_t = WINDOW_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_MAX)))]
    window: u32,
    /// The largest message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MESSAGE_MAX_DEFAULT,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MESSAGE_MAX)))]
    message_max: u32,
    /// Read the group from a file: a group file, or a list of members and subgroups as TOML or
    /// JSON
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "senders", "window", "message_max"])]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

/// Prints the map.
pub(super) fn run(arguments: &Arguments) -> Result<(), Failure> {
    let map = match &arguments.config {
        Some(path) => map_of_file(path)?,
        None => {
            let senders = arguments.senders.unwrap_or(arguments.nodes);
            if senders > arguments.nodes {
                let what = format_args!("{senders} senders among {} members", arguments.nodes);
                return Err(Failure::new(
                    Status::Usage,
                    what,
                    "take fewer --senders or more --nodes",
                ));
            }
            let (window, message_max) = (arguments.window, arguments.message_max);
            let group = GroupConfiguration::single(arguments.nodes, senders, window, message_max);
            group.with_layout(MemoryMap::of)??
        }
    };
    let text = if arguments.json {
        let json = serde_json::to_string_pretty(&map);
        json.map_err(|error| Failure::system("cannot print the map", &error.into()))? + "\n"
    } else {
        wrapped(&text(&map))
    };
    let mut output = io::stdout().lock();
    output
        .write_all(text.as_bytes())
        .and_then(|()| output.flush())
        .map_err(|error| Failure::output(&error))
}

/// The map of a group file in a view of all its nodes, or of a group that is described as such.
fn map_of_file(path: &Path) -> Result<MemoryMap, Failure> {
    let name = path.display();
    let text = std::fs::read_to_string(path).map_err(|error| {
        Failure::new(
            Status::Input,
            format_args!("cannot read {name}: {error}"),
            "give a file that you may read",
        )
    })?;
    let is_group_file = text.parse::<toml::Table>().is_ok_and(|table| table.contains_key("nodes"));
    if is_group_file {
        let description = group_file::read(path)?;
        let layout = description.view_layout(&View::of_all(&description))?;
        return MemoryMap::of(layout.get());
    }
    let group: Result<GroupConfiguration, String> =
        if path.extension().is_some_and(|extension| extension.eq_ignore_ascii_case("json")) {
            serde_json::from_str(&text).map_err(|error| error.to_string())
        } else {
            toml::from_str(&text).map_err(|error| {
                let line = error
                    .span()
                    .map(|span| 1 + text[..span.start.min(text.len())].matches('\n').count());
                let place = line.map_or_else(String::new, |line| format!(" at line {line}"));
                format!("{}{place}", error.message())
            })
        };
    let group = group.map_err(|error| {
        let advice = "correct it; 'tramontane layout --help' shows an example";
        Failure::new(Status::Usage, format_args!("{name} is no group: {error}"), advice)
    })?;
    group.with_layout(MemoryMap::of)?
}

/// The map for people. Neighbours whose rows have the same layout are printed once.
fn text(map: &MemoryMap) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} members, {} subgroups, layout digest {}\n\nprivate state is beside the rows; all sizes are in bytes",
        map.members, map.subgroups, map.digest
    );
    for rows in map.rows.chunk_by(|one, other| one.is_like(other)) {
        let (Some(first), Some(last)) = (rows.first(), rows.last()) else { continue };
        let _ = match rows.len() {
            1 => write!(text, "\nrow of member {} (rank {})", first.id, first.rank),
            count => write!(
                text,
                "\neach of the {count} rows of members {} (rank {}) to {} (rank {})",
                first.id, first.rank, last.id, last.rank
            ),
        };
        let _ = writeln!(text, ": {}\n{}", first.bytes, parts(first));
        let state = &first.state;
        let _ = writeln!(
            text,
            "private state: {} ({} subgroups, {} senders, {} members, {} links, {} hand-offs, {} ready flags)",
            state.bytes,
            state.subgroups,
            state.senders,
            state.members,
            state.links,
            state.handoffs,
            state.ready
        );
    }
    let _ = writeln!(
        text,
        "\nall rows of one view:            {:>16}\nof the two views of a change:    {:>16}\n\
         one view's files in shared memory: {:>14}",
        map.view_bytes, map.change_bytes, map.shared_memory_bytes
    );
    text
}

fn parts(row: &RowMap) -> Table {
    let mut table = Table::new(&["offset", "bytes", "slots", "stride", "payload", "what"], &[5]);
    for part in &row.parts {
        let none = String::new;
        let (slots, stride, payload, what) = match &part.what {
            What::Header => (none(), none(), none(), "header".to_owned()),
            What::Control { subgroup, unordered: false } => {
                (none(), none(), none(), format!("control block of subgroup {subgroup}"))
            }
            What::Control { subgroup, unordered: true } => {
                (none(), none(), none(), format!("control block of subgroup {subgroup}, unordered"))
            }
            What::Ring { subgroup, slots, stride, message_max } => (
                slots.to_string(),
                stride.to_string(),
                message_max.to_string(),
                format!("ring of subgroup {subgroup}"),
            ),
        };
        table.row([part.offset.to_string(), part.bytes.to_string(), slots, stride, payload, what]);
    }
    table
}
