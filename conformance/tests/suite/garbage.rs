//! Histories that no driver would write. The judge returns a verdict or a refusal, never panics,
//! and always terminates.

use tramontane_conformance::history::LINE_BYTES_MAX;
use tramontane_conformance::random::Random;

use crate::judges::{assert_agreed, fast};
use crate::samples::{MALFORMED, all};

/// A group of one node, which has started.
const BEGUN: &str = r#"{"ev":"group","group":"g","members":["n"],"senders":["n"]}
{"ev":"start","t_ns":0,"node":"n","inc":1}
"#;

#[test]
fn random_bytes_never_panic_the_judge() {
    let mut random = Random::stream(1, "bytes");
    for _ in 0..2_000 {
        let bytes: Vec<u8> = (0..random.below(300)).map(|_| random.below(256) as u8).collect();
        assert_agreed("a text of random bytes", &bytes);
    }
}

#[test]
fn random_history_words_never_panic_the_judge() {
    const WORDS: &[&str] = &[
        "{",
        "}",
        "[",
        "]",
        ":",
        ",",
        "\n",
        "\"ev\"",
        "\"start\"",
        "\"deliver\"",
        "\"t_ns\"",
        "\"node\"",
        "\"n\"",
        "\"inc\"",
        "1",
        "0",
        "-1",
        "1e9",
        "null",
        "true",
        "\"",
        "\\",
        "\"group\"",
        "\"fault\"",
        "\"kind\"",
        "\"msg\"",
    ];
    let mut random = Random::stream(1, "words");
    for _ in 0..5_000 {
        let words = (0..random.below(40)).map(|_| *random.pick(WORDS).expect("there are words"));
        assert_agreed("a text of random words", words.collect::<String>().as_bytes());
    }
}

#[test]
fn damaged_samples_never_panic_the_judge() {
    let mut random = Random::stream(1, "damage");
    let texts: Vec<&[u8]> = all()
        .map(|sample| sample.text.as_bytes())
        .chain(MALFORMED.iter().map(|text| text.bytes))
        .collect();
    for text in &texts {
        for _ in 0..40 {
            let mut bytes = text.to_vec();
            for _ in 0..random.between(1, 3) {
                damage(&mut random, &mut bytes, &texts);
            }
            assert_agreed("a damaged sample", &bytes);
        }
    }
}

fn damage(random: &mut Random, bytes: &mut Vec<u8>, texts: &[&[u8]]) {
    if bytes.is_empty() {
        return;
    }
    let place = random.index(bytes.len());
    match random.below(5) {
        0 => bytes.truncate(place),
        1 => bytes[place] = random.below(256) as u8,
        2 => {
            let end = (place + random.index(30)).min(bytes.len());
            bytes.drain(place..end);
        }
        3 => {
            let line: Vec<u8> =
                bytes.split_inclusive(|byte| *byte == b'\n').nth(1).unwrap_or_default().to_vec();
            bytes.extend(line);
        }
        _ => {
            let other = random.pick(texts).copied().unwrap_or_default();
            let lines: Vec<&[u8]> = other.split_inclusive(|byte| *byte == b'\n').collect();
            bytes.extend(lines[random.index(lines.len())..].concat());
        }
    }
}

#[test]
fn truncated_samples_are_judged() {
    for sample in all().step_by(7) {
        for end in 0..sample.text.len() {
            let bytes = &sample.text.as_bytes()[..end];
            assert!(fast(bytes).is_ok(), "{} cut at byte {end}", sample.name);
            assert_agreed("a sample that is cut", bytes);
        }
    }
}

#[test]
fn deeply_nested_json_is_refused() {
    for open in ["[", "{\"a\":", "{\"ev\":[", "[{\"ev\":"] {
        let line = open.repeat(LINE_BYTES_MAX / open.len() / 2);
        assert_eq!(fast(format!("{line}\n").as_bytes()), Err(1));
        let field = format!(r#"{{"ev":"start","t_ns":1,"node":"n","inc":1,"deep":{line}}}"#);
        assert_eq!(fast(format!("{BEGUN}{field}\n").as_bytes()), Err(3));
    }
}

#[test]
fn history_with_maximum_numbers_is_accepted() {
    const MAX: u64 = u64::MAX;
    let history = format!(
        r#"{{"ev":"run","version":1,"seed":{MAX}}}
{{"ev":"group","group":"g","members":["n","m"],"senders":["n"]}}
{{"ev":"start","t_ns":{MAX},"node":"n","inc":{inc}}}
{{"ev":"view","t_ns":{MAX},"node":"n","inc":{inc},"group":"g","view":{MAX},"members":["n"]}}
{{"ev":"view","t_ns":{MAX},"node":"n","inc":{inc},"group":"g","view":{MAX},"members":["m","n"]}}
{{"ev":"multicast","t_ns":{MAX},"node":"n","inc":{inc},"msg":"a","groups":["g"],"bytes":{MAX}}}
{{"ev":"deliver","t_ns":{MAX},"node":"n","inc":{inc},"group":"g","view":{MAX},"msg":"a","bytes":{MAX}}}
{{"ev":"durable","t_ns":{MAX},"node":"n","inc":{inc},"group":"g","upto":0}}
{{"ev":"durable","t_ns":{MAX},"node":"n","inc":{inc},"group":"g","upto":{MAX}}}
{{"ev":"stats","t_ns":{MAX},"node":"n","inc":{inc},"posts":{MAX}}}
{{"ev":"stats","t_ns":{MAX},"node":"n","inc":{inc},"posts":0}}
{{"ev":"fault","t_ns":{MAX},"kind":"partition","nodes":["n"]}}
{{"ev":"end","t_ns":{MAX},"node":"n","inc":{inc},"reason":"done"}}
"#,
        inc = u32::MAX
    );
    assert!(fast(history.as_bytes()).is_ok());
    assert_agreed("the largest numbers", history.as_bytes());
}

#[test]
fn numbers_out_of_range_are_refused() {
    for number in [
        "18446744073709551616",
        "-1",
        "1.5",
        "1e3",
        "1e999999999",
        "-0.0",
        "NaN",
        "0x10",
        "00",
        "9".repeat(9_999).as_str(),
    ] {
        let history = format!(
            "{BEGUN}{{\"ev\":\"stats\",\"t_ns\":{number},\"node\":\"n\",\"inc\":1,\"posts\":0}}\n"
        );
        assert_eq!(fast(history.as_bytes()), Err(3), "{number:.40}");
    }
}

#[test]
fn long_lines_are_accepted_up_to_the_limit() {
    let line = |length: usize| {
        let around = r#"{"ev":"start","t_ns":1,"node":"m","inc":1,"x":""}"#.len() + 1;
        format!(
            "{BEGUN}{{\"ev\":\"start\",\"t_ns\":1,\"node\":\"m\",\"inc\":1,\"x\":\"{}\"}}\n",
            "x".repeat(length - around)
        )
    };
    assert!(fast(line(LINE_BYTES_MAX).as_bytes()).is_ok());
    assert_eq!(fast(line(LINE_BYTES_MAX + 1).as_bytes()), Err(3));
    let endless = vec![b' '; 8 * LINE_BYTES_MAX];
    assert_eq!(fast(&endless), Err(1));
}

#[test]
fn nul_bytes_and_partial_characters_are_handled() {
    let record = |node: &str| {
        format!("{BEGUN}{{\"ev\":\"start\",\"t_ns\":1,\"node\":\"{node}\",\"inc\":1}}\n")
    };
    assert_eq!(fast(record("\0").as_bytes()), Err(3));
    assert_eq!(fast(record("\\ud800").as_bytes()), Err(3));
    assert!(fast(record("\\u0000").as_bytes()).is_ok());
    assert!(fast(record("\\ud83d\\ude00").as_bytes()).is_ok());
    assert_eq!(fast(&[0; 4096]), Ok(fast(b"").expect("an empty history")));
    assert_eq!(fast(&[b"\0\n" as &[u8], BEGUN.as_bytes()].concat()), Err(1));
}

#[test]
fn very_long_names_are_judged() {
    let name = "n".repeat(LINE_BYTES_MAX / 4);
    let history = format!(
        "{{\"ev\":\"group\",\"group\":\"{name}\",\"members\":[\"{name}\"],\"senders\":[\"{name}\"]}}\n\
         {{\"ev\":\"start\",\"t_ns\":0,\"node\":\"{name}\",\"inc\":1}}\n\
         {{\"ev\":\"deliver\",\"t_ns\":0,\"node\":\"{name}\",\"inc\":1,\"group\":\"{name}\",\"msg\":\"{name}\"}}\n"
    );
    assert_agreed("a history of long names", history.as_bytes());
}

#[test]
fn history_with_many_groups_is_judged() {
    let names: Vec<String> = (0..400).map(|node| format!("\"n{node}\"")).collect();
    let names = names.join(",");
    let mut history = String::new();
    for group in 0..200 {
        history += &format!(
            "{{\"ev\":\"group\",\"group\":\"g{group}\",\"members\":[{names}],\"senders\":[{names}]}}\n"
        );
    }
    let groups: Vec<String> = (0..200).map(|group| format!("\"g{group}\"")).collect();
    for node in 0..400 {
        history += &format!("{{\"ev\":\"start\",\"t_ns\":0,\"node\":\"n{node}\",\"inc\":1}}\n");
    }
    for message in 0..20 {
        history += &format!(
            "{{\"ev\":\"multicast\",\"t_ns\":1,\"node\":\"n{message}\",\"inc\":1,\"msg\":\"m{message}\",\"groups\":[{}]}}\n",
            groups.join(",")
        );
    }
    for node in 0..400 {
        for message in 0..20 {
            history += &format!(
                "{{\"ev\":\"deliver\",\"t_ns\":2,\"node\":\"n{node}\",\"inc\":1,\"group\":\"g{}\",\"msg\":\"m{message}\"}}\n",
                (node + message) % 200
            );
        }
    }
    assert!(fast(history.as_bytes()).is_ok());
}

/// The judges must still agree on the histories found by fuzzing and random tests.
#[test]
fn both_judges_agree_on_formerly_failing_histories() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/found");
    let files = std::fs::read_dir(folder).expect("the folder is part of the sources");
    let paths = files.map(|file| file.expect("it can be listed").path());
    let histories: Vec<_> =
        paths.filter(|path| path.extension().is_some_and(|is| is == "jsonl")).collect();
    assert!(!histories.is_empty(), "{folder} is empty");
    for path in histories {
        let history = std::fs::read(&path).expect("it can be read");
        assert_agreed(&path.display().to_string(), &history);
    }
}
