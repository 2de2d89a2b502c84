//! Space-time diagrams of broken promises: nodes as lines, time from left to right, messages as
//! arrows.
//!
//! | file | purpose |
//! |---|---|
//! | `pick` | chooses records from a history |
//! | `scene` | positions them |
//! | `draw`, `lane`, `arrow` | draw them as SVG |

mod arrow;
mod draw;
mod lane;
mod pick;
mod scene;

use std::path::Path;

use maud::Markup;

use super::quotes::Quotes;
use crate::check::{CheckId, Finding, Outcome, Verdict};
use scene::Scene;

/// The diagram of one broken check.
pub(super) struct Diagram {
    /// The check.
    pub(super) check: CheckId,
    /// The picture, as SVG.
    pub(super) picture: Markup,
    /// Number of nodes that did not fit into the picture.
    pub(super) nodes_left_out: usize,
}

/// Draws the broken promises of a history. Records that cannot be read again are not drawn.
pub(super) fn diagrams(history: Option<&Path>, verdict: &Verdict, quotes: &Quotes) -> Vec<Diagram> {
    let broken: Vec<(CheckId, &Finding)> = verdict
        .judgements
        .iter()
        .filter_map(|judgement| match &judgement.outcome {
            Outcome::Broken { finding, .. } => Some((judgement.check, finding)),
            _ => None,
        })
        .collect();
    let (Some(history), false) = (history, broken.is_empty()) else {
        return Vec::new();
    };
    let findings: Vec<&Finding> = broken.iter().map(|(_, finding)| *finding).collect();
    let picked = pick::pick(history, &findings, quotes);
    let scenes = broken.iter().zip(&picked);
    scenes.filter_map(|((check, finding), picked)| diagram(*check, finding, picked)).collect()
}

fn diagram(check: CheckId, finding: &Finding, picked: &[pick::Picked]) -> Option<Diagram> {
    let absence = is_about_absence(check);
    let scene = Scene::of(finding, picked, absence)?;
    let title = format!("space-time diagram of a violation of {check}");
    let picture = draw::draw(&scene, &title, absence);
    Some(Diagram { check, picture, nodes_left_out: scene.lanes_left_out })
}

/// Returns whether a check is broken by an event that does not happen.
const fn is_about_absence(check: CheckId) -> bool {
    use CheckId::{Agreement, Liveness, RemovedSilent, UniformAgreement, Validity, ViewSameSet};
    matches!(
        check,
        Agreement | UniformAgreement | Validity | ViewSameSet | RemovedSilent | Liveness
    )
}

#[cfg(test)]
mod tests {
    use super::super::samples::{case, finding, fixture, verdict};
    use super::*;

    fn picture(history: &str, check: CheckId, lines: &[u64]) -> Option<String> {
        let verdict = verdict(&[(check, finding("what happened", lines))]);
        picture_of(&fixture(history), &verdict)
    }

    fn picture_of(path: &Path, verdict: &Verdict) -> Option<String> {
        let quotes = Quotes::of(&case("drawn", Some(path.to_owned()), verdict.clone()));
        let diagrams = diagrams(Some(path), verdict, &quotes);
        assert!(diagrams.len() <= 1);
        diagrams.into_iter().next().map(|diagram| diagram.picture.into_string())
    }

    fn count(picture: &str, part: &str) -> usize {
        picture.matches(part).count()
    }

    #[test]
    fn arrows_lead_from_multicast_to_each_delivery() {
        let picture = picture("bad/total-order-two-orders", CheckId::TotalOrder, &[6, 7, 8, 9]);
        let picture = picture.expect("a picture");
        assert_eq!(count(&picture, "<g class=\"arrow m"), 4, "{picture}");
        assert_eq!(count(&picture, "class=\"node\""), 2);
        assert_eq!(count(&picture, "class=\"ring\""), 1);
        assert!(picture.contains("4 culprit: what this line shows"));
        assert!(
            picture.contains("line 9: {&quot;ev&quot;:&quot;deliver&quot;"),
            "the record is its tooltip"
        );
    }

    #[test]
    fn missing_delivery_is_drawn() {
        let missing =
            picture("bad/agreement-one-lacks", CheckId::Agreement, &[4, 5, 7]).expect("a picture");
        assert_eq!(count(&missing, "class=\"absent\""), 1, "{missing}");
        let nobody = picture("bad/integrity-sent-by-nobody", CheckId::IntegritySent, &[4])
            .expect("a picture");
        assert!(
            nobody.contains("no node multicast") && count(&nobody, "class=\"absent\"") == 0,
            "{nobody}"
        );
    }

    #[test]
    fn views_and_faults_are_marked() {
        let picture =
            picture("bad/view-majority-alone", CheckId::ViewMajority, &[5, 9]).expect("a picture");
        assert_eq!(count(&picture, "class=\"tag\""), 2, "{picture}");
        assert_eq!(count(&picture, "class=\"cross\""), 2, "both nodes that were killed");
        assert!(picture.contains(">n0 n1 n2<"), "the members of view 1");
    }

    /// Returns an attribute's value as a number.
    fn number(tag: &str, name: &str) -> f64 {
        let value = tag.split(&format!("{name}=\"")).nth(1).and_then(|rest| rest.split('"').next());
        value.and_then(|value| value.parse().ok()).expect("a number")
    }

    fn assert_callouts_are_inside(picture: &str) {
        let view = picture.split("viewBox=\"").nth(1).and_then(|rest| rest.split('"').next());
        let view: Vec<f64> = view
            .expect("a view")
            .split(' ')
            .map(|number| number.parse().expect("a number"))
            .collect();
        for tag in picture.split("class=\"callout\"").skip(1) {
            let text = tag.split(['>', '<']).nth(1).expect("a text");
            let width = scene::CHARACTER_WIDTH * 1.15 * text.chars().count() as f64;
            let x = number(tag, "x");
            let (from, to) =
                if tag.contains("text-anchor=\"end\"") { (x - width, x) } else { (x, x + width) };
            assert!(from > view[0] && to < view[0] + view[2], "{text}: {from} to {to} in {view:?}");
        }
    }

    #[test]
    fn drawing_never_panics_on_any_history() {
        let folder = fixture("bad/total-order-two-orders");
        let folder = folder.parent().and_then(Path::parent).expect("the folder of histories");
        let mut drawn = 0;
        for kind in ["bad", "good", "malformed"] {
            for entry in std::fs::read_dir(folder.join(kind)).expect("a folder") {
                let path = entry.expect("an entry").path();
                let lines =
                    std::fs::read(&path).expect("a file").split(|byte| *byte == b'\n').count()
                        as u64;
                for id in CheckId::ALL {
                    let step = 1 + *id as u64 % 3;
                    let some: Vec<u64> = (0..lines + 2).filter(|line| line % step == 0).collect();
                    let verdict = verdict(&[(*id, finding("what happened", &some))]);
                    let picture = picture_of(&path, &verdict);
                    drawn += usize::from(picture.is_some());
                    picture.iter().for_each(|picture| assert_callouts_are_inside(picture));
                }
            }
        }
        assert!(drawn > 1000, "{drawn}");
    }

    #[test]
    fn diagram_size_is_bounded() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("history.jsonl");
        let mut text =
            String::from("{\"ev\":\"group\",\"group\":\"g\",\"members\":[],\"senders\":[]}\n");
        for index in 0..3000 {
            let node = index % 100;
            let line = format!(
                r#"{{"ev":"deliver","t_ns":{index},"node":"n{node}","inc":1,"group":"g","msg":"m"}}"#
            );
            text.push_str(&line);
            text.push('\n');
        }
        std::fs::write(&path, text).expect("written");
        let lines: Vec<u64> = (2..2000).collect();
        let verdict = verdict(&[(CheckId::IntegrityOnce, finding("again and again", &lines))]);
        let picture = picture_of(&path, &verdict).expect("a picture");
        assert!(
            count(&picture, "class=\"node\"") <= 12 && picture.len() < 200_000,
            "{}",
            picture.len()
        );
    }
}
