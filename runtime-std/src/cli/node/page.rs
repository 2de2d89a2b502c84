//! One page over HTTP, for whoever comes: enough of the protocol for a scraper, and no more than so much of this process.
//!
//! # Invariants
//! - At most [`VISITORS_MAX`] are served at a time, each for at most [`PATIENCE`]; who comes beyond that is sent away.
//! - A request is [`REQUEST_MAX`] bytes at most.
//! - Nothing that goes wrong ends it: without descriptors for a while, it waits.

use std::io::{self, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

const VISITORS_MAX: usize = 16;

/// How long one may take, from the connection to the last byte.
const PATIENCE: Duration = Duration::from_secs(2);

const REQUEST_MAX: usize = 8 << 10;

/// After a connection that could not be taken.
const PAUSE: Duration = Duration::from_millis(100);

/// What is answered.
pub(super) struct Answer {
    /// As HTTP has it, with its words.
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: String,
}

/// Answers what is asked for by method and path, in a thread that ends with the process.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&str, &str) -> Answer + Send + Sync + 'static,
) -> io::Result<()> {
    let (answer, present) = (Arc::new(answer), Arc::<AtomicUsize>::default());
    let take_all = move || {
        loop {
            let Ok((visitor, _)) = listener.accept() else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let place = Place::take(&present);
            let answer = Arc::clone(&answer);
            let receive = move || {
                if let Some(_place) = place
                    && let Err(error) = receive(visitor, &*answer)
                {
                    tracing::debug!(%error, "whoever asked for metrics went away");
                }
            };
            // Who finds no thread finds a closed connection.
            let _ = std::thread::Builder::new().name("tramontane-metric".into()).spawn(receive);
        }
    };
    std::thread::Builder::new().name("tramontane-metrics".into()).spawn(take_all).map(drop)
}

/// A visitor's, given back when this is dropped.
struct Place(Arc<AtomicUsize>);

impl Place {
    fn take(present: &Arc<AtomicUsize>) -> Option<Self> {
        // One thread alone adds to it.
        if present.load(Ordering::Relaxed) >= VISITORS_MAX {
            return None;
        }
        present.fetch_add(1, Ordering::Relaxed);
        Some(Self(Arc::clone(present)))
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

fn receive(mut visitor: TcpStream, answer: &impl Fn(&str, &str) -> Answer) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let request = read_head(&mut visitor, until)?;
    let mut words = request.split_ascii_whitespace();
    let Answer { status, content_type, text } =
        answer(words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    visitor.set_write_timeout(Some(left(until)?))?;
    visitor.write_all((head + &text).as_bytes())
}

/// The first lines of a request, up to the empty one.
fn read_head(visitor: &mut TcpStream, until: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        visitor.set_read_timeout(Some(left(until)?))?;
        let bytes = visitor.read(&mut part)?;
        if bytes == 0 || head.len() + bytes > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..bytes]);
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// What is left of a visitor's time.
fn left(until: Instant) -> io::Result<Duration> {
    let left = until.saturating_duration_since(Instant::now());
    if left.is_zero() { Err(io::ErrorKind::TimedOut.into()) } else { Ok(left) }
}

#[cfg(test)]
mod tests {
    use std::net::SocketAddr;

    use super::*;

    const LONG: Duration = Duration::from_secs(60);

    fn serving() -> SocketAddr {
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let answer = |method: &str, path: &str| Answer {
            status: "200 OK",
            content_type: "text/plain",
            text: format!("{method} {path}"),
        };
        serve(listener, answer).expect("a thread");
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        // Who is sent away may be told so while it writes.
        let _ = stream.write_all(request);
        let mut page = Vec::new();
        let _ = stream.read_to_end(&mut page);
        String::from_utf8(page).expect("text")
    }

    #[test]
    fn whoever_asks_is_answered_and_what_is_no_request_is_not() {
        let address = serving();
        let page = ask(address, b"GET /page HTTP/1.1\r\nHost: here\r\n\r\n");
        assert!(page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nGET /page"), "{page}");
        assert_eq!(ask(address, &[b'x'; 2 * REQUEST_MAX]), "");
        assert_eq!(ask(address, b"\xff\xff\r\n\r\n"), "");
    }

    #[test]
    fn many_that_say_nothing_do_not_stay_and_keep_nobody_away_for_long() {
        let address = serving();
        let silent: Vec<TcpStream> =
            (0..100).map(|_| TcpStream::connect(address).expect("it listens")).collect();
        let began = Instant::now();
        while !ask(address, b"GET / HTTP/1.1\r\n\r\n").ends_with("GET /") {
            assert!(began.elapsed() < LONG, "nobody is let in");
            std::thread::sleep(PAUSE);
        }
        for mut silent in silent {
            silent.set_read_timeout(Some(LONG)).expect("a time");
            assert!(!matches!(silent.read(&mut [0]), Ok(1..)), "they were told nothing");
        }
    }
}
