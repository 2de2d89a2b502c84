//! `tramontane layout`: the memory map of a configuration, before anything is started (SMC-1).

mod map;

use std::fmt::Write as _;
use std::path::PathBuf;

use clap::Args;
use tramontane_core::layout::{MEMBERS_MAX, MESSAGE_MAX, WINDOW_MAX};

use map::{MemoryMap, RowMap, What};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::output::print_result;
use tramontane_local::table::Table;
use tramontane_runtime::group::{
    Description, DescriptionError, MESSAGE_MAX_DEFAULT, View, WINDOW_DEFAULT,
};

/// The exit statuses of this command, in addition to those of every command.
pub(super) const STATUSES: [Status; 1] = [Status::Input];

pub(super) const EXAMPLES: &str = "  tramontane layout --nodes 4
      a group of four members, which all send
  tramontane layout --nodes 16 --senders 2 --window 64 --message-max 1024 --json
      as JSON
  tramontane layout --config group.toml
      a group file, for a view of all its nodes; 'tramontane node --example-config' explains it";

/// Print the memory map of a group and its total size.
#[derive(Args, Debug)]
pub(super) struct LayoutOptions {
    /// Number of members
    #[arg(long, value_name = "N", default_value_t = 3,
          value_parser = clap::value_parser!(u32).range(1..=MEMBERS_MAX as i64))]
    nodes: u32,
    /// Number of members that send [default: all]
    #[arg(long, value_name = "S",
          value_parser = clap::value_parser!(u32).range(0..=MEMBERS_MAX as i64))]
    senders: Option<u32>,
    /// Slots in each sender's ring
    #[arg(long, value_name = "SLOTS", default_value_t = WINDOW_DEFAULT,
          value_parser = clap::value_parser!(u32).range(1..=i64::from(WINDOW_MAX)))]
    window: u32,
    /// Size of the largest message, in bytes
    #[arg(long, value_name = "BYTES", default_value_t = MESSAGE_MAX_DEFAULT,
          value_parser = clap::value_parser!(u32).range(0..=i64::from(MESSAGE_MAX)))]
    message_max: u32,
    /// Read the group from a group file
    #[arg(long, value_name = "FILE", conflicts_with_all = ["nodes", "senders", "window", "message_max"])]
    config: Option<PathBuf>,
    /// Print one JSON object
    #[arg(long)]
    json: bool,
}

impl LayoutOptions {
    /// Describes a group with fixed membership from the options.
    fn describe(&self) -> Result<Description, Failure> {
        let senders = self.senders.unwrap_or(self.nodes);
        if senders > self.nodes {
            let what = format_args!("{senders} senders are more than the {} members", self.nodes);
            return Err(Failure::usage(what, "give a smaller --senders or a larger --nodes"));
        }
        let group = Description::builder("layout").nodes(self.nodes).senders(senders);
        Ok(group.window(self.window).message_max(self.message_max).fixed().build()?)
    }
}

/// Prints the map.
pub(super) fn run(arguments: &LayoutOptions) -> Result<(), Failure> {
    let group = match &arguments.config {
        Some(path) => Description::read(path).map_err(|error| match error {
            DescriptionError::Read { .. } => Failure::with_text(Status::Input, error),
            error => error.into(),
        })?,
        None => arguments.describe()?,
    };
    let layout = group.view_layout(&View::of_all(&group))?;
    let map = MemoryMap::of(layout.get());
    print_result(arguments.json, &map, text)
}

/// Formats the map as text. Neighbouring rows with the same layout are printed once.
fn text(map: &MemoryMap) -> String {
    let mut text = String::new();
    // Writing to a string cannot fail.
    let _ = writeln!(
        text,
        "{} members, {} subgroups, layout digest {}\n\nprivate state is separate from the rows; \
         all sizes are in bytes",
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
        "\nall rows of one view:            {:>16}\nall rows during a view change:    {:>16}\none \
         view's files in shared memory: {:>14}",
        map.view_bytes, map.change_bytes, map.shared_memory_bytes
    );
    text
}

fn parts(row: &RowMap) -> Table {
    let mut table = Table::new("offset  bytes  slots  stride  payload  what", &[5]);
    for part in &row.parts {
        let (ring, what) = match &part.what {
            What::Header => (<[String; 3]>::default(), "header".to_owned()),
            What::Control { subgroup, unordered } => {
                let unordered = if *unordered { ", unordered" } else { "" };
                (Default::default(), format!("control block of subgroup {subgroup}{unordered}"))
            }
            What::Ring { subgroup, slots, stride, message_max } => (
                [slots.to_string(), stride.to_string(), message_max.to_string()],
                format!("ring of subgroup {subgroup}"),
            ),
        };
        let place = [part.offset.to_string(), part.bytes.to_string()];
        table.row(place.into_iter().chain(ring).chain([what]));
    }
    table
}
