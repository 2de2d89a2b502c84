//! Bare TCP: each process writes to all others and reads from all others, as much as goes, in large pieces; a thread
//! for each way, each of which waits in the kernel.

use std::io::{Read, Write};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use rustix::net::sockopt;

use super::{Failure, MARGIN, Options, Seen};

/// What is written and read at once.
const PIECE: usize = 128 << 10;

/// Sends and receives for a while, and says what came while it counted.
pub fn run(options: &Options, rank: u16) -> Result<Seen, Failure> {
    let streams = mesh(&options.addresses, usize::from(rank))?;
    for stream in &streams {
        stream.set_nodelay(true)?;
        if let Some(bytes) = options.socket_bytes {
            sockopt::set_socket_send_buffer_size(stream, bytes)?;
            sockopt::set_socket_recv_buffer_size(stream, bytes)?;
        }
    }
    let received = AtomicU64::new(0);
    std::thread::scope(|scope| {
        for stream in &streams {
            scope.spawn(|| write(stream));
            scope.spawn(|| read(stream, &received));
        }
        std::thread::sleep(MARGIN);
        let (start, before) = (Instant::now(), received.load(Ordering::Relaxed));
        std::thread::sleep(Duration::from_millis(options.count_ms));
        let bytes = received.load(Ordering::Relaxed) - before;
        let rate = bytes as f64 / start.elapsed().as_secs_f64();
        std::thread::sleep(MARGIN);
        for stream in &streams {
            // It fails if the other end was faster.
            let _ = stream.shutdown(Shutdown::Both);
        }
        Ok(Seen { received: rate, delivered: 0.0 })
    })
}

/// Writes until the connection ends.
fn write(mut stream: &TcpStream) {
    let from = vec![7; PIECE];
    while stream.write_all(&from).is_ok() {}
}

/// Reads until the connection ends.
fn read(mut stream: &TcpStream, received: &AtomicU64) {
    let mut into = vec![0; PIECE];
    while let Ok(count @ 1..) = stream.read(&mut into) {
        received.fetch_add(count as u64, Ordering::Relaxed);
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
