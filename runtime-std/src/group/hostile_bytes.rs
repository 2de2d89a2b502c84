//! Feeds arbitrary bytes to the parsers of a group's control messages and of its file. Used by a
//! fuzzer, and with random input by the tests below.

use std::fmt::Debug;
use std::path::Path;

use serde::{Deserialize, Serialize};
use tramontane_control::client_messages::{ClientReply, ClientRequest, decode, encode};

use crate::group::description::terms::Description;
use crate::group::description::view::View;
use crate::group::join::join_messages::{JoinReply, JoinRequest};
use crate::group::status::operator::{OperatorReply, OperatorRequest};

/// Parses bytes as each kind of message of members, joining nodes, operators and clients.
///
/// # Panics
/// Panics if a message changes when it is encoded and decoded.
pub fn control(bytes: &[u8]) {
    again::<OperatorRequest>(bytes);
    again::<OperatorReply>(bytes);
    again::<JoinRequest>(bytes);
    again::<JoinReply>(bytes);
    if let Some(request) = decode::<ClientRequest<'_>>(bytes) {
        assert_eq!(decode(&encode(&request)), Some(request));
    }
    if let Some(reply) = decode::<ClientReply<'_>>(bytes) {
        assert_eq!(decode(&encode(&reply)), Some(reply));
    }
    if let Ok(JoinReply::View(view) | JoinReply::Member { view, .. }) = postcard::from_bytes(bytes)
    {
        drop(View::from(view));
    }
}

fn again<T: Serialize + for<'d> Deserialize<'d> + PartialEq + Debug>(bytes: &[u8]) {
    let Ok(message) = postcard::from_bytes::<T>(bytes) else { return };
    let written = postcard::to_stdvec(&message).expect("it can be written");
    assert_eq!(postcard::from_bytes::<T>(&written).expect("it was written"), message);
}

/// Parses bytes as a group file.
///
/// # Panics
/// Panics if a valid file changes when it is written and read again.
pub fn group_file(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let Ok(description) = Description::parse(Path::new("group.toml"), text) else { return };
    let mut again = description.clone();
    again.complete().expect("it was complete");
    assert_eq!((again.digest(), &again), (description.digest(), &description));
    drop(View::first(&description));
}

#[cfg(test)]
mod tests {
    use proptest::collection::vec;
    use proptest::prelude::*;

    use super::*;

    /// Returns lines that a group file may have, with numbers at their limits.
    fn line() -> impl Strategy<Value = String> {
        let number = prop_oneof![
            3 => (0..9_u64).prop_map(|number| number.to_string()),
            1 => any::<u64>().prop_map(|number| number.to_string()),
            1 => prop::sample::select(vec!["4294967295", "4294967296", "268435456", "-1", "1e9", "1048576"])
                .prop_map(str::to_owned),
        ];
        let key = prop::sample::select(vec![
            "id",
            "window",
            "message_max",
            "large_max",
            "large_window",
            "heartbeat_ms",
            "failure_timeout_ms",
            "evict_slow_after_ms",
            "client_lease_ms",
        ]);
        prop_oneof![
            (key, number).prop_map(|(key, number)| format!("{key} = {number}")),
            prop::sample::select(vec![
                "name = \"g\"",
                "fabric = \"tcp\"",
                "majority = false",
                "[[nodes]]",
                "[[subgroups]]",
                "initial = [0]",
                "members = [0, 1]",
                "senders = [1]",
                "address = \"127.0.0.1:1\"",
                "unordered = true",
                "clients = true",
                "logged = true",
                "restart_empty = true",
                "key_file = \"key\"",
                "nodes = [{ id = 0 }]",
            ])
            .prop_map(str::to_owned),
        ]
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(4000))]

        #[test]
        fn arbitrary_group_bytes_never_panic(bytes in vec(any::<u8>(), 0..200)) {
            control(&bytes);
            group_file(&bytes);
        }

        /// Numbers as they are encoded in messages, mostly small ones.
        #[test]
        fn arbitrary_group_messages_never_panic(
            bytes in vec(prop_oneof![4 => 0..6_u8, 1 => any::<u8>()], 0..60),
        ) {
            control(&bytes);
        }

        #[test]
        fn arbitrary_group_files_never_panic(
            lines in vec(line(), 0..14),
            has_nodes in any::<bool>(),
        ) {
            let head = "name = \"g\"\n[[nodes]]\nid = 0\n[[nodes]]\nid = 1\n[[subgroups]]\nname = \"s\"\n";
            let head = if has_nodes { head } else { "" };
            group_file(format!("{head}{}", lines.join("\n")).as_bytes());
        }
    }
}
