//! One page over HTTP, for whoever comes: enough of the protocol for a scraper, and no more than so much of this process.
//!
//! # Invariants
//! - At most [`VISITORS_MAX`] are here at a time, each for at most [`PATIENCE`]. One more takes the place of the one that
//!   has been silent for longest: so visitors who ask for nothing keep nobody out.
//! - A request is [`REQUEST_MAX`] bytes at most.
//! - Nothing that goes wrong ends it: without descriptors for a while, it waits.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
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
    let (answer, room) = (Arc::new(answer), Arc::<Room>::default());
    let take_all = move || {
        loop {
            let taken = listener
                .accept()
                .and_then(|(visitor, _)| Ok((Place::take(&room, &visitor)?, visitor)));
            let Ok((place, visitor)) = taken else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let answer = Arc::clone(&answer);
            let receive = move || {
                if let Err(error) = receive(visitor, &place, &*answer) {
                    tracing::debug!(%error, "whoever asked for metrics went away");
                }
            };
            // Who finds no thread finds a closed connection.
            let _ = std::thread::Builder::new().name("tramontane-metric".into()).spawn(receive);
        }
    };
    std::thread::Builder::new().name("tramontane-metrics".into()).spawn(take_all).map(drop)
}

/// Who is here.
#[derive(Default)]
struct Room {
    visitors: Mutex<Vec<Visitor>>,
    vacated: Condvar,
}

struct Visitor {
    number: u64,
    /// A handle of its connection, by which to end it, until it has asked.
    silent: Option<TcpStream>,
}

impl Room {
    fn visitors(&self) -> MutexGuard<'_, Vec<Visitor>> {
        // Nothing in here is left half done by a panic.
        self.visitors.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A visitor's, given back when this is dropped.
struct Place {
    room: Arc<Room>,
    number: u64,
}

impl Place {
    /// A place for a visitor. Where there is none, the visitor goes that has been silent for longest; if all have asked,
    /// one of them is awaited.
    fn take(room: &Arc<Room>, visitor: &TcpStream) -> io::Result<Self> {
        let handle = visitor.try_clone()?;
        let mut visitors = room.visitors();
        while visitors.len() >= VISITORS_MAX {
            if let Some(oldest) = visitors.iter().find_map(|visitor| visitor.silent.as_ref()) {
                // It fails where the visitor was faster. The thread that reads of it ends in any case.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let waited = room.vacated.wait_timeout(visitors, PATIENCE);
            visitors =
                waited.map_or_else(|poisoned| poisoned.into_inner().0, |(visitors, _)| visitors);
        }
        // One thread alone adds to it.
        let number = visitors.last().map_or(0, |last| last.number + 1);
        visitors.push(Visitor { number, silent: Some(handle) });
        drop(visitors);
        Ok(Self { room: Arc::clone(room), number })
    }

    /// The visitor has asked, and is answered: it does not go for another one.
    fn has_asked(&self) {
        let mut visitors = self.room.visitors();
        if let Some(visitor) = visitors.iter_mut().find(|visitor| visitor.number == self.number) {
            visitor.silent = None;
        }
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        self.room.visitors().retain(|visitor| visitor.number != self.number);
        self.room.vacated.notify_all();
    }
}

fn receive(
    mut visitor: TcpStream,
    place: &Place,
    answer: &impl Fn(&str, &str) -> Answer,
) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let request = read_head(&mut visitor, until)?;
    place.has_asked();
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
        assert!(
            page.starts_with("HTTP/1.1 200 OK\r\n") && page.ends_with("\r\n\r\nGET /page"),
            "{page}"
        );
        assert_eq!(ask(address, &[b'x'; 2 * REQUEST_MAX]), "");
        assert_eq!(ask(address, b"\xff\xff\r\n\r\n"), "");
    }

    #[test]
    fn many_that_say_nothing_keep_nobody_away() {
        let address = serving();
        let connect = || TcpStream::connect(address).expect("it listens");
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..20 {
            silent.extend((0..VISITORS_MAX).map(|_| connect()));
            let page = ask(address, b"GET / HTTP/1.1\r\n\r\n");
            assert!(page.ends_with("GET /"), "sent away: {page:?}");
        }
        for mut silent in silent {
            silent.set_read_timeout(Some(LONG)).expect("a time");
            assert!(!matches!(silent.read(&mut [0]), Ok(1..)), "they were told nothing");
        }
    }

    /// Who asks and reads slowly is answered, however many come meanwhile.
    #[test]
    fn who_has_asked_does_not_go_for_who_is_silent() {
        let (began, has_begun) = std::sync::mpsc::channel();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let began = Mutex::new(began);
        let slow = move |_: &str, path: &str| {
            let _ = began.lock().map(|began| began.send(()));
            std::thread::sleep(PATIENCE / 4);
            Answer { status: "200 OK", content_type: "text/plain", text: path.into() }
        };
        serve(listener, slow).expect("a thread");
        std::thread::scope(|scope| {
            let asked = scope.spawn(|| ask(address, b"GET /slow HTTP/1.1\r\n\r\n"));
            has_begun.recv_timeout(LONG).expect("it is asked");
            let silent: Vec<_> =
                (0..3 * VISITORS_MAX).map(|_| TcpStream::connect(address)).collect();
            assert!(asked.join().expect("no panic").ends_with("/slow"));
            drop(silent);
        });
    }
}
