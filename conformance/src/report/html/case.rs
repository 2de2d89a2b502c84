//! The section of one case: the result, the broken promises with diagrams, and the outcome of every
//! check.

use std::path::Path;

use maud::{Markup, html};

use super::super::case::{Case, CaseStatus, OwnCheck, OwnOutcome};
use super::super::diagram::{Diagram, diagrams};
use super::super::quotes::Quotes;
use super::super::status::Tally;
use super::super::words;
use super::{TEXT_CHARACTERS_MAX, appearance, printable, symbol_of_status};
use crate::check::{Check, Finding, Judgement, Outcome, Strength, Verdict, Witness};

/// Length limit of a command that is shown whole.
const COMMAND_CHARACTERS_MAX: usize = 4096;

/// Length limit of a record that is quoted whole.
const QUOTE_CHARACTERS_MAX: usize = 1000;

/// Renders one case. A case that passed is folded.
pub(super) fn case(case: &Case, index: usize) -> Markup {
    let word = case.status.word();
    let tells = !matches!(case.status, CaseStatus::Passed | CaseStatus::Unsupported(_))
        || case.verdict.as_ref().is_some_and(is_anything_broken);
    html! {
        details.case id={ "case-" (index) } open[tells] {
            summary {
                span class={ "cell " (word) } { (symbol_of_status(word)) } " "
                span.name { bdi { (shown(&case.name)) } } " "
                span.word { (word) (tally(case)) }
            }
            (about(case))
            @if let Some(verdict) = &case.verdict { (judged(case, verdict, index)) }
        }
    }
}

/// Counts the checks by outcome, in a few words.
fn tally(case: &Case) -> String {
    let Tally { held, broken, broken_shoulds, inconclusive, not_judged } = Tally::of(case);
    let parts = [
        (broken, "broken"),
        (broken_shoulds, "recommended broken"),
        (held, "hold"),
        (inconclusive, "inconclusive"),
        (not_judged, "not judged"),
    ];
    let shown = parts.iter().filter(|(number, _)| *number > 0);
    shown.map(|(number, word)| format!(" · {number} {word}")).collect()
}

fn is_anything_broken(verdict: &Verdict) -> bool {
    verdict.judgements.iter().any(|judgement| matches!(judgement.outcome, Outcome::Broken { .. }))
}

fn shown(text: &str) -> String {
    printable(text, TEXT_CHARACTERS_MAX)
}

/// Describes the case, and the conditions that it reached.
fn about(case: &Case) -> Markup {
    let facts = facts(case);
    html! {
        @if !case.description.is_empty() { p { (shown(&case.description)) } }
        @if let Some(reason) = case.status.reason() { p.reason { (shown(reason)) } }
        @if !facts.is_empty() { p.facts { (facts.join(" · ")) } }
        @if !case.reached.is_empty() {
            ul.reached {
                @for (goal, reached) in &case.reached {
                    @let word = if *reached { "passed" } else { "inconclusive" };
                    li {
                        span class={ "cell " (word) } { (symbol_of_status(word)) } " "
                        @if *reached { "reached: " } @else { "not reached: " }
                        (shown(goal))
                    }
                }
            }
        }
        @if let Some(again) = &case.again {
            p.facts { "again: " code { (printable(again, COMMAND_CHARACTERS_MAX)) } }
        }
        @for note in &case.notes { p.note { (shown(note)) } }
    }
}

/// Returns a history's path relative to the page, which is in the same folder as the scenarios'
/// folders.
fn beside(history: &Path) -> String {
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let parts = [history.parent().and_then(name), name(history)];
    shown(&parts.into_iter().flatten().collect::<Vec<String>>().join("/"))
}

fn facts(case: &Case) -> Vec<String> {
    let mut facts = Vec::new();
    facts.extend(case.history.as_deref().map(|path| format!("history {}", beside(path))));
    facts.extend(case.seed.map(|seed| format!("seed {seed}")));
    facts.extend((!case.took.is_zero()).then(|| format!("ran for {}", words::time(case.took))));
    facts.extend(case.verdict.as_ref().map(super::super::text::effort));
    facts
}

fn judged(case: &Case, verdict: &Verdict, index: usize) -> Markup {
    let quotes = Quotes::of(case);
    let diagrams = diagrams(case.history.as_deref(), verdict, &quotes);
    html! {
        @if let Some(cut) = &verdict.cut { p.note { "The history is cut: " (shown(&cut.to_string())) } }
        @for (event, line, times) in &verdict.unknown {
            p.note {
                "Passed over: " (words::counted(*times, "record")) " of the unknown kind "
                code { (printable(event, 60)) } ", the first in line " (line) "."
            }
        }
        @for own in &case.own_checks { (own_check(own, &quotes)) }
        @for judgement in &verdict.judgements {
            @if let Outcome::Broken { times, finding } = &judgement.outcome {
                @let diagram = diagrams.iter().find(|diagram| diagram.check == judgement.check);
                (broken(judgement.check.check(), *times, finding, &quotes, diagram, index))
            }
        }
        details.all {
            summary { "All checks" }
            table.checks {
                tbody { @for judgement in &verdict.judgements { (line(judgement, index)) } }
            }
        }
    }
}

/// Renders the result of one of the user's own checks.
fn own_check(own: &OwnCheck, quotes: &Quotes) -> Markup {
    html! {
        @match &own.outcome {
            OwnOutcome::Held => p.facts { "✓ " code { (shown(&own.command)) } " found nothing." },
            OwnOutcome::Failed(why) => p.reason { code { (shown(&own.command)) } ": " (shown(why)) },
            OwnOutcome::Broken { times, finding } => {
                article.finding.failed {
                    h3 {
                        span.cell.failed { "✗" } " " code { (shown(&own.command)) }
                        span.times { " · " (words::times(*times)) }
                    }
                    p.what { bdi { (shown(&finding.what)) } }
                    ol.witness {
                        @for witness in &finding.witness { (witnessed(witness, quotes)) }
                    }
                }
            }
        }
    }
}

/// Renders a broken check: the promise, what happened, the diagram and the witnesses.
fn broken(
    check: &Check,
    times: u64,
    finding: &Finding,
    quotes: &Quotes,
    diagram: Option<&Diagram>,
    index: usize,
) -> Markup {
    let class = if check.strength == Strength::Must { "failed" } else { "should" };
    let symbol = if check.strength == Strength::Must { "✗" } else { "!" };
    html! {
        article class={ "finding " (class) } id={ "case-" (index) "-" (check.name) } {
            h3 {
                span class={ "cell " (class) } { (symbol) } " " (check.name) " "
                span.strength { (check.strength) }
                span.times { " · broken " (words::times(times)) }
            }
            p.what { bdi { (shown(&finding.what)) } }
            p.promise { "Promised: " (check.sentence) " " cite { (check.source) } }
            @if let Some(diagram) = diagram { (picture(diagram)) }
            @else { p.note { "The history could not be read a second time, so there is no picture." } }
            ol.witness { @for witness in &finding.witness { (witnessed(witness, quotes)) } }
        }
    }
}

fn picture(diagram: &Diagram) -> Markup {
    html! {
        figure {
            div.scroll tabindex="0" role="region" aria-label="space-time diagram" { (diagram.picture) }
            figcaption {
                "Nodes are lines, time goes from left to right, not to scale. "
                b { "◆" } " multicast, " b { "●" } " delivered; numbered marks are the records below, the "
                span.culprit-word { "red" } " one is the culprit; grey ones are what its node did just before and after."
                @if diagram.nodes_left_out > 0 {
                    " " (words::counted(diagram.nodes_left_out as u64, "node")) " had no room."
                }
            }
        }
    }
}

fn witnessed(witness: &Witness, quotes: &Quotes) -> Markup {
    html! {
        li.culprit[witness.culprit] {
            span.where { "line " (witness.line) } " " (witness.role)
            @if witness.culprit { " " span.culprit-word { "culprit" } }
            @if let Some(quote) = quotes.line(witness.line) {
                code.record { (printable(quote, QUOTE_CHARACTERS_MAX)) }
            }
        }
    }
}

/// Renders a check in the list of all checks.
fn line(judgement: &Judgement, index: usize) -> Markup {
    let check = judgement.check.check();
    let appearance = appearance(&judgement.outcome, check.strength);
    // A broken check has its own section, which is linked here.
    let broken = matches!(judgement.outcome, Outcome::Broken { .. });
    let id = (!broken).then(|| format!("case-{index}-{}", check.name));
    let more = match &judgement.outcome {
        Outcome::Held { judged } => format!("holds in {}", words::counted(*judged, "place")),
        Outcome::Broken { finding, .. } => shown(&finding.what),
        Outcome::Inconclusive(why) => format!("inconclusive: {}", shown(why)),
        Outcome::NotJudged(why) => format!("not judged: {}", shown(why)),
    };
    html! {
        tr id=[id] {
            td {
                span class={ "cell " (appearance.class) } title=(appearance.word) {
                    (appearance.symbol)
                }
            }
            th scope="row" title=(check.sentence) { (check.name) }
            td { (check.strength) }
            td { (more) }
        }
    }
}
