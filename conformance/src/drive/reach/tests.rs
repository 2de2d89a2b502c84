//! Each condition, with a history that reaches it and one that just fails to.

use super::Reach;
use crate::drive::recorded::Recorded;

/// One group of three nodes, all of which start at the beginning.
const BEGIN: &str = r#"{"ev":"group","group":"g0","members":["n0","n1","n2"],"senders":["n0","n1","n2"]}
{"ev":"start","t_ns":0,"node":"n0","inc":1}
{"ev":"start","t_ns":0,"node":"n1","inc":1}
{"ev":"start","t_ns":0,"node":"n2","inc":1}
"#;

/// Reads a history in short form: `m TIME NODE MSG GROUPS BYTES [INC]`, `d TIME NODE MSG INC`, `v
/// TIME NODE MEMBERS`, `l TIME NODE GROUP TERM`, `f TIME KIND NODE`, `s TIME NODE INC`, `e TIME
/// NODE`, `p TIME NODE`, with times in milliseconds.
fn recorded(short: &[&str]) -> Recorded {
    let mut text = BEGIN.to_owned();
    let group = r#"{"ev":"group","group":"g1","members":["n0","n1"],"senders":["n0","n1"]}"#;
    text += &format!("{group}\n");
    for line in short {
        let words: Vec<&str> = line.split(' ').collect();
        let t_ns = words[1].parse::<u64>().expect("a time") * 1_000_000;
        let list = |word: &str| {
            word.split(',').map(|one| format!("\"{one}\"")).collect::<Vec<_>>().join(",")
        };
        let record = match words[0] {
            "m" => format!(
                r#""multicast","node":"{}","inc":{},"msg":"{}","groups":[{}],"bytes":{}"#,
                words[2],
                words.get(6).unwrap_or(&"1"),
                words[3],
                list(words[4]),
                words[5]
            ),
            "d" => format!(
                r#""deliver","node":"{}","group":"g0","msg":"{}","inc":{}"#,
                words[2], words[3], words[4]
            ),
            "v" => format!(
                r#""view","node":"{}","inc":1,"group":"g0","view":1,"members":[{}]"#,
                words[2],
                list(words[3])
            ),
            "l" => format!(
                r#""leader","node":"{}","inc":1,"group":"{}","term":{}"#,
                words[2], words[3], words[4]
            ),
            "f" => format!(r#""fault","kind":"{}","nodes":["{}"]"#, words[2], words[3]),
            "s" => format!(r#""start","node":"{}","inc":{}"#, words[2], words[3]),
            "e" => format!(r#""end","node":"{}","inc":1,"reason":"left""#, words[2]),
            "p" => format!(r#""stats","node":"{}","inc":1,"posts":5"#, words[2]),
            other => panic!("no such record: {other}"),
        };
        text += &format!("{{\"ev\":{record},\"t_ns\":{t_ns}}}\n");
    }
    Recorded::read(text.as_bytes()).expect("a history")
}

/// Asserts that the first history reaches the condition, and the second, which lacks the decisive
/// part, does not.
fn tells(reach: &Reach, yes: &[&str], no: &[&str]) {
    assert!(reach.is_reached(&recorded(yes)), "{reach}");
    assert!(!reach.is_reached(&recorded(no)), "not: {reach}");
}

#[test]
fn deliveries_by_all_members_are_recognised() {
    let yes = ["m 1 n0 a g0 40", "d 2 n0 a 1", "d 2 n1 a 1", "d 2 n2 a 1"];
    tells(&Reach::DeliveredByAll { count: 1 }, &yes, &yes[..3]);
    tells(&Reach::Size { bytes: 40 }, &yes, &yes[..3]);
    tells(&Reach::From { node: 0, count: 1 }, &yes, &yes[..3]);
    assert!(!Reach::Size { bytes: 41 }.is_reached(&recorded(&yes)));
    assert!(!Reach::From { node: 1, count: 1 }.is_reached(&recorded(&yes)));
    assert!(!Reach::AcrossGroups { count: 1 }.is_reached(&recorded(&yes)));
    let across = ["m 1 n0 a g1,g0 40", "d 2 n0 a 1", "d 2 n1 a 1", "d 2 n2 a 1"];
    tells(&Reach::AcrossGroups { count: 1 }, &across, &across[..3]);
}

#[test]
fn alternating_deliveries_are_recognised() {
    let sent = ["m 1 n0 a g0 40", "m 1 n1 b g0 40", "m 1 n0 c g0 40"];
    let yes = [&sent[..], &["d 2 n2 a 1", "d 3 n2 b 1", "d 4 n2 c 1"]].concat();
    let no = [&sent[..], &["d 2 n2 a 1", "d 3 n2 c 1", "d 4 n2 b 1"]].concat();
    tells(&Reach::SendersInterleave, &yes, &no);
    let sent = ["m 1 n0 a g0 40", "m 1 n0 b g1 40", "m 1 n0 c g0 40"];
    let one = [&sent[..], &["d 2 n0 a 1", "d 3 n0 b 1", "d 4 n0 c 1"]].concat();
    let both = [&one[..], &["d 2 n1 a 1", "d 3 n1 b 1", "d 4 n1 c 1"]].concat();
    tells(&Reach::GroupsInterleave, &both, &one);
}

#[test]
fn messages_in_flight_are_counted() {
    let yes = ["m 1 n0 a g1 40", "d 2 n0 a 1", "m 3 n0 b g1 40", "d 4 n1 a 1"];
    let no = ["m 1 n0 a g1 40", "d 2 n0 a 1", "d 2 n1 a 1", "m 3 n0 b g1 40"];
    tells(&Reach::UnderWay { count: 2 }, &yes, &no);
}

#[test]
fn silent_and_late_members_are_recognised() {
    let history = ["m 1 n0 a g0 40", "d 2 n1 a 1", "m 3 n1 b g0 40"];
    tells(&Reach::Silent { nodes: vec![1, 2] }, &history[..2], &history);
    let early = ["m 1 n0 a g0 40", "m 1 n1 b g0 40", "d 2 n1 a 1"];
    tells(&Reach::Late { node: 1, after: 1 }, &history, &early);
}

#[test]
fn backlog_of_slow_member_is_recognised() {
    let reach = Reach::Backlog { node: 1, ms: 100, count: 1 };
    let yes = ["m 1 n0 a g0 40", "d 2 n1 a 1", "m 3 n0 b g0 40", "d 120 n1 b 1"];
    // The node waited because there was no message.
    let no = ["m 1 n0 a g0 40", "d 2 n1 a 1", "m 119 n0 b g0 40", "d 120 n1 b 1"];
    tells(&reach, &yes, &no);
}

#[test]
fn silence_between_post_counts_is_recognised() {
    let yes = ["m 1 n0 a g0 40", "p 600 n0", "p 1200 n0"];
    tells(&Reach::Quiet, &yes, &["m 101 n0 a g0 40", "p 600 n0", "p 1200 n0"]);
    assert!(!Reach::Quiet.is_reached(&recorded(&["p 600 n0", "p 1000 n0"])), "too short");
    assert!(!Reach::Quiet.is_reached(&recorded(&["p 600 n0", "p 1200 n1"])), "two nodes");
    assert!(
        !Reach::Quiet.is_reached(&recorded(&["p 600 n0", "v 700 n1 n1", "p 1200 n0"])),
        "a view"
    );
}

#[test]
fn joins_and_leaves_under_load_are_recognised() {
    let mut left = recorded(&["m 1 n0 a g1 40", "d 2 n0 a 1", "d 9 n1 a 1", "e 10 n2"]);
    let reach = Reach::LeftUnderLoad { node: 2 };
    assert!(!reach.is_reached(&left), "nobody told it to");
    left.leaves = vec![(2, 5_000_000)];
    assert!(reach.is_reached(&left));
    left.leaves = vec![(2, 9_500_000)];
    assert!(!reach.is_reached(&left), "all was delivered");

    let joined = ["s 5 n2 2", "m 6 n0 a g0 40", "d 9 n2 a 2"];
    let reach = Reach::JoinedUnderLoad { node: 3 };
    let joined: Vec<String> = joined.iter().map(|line| line.replace("n2", "n3")).collect();
    let joined: Vec<&str> = joined.iter().map(String::as_str).collect();
    tells(&reach, &joined, &joined[..2]);
    let quiet = ["s 5 n3 1", "v 6 n3 n0,n1,n2,n3", "m 7 n0 a g0 40", "d 9 n3 a 1"];
    assert!(!reach.is_reached(&recorded(&quiet)), "nobody sent while it joined");
}

#[test]
fn kill_with_messages_in_flight_is_recognised() {
    let yes = ["m 1 n0 a g0 40", "d 2 n0 a 1", "d 2 n1 a 1", "f 5 kill n0"];
    let no = ["m 1 n0 a g0 40", "d 2 n0 a 1", "d 2 n1 a 1", "d 4 n2 a 1", "f 5 kill n0"];
    tells(&Reach::KilledSending { node: 0 }, &yes, &no);
    tells(&Reach::KilledMidway { node: 0 }, &yes, &no);
    let others: Vec<String> = yes.iter().map(|line| line.replace("kill n0", "kill n2")).collect();
    let others: Vec<&str> = others.iter().map(String::as_str).collect();
    assert!(Reach::KilledMidway { node: 2 }.is_reached(&recorded(&others)));
    assert!(!Reach::KilledSending { node: 2 }.is_reached(&recorded(&others)), "it was not its own");
    // The node that lacks the message had already been killed, and no message waits for it.
    let late = ["m 1 n0 a g0 40", "d 2 n0 a 1", "d 2 n1 a 1", "f 3 kill n2", "f 5 kill n0"];
    assert!(!Reach::KilledMidway { node: 0 }.is_reached(&recorded(&late)));
}

#[test]
fn kill_during_view_change_is_recognised() {
    let without = Reach::KilledBeforeViewWithout { node: 1, gone: 2 };
    let first = ["v 1 n0 n0,n1,n2", "f 3 kill n2", "f 6 kill n1", "v 7 n0 n0"];
    let second = ["v 1 n0 n0,n1,n2", "f 3 kill n2", "v 5 n0 n0,n1", "f 6 kill n1"];
    tells(&without, &first, &second);
    let with = Reach::KilledBeforeViewWith { node: 1, joined: 2 };
    let first = ["v 1 n0 n0,n1", "f 6 kill n1", "v 7 n0 n0,n2"];
    let second = ["v 1 n0 n0,n1", "v 5 n0 n0,n1,n2", "f 6 kill n1"];
    tells(&with, &first, &second);
}

#[test]
fn restarted_members_are_recognised() {
    let reach = Reach::Restarted { nodes: vec![2] };
    let sent = ["m 1 n0 a g0 40", "m 1 n0 b g0 40", "m 1 n0 c g0 40", "d 2 n2 a 1", "f 3 kill n2"];
    let between = [&sent[..], &["d 4 n0 b 1"]].concat();
    let back = ["s 5 n2 2", "d 6 n2 c 2"];
    tells(&reach, &[&between[..], &back].concat(), &[&sent[..], &back].concat());
    assert!(
        !reach.is_reached(&recorded(&[&between[..], &back[..1]].concat())),
        "it does nothing new"
    );
}

#[test]
fn sending_to_unreachable_members_is_recognised() {
    let stopped = ["f 1 stop n2", "m 2 n0 a g0 40", "f 3 continue n2"];
    let late = ["f 1 stop n2", "f 3 continue n2", "m 4 n0 a g0 40"];
    tells(&Reach::SentWhileStopped { node: 2 }, &stopped, &late);
    let parted = ["f 1 partition n2", "m 2 n0 a g0 40", "m 2 n2 b g0 40", "f 3 heal n2"];
    let one_side = ["f 1 partition n2", "m 2 n0 a g0 40", "f 3 heal n2"];
    tells(&Reach::SentWhileParted { side: vec![2] }, &parted, &one_side);
}

#[test]
fn alternating_single_and_multi_group_messages_are_recognised() {
    let sent = ["m 1 n2 a g0 40", "m 1 n2 b g0,g1 40", "m 1 n2 c g0 40"];
    let yes = [&sent[..], &["d 2 n0 a 1", "d 3 n0 b 1", "d 4 n0 c 1"]].concat();
    let no = [&sent[..], &["d 2 n0 a 1", "d 3 n0 c 1", "d 4 n0 b 1"]].concat();
    tells(&Reach::AloneAndAcross, &yes, &no);
    // Only "n0" and "n1" are members of "g1".
    let elsewhere = [&sent[..], &["d 2 n2 a 1", "d 3 n2 b 1", "d 4 n2 c 1"]].concat();
    assert!(!Reach::AloneAndAcross.is_reached(&recorded(&elsewhere)));
}

#[test]
fn kill_of_current_leader_is_recognised() {
    let led = ["l 1 n0 g0 1", "m 2 n2 a g0 40", "f 5 kill n0"];
    let after = ["l 6 n1 g0 2", "m 7 n2 b g0 40", "d 8 n1 b 1"];
    let reach = Reach::LeaderKilled { group: 0 };
    let yes = [&led[..], &after].concat();
    for place in [0, 1, 3, 4, 5] {
        let mut no = yes.clone();
        no.remove(place);
        tells(&reach, &yes, &no);
    }
    let deposed = [&["l 1 n0 g0 1", "l 3 n1 g0 2"], &led[1..], &after].concat();
    assert!(!reach.is_reached(&recorded(&deposed)));
    assert!(!Reach::LeaderKilled { group: 1 }.is_reached(&recorded(&yes)), "another group's");
    let late = [&["l 1 n0 g0 5", "l 3 n1 g0 2"], &led[1..], &after].concat();
    assert!(reach.is_reached(&recorded(&late)), "the other one's term was over");
}

#[test]
fn kill_of_follower_is_recognised() {
    let yes = ["l 1 n0 g0 1", "m 2 n2 a g0 40", "f 5 kill n1", "m 7 n2 b g0 40", "d 8 n0 b 1"];
    let reach = Reach::FollowerKilled { group: 0 };
    for place in [1, 3, 4] {
        let mut no = yes.to_vec();
        no.remove(place);
        tells(&reach, &yes, &no);
    }
    let leader: Vec<String> = yes.iter().map(|line| line.replace("kill n1", "kill n0")).collect();
    let leader: Vec<&str> = leader.iter().map(String::as_str).collect();
    assert!(!reach.is_reached(&recorded(&leader)));
}

#[test]
fn suspension_until_new_leader_is_recognised() {
    let yes = ["l 1 n0 g0 1", "f 2 stop n0", "m 3 n2 a g0 40", "l 4 n1 g0 2", "f 5 continue n0"];
    let reach = Reach::LeaderPaused { group: 0 };
    for place in 0..yes.len() {
        let mut no = yes.to_vec();
        no.remove(place);
        tells(&reach, &yes, &no);
    }
    let late = ["l 1 n0 g0 1", "f 2 stop n0", "m 3 n2 a g0 40", "f 5 continue n0", "l 6 n1 g0 2"];
    assert!(!reach.is_reached(&recorded(&late)));
}

#[test]
fn killed_and_returning_clients_are_recognised() {
    let reach = Reach::KilledAcross { node: 2 };
    let yes = ["m 1 n2 a g0,g1 40", "d 2 n0 a 1", "f 5 kill n2"];
    tells(&reach, &yes, &["m 1 n2 a g1 40", "d 2 n0 a 1", "f 5 kill n2"]);
    let all = ["m 1 n2 a g0,g1 40", "d 2 n0 a 1", "d 2 n1 a 1", "d 2 n2 a 1", "f 5 kill n2"];
    assert!(!reach.is_reached(&recorded(&all)), "all was delivered");
    let again = ["m 1 n2 a g1 40 2", "d 2 n0 a 1", "d 2 n1 a 1"];
    let first = ["m 1 n2 a g1 40", "d 2 n0 a 1", "d 2 n1 a 1"];
    tells(&Reach::SentAgain { node: 2 }, &again, &first);
}

#[test]
fn new_deliveries_after_return_are_counted() {
    let sent = ["m 1 n0 a g0 40", "f 3 kill n2", "s 5 n2 2"];
    let yes = [&sent[..], &["d 6 n2 a 2"]].concat();
    tells(&Reach::CameBack { count: 1 }, &yes, &sent);
    assert!(!Reach::CameBack { count: 2 }.is_reached(&recorded(&yes)));
}

#[test]
fn progress_during_a_partition_is_recognised() {
    // "n2" is a member of "g0" only.
    let reach = Reach::WentOnWhileParted { side: vec![2] };
    let yes = ["f 1 partition n2", "m 2 n0 a g0 40", "d 3 n1 a 1", "f 5 heal n2", "d 6 n2 a 1"];
    let waited = ["f 1 partition n2", "m 2 n0 a g0 40", "f 5 heal n2", "d 6 n1 a 1", "d 6 n2 a 1"];
    tells(&reach, &yes, &waited);
    let not_cut = ["f 1 partition n2", "m 2 n0 a g0 40", "d 3 n1 a 1", "d 4 n2 a 1", "f 5 heal n2"];
    assert!(!reach.is_reached(&recorded(&not_cut)));
    let before = ["m 0 n0 a g0 40", "f 1 partition n2", "d 3 n1 a 1", "f 5 heal n2", "d 6 n2 a 1"];
    assert!(!reach.is_reached(&recorded(&before)));
}
