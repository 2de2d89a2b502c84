//! A client of one node.

use std::io::{Read as _, Write as _};
use std::net::{SocketAddr, TcpStream};
use std::time::Duration;

use bytes::Bytes;
use resp_rs::resp2::{Frame, Parser, frame_to_bytes};

/// The time after which a reply is missing.
pub(crate) const PATIENCE: Duration = Duration::from_secs(30);

/// A connection.
pub(crate) struct TestClient {
    pub(crate) stream: TcpStream,
    parser: Parser,
}

/// Encodes a request.
pub(crate) fn request(words: &[&[u8]]) -> Vec<u8> {
    let bulk = |word: &&[u8]| Frame::BulkString(Some(Bytes::copy_from_slice(word)));
    frame_to_bytes(&Frame::Array(Some(words.iter().map(bulk).collect()))).to_vec()
}

/// Formats a reply: `OK`, `(error) ...`, `7`, `"text"`, `nil`, `[1 2]`.
pub(crate) fn text(frame: &Frame) -> String {
    let lossy = |bytes: &Bytes| String::from_utf8_lossy(bytes).into_owned();
    match frame {
        Frame::SimpleString(text) => lossy(text),
        Frame::Error(text) => format!("(error) {}", lossy(text)),
        Frame::Integer(number) => number.to_string(),
        Frame::BulkString(Some(bytes)) => format!("\"{}\"", lossy(bytes)),
        Frame::BulkString(None) | Frame::Array(None) => "nil".to_owned(),
        Frame::Array(Some(items)) => {
            format!("[{}]", items.iter().map(text).collect::<Vec<_>>().join(" "))
        }
    }
}

impl TestClient {
    pub(crate) fn connect(to: SocketAddr) -> Self {
        Self::try_connect(to).expect("the node accepts clients")
    }

    pub(crate) fn try_connect(to: SocketAddr) -> std::io::Result<Self> {
        let stream = TcpStream::connect(to)?;
        stream.set_read_timeout(Some(PATIENCE))?;
        stream.set_nodelay(true)?;
        Ok(Self { stream, parser: Parser::new() })
    }

    pub(crate) fn send(&mut self, bytes: &[u8]) {
        self.stream.write_all(bytes).expect("the node reads");
    }

    /// Reads a reply. Returns `None` if the node has closed the connection.
    pub(crate) fn next(&mut self) -> Option<Frame> {
        let mut bytes = [0; 16 << 10];
        loop {
            if let Some(frame) = self.parser.next_frame().expect("replies follow the protocol") {
                return Some(frame);
            }
            match self.stream.read(&mut bytes) {
                Ok(0) => return None,
                Ok(length) => self.parser.feed(Bytes::copy_from_slice(&bytes[..length])),
                Err(error) if error.kind() == std::io::ErrorKind::ConnectionReset => return None,
                Err(error) if error.kind() == std::io::ErrorKind::Interrupted => {}
                Err(error) => panic!("no reply within {PATIENCE:?}: {error}"),
            }
        }
    }

    /// Reads a reply as text.
    pub(crate) fn read(&mut self) -> String {
        self.next().map_or_else(|| "(closed)".to_owned(), |frame| text(&frame))
    }

    /// Sends a request of words, and returns the reply as text.
    pub(crate) fn ask(&mut self, words: &str) -> String {
        let words: Vec<&[u8]> = words.split_whitespace().map(str::as_bytes).collect();
        self.send(&request(&words));
        self.read()
    }

    /// Sends a request, unless the node has gone, and returns the reply as text.
    pub(crate) fn try_ask(&mut self, words: &[&[u8]]) -> Option<String> {
        self.stream.write_all(&request(words)).ok()?;
        self.next().map(|frame| text(&frame))
    }

    /// Checks the replies to several requests, one per line: `request => reply`.
    pub(crate) fn check(&mut self, cases: &str) {
        for case in cases.lines().map(str::trim).filter(|case| !case.is_empty()) {
            let (words, expected) = case.split_once(" => ").expect("a request and a reply");
            assert_eq!(self.ask(words), expected, "{words}");
        }
    }
}
