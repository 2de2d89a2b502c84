//! Answers HTTP requests: implements enough of the protocol for a scraper, and limits connections,
//! time and bytes.
//!
//! # Invariants
//! - At most [`CONNECTIONS_MAX`] connections without a request are open at a time, and as many with
//!   one, each for at most [`PATIENCE`]. Connections that send no request do not keep others out
//!   (see [`serve_plain`]).
//! - A request is limited to [`REQUEST_MAX`] bytes.
//! - No failure ends the server. If it runs out of file descriptors, it waits.

use std::io;
use std::net::TcpListener;
use std::time::Duration;

use tramontane_control::{PlainConnection, serve_plain};

const CONNECTIONS_MAX: usize = 16;

/// Time limit for one connection, from its opening to the last byte.
const PATIENCE: Duration = Duration::from_secs(2);

const REQUEST_MAX: usize = 8 << 10;

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
    let receive = move |connection: &PlainConnection<'_>| receive(connection, &answer);
    serve_plain(listener.try_into()?, CONNECTIONS_MAX, PATIENCE, receive)
}

fn receive(
    connection: &PlainConnection<'_>,
    answer: &impl Fn(&str, &str) -> HttpAnswer,
) -> io::Result<()> {
    let request = read_head(connection)?;
    if !connection.has_asked() {
        return Err(io::ErrorKind::ResourceBusy.into());
    }
    let mut words = request.split_ascii_whitespace();
    let HttpAnswer { status, content_type, text } =
        answer(words.next().unwrap_or_default(), words.next().unwrap_or_default());
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {content_type}\r\nContent-Length: {}\r\nConnection: close\r\n\r\n",
        text.len()
    );
    connection.write_all((head + &text).as_bytes())
}

/// Reads the first lines of a request, up to the empty line.
fn read_head(connection: &PlainConnection<'_>) -> io::Result<String> {
    let mut head = Vec::new();
    let mut part = [0; 1024];
    while !head.windows(4).any(|end| end == b"\r\n\r\n") {
        let bytes = connection.read(&mut part)?;
        if head.len() + bytes > REQUEST_MAX {
            return Err(io::ErrorKind::InvalidData.into());
        }
        head.extend_from_slice(&part[..bytes]);
    }
    String::from_utf8(head).map_err(|_| io::ErrorKind::InvalidData.into())
}

#[cfg(test)]
mod tests {
    use std::io::{Read as _, Write as _};
    use std::net::{SocketAddr, TcpStream};
    use std::sync::Mutex;

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
