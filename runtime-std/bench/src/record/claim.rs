//! What a paper says: a number, a range or a direction, and how it is measured here.

use serde::Serialize;

use super::runs::{Missing, Runs};
use tramontane_fixtures::profile::Profile;

/// How far a number may be from the paper's where nothing else is said: a quarter of it.
pub(super) const BAND: f64 = 0.25;

/// A paper.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Paper {
    /// Spindle: techniques for optimizing atomic multicast on RDMA (ICDCS 2022)
    Spindle,
    /// RDMC: a reliable RDMA multicast for large objects (DSN 2018)
    Rdmc,
}

/// What a paper says, as the record compares it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Stated {
    /// A number.
    Number(f64),
    /// A number between two.
    Between(f64, f64),
    /// At least this number.
    AtLeast(f64),
    /// At most this number.
    AtMost(f64),
    /// What grows, falls or stays.
    Direction,
}

/// What a run showed of a direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Seen {
    pub(super) holds: bool,
    /// The figures, in words.
    pub(super) words: String,
}

/// Measures a number.
pub(super) type Measure = fn(&Runs<'_>) -> Result<f64, Missing>;

/// Looks whether a direction holds.
pub(super) type Look = fn(&Runs<'_>) -> Result<Seen, Missing>;

/// Where the simulator's side of a claim comes from.
#[derive(Clone, Copy, Debug)]
pub(super) enum Kind {
    /// The number goes into the model: it says nothing of the model.
    Input(Source),
    /// A parameter was set so that this number comes out. There is one of these for each paper.
    Fitted(Measure),
    /// The model says it.
    Predicted(Measure),
    /// The model says whether it is so.
    Direction(Look),
    /// No run can answer it.
    NotModelled(&'static str),
}

/// From where an input goes into the model.
#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A parameter of a machine's profile.
    Parameter(super::case::Machine, fn(&Profile) -> f64),
    /// The configuration of the runs.
    Configuration,
}

/// One claim.
#[derive(Clone, Copy, Debug)]
pub(super) struct Claim {
    /// Unique among all claims of both papers; begins with the paper's name.
    pub(super) id: &'static str,
    /// Section, figure or table.
    pub(super) section: &'static str,
    /// The paper's words.
    pub(super) words: &'static str,
    pub(super) stated: Stated,
    /// Of the stated number; nothing for a ratio or a direction.
    pub(super) unit: &'static str,
    pub(super) kind: Kind,
    /// How the words were understood, where they leave something open; and what is known of a
    /// failure.
    pub(super) note: &'static str,
}

impl Claim {
    /// A number that the model says.
    pub(super) const fn number(
        id: &'static str,
        section: &'static str,
        words: &'static str,
        value: f64,
        unit: &'static str,
        measure: Measure,
    ) -> Self {
        Self::stated(id, section, words, Stated::Number(value), unit, measure)
    }

    /// A range or a bound that the model answers.
    pub(super) const fn stated(
        id: &'static str,
        section: &'static str,
        words: &'static str,
        stated: Stated,
        unit: &'static str,
        measure: Measure,
    ) -> Self {
        Self { id, section, words, stated, unit, kind: Kind::Predicted(measure), note: "" }
    }

    /// A direction.
    pub(super) const fn direction(
        id: &'static str,
        section: &'static str,
        words: &'static str,
        look: Look,
    ) -> Self {
        let (stated, kind) = (Stated::Direction, Kind::Direction(look));
        Self { id, section, words, stated, unit: "", kind, note: "" }
    }

    /// A number that is a parameter of a machine.
    pub(super) const fn input(
        id: &'static str,
        section: &'static str,
        words: &'static str,
        value: f64,
        unit: &'static str,
        source: Source,
    ) -> Self {
        let (stated, kind) = (Stated::Number(value), Kind::Input(source));
        Self { id, section, words, stated, unit, kind, note: "" }
    }

    /// What no run can answer.
    pub(super) const fn not_modelled(
        id: &'static str,
        section: &'static str,
        words: &'static str,
        stated: Stated,
        unit: &'static str,
        reason: &'static str,
    ) -> Self {
        Self { id, section, words, stated, unit, kind: Kind::NotModelled(reason), note: "" }
    }

    /// The same with a note.
    pub(super) const fn note(self, note: &'static str) -> Self {
        Self { note, ..self }
    }

    /// The same, as the point that was fitted.
    pub(super) const fn fitted(self) -> Self {
        match self.kind {
            Kind::Predicted(measure) => Self { kind: Kind::Fitted(measure), ..self },
            _ => self,
        }
    }

    /// The paper it is from.
    pub(super) fn paper(&self) -> Paper {
        if self.id.starts_with("rdmc-") { Paper::Rdmc } else { Paper::Spindle }
    }
}

/// All claims of a paper, in its order.
pub(super) fn claims_of(paper: Paper) -> Vec<Claim> {
    match paper {
        Paper::Spindle => super::spindle::CLAIMS.concat(),
        Paper::Rdmc => super::rdmc::CLAIMS.concat(),
    }
}

impl Seen {
    /// Of figures by place: whether each is less than the one before. One that is greater by up to
    /// a hundredth counts as the same, not as a rise.
    pub(super) fn falls(figures: &[(f64, f64)]) -> Self {
        let holds = figures.windows(2).all(|pair| pair[1].1 <= pair[0].1 * 1.01)
            && ends(figures).is_some_and(|(first, last)| last < first * 0.95);
        Self { holds, words: listed(figures) }
    }

    /// The other way round.
    pub(super) fn rises(figures: &[(f64, f64)]) -> Self {
        let holds = figures.windows(2).all(|pair| pair[1].1 >= pair[0].1 * 0.99)
            && ends(figures).is_some_and(|(first, last)| last > first * 1.05);
        Self { holds, words: listed(figures) }
    }

    /// Whether the least is no less than so much of the greatest.
    pub(super) fn stays(figures: &[(f64, f64)], within: f64) -> Self {
        let all = || figures.iter().map(|(_, figure)| *figure);
        let least = all().fold(f64::INFINITY, f64::min);
        let greatest = all().fold(0.0, f64::max);
        Self { holds: least >= greatest * (1.0 - within), words: listed(figures) }
    }

    /// Whether all are above a bound.
    pub(super) fn all_above(figures: &[(f64, f64)], bound: f64) -> Self {
        let holds = figures.iter().all(|(_, figure)| *figure > bound);
        Self { holds, words: listed(figures) }
    }
}

fn ends(figures: &[(f64, f64)]) -> Option<(f64, f64)> {
    Some((figures.first()?.1, figures.last()?.1))
}

/// `2: 9.87, 4: 9.71`.
pub(super) fn listed(figures: &[(f64, f64)]) -> String {
    let words = figures.iter().map(|(place, figure)| format!("{place}: {}", short(*figure)));
    words.collect::<Vec<_>>().join(", ")
}

/// Three digits that count.
pub(super) fn short(number: f64) -> String {
    let size = number.abs();
    let digits = match size {
        100.0.. => 0,
        10.0.. => 1,
        1.0.. => 2,
        0.1.. => 3,
        _ => 4,
    };
    let text = format!("{number:.digits$}");
    if text.contains('.') {
        text.trim_end_matches('0').trim_end_matches('.').to_owned()
    } else {
        text
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::BTreeSet;

    #[test]
    fn every_claim_has_an_id_of_its_own_and_says_where_it_stands() {
        let mut ids = BTreeSet::new();
        for paper in [Paper::Spindle, Paper::Rdmc] {
            for claim in claims_of(paper) {
                assert!(ids.insert(claim.id), "{} stands twice", claim.id);
                assert_eq!(claim.paper(), paper, "{}", claim.id);
                assert!(!claim.section.is_empty() && claim.words.len() > 3, "{}", claim.id);
                let is_plain = |text: char| text.is_ascii_lowercase() || "-.".contains(text);
                let fits = claim.id.chars().all(|text| is_plain(text) || text.is_ascii_digit());
                assert!(fits, "{}", claim.id);
                let looks = matches!(claim.kind, Kind::Direction(_));
                let measured = matches!(claim.kind, Kind::Predicted(_) | Kind::Fitted(_));
                let is_direction = claim.stated == Stated::Direction;
                assert!(!looks || is_direction, "{}", claim.id);
                assert!(!measured || !is_direction, "{}", claim.id);
            }
        }
    }

    #[test]
    fn one_point_of_each_paper_is_fitted() {
        let fitted = |paper| {
            let claims = claims_of(paper);
            claims.iter().filter(|claim| matches!(claim.kind, Kind::Fitted(_))).count()
        };
        assert_eq!((fitted(Paper::Spindle), fitted(Paper::Rdmc)), (1, 1));
    }

    #[test]
    fn directions_are_of_the_whole_and_not_of_the_last_digit() {
        let at = |figures: &[f64]| -> Vec<(f64, f64)> {
            figures.iter().enumerate().map(|(place, figure)| (place as f64, *figure)).collect()
        };
        assert!(Seen::falls(&at(&[9.0, 8.0, 8.01, 5.0])).holds);
        assert!(!Seen::falls(&at(&[9.0, 8.0, 8.5, 5.0])).holds, "it rises in between");
        assert!(!Seen::falls(&at(&[9.0, 8.99, 8.98])).holds, "it stays");
        assert!(Seen::rises(&at(&[1.0, 2.0, 1.99])).holds);
        assert!(!Seen::rises(&at(&[1.0, 2.0, 1.9])).holds);
        assert!(!Seen::rises(&at(&[1.0, 1.01])).holds);
        assert!(Seen::stays(&at(&[9.7, 9.0, 9.5]), 0.1).holds);
        assert!(!Seen::stays(&at(&[9.7, 8.0, 9.5]), 0.1).holds);
        assert!(Seen::all_above(&at(&[1.1, 2.0]), 1.0).holds);
        assert!(!Seen::all_above(&at(&[1.0, 2.0]), 1.0).holds);
        assert_eq!(Seen::stays(&at(&[9.75, 123.4]), 0.1).words, "0: 9.75, 1: 123");
    }

    #[test]
    fn numbers_have_three_digits_that_count() {
        let texts: Vec<_> = [1234.6, 97.64, 9.704, 0.5, 0.0123].into_iter().map(short).collect();
        assert_eq!(texts, ["1235", "97.6", "9.7", "0.5", "0.0123"]);
    }
}
