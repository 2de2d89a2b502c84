//! Load for a server that speaks the Redis protocol: clients that send 16 requests at once, and the
//! next 16 when all are answered. With `wait`, `WAIT 2 0` follows each 16, so that Redis answers
//! once two replicas have the writes, which redis-benchmark cannot ask for.
//!
//! Usage: pipelined_load PORT set|get|incr CLIENTS SECONDS [PIPELINE] [wait]
//!
//! Prints the requests per second, without those of WAIT, and the median time of a pipeline.

use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use rustix::event::{Timespec, epoll};

type LoadError = Box<dyn std::error::Error>;

/// A client with one pipeline in flight.
struct LoadClient {
    stream: TcpStream,
    sent: Instant,
    /// The number of lines that the replies still lack.
    lines: usize,
}

fn encoded(words: &[&str]) -> String {
    let bulks: String = words.iter().map(|word| format!("${}\r\n{word}\r\n", word.len())).collect();
    format!("*{}\r\n{bulks}", words.len())
}

fn main() -> Result<(), LoadError> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [port, kind, clients, seconds, options @ ..] = &arguments[..] else {
        return Err("PORT set|get|incr CLIENTS SECONDS [PIPELINE] [wait]".into());
    };
    let waits = options.iter().any(|option| option == "wait");
    let pipeline = options.first().and_then(|option| option.parse().ok()).unwrap_or(16);
    // As in redis-benchmark: one key, and a value of three bytes.
    let (request, lines) = match kind.as_str() {
        "set" => (encoded(&["SET", "key:__rand_int__", "xxx"]), 1),
        "get" => (encoded(&["GET", "key:__rand_int__"]), 2),
        "incr" => (encoded(&["INCR", "counter:__rand_int__"]), 1),
        _ => return Err("set, get or incr".into()),
    };
    let wait = if waits { encoded(&["WAIT", "2", "0"]) } else { String::new() };
    let requests = request.repeat(pipeline) + &wait;
    let lines = lines * pipeline + usize::from(waits);

    let address = format!("127.0.0.1:{port}");
    let mut first = TcpStream::connect(&address)?;
    first.write_all(encoded(&["SET", "key:__rand_int__", "xxx"]).as_bytes())?;
    first.read_exact(&mut [0; 5])?;
    let poll = epoll::create(epoll::CreateFlags::empty())?;
    let mut all = Vec::new();
    for index in 0..clients.parse()? {
        let mut stream = TcpStream::connect(&address)?;
        stream.set_nodelay(true)?;
        epoll::add(&poll, &stream, epoll::EventData::new_u64(index), epoll::EventFlags::IN)?;
        stream.write_all(requests.as_bytes())?;
        all.push(LoadClient { stream, sent: Instant::now(), lines });
    }
    let (started, length) = (Instant::now(), Duration::from_secs_f64(seconds.parse()?));
    let (mut done, mut times) = (0_u64, Vec::new());
    let mut events = Vec::with_capacity(256);
    let mut bytes = vec![0; 64 << 10];
    while started.elapsed() < length {
        let timeout = Timespec { tv_sec: 1, tv_nsec: 0 };
        epoll::wait(&poll, rustix::buffer::spare_capacity(&mut events), Some(&timeout))?;
        for event in events.drain(..) {
            let client = &mut all[usize::try_from(event.data.u64())?];
            let read = client.stream.read(&mut bytes)?;
            if read == 0 || bytes[0] == b'-' {
                return Err(String::from_utf8_lossy(&bytes[..read]).into());
            }
            client.lines -= bytes[..read].iter().filter(|byte| **byte == b'\n').count();
            if client.lines == 0 {
                done += pipeline as u64;
                times.push(client.sent.elapsed());
                client.lines = lines;
                client.sent = Instant::now();
                client.stream.write_all(requests.as_bytes())?;
            }
        }
    }
    times.sort_unstable();
    let median = times.get(times.len() / 2).copied().unwrap_or_default();
    let rate = done as f64 / started.elapsed().as_secs_f64();
    println!("{rate:.0} {:.3}", median.as_secs_f64() * 1e3);
    Ok(())
}
