//! Parses one line into one event.

use std::borrow::Cow;

use serde::Deserialize;

use super::event::{EndReason, Event, FaultKind, GroupOrder};
use super::reader::Trouble;

/// Every field of every record. One flat type is read several times faster than a tagged
/// enumeration, which has to buffer a line's fields until it finds the tag.
#[derive(Deserialize)]
struct HistoryLine<'a> {
    #[serde(borrow)]
    ev: Cow<'a, str>,
    t_ns: Option<u64>,
    #[serde(borrow)]
    node: Option<Cow<'a, str>>,
    inc: Option<u32>,
    #[serde(borrow)]
    group: Option<Cow<'a, str>>,
    #[serde(borrow)]
    groups: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    members: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    senders: Option<Vec<Cow<'a, str>>>,
    order: Option<GroupOrder>,
    view: Option<u64>,
    #[serde(borrow)]
    msg: Option<Cow<'a, str>>,
    #[serde(borrow)]
    sender: Option<Cow<'a, str>>,
    bytes: Option<u64>,
    #[serde(borrow)]
    digest: Option<Cow<'a, str>>,
    replayed: Option<bool>,
    upto: Option<u64>,
    posts: Option<u64>,
    term: Option<u64>,
    kind: Option<FaultKind>,
    #[serde(borrow)]
    nodes: Option<Vec<Cow<'a, str>>>,
    #[serde(borrow)]
    how: Option<Cow<'a, str>>,
    reason: Option<EndReason>,
    version: Option<u32>,
    #[serde(borrow)]
    scenario: Option<Cow<'a, str>>,
    seed: Option<u64>,
    #[serde(borrow)]
    adapter: Option<Cow<'a, str>>,
    #[serde(borrow)]
    code: Option<Cow<'a, str>>,
    definite: Option<bool>,
}

/// Parses one line, without its line feed.
///
/// # Errors
/// Fails with [`Trouble::NotJson`] if the text is not a JSON object with an `ev`, or a field has
/// the wrong type, and with [`Trouble::Lacks`] if a required field is missing.
pub fn parse(text: &str) -> Result<Event<'_>, Trouble> {
    let line: HistoryLine<'_> =
        serde_json::from_str(text).map_err(|error| Trouble::NotJson(error.to_string()))?;
    event(line)
}

fn event(line: HistoryLine<'_>) -> Result<Event<'_>, Trouble> {
    /// A record with its fields: the required ones first, then the optional ones.
    macro_rules! record {
        ($kind:ident { $($needed:ident),* } $({ $($field:ident: $value:expr),* })?) => {
            Event::$kind {
                $($needed: line.$needed.ok_or(Trouble::Lacks(stringify!($needed)))?,)*
                $($($field: $value,)*)?
            }
        };
    }
    Ok(match line.ev.as_ref() {
        "run" => record!(Run { version }
            { scenario: line.scenario, seed: line.seed, adapter: line.adapter }),
        "group" => record!(Group { group, members, senders }
            { order: line.order.unwrap_or_default() }),
        "start" => record!(Start { t_ns, node, inc }),
        "view" => record!(View { t_ns, node, inc, group, view, members }),
        "multicast" => record!(Multicast { t_ns, node, inc, msg, groups }
            { bytes: line.bytes, digest: line.digest }),
        "accepted" => record!(Accepted { t_ns, node, inc, msg }),
        "refused" => record!(Refused { t_ns, node, inc, msg }
            { definite: line.definite.unwrap_or(true), code: line.code }),
        "deliver" => record!(Deliver { t_ns, node, inc, group }
            { view: line.view, msg: line.msg, sender: line.sender, bytes: line.bytes,
              digest: line.digest, replayed: line.replayed.unwrap_or(false) }),
        "durable" => record!(Durable { t_ns, node, inc, group, upto }),
        "leader" => record!(Leader { t_ns, node, inc, group } { term: line.term }),
        "leave" => record!(Leave { t_ns, node, inc }),
        "stop" => record!(Stop { t_ns, node, inc }),
        "stats" => record!(Stats { t_ns, node, inc, posts }),
        "fault" => record!(Fault { t_ns, kind, nodes } { how: line.how }),
        "end" => record!(End { t_ns, node, inc, reason }),
        _ => Event::Unknown { ev: line.ev },
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The records of the definition, word for word.
    const DEFINITION: &[&str] = &[
        r#"{"ev":"group","group":"g0","members":["n0","n1","n2"],"senders":["n0","n1"]}"#,
        r#"{"ev":"start","t_ns":5,"node":"n0","inc":1}"#,
        r#"{"ev":"view","t_ns":9,"node":"n0","inc":1,"group":"g0","view":1,"members":["n0","n1","n2"]}"#,
        r#"{"ev":"multicast","t_ns":12,"node":"n0","inc":1,"msg":"n0/1/0","groups":["g0"],"bytes":100,"digest":"..."}"#,
        r#"{"ev":"accepted","t_ns":13,"node":"n0","inc":1,"msg":"n0/1/0"}"#,
        r#"{"ev":"deliver","t_ns":31,"node":"n2","inc":1,"group":"g0","view":1,"msg":"n0/1/0","digest":"..."}"#,
        r#"{"ev":"durable","t_ns":40,"node":"n2","inc":1,"group":"g0","upto":0}"#,
        r#"{"ev":"leader","t_ns":41,"node":"n2","inc":1,"group":"g0","term":3}"#,
        r#"{"ev":"leave","t_ns":42,"node":"n0","inc":1}"#,
        r#"{"ev":"stop","t_ns":44,"node":"n1","inc":1}"#,
        r#"{"ev":"fault","t_ns":50,"kind":"kill","nodes":["n1"]}"#,
        r#"{"ev":"end","t_ns":99,"node":"n0","inc":1,"reason":"done"}"#,
    ];

    #[test]
    fn history_records_round_trip() {
        for text in DEFINITION {
            let event = parse(text).expect(text);
            assert_eq!(&serde_json::to_string(&event).expect("an event is JSON"), text);
        }
    }

    #[test]
    fn unknown_fields_are_ignored_unknown_events_kept() {
        assert!(matches!(
            parse(r#"{"ev":"start","t_ns":1,"node":"a","inc":1,"mood":[{}]}"#),
            Ok(Event::Start { .. })
        ));
        assert_eq!(
            parse(r#"{"ev":"party","when":"now"}"#),
            Ok(Event::Unknown { ev: Cow::Borrowed("party") })
        );
    }

    #[test]
    fn missing_and_invalid_fields_are_reported() {
        assert_eq!(parse(r#"{"ev":"start","node":"n0","inc":1}"#), Err(Trouble::Lacks("t_ns")));
        for text in [
            "",
            "null",
            "[]",
            "{}",
            r#"{"ev":"#,
            r#"{"ev":"start","t_ns":-1}"#,
            r#"{"ev":"fault","kind":"x"}"#,
        ] {
            assert!(matches!(parse(text), Err(Trouble::NotJson(_))), "{text}");
        }
    }

    #[test]
    fn names_with_escapes_are_parsed() {
        let Ok(Event::Start { node, .. }) =
            parse(r#"{"ev":"start","t_ns":1,"node":"n\u0030","inc":1}"#)
        else {
            panic!("it is a start");
        };
        assert_eq!(node, "n0");
    }
}
