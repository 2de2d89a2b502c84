//! Bare TCP: each process writes to all others and reads from all others, as much as goes, in large pieces.

use std::io::{ErrorKind, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::time::{Duration, Instant};

use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::{Failure, MARGIN, Options, Seen};

/// What is written and read at once.
const PIECE: usize = 256 << 10;

/// Sends and receives for a while, and says what came while it counted.
pub fn run(options: &Options, rank: u16) -> Result<Seen, Failure> {
    let streams = mesh(&options.addresses, usize::from(rank))?;
    for stream in &streams {
        stream.set_nonblocking(true)?;
        stream.set_nodelay(true)?;
    }
    let mut into = vec![0; PIECE];
    let from = vec![7; PIECE];
    let count = Duration::from_millis(options.count_ms);
    let start = Instant::now();
    let (mut received, mut at_start, mut counted) = (0_u64, None, None);
    loop {
        let elapsed = start.elapsed();
        if elapsed >= MARGIN && at_start.is_none() {
            at_start = Some((elapsed, received));
        }
        if let Some((since, before)) = at_start
            && elapsed >= since + count
            && counted.is_none()
        {
            counted = Some((received - before) as f64 / (elapsed - since).as_secs_f64());
        }
        if elapsed >= MARGIN + count + MARGIN {
            break;
        }
        let mut watched: Vec<PollFd<'_>> =
            streams.iter().map(|stream| PollFd::new(stream, PollFlags::IN | PollFlags::OUT)).collect();
        poll(&mut watched, Some(&Timespec { tv_sec: 0, tv_nsec: 10_000_000 }))?;
        let ready: Vec<PollFlags> = watched.iter().map(PollFd::revents).collect();
        for (mut stream, ready) in streams.iter().zip(ready) {
            if ready.contains(PollFlags::IN) {
                received += u64::try_from(moved(stream.read(&mut into))?)?;
            }
            if ready.contains(PollFlags::OUT) {
                moved(stream.write(&from))?;
            }
        }
    }
    Ok(Seen { received: counted.unwrap_or_default(), delivered: 0.0 })
}

/// Who is through before us closes its end.
fn moved(result: std::io::Result<usize>) -> std::io::Result<usize> {
    match result {
        Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(0),
        Err(error) if matches!(error.kind(), ErrorKind::ConnectionReset | ErrorKind::BrokenPipe) => Ok(0),
        other => other,
    }
}

/// Connects to those of lower rank, and accepts those of higher.
fn mesh(addresses: &[SocketAddr], rank: usize) -> Result<Vec<TcpStream>, Failure> {
    let listener = TcpListener::bind(addresses[rank])?;
    let mut streams = Vec::new();
    for address in &addresses[..rank] {
        let until = Instant::now() + Duration::from_secs(10);
        streams.push(loop {
            match TcpStream::connect(address) {
                Ok(stream) => break stream,
                Err(error) if Instant::now() > until => return Err(error.into()),
                Err(_) => std::thread::sleep(Duration::from_millis(5)),
            }
        });
    }
    for _ in rank + 1..addresses.len() {
        streams.push(listener.accept()?.0);
    }
    Ok(streams)
}
