//! The adapter protocol for the adapters in Rust: one JSON object per line. It is written from
//! `docs/adapter-protocol.md` only, and shares no code with the suite.
//!
//! Invariants: a line is written whole and flushed at once; nothing follows a `halt`.

#![allow(dead_code, reason = "each adapter uses a part of it")]

use std::io::{self, Write};

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};

/// The protocol version.
pub const VERSION: u32 = 1;

/// A command of the driver.
#[derive(Debug, Deserialize)]
#[serde(tag = "type", rename_all = "lowercase")]
pub enum Command {
    /// Become a member.
    Init(Init),
    /// Send a message.
    Multicast { message: String, groups: Vec<String>, bytes: usize },
    /// Slow down the next upcall.
    Pause { ms: u64 },
    /// Leave all groups.
    Leave,
    /// Report the number of posts.
    Stats,
    /// End.
    Stop,
    /// A command of a later protocol version.
    #[serde(other)]
    Unknown,
}

/// The first command: the member's name, the nodes and the groups.
#[derive(Clone, Debug, Deserialize)]
pub struct Init {
    pub protocol: u32,
    pub node: String,
    pub inc: u32,
    pub nodes: Vec<RunNode>,
    pub groups: Vec<RunGroup>,
    pub limits: RunLimits,
    /// Whether the groups already run.
    #[serde(default)]
    pub join: bool,
    pub shared: std::path::PathBuf,
    pub storage: std::path::PathBuf,
}

/// A node of the run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunNode {
    pub node: String,
    pub address: String,
}

/// A group of the run.
#[derive(Clone, Debug, Deserialize)]
pub struct RunGroup {
    pub group: String,
    pub members: Vec<String>,
    pub senders: Vec<String>,
    /// All nodes that are or may become members.
    #[serde(default)]
    pub all_members: Vec<String>,
}

/// The limits that the driver observes.
#[derive(Clone, Debug, Deserialize)]
pub struct RunLimits {
    pub message_bytes_max: u32,
    /// Maximum size of a huge message. Drivers of earlier versions do not send it; then no message
    /// is huge.
    #[serde(default)]
    pub huge_bytes_max: u32,
    /// Maximum number of unanswered multicasts.
    pub window: u32,
    pub deadline_ms: u64,
}

/// A line from the member.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub enum Line<'a> {
    InitOk {
        name: &'a str,
        version: &'a str,
        features: &'a [&'a str],
    },
    Ok {
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
    },
    Error {
        code: &'a str,
        definite: bool,
        #[serde(skip_serializing_if = "Option::is_none")]
        message: Option<&'a str>,
        text: &'a str,
    },
    Deliver {
        message: Option<&'a str>,
        sender: &'a str,
        group: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        view: Option<u64>,
        #[serde(skip_serializing_if = "Option::is_none")]
        sequence: Option<u64>,
        bytes: usize,
        #[serde(skip_serializing_if = "Option::is_none")]
        digest: Option<String>,
        /// Whether the message was delivered before this start.
        #[serde(skip_serializing_if = "std::ops::Not::not")]
        replayed: bool,
    },
    View {
        group: &'a str,
        view: u64,
        members: &'a [String],
    },
    Durable {
        group: &'a str,
        upto: u64,
    },
    Leader {
        group: &'a str,
        #[serde(skip_serializing_if = "Option::is_none")]
        term: Option<u64>,
    },
    Stats {
        posts: u64,
    },
    Halt {
        reason: &'a str,
        #[serde(skip_serializing_if = "str::is_empty")]
        text: &'a str,
    },
}

/// Writes a line. The stream is locked, so lines of different threads never mix.
pub fn tell(line: &Line<'_>) -> io::Result<()> {
    write(&mut io::stdout().lock(), line)
}

/// Writes a line. If the driver is gone, ends the process, because it then has no group any longer.
pub fn say(line: &Line<'_>) {
    if tell(line).is_err() {
        std::process::exit(1);
    }
}

/// Writes the last line and ends the process. Other threads that want to write wait for the lock
/// until the process is gone.
pub fn halt(reason: &str, text: &str) -> ! {
    let mut out = io::stdout().lock();
    let written = write(&mut out, &Line::Halt { reason, text });
    std::process::exit(i32::from(written.is_err()))
}

fn write(out: &mut impl Write, line: &Line<'_>) -> io::Result<()> {
    let mut text = serde_json::to_vec(line)?;
    text.push(b'\n');
    out.write_all(&text)?;
    out.flush()
}

/// Returns the payload of a message: its name and a space, repeated and cut.
pub fn payload(message: &str, bytes: usize) -> String {
    let text: Vec<u8> = message.bytes().chain([b' ']).cycle().take(bytes).collect();
    String::from_utf8_lossy(&text).into_owned()
}

/// Returns the name of the message with this payload. An empty payload has no room for a name.
pub fn name(payload: &str) -> Option<&str> {
    payload.split(' ').next().filter(|name| !name.is_empty())
}

/// Returns the digest of a payload, the first 16 digits of SHA-256, unless it is empty.
pub fn digest(payload: &[u8]) -> Option<String> {
    let hash = Sha256::digest(payload);
    (!payload.is_empty()).then(|| hash.iter().take(8).map(|byte| format!("{byte:02x}")).collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn protocol_example_has_its_documented_digest() {
        let digest = digest(payload("n1/1/0", 100).as_bytes());
        assert_eq!(digest.as_deref(), Some("955396c97e2db725"));
    }

    #[test]
    fn known_and_unknown_commands_are_parsed() {
        let init = r#"{"type":"init","protocol":1,"node":"n1","inc":1,"join":false,"nodes":[{"node":"n0","address":"127.0.0.1"}],
            "groups":[{"group":"g0","members":["n0"],"senders":["n0"]}],
            "limits":{"message_bytes_max":10240,"window":64,"deadline_ms":10000},"seed":7,"shared":"/s","storage":"/t"}"#;
        assert!(matches!(serde_json::from_str(init), Ok(Command::Init(Init { protocol: 1, .. }))));
        assert!(matches!(serde_json::from_str(r#"{"type":"leave"}"#), Ok(Command::Leave)));
        assert!(matches!(serde_json::from_str(r#"{"type":"dance"}"#), Ok(Command::Unknown)));
        assert!(serde_json::from_str::<Command>(r#"{"type":"pause"}"#).is_err());
    }

    #[test]
    fn empty_message_is_reported_without_name() {
        let line = Line::Deliver {
            message: None,
            sender: "n0",
            group: "g0",
            view: Some(1),
            sequence: Some(0),
            bytes: 0,
            digest: None,
            replayed: false,
        };
        assert_eq!(
            serde_json::to_string(&line).expect("JSON"),
            r#"{"type":"deliver","message":null,"sender":"n0","group":"g0","view":1,"sequence":0,"bytes":0}"#
        );
    }

    #[test]
    fn non_empty_payload_contains_the_message_name() {
        assert_eq!(name(&payload("n1/1/0", 7)), Some("n1/1/0"));
        assert_eq!(name(&payload("n1/1/0", 0)), None);
    }
}
