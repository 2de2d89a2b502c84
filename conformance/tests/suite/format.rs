//! The format of histories. A changed line needs a new version, and these lines must then be
//! rewritten.

use std::borrow::Cow;

use tramontane_conformance::history::{
    EndReason, Event, FaultKind, GroupOrder, Reader, VERSION, Writer,
};

/// A line of each kind of record, with all optional fields.
const LINES: &str = r#"{"ev":"run","version":2,"scenario":"calm","seed":7,"adapter":"example 0.1"}
{"ev":"group","group":"g0","members":["n0"],"senders":["n1"],"order":"sender"}
{"ev":"group","group":"g1","members":["n0"],"senders":["n1"],"order":"group"}
{"ev":"group","group":"g2","members":["n0"],"senders":["n1"]}
{"ev":"start","t_ns":1,"node":"n0","inc":2}
{"ev":"view","t_ns":1,"node":"n0","inc":2,"group":"g0","view":3,"members":["n0"]}
{"ev":"multicast","t_ns":1,"node":"n0","inc":2,"msg":"m","groups":["g0"],"bytes":4,"digest":"d"}
{"ev":"accepted","t_ns":1,"node":"n0","inc":2,"msg":"m"}
{"ev":"leave","t_ns":1,"node":"n0","inc":2}
{"ev":"stop","t_ns":1,"node":"n0","inc":2}
{"ev":"refused","t_ns":1,"node":"n0","inc":2,"msg":"m","definite":false,"code":"full"}
{"ev":"deliver","t_ns":1,"node":"n0","inc":2,"group":"g0","view":3,"msg":"m","sender":"n1","bytes":4,"digest":"d","replayed":true}
{"ev":"deliver","t_ns":1,"node":"n0","inc":2,"group":"g0","msg":null}
{"ev":"leader","t_ns":1,"node":"n0","inc":2,"group":"g0","term":7}
{"ev":"leader","t_ns":1,"node":"n0","inc":2,"group":"g0"}
{"ev":"durable","t_ns":1,"node":"n0","inc":2,"group":"g0","upto":5}
{"ev":"stats","t_ns":1,"node":"n0","inc":2,"posts":6}
{"ev":"fault","t_ns":1,"kind":"kill","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"stop","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"continue","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"partition","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"slow","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"heal","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"full","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"room","nodes":["n0"]}
{"ev":"fault","t_ns":1,"kind":"partition","nodes":["n0"],"how":"one way to n1"}
{"ev":"end","t_ns":1,"node":"n0","inc":2,"reason":"done"}
{"ev":"end","t_ns":1,"node":"n0","inc":2,"reason":"left"}
{"ev":"end","t_ns":1,"node":"n0","inc":2,"reason":"halted"}
{"ev":"end","t_ns":1,"node":"n0","inc":2,"reason":"hung"}
"#;

fn events() -> Vec<Event<'static>> {
    let (t_ns, node, inc, msg) = (1, Cow::Borrowed("n0"), 2, Cow::Borrowed("m"));
    let (group, members, groups) = (Cow::Borrowed("g0"), vec!["n0".into()], vec!["g0".into()]);
    let (bytes, digest) = (Some(4), Some(Cow::Borrowed("d")));
    let told = |group: &'static str, order| {
        let (members, senders) = (vec!["n0".into()], vec!["n1".into()]);
        Event::Group { group: group.into(), members, senders, order }
    };
    let mut events = vec![
        Event::Run {
            version: VERSION,
            scenario: Some("calm".into()),
            seed: Some(7),
            adapter: Some("example 0.1".into()),
        },
        told("g0", GroupOrder::Sender),
        told("g1", GroupOrder::Group),
        told("g2", GroupOrder::Total),
        Event::Start { t_ns, node: node.clone(), inc },
        Event::View { t_ns, node: node.clone(), inc, group: group.clone(), view: 3, members },
        Event::Multicast {
            t_ns,
            node: node.clone(),
            inc,
            msg: msg.clone(),
            groups,
            bytes,
            digest: digest.clone(),
        },
        Event::Accepted { t_ns, node: node.clone(), inc, msg: msg.clone() },
        Event::Leave { t_ns, node: node.clone(), inc },
        Event::Stop { t_ns, node: node.clone(), inc },
        Event::Refused {
            t_ns,
            node: node.clone(),
            inc,
            msg: msg.clone(),
            definite: false,
            code: Some("full".into()),
        },
        Event::Deliver {
            t_ns,
            node: node.clone(),
            inc,
            group: group.clone(),
            view: Some(3),
            msg: Some(msg),
            sender: Some("n1".into()),
            bytes,
            digest,
            replayed: true,
        },
        Event::Deliver {
            t_ns,
            node: node.clone(),
            inc,
            group: group.clone(),
            view: None,
            msg: None,
            sender: None,
            bytes: None,
            digest: None,
            replayed: false,
        },
        Event::Leader { t_ns, node: node.clone(), inc, group: group.clone(), term: Some(7) },
        Event::Leader { t_ns, node: node.clone(), inc, group: group.clone(), term: None },
        Event::Durable { t_ns, node: node.clone(), inc, group, upto: 5 },
        Event::Stats { t_ns, node: node.clone(), inc, posts: 6 },
    ];
    use FaultKind::{Continue, Full, Heal, Kill, Partition, Room, Slow, Stop};
    let fault = |kind| Event::Fault { t_ns, kind, nodes: vec!["n0".into()], how: None };
    events.extend([Kill, Stop, Continue, Partition, Slow, Heal, Full, Room].map(fault));
    let how = Some("one way to n1".into());
    events.push(Event::Fault { t_ns, kind: Partition, nodes: vec!["n0".into()], how });
    use EndReason::{Done, Halted, Hung, Left};
    let end = |reason| Event::End { t_ns, node: node.clone(), inc, reason };
    events.extend([Done, Left, Halted, Hung].map(end));
    events
}

#[test]
fn history_lines_match_the_format_version() {
    let mut writer = Writer::new(Vec::new());
    for event in events() {
        writer.write(&event).expect("memory takes everything");
    }
    let written = String::from_utf8(writer.finish().expect("memory")).expect("it is text");
    assert_eq!(written, LINES);

    let mut reader = Reader::new(LINES.as_bytes());
    for event in events() {
        let read = reader.next_event().expect("it is a history").map(|(_, event)| event);
        assert_eq!(read, Some(event));
    }
    assert!(reader.next_event().expect("it is a history").is_none());
}
