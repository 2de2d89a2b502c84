//! Answers HTTP requests: implements enough of the protocol for a scraper, and limits connections,
//! time and bytes.
//!
//! # Invariants
//! - At most [`CONNECTIONS_MAX`] connections are open at a time, each for at most [`PATIENCE`]. One
//!   more connection closes the one that has been silent for longest, so connections that send no
//!   request do not keep others out.
//! - A request is limited to [`REQUEST_MAX`] bytes.
//! - No failure ends the server. If it runs out of file descriptors, it waits.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

const CONNECTIONS_MAX: usize = 16;

/// Time limit for one connection, from its opening to the last byte.
const PATIENCE: Duration = Duration::from_secs(2);

const REQUEST_MAX: usize = 8 << 10;

/// Pause after a failure to accept a connection.
const PAUSE: Duration = Duration::from_millis(100);

/// The answer to a request.
pub(super) struct HttpAnswer {
    /// HTTP status code and reason.
    pub(super) status: &'static str,
    pub(super) content_type: &'static str,
    pub(super) text: String,
}

/// Answers requests by method and path, in a thread that ends with the process.
pub(super) fn serve(
    listener: TcpListener,
    answer: impl Fn(&str, &str) -> HttpAnswer + Send + Sync + 'static,
) -> io::Result<()> {
    let (answer, connections) = (Arc::new(answer), Arc::<Connections>::default());
    let take_all = move || {
        loop {
            let taken = listener.accept().and_then(|(connection, _)| {
                Ok((ConnectionSlot::take(&connections, &connection)?, connection))
            });
            let Ok((slot, connection)) = taken else {
                std::thread::sleep(PAUSE);
                continue;
            };
            let answer = Arc::clone(&answer);
            let receive = move || {
                if let Err(error) = receive(connection, &slot, &*answer) {
                    tracing::debug!(%error, "a client of the metrics page disconnected");
                }
            };
            // If no thread can be started, dropping the connection closes it.
            let _ = std::thread::Builder::new().name("tramontane-metric".into()).spawn(receive);
        }
    };
    std::thread::Builder::new().name("tramontane-metrics".into()).spawn(take_all).map(drop)
}

/// The open connections of the server.
#[derive(Default)]
struct Connections {
    open: Mutex<Vec<HttpConnection>>,
    vacated: Condvar,
}

struct HttpConnection {
    number: u64,
    /// A handle for closing the connection; `None` once it has sent a request.
    silent: Option<TcpStream>,
}

impl Connections {
    fn open(&self) -> MutexGuard<'_, Vec<HttpConnection>> {
        // A panic cannot leave this data half changed.
        self.open.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A reservation for one connection. It is released on drop.
struct ConnectionSlot {
    connections: Arc<Connections>,
    number: u64,
}

impl ConnectionSlot {
    /// Reserves a slot for a connection. If all are in use, closes the connection that has been
    /// silent for longest. If all connections have sent a request, waits until one ends.
    fn take(connections: &Arc<Connections>, connection: &TcpStream) -> io::Result<Self> {
        let handle = connection.try_clone()?;
        let mut open = connections.open();
        while open.len() >= CONNECTIONS_MAX {
            if let Some(oldest) = open.iter().find_map(|connection| connection.silent.as_ref()) {
                // Fails if the peer closed the connection first. Its reading thread ends in any
                // case.
                let _ = oldest.shutdown(Shutdown::Both);
            }
            let waited = connections.vacated.wait_timeout(open, PATIENCE);
            open = waited.map_or_else(|poisoned| poisoned.into_inner().0, |(open, _)| open);
        }
        // Only one thread adds connections.
        let number = open.last().map_or(0, |last| last.number + 1);
        open.push(HttpConnection { number, silent: Some(handle) });
        drop(open);
        Ok(Self { connections: Arc::clone(connections), number })
    }

    /// Notes that the connection has sent a request and is being answered, so that it is not closed
    /// to make room.
    fn has_asked(&self) {
        let mut open = self.connections.open();
        if let Some(connection) =
            open.iter_mut().find(|connection| connection.number == self.number)
        {
            connection.silent = None;
        }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.open().retain(|connection| connection.number != self.number);
        self.connections.vacated.notify_all();
    }
}

fn receive(
    mut connection: TcpStream,
    slot: &ConnectionSlot,
    answer: &impl Fn(&str, &str) -> HttpAnswer,
) -> io::Result<()> {
    let until = Instant::now() + PATIENCE;
    let request = read_head(&mut connection, until)?;
    slot.has_asked();
    let mut words = request.split_ascii_whitespace();
    let HttpAnswer { status, content_type, text } =
        answer(words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    connection.set_write_timeout(Some(left(until)?))?;
    connection.write_all((head + &text).as_bytes())
}

/// Reads the first lines of a request, up to the empty line.
fn read_head(connection: &mut TcpStream, until: Instant) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        connection.set_read_timeout(Some(left(until)?))?;
        let bytes = connection.read(&mut part)?;
        if bytes == 0 || head.len() + bytes > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..bytes]);
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

/// Returns the time left for a connection.
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
        let answer = |method: &str, path: &str| HttpAnswer {
            status: "200 OK",
            content_type: "text/plain",
            text: format!("{method} {path}"),
        };
        serve(listener, answer).expect("a thread");
        address
    }

    fn ask(address: SocketAddr, request: &[u8]) -> String {
        let mut stream = TcpStream::connect(address).expect("it listens");
        // The write fails if the server closes the connection early.
        let _ = stream.write_all(request);
        let mut page = Vec::new();
        let _ = stream.read_to_end(&mut page);
        String::from_utf8(page).expect("text")
    }

    #[test]
    fn only_valid_requests_are_answered() {
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
    fn silent_connections_do_not_block_requests() {
        let address = serving();
        let connect = || TcpStream::connect(address).expect("it listens");
        let mut silent: Vec<TcpStream> = Vec::new();
        for _ in 0..20 {
            silent.extend((0..CONNECTIONS_MAX).map(|_| connect()));
            let page = ask(address, b"GET / HTTP/1.1\r\n\r\n");
            assert!(page.ends_with("GET /"), "sent away: {page:?}");
        }
        for mut silent in silent {
            silent.set_read_timeout(Some(LONG)).expect("a time");
            assert!(!matches!(silent.read(&mut [0]), Ok(1..)), "they are sent nothing");
        }
    }

    /// A client that reads slowly gets its answer, however many others connect meanwhile.
    #[test]
    fn connection_with_request_stays_open_under_load() {
        let (began, has_begun) = std::sync::mpsc::channel();
        let listener = TcpListener::bind(("127.0.0.1", 0)).expect("a port");
        let address = listener.local_addr().expect("an address");
        let began = Mutex::new(began);
        let slow = move |_: &str, path: &str| {
            let _ = began.lock().map(|began| began.send(()));
            std::thread::sleep(PATIENCE / 4);
            HttpAnswer { status: "200 OK", content_type: "text/plain", text: path.into() }
        };
        serve(listener, slow).expect("a thread");
        std::thread::scope(|scope| {
            let answer = scope.spawn(|| ask(address, b"GET /slow HTTP/1.1\r\n\r\n"));
            has_begun.recv_timeout(LONG).expect("it has a request");
            let silent: Vec<_> =
                (0..3 * CONNECTIONS_MAX).map(|_| TcpStream::connect(address)).collect();
            assert!(answer.join().expect("no panic").ends_with("/slow"));
            drop(silent);
        });
    }
}
