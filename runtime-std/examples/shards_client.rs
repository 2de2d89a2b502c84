//! A client of an overlay that multicasts as fast as it can, and prints how fast that is.
//!
//! ```sh
//! tramontane shards --example-config base >overlay.toml
//! # Each replica in a process of its own:
//! tramontane shards --config overlay.toml --id g1.0 --quiet
//! cargo run --release -p tramontane-runtime --example shards_client overlay.toml g1,g2 100000 64
//! ```
//!
//! The arguments are the overlay file, the groups, how many messages, and how many bytes each has.

use std::path::Path;
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{Answers, Client, Description, SendError, StartOptions};

/// How long an answer may take.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tramontane_runtime::shared_memory::register_barrier();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [file, groups, count, bytes] = arguments.as_slice() else {
        return Err("give an overlay file, groups, a number of messages, and their size".into());
    };
    let description = Description::read(Path::new(file))?;
    let places = tramontane_runtime::shards::Places::new(&description, description.overlay()?);
    let to = places.destinations(groups.split(','))?;
    let (count, payload) = (count.parse::<u64>()?, vec![7; bytes.parse()?]);

    let mut client = Client::connect(&description, to, StartOptions::default())?;
    let started = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while answered < count {
        // As many as there is room for, and then their answers.
        while sent < count {
            match client.multicast(to, &payload, Answers::OneOfEach) {
                Ok(_) => sent += 1,
                Err(SendError::Full) => break,
                Err(error) => return Err(error.into()),
            }
        }
        client.wait(PATIENCE)?.ok_or("no answer in time")?;
        answered += 1;
        while client.poll().is_some() {
            answered += 1;
        }
    }
    let seconds = started.elapsed().as_secs_f64();
    println!(
        "{count} messages to {groups} in {seconds:.3} s: {:.0} a second",
        count as f64 / seconds
    );
    client.leave(PATIENCE)?;
    Ok(())
}
