//! Feeds arbitrary bytes to the parsers of the shards' control messages and of the overlay file.
//! Used by a fuzzer, and with random input by the tests below.

use std::fmt::Debug;
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::description::Description;
use super::messages::{AskReply, AskRequest, JoinReply, JoinRequest, PeerReply, PeerRequest};

/// Parses bytes as each kind of message between replicas, clients and operators.
///
/// # Panics
/// Panics if a message changes when it is encoded and decoded.
pub fn control(bytes: &[u8]) {
    again::<PeerRequest>(bytes);
    again::<PeerReply>(bytes);
    again::<JoinRequest>(bytes);
    again::<JoinReply>(bytes);
    again::<AskRequest>(bytes);
    again::<AskReply>(bytes);
}

fn again<T: Serialize + for<'d> Deserialize<'d> + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(bytes) else { return };
    let written = postcard::to_stdvec(&message).expect("it can be written");
    assert_eq!(postcard::from_bytes::<T>(&written).expect("it was written"), message);
}

/// Parses bytes as an overlay file.
///
/// # Panics
/// Panics if a valid file yields no overlay, or one with different groups.
pub fn overlay_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(description) = Description::parse(Path::new("overlay.toml"), text) else { return };
    let overlay = description.overlay().expect("it was right");
    assert_eq!(overlay.len(), description.groups.len());
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns a line that an overlay file may have, with numbers at their limits.
    fn line() -> impl Strategy<Value = String> {
        let number = prop_oneof![
            3 => (0..9_u64).prop_map(|number| number.to_string()),
            1 => prop::sample::select(vec!["65535", "65536", "4294967295", "1073741825", "-1", "1e9"])
                .prop_map(str::to_owned),
        ];
        let key = prop::sample::select(vec![
            "replicas",
            "clients_max",
            "client_window",
            "parent_window",
            "log_entries",
            "message_max",
            "references_from",
            "answer_max",
            "heartbeat_ms",
            "failure_timeout_ms",
        ]);
        let name = prop::sample::select(vec!["a", "b", "c", "", "a.b"]);
        let word = prop::sample::select(vec!["name", "parent"]);
        prop_oneof![
            (key, number).prop_map(|(key, number)| format!("{key} = {number}")),
            (word, name).prop_map(|(word, name)| format!("{word} = \"{name}\"")),
            prop::sample::select(vec![
                "[[groups]]",
                "fabric = \"tcp\"",
                "fabric = \"verbs\"",
                "replicas = [\"127.0.0.1:1\"]",
                "batching = false",
            ])
            .prop_map(str::to_owned),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(2000))]

        #[test]
        fn arbitrary_shard_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
            control(&bytes);
            overlay_file(&bytes);
        }

        /// Numbers as they are encoded in messages, mostly small ones.
        #[test]
        fn arbitrary_shard_messages_never_panic(
            bytes in vec(prop_oneof![4 => 0..6_u8, 1 => any::<u8>()], 0..60),
        ) {
            control(&bytes);
        }

        #[test]
        fn arbitrary_overlay_files_never_panic(lines in vec(line(), 0..14)) {
            let group = "[[groups]]\nname = \"a\"\nreplicas = 3\n";
            let text = lines.join("\n");
            overlay_file(format!("name = \"o\"\n{text}").as_bytes());
            overlay_file(format!("name = \"o\"\n{group}{text}").as_bytes());
        }
    }
}
