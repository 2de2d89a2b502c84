//! The HTML report: one self-contained page without scripts.
//!
//! All text from a history, an adapter or a file name is untrusted. It goes through the templates,
//! which escape it, and the page forbids scripts and external resources.

mod case;
mod matrix;

use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::case::{Case, CaseStatus, Run};
use super::causes::causes;
use super::conclude::conclude;
use super::words;
use crate::check::{CheckId, Outcome, Strength};

/// Length limit of untrusted text that is shown whole.
const TEXT_CHARACTERS_MAX: usize = 600;

const STYLE: &str = include_str!("style.css");

/// Content security policy: only the page's own style is allowed.
const POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'";

/// Makes text safe to display. An absolute path is shortened to its file name: readers of the page
/// do not need the folders of the machine, and may not be trusted with them.
fn printable(text: &str, characters_max: usize) -> String {
    super::printable::printable(&without_folders(text), characters_max)
}

/// Makes text safe to display, and shortens it by omitting its middle.
fn shortened(text: &str, characters_max: usize) -> String {
    super::printable::shortened(&without_folders(text), characters_max)
}

fn without_folders(text: &str) -> String {
    let ends =
        |character: char| character.is_whitespace() || "'\"`,;:()[]{}<>=".contains(character);
    let mut shown = String::new();
    for word in text.split_inclusive(ends) {
        let folders = word.rfind('/').filter(|last| *last > 0 && word.starts_with('/'));
        match folders {
            Some(last) => shown.extend(["…", &word[last..]]),
            None => shown.push_str(word),
        }
    }
    shown
}

/// Sorts cases that need attention first, and otherwise keeps the order.
fn in_order(run: &Run) -> Run {
    let rank = |case: &Case| match case.status {
        CaseStatus::Failed => 0,
        CaseStatus::Broken(_) => 1,
        CaseStatus::Inconclusive(_) => 2,
        CaseStatus::Passed => 3,
        CaseStatus::Unsupported(_) => 4,
    };
    let mut run = run.clone();
    run.cases.sort_by_key(rank);
    run
}

/// Returns the page.
#[must_use]
pub fn render(run: &Run) -> String {
    let run = &in_order(run);
    let title = run.implementation.as_deref().map_or_else(
        || "Conformance of histories".to_owned(),
        |name| format!("Conformance of {}", printable(name, 80)),
    );
    let page = html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                meta name="color-scheme" content="light dark";
                meta http-equiv="Content-Security-Policy" content=(POLICY);
                title { (title) ": " (run.status()) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                (header(run, &title))
                main {
                    (matrix::matrix(run))
                    (by_cause(run))
                    @for (index, case) in run.cases.iter().enumerate() { (case::case(case, index)) }
                    (promises())
                }
                footer { "tramontane-conformance " (env!("CARGO_PKG_VERSION")) }
            }
        }
    };
    page.into_string()
}

fn header(run: &Run, title: &str) -> Markup {
    let status = run.status();
    html! {
        header {
            h1 { (title) }
            p class={ "banner " (status.word()) } {
                strong { (symbol_of_status(status.word())) " " (status.word()) }
                span { (capitalised(&conclude(run))) "." }
            }
            @if let Some(adapter) = &run.adapter {
                p.facts { "Adapter: " code { (printable(adapter, TEXT_CHARACTERS_MAX)) } }
            }
            @if !run.features.is_empty() {
                p.facts { "Claims: " (printable(&run.features.join(", "), TEXT_CHARACTERS_MAX)) }
            }
        }
    }
}

/// Limit of linked cases per cause.
const LINKS_MAX: usize = 12;

/// Renders the broken promises, with one row per cause.
fn by_cause(run: &Run) -> Markup {
    let causes = causes(run);
    html! {
        @if !causes.is_empty() {
            section.causes {
                h2 { "What is broken" }
                table.checks {
                    tbody {
                        @for cause in &causes {
                            tr {
                                th scope="row" { (cause.check) }
                                td {
                                    (words::times(cause.times)) " in "
                                    (words::counted(cause.cases.len() as u64, "case"))
                                }
                                td { (printable(cause.what, TEXT_CHARACTERS_MAX)) }
                                td {
                                    @for index in cause.cases.iter().take(LINKS_MAX) {
                                        a href={ "#case-" (index) } {
                                            (shortened(&run.cases[*index].name, 40))
                                        } " "
                                    }
                                    @if cause.cases.len() > LINKS_MAX { "…" }
                                }
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Renders the promise of each check.
fn promises() -> Markup {
    html! {
        details.promises {
            summary { "What the checks promise" }
            dl {
                @for check in CheckId::ALL.iter().map(|id| id.check()) {
                    dt id={ "check-" (check.name) } { (check.name) " " span.strength { (check.strength) } }
                    dd { (check.sentence) " " cite { (check.source) } }
                }
            }
        }
    }
}

fn capitalised(text: &str) -> String {
    let mut characters = text.chars();
    characters
        .next()
        .map_or_else(String::new, |first| first.to_uppercase().chain(characters).collect())
}

/// The appearance of a result: the word that names its colour, a symbol for readers who cannot see
/// colours, and its label.
struct Appearance {
    class: &'static str,
    symbol: &'static str,
    word: &'static str,
}

/// Returns the appearance of a check's outcome.
fn appearance(outcome: &Outcome, strength: Strength) -> Appearance {
    let (class, symbol, word) = match (outcome, strength) {
        (Outcome::Held { .. }, _) => ("passed", "✓", "holds"),
        (Outcome::Broken { .. }, Strength::Must) => ("failed", "✗", "broken"),
        (Outcome::Broken { .. }, Strength::Should) => ("should", "!", "broken, but not required"),
        (Outcome::Inconclusive(_), _) => ("inconclusive", "?", "inconclusive"),
        (Outcome::NotJudged(_), _) => ("not-judged", "·", "not judged"),
    };
    Appearance { class, symbol, word }
}

/// Returns a symbol for a status's word.
fn symbol_of_status(word: &str) -> &'static str {
    match word {
        "passed" => "✓",
        "failed" => "✗",
        "inconclusive" => "?",
        "unsupported" => "–",
        _ => "⚠",
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{case, everything, fixture, run, verdict};
    use super::*;

    /// Elements that have no end tag in HTML.
    const VOID: [&str; 2] = ["meta", "!DOCTYPE"];

    /// Returns the tags of a page, without their contents.
    fn tags(page: &str) -> Vec<&str> {
        let parts = page.split('<').skip(1).map(|part| part.split('>').next().unwrap_or(part));
        // Self-closing tags, as in SVG, have no contents.
        let parts = parts.filter(|tag| !tag.ends_with('/'));
        parts.map(|tag| tag.split([' ', '\n']).next().unwrap_or(tag)).collect()
    }

    #[test]
    fn html_elements_are_properly_nested() {
        let page = render(&everything());
        let mut open = Vec::new();
        for tag in tags(&page) {
            match tag.strip_prefix('/') {
                Some(name) => assert_eq!(open.pop(), Some(name)),
                None if VOID.contains(&tag) => {}
                None => open.push(tag),
            }
        }
        assert!(open.is_empty(), "{open:?}");
    }

    #[test]
    fn untrusted_text_never_becomes_markup() {
        let page = render(&everything());
        assert!(page.contains("&lt;script&gt;alert(1)"), "the text itself is shown");
        assert!(!tags(&page).iter().any(|tag| tag.eq_ignore_ascii_case("script")));
        assert!(!page.chars().any(|c| (c.is_control() && c != '\n') || c == '\u{202e}'));
    }

    #[test]
    fn failed_cases_come_first() {
        let page = render(&everything());
        let place = |name: &str| page.find(name).unwrap_or_else(|| panic!("{name} is not there"));
        assert!(place("failed-case") < place("open-case"));
        assert!(place("open-case") < place("passed-case"));
        assert!(place("passed-case") < place("unsupported-case"));
        let case = page.find("id=\"case-0\"").expect("there is a first case");
        assert!(page[case..].find("failed-case").is_some_and(|place| place < 300));
    }

    #[test]
    fn report_omits_the_folders_of_absolute_paths() {
        for (text, shown) in [
            ("'/opt/x/run me' --a=/b/c", "'…/run me' --a=…/c"),
            ("no /a/b/c.log: denied", "no …/c.log: denied"),
            (
                "n0/1/0 of g0, 3/4 / 5 and ./adapter or a/b",
                "n0/1/0 of g0, 3/4 / 5 and ./adapter or a/b",
            ),
        ] {
            assert_eq!(without_folders(text), shown);
        }
        let page = render(&everything());
        assert!(page.contains("…/x.log") && page.contains("--adapter …/adapter"));
        let here = env!("CARGO_MANIFEST_DIR");
        assert!(!page.contains("/home/me") && !page.contains(here), "the machine's folders");
    }

    #[test]
    fn page_is_self_contained() {
        let page = render(&everything());
        for foreign in
            ["http://", "https://", " src=", "<link", "@import", "url(", " onload=", " onerror="]
        {
            let attributes = page.split('<').filter_map(|part| part.split('>').next());
            assert!(!attributes.into_iter().any(|tag| tag.contains(foreign)), "{foreign}");
        }
        assert!(page.contains("prefers-color-scheme: dark") && page.contains("width=device-width"));
    }

    #[test]
    fn overview_cells_link_to_existing_sections() {
        let cases = (0..12).map(|index| {
            case(&format!("case-{index}"), Some(fixture("good/suspended")), verdict(&[]))
        });
        let page = render(&run(cases.collect()));
        for index in 0..12 {
            for id in CheckId::ALL {
                let place = format!("case-{index}-{id}\"");
                assert_eq!(page.matches(&format!("href=\"#{place}")).count(), 1, "{place}");
                assert_eq!(page.matches(&format!("id=\"{place}")).count(), 1, "{place}");
            }
        }
        assert!(page.contains("Every required promise that could be judged holds in 12 cases."));
    }

    #[test]
    fn section_of_violated_check_has_picture_and_witnesses() {
        let page = render(&everything());
        let section = page.split("id=\"case-0-total-order\"").nth(1).expect("a section");
        let section = section.split("</article>").next().expect("its end");
        assert!(
            section.contains("<svg") && section.contains("culprit: what this line shows"),
            "{section}"
        );
        assert_eq!(section.matches("class=\"record\"").count(), 4);
    }
}
