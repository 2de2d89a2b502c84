//! The overview, with a row per case and a column per check.

use maud::{Markup, html};

use super::super::case::{Case, Run};
use super::{appearance, shortened, symbol_of_status};
use crate::check::{CheckId, Judgement, Strength};

/// Length limit of a case name that is shown whole.
const NAME_CHARACTERS_MAX: usize = 46;

/// Renders the overview.
pub(super) fn matrix(run: &Run) -> Markup {
    html! {
        section.overview {
            h2 { "Overview" }
            div.scroll tabindex="0" role="region" aria-label="overview: cases by checks" {
                table.matrix {
                    thead {
                        tr {
                            th scope="col" { "case" }
                            th scope="col" { span.slanted { "result" } }
                            @for check in CheckId::ALL.iter().map(|id| id.check()) {
                                th scope="col" title=(check.sentence) {
                                    span class={ "slanted" @if check.strength == Strength::Should { " optional" } } {
                                        (check.name)
                                    }
                                }
                            }
                        }
                    }
                    tbody {
                        @for (index, case) in run.cases.iter().enumerate() { (row(case, index)) }
                    }
                }
            }
            (legend())
        }
    }
}

fn row(case: &Case, index: usize) -> Markup {
    let word = case.status.word();
    html! {
        tr {
            th scope="row" {
                a href={ "#case-" (index) } title=(super::printable(&case.name, 200)) {
                    (shortened(&case.name, NAME_CHARACTERS_MAX))
                }
            }
            td.result { span class={ "cell " (word) } title=(word) { (symbol_of_status(word)) } }
            @for id in CheckId::ALL {
                td { (cell(case, index, *id)) }
            }
        }
    }
}

fn cell(case: &Case, index: usize, id: CheckId) -> Markup {
    let judgements = case.verdict.iter().flat_map(|verdict| &verdict.judgements);
    let Some(Judgement { outcome, .. }) =
        judgements.into_iter().find(|judgement| judgement.check == id)
    else {
        return html! { span.cell.absent title={ (id) ": no history" } {} };
    };
    let appearance = appearance(outcome, id.check().strength);
    let title = format!("{}: {id} {}", shortened(&case.name, NAME_CHARACTERS_MAX), appearance.word);
    html! {
        a class={ "cell " (appearance.class) } href={ "#case-" (index) "-" (id) } title=(title) aria-label=(title) {
            (appearance.symbol)
        }
    }
}

fn legend() -> Markup {
    const ENTRIES: [(&str, &str, &str); 7] = [
        ("passed", "✓", "holds"),
        ("failed", "✗", "a required promise is broken"),
        ("should", "!", "a recommended promise is broken"),
        ("inconclusive", "?", "inconclusive"),
        ("not-judged", "·", "not judged"),
        ("unsupported", "–", "unsupported"),
        ("broken", "⚠", "harness, adapter or history broken"),
    ];
    html! {
        p.legend {
            @for (class, symbol, text) in ENTRIES {
                span { span class={ "cell " (class) } { (symbol) } " " (text) }
            }
            span { "checks in " i { "italics" } " are shoulds" }
        }
    }
}
