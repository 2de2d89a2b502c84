//! The lines that pass between the driver and an adapter, defined in `docs/adapter-protocol.md`.
//!
//! Reading an adapter's output always returns either a valid line or a text that describes the
//! error.

use std::path::Path;

use serde::{Deserialize, Deserializer, Serialize};

/// The protocol version.
pub(super) const VERSION: u32 = 1;

/// Limit of a member's unanswered multicasts.
pub(super) const WINDOW: usize = 64;

/// Length limit in bytes of a message for an adapter without the feature `huge-messages`.
pub(super) const MESSAGE_BYTES_MAX: u64 = 10 * 1024;

/// Length limit of any message in bytes.
pub(super) const HUGE_BYTES_MAX: u64 = 4 << 20;

/// Length limit in bytes of a message for an adapter without the feature `large-messages`.
pub(super) const ORDINARY_BYTES_MAX: u64 = 1024;

/// A command to a member.
#[derive(Debug, Serialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum Command<'a> {
    Init(Init<'a>),
    Multicast { message: &'a str, groups: Vec<&'a str>, bytes: u64 },
    Pause { ms: u64 },
    Leave,
    Stats,
    Stop,
}

impl Command<'_> {
    /// Returns the command as a line, with its line feed.
    pub(super) fn line(&self) -> String {
        // Commands contain only texts and numbers, so serialising cannot fail; paths that are not
        // UTF-8 were already converted.
        let mut line = serde_json::to_string(self).unwrap_or_default();
        line.push('\n');
        line
    }
}

/// The first command to a member: its name, the nodes, the groups and the limits.
#[derive(Debug, Serialize)]
pub(super) struct Init<'a> {
    pub(super) protocol: u32,
    pub(super) node: &'a str,
    pub(super) inc: u32,
    pub(super) join: bool,
    pub(super) nodes: Vec<NodeAddress<'a>>,
    pub(super) groups: Vec<GroupMembers<'a>>,
    pub(super) limits: DriverLimits,
    pub(super) seed: u64,
    pub(super) shared: &'a Path,
    pub(super) storage: &'a Path,
}

/// A node's address.
#[derive(Debug, Serialize)]
pub(super) struct NodeAddress<'a> {
    pub(super) node: &'a str,
    pub(super) address: &'a str,
}

/// The current members and senders of a group.
#[derive(Debug, Serialize)]
pub(super) struct GroupMembers<'a> {
    pub(super) group: &'a str,
    pub(super) members: Vec<&'a str>,
    pub(super) senders: Vec<&'a str>,
    /// All nodes that are or may become members, in an order that never changes.
    pub(super) all_members: Vec<&'a str>,
}

/// The limits that the driver observes.
#[derive(Debug, Serialize)]
pub(super) struct DriverLimits {
    pub(super) message_bytes_max: u64,
    pub(super) huge_bytes_max: u64,
    pub(super) window: usize,
    pub(super) deadline_ms: u64,
}

/// A line from a member.
#[derive(Debug, PartialEq, Eq, Deserialize)]
#[serde(tag = "type", rename_all = "snake_case")]
pub(super) enum MemberLine {
    InitOk {
        name: String,
        version: String,
        features: Vec<String>,
    },
    Ok {
        message: Option<String>,
    },
    Error {
        code: String,
        /// An adapter that omits this field is treated as uncertain.
        #[serde(default)]
        definite: bool,
        message: Option<String>,
        text: Option<String>,
    },
    Deliver(ReportedDelivery),
    View {
        group: String,
        view: u64,
        members: Vec<String>,
    },
    Durable {
        group: String,
        upto: u64,
    },
    Leader {
        group: String,
        term: Option<u64>,
    },
    Stats {
        posts: u64,
    },
    Halt {
        reason: HaltReason,
        text: Option<String>,
    },
}

/// A delivery to the application.
#[derive(Debug, PartialEq, Eq, Deserialize)]
pub(super) struct ReportedDelivery {
    /// `null` for an empty message, but never omitted.
    #[serde(deserialize_with = "present")]
    pub(super) message: Option<String>,
    pub(super) sender: String,
    pub(super) group: String,
    pub(super) view: Option<u64>,
    pub(super) bytes: Option<u64>,
    pub(super) digest: Option<String>,
    #[serde(default)]
    pub(super) replayed: bool,
}

/// Reads a field that may be `null` but must not be missing.
fn present<'de, D: Deserializer<'de>>(field: D) -> Result<Option<String>, D::Error> {
    Option::deserialize(field)
}

/// The reason why a member ends.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub(super) enum HaltReason {
    Done,
    Left,
    Halted,
}

impl MemberLine {
    /// Reads a line.
    ///
    /// # Errors
    /// Fails with the problem of the line.
    pub(super) fn read(line: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(line)
            .map_err(|error| format!("not valid UTF-8 at byte {}", error.valid_up_to()))?;
        // A JSON list could be read as one of these types too.
        if !text.trim_ascii_start().starts_with('{') {
            return Err("not a JSON object".to_owned());
        }
        serde_json::from_str(text).map_err(|error| error.to_string())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(line: &str) -> Result<MemberLine, String> {
        MemberLine::read(line.as_bytes())
    }

    #[test]
    fn example_session_is_parsed() {
        for line in [
            r#"{"type":"init_ok","name":"example","version":"0.1","features":["views","pause"]}"#,
            r#"{"type":"view","group":"g0","view":1,"members":["n0","n1"]}"#,
            r#"{"type":"ok","message":"n1/1/0"}"#,
            r#"{"type":"ok"}"#,
            r#"{"type":"deliver","message":"n1/1/0","sender":"n1","group":"g0","view":1,"sequence":0,"bytes":100,"digest":"955396c97e2db725"}"#,
            r#"{"type":"deliver","message":null,"sender":"n1","group":"g0","bytes":0,"mood":["any"]}"#,
            r#"{"type":"stats","posts":3}"#,
            r#"{"type":"halt","reason":"done"}"#,
        ] {
            assert!(read(line).is_ok(), "{line}: {:?}", read(line));
        }
    }

    #[test]
    fn invalid_protocol_lines_are_reported() {
        for line in [
            "",
            "hello",
            "null",
            r#"["ok","n1/1/0"]"#,
            r#"{"type":"party"}"#,
            r#"{"message":"n1/1/0"}"#,
            r#"{"type":"deliver","sender":"n1","group":"g0"}"#,
            r#"{"type":"deliver","message":5,"sender":"n1","group":"g0"}"#,
            r#"{"type":"stats","posts":-1}"#,
            r#"{"type":"stats","posts":1} {"type":"stats","posts":2}"#,
            r#"{"type":"halt","reason":"bored"}"#,
            r#"{"type":"ok""#,
        ] {
            assert!(read(line).is_err(), "{line}");
        }
        assert_eq!(
            MemberLine::read(b"{\"type\":\"\xff\"}"),
            Err("not valid UTF-8 at byte 9".to_owned())
        );
    }

    #[test]
    fn refusal_without_definite_field_is_uncertain() {
        let notice = read(r#"{"type":"error","code":"full","message":"m"}"#);
        assert!(matches!(notice, Ok(MemberLine::Error { definite: false, .. })), "{notice:?}");
    }

    /// Adapters of this protocol version read these lines, and ignore new fields. Any other change
    /// needs a new version, and these lines must then be rewritten.
    #[test]
    fn command_lines_match_the_protocol_version() {
        assert_eq!(VERSION, 1);
        let init = Init {
            protocol: VERSION,
            node: "n0",
            inc: 2,
            join: true,
            nodes: vec![NodeAddress { node: "n0", address: "127.0.0.1:1" }],
            groups: vec![GroupMembers {
                group: "g0",
                members: vec!["n0"],
                senders: vec!["n1"],
                all_members: vec!["n0", "n2"],
            }],
            limits: DriverLimits {
                message_bytes_max: 3,
                huge_bytes_max: 4,
                window: 5,
                deadline_ms: 6,
            },
            seed: 7,
            shared: Path::new("/shared"),
            storage: Path::new("/storage"),
        };
        let commands = [
            Command::Init(init),
            Command::Multicast { message: "n0/1/0", groups: vec!["g0"], bytes: 100 },
            Command::Pause { ms: 8 },
            Command::Leave,
            Command::Stats,
            Command::Stop,
        ];
        let lines = [
            r#"{"type":"init","protocol":1,"node":"n0","inc":2,"join":true,"nodes":[{"node":"n0","address":"127.0.0.1:1"}],"groups":[{"group":"g0","members":["n0"],"senders":["n1"],"all_members":["n0","n2"]}],"limits":{"message_bytes_max":3,"huge_bytes_max":4,"window":5,"deadline_ms":6},"seed":7,"shared":"/shared","storage":"/storage"}"#,
            r#"{"type":"multicast","message":"n0/1/0","groups":["g0"],"bytes":100}"#,
            r#"{"type":"pause","ms":8}"#,
            r#"{"type":"leave"}"#,
            r#"{"type":"stats"}"#,
            r#"{"type":"stop"}"#,
        ];
        for (command, line) in commands.iter().zip(lines) {
            assert_eq!(command.line(), format!("{line}\n"));
        }
    }

    /// Lines from adapters keep their meaning within this protocol version.
    #[test]
    fn member_lines_match_the_protocol_version() {
        assert_eq!(VERSION, 1);
        let text = |text: &str| text.to_owned();
        let delivery = ReportedDelivery {
            message: Some(text("n1/1/0")),
            sender: text("n1"),
            group: text("g0"),
            view: Some(1),
            bytes: Some(100),
            digest: Some(text("955396c97e2db725")),
            replayed: true,
        };
        let error = MemberLine::Error {
            code: text("full"),
            definite: true,
            message: Some(text("n1/1/0")),
            text: Some(text("later")),
        };
        let halt = |reason| MemberLine::Halt { reason, text: None };
        let (name, version, features) = (text("example"), text("0.1"), vec![text("views")]);
        let cases = [
            (
                r#"{"type":"init_ok","name":"example","version":"0.1","features":["views"]}"#,
                MemberLine::InitOk { name, version, features },
            ),
            (
                r#"{"type":"ok","message":"n1/1/0"}"#,
                MemberLine::Ok { message: Some(text("n1/1/0")) },
            ),
            (
                r#"{"type":"error","code":"full","definite":true,"message":"n1/1/0","text":"later"}"#,
                error,
            ),
            (
                r#"{"type":"deliver","message":"n1/1/0","sender":"n1","group":"g0","view":1,"bytes":100,"digest":"955396c97e2db725","replayed":true}"#,
                MemberLine::Deliver(delivery),
            ),
            (
                r#"{"type":"view","group":"g0","view":1,"members":["n0"]}"#,
                MemberLine::View { group: text("g0"), view: 1, members: vec![text("n0")] },
            ),
            (
                r#"{"type":"durable","group":"g0","upto":3}"#,
                MemberLine::Durable { group: text("g0"), upto: 3 },
            ),
            (
                r#"{"type":"leader","group":"g0","term":4}"#,
                MemberLine::Leader { group: text("g0"), term: Some(4) },
            ),
            (
                r#"{"type":"leader","group":"g0"}"#,
                MemberLine::Leader { group: text("g0"), term: None },
            ),
            (r#"{"type":"stats","posts":3}"#, MemberLine::Stats { posts: 3 }),
            (r#"{"type":"halt","reason":"done"}"#, halt(HaltReason::Done)),
            (r#"{"type":"halt","reason":"left"}"#, halt(HaltReason::Left)),
            (r#"{"type":"halt","reason":"halted"}"#, halt(HaltReason::Halted)),
        ];
        for (line, notice) in cases {
            assert_eq!(read(line), Ok(notice));
        }
    }
}
