//! Measures how fast one client publishes to a running group: the rate in lines per second, and the
//! latency of single lines.
//!
//! ```text
//! cargo run --release -p tramontane-client --example measure -- ADDRESS,... [KEY_FILE]
//! ```

use std::time::{Duration, Instant};

use tramontane_client::{Members, Publisher, PublisherOptions, SharedKey};

/// Length of a line in bytes.
const BYTES: usize = 100;

/// Number of lines per round. They are published either all at once or in parts that are waited
/// for.
const LINES: usize = 100_000;

/// Number of lines per part.
const PART: usize = 1_000;

/// Number of lines per round when each line is waited for.
const SINGLE: usize = 5_000;

const ROUNDS: usize = 5;

/// Time limit of every operation.
const LONG: Duration = Duration::from_secs(60);

type OrError<T> = Result<T, Box<dyn std::error::Error>>;

fn main() -> OrError<()> {
    let mut arguments = std::env::args().skip(1);
    let to = arguments.next().ok_or("give the addresses of members")?;
    let members = Members::parse(to.split(','))?.name("measure");
    let members = match arguments.next() {
        Some(path) => members.key(SharedKey::from_file(path.as_ref())?),
        None => members,
    };
    let publisher = Publisher::open(members, PublisherOptions::default())?;
    let (mut rates, mut part_rates, mut times) = (Vec::new(), Vec::new(), Vec::new());
    for _ in 0..ROUNDS {
        rates.push(rate(&publisher, LINES)?);
        part_rates.push(rate(&publisher, PART)?);
        times.extend(single(&publisher)?);
    }
    publisher.close(LONG)?;
    println!("lines of {BYTES} bytes, {ROUNDS} rounds, medians");
    println!("without a pause: {:.0} lines/s", median(&mut rates));
    println!("{PART} lines, then a wait: {:.0} lines/s", median(&mut part_rates));
    let middle = median(&mut times);
    let most = times[times.len() * 99 / 100];
    println!("one line, then a wait: {middle:.1} us, 99 of 100 within {most:.1} us");
    Ok(())
}

/// Returns the rate in lines per second when `part` lines are published before all are waited for.
fn rate(publisher: &Publisher, part: usize) -> OrError<f64> {
    let line = [b'x'; BYTES];
    let start = Instant::now();
    for _ in 0..LINES / part {
        for _ in 0..part {
            publisher.publish(&line)?;
        }
        publisher.wait(LONG)?;
    }
    Ok(LINES as f64 / start.elapsed().as_secs_f64())
}

/// Returns the latencies of single lines, in microseconds.
fn single(publisher: &Publisher) -> OrError<Vec<f64>> {
    let line = [b'x'; BYTES];
    (0..SINGLE)
        .map(|_| {
            let start = Instant::now();
            publisher.publish(&line)?.wait(LONG)?;
            Ok(start.elapsed().as_secs_f64() * 1e6)
        })
        .collect()
}

fn median(of: &mut [f64]) -> f64 {
    of.sort_by(f64::total_cmp);
    of[of.len() / 2]
}
