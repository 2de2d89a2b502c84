//! A replica of an overlay that answers each message, and a client that multicasts as fast as it
//! can and prints its rate.
//!
//! ```sh
//! tramontane shards --example-config base >overlay.toml
//! # Each replica in a process of its own:
//! cargo run --release -p tramontane-runtime --example shards overlay.toml replica g1.0
//! # To groups 1 and 2, a hundred thousand messages of 64 bytes:
//! cargo run --release -p tramontane-runtime --example shards overlay.toml client g1,g2 100000 64
//! ```

use std::path::Path;
use std::time::{Duration, Instant};

use tramontane_runtime::shards::{
    Answers, Client, Delivered, Description, Places, SendError, StartOptions, start,
};

/// Maximum time until a message has been answered.
const PATIENCE: Duration = Duration::from_secs(30);

fn main() -> Result<(), Box<dyn std::error::Error>> {
    tramontane_runtime::shared_memory::register_barrier();
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = arguments.iter().map(String::as_str).collect();
    let [file, rest @ ..] = words.as_slice() else {
        return Err("the overlay file is missing; give its path".into());
    };
    let description = Description::read(Path::new(file))?;
    let places = Places::new(&description, description.overlay()?);
    match rest {
        ["replica", name] => run_replica(&description, &places, name),
        ["client", groups, count, bytes] => {
            let payload = vec![7; bytes.parse()?];
            run_client(&description, &places, groups, count.parse()?, &payload)
        }
        _ => Err("usage: shards FILE replica NAME | client GROUPS COUNT BYTES".into()),
    }
}

/// Runs a replica until it is killed, or its group is lost.
fn run_replica(
    description: &Description,
    places: &Places,
    name: &str,
) -> Result<(), Box<dyn std::error::Error>> {
    let replica = places.replica_named(name)?;
    // The answer to the client is the length of the message.
    let application =
        |message: &Delivered<'_>| u8::try_from(message.payload.len()).unwrap_or(u8::MAX);
    let running = start(description, replica, StartOptions::default(), application)?;
    loop {
        if let Some(stopped) = running.stopped() {
            return Err(stopped.into());
        }
        std::thread::sleep(Duration::from_millis(100));
    }
}

/// Sends as many messages as there is room for, and collects answers, until all messages have been
/// answered.
fn run_client(
    description: &Description,
    places: &Places,
    groups: &str,
    count: u64,
    payload: &[u8],
) -> Result<(), Box<dyn std::error::Error>> {
    let to = places.destinations(groups.split(','))?;
    let mut client = Client::connect(description, to, StartOptions::default())?;
    let started = Instant::now();
    let (mut sent, mut answered) = (0, 0);
    while answered < count {
        while sent < count {
            match client.multicast(to, payload, Answers::OneOfEach) {
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
    let rate = count as f64 / seconds;
    println!("{count} messages to {groups} in {seconds:.3} s: {rate:.0} per second");
    client.leave(PATIENCE)?;
    Ok(())
}
