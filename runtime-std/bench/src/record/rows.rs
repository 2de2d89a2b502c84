//! Rows: the papers' statements and our goals, each with a query, from the files in `claims/`.

use serde::{Deserialize, Serialize};
use toml::Table;

use crate::error::BenchError;

/// A paper, and its file of claims.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, clap::ValueEnum, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Paper {
    /// Spindle: techniques for optimizing atomic multicast on RDMA (ICDCS 2022)
    Spindle,
    /// RDMC: a reliable RDMA multicast for large objects (DSN 2018)
    Rdmc,
    /// TRAM: order across groups, compared with RamCast, and our goals for it
    Tram,
    /// The levels of DDS (Spindle IV-F), and our goals for them
    Dds,
    /// Spindle's figures, redrawn: our core, the model of Derecho, and the stated values
    SpindleFigures,
    /// RDMC's figures, redrawn: our core's transfers, and the stated values
    RdmcFigures,
}

impl Paper {
    /// All papers.
    pub(super) const ALL: [Self; 6] =
        [Self::Spindle, Self::Rdmc, Self::Tram, Self::Dds, Self::SpindleFigures, Self::RdmcFigures];

    /// Returns the paper's rows.
    ///
    /// # Errors
    /// Fails with [`BenchError::Setup`] if the paper's file is invalid.
    pub(super) fn rows(self) -> Result<RowFile, BenchError> {
        let text = match self {
            Self::Spindle => include_str!("../../claims/spindle.toml"),
            Self::Rdmc => include_str!("../../claims/rdmc.toml"),
            Self::Tram => include_str!("../../claims/tram.toml"),
            Self::Dds => include_str!("../../claims/dds.toml"),
            Self::SpindleFigures => include_str!("../../claims/spindle-figures.toml"),
            Self::RdmcFigures => include_str!("../../claims/rdmc-figures.toml"),
        };
        RowFile::of(text).map_err(|error| {
            BenchError::Setup(format!("the rows of {self:?} are invalid: {error}"))
        })
    }
}

impl RowFile {
    /// Parses a file.
    pub(super) fn of(text: &str) -> Result<Self, String> {
        toml::from_str(text).map_err(|error: toml::de::Error| {
            let at = error.span().map_or(0, |span| span.start);
            let line = text.get(..at).unwrap_or_default().matches('\n').count() + 1;
            format!("line {line}: {}", error.message().trim_end().replace('\n', " "))
        })
    }
}

/// A file of rows.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct RowFile {
    /// The title of the file's section of a page.
    pub(super) title: String,
    /// A description of the runs, for the file's section of a page.
    #[serde(default)]
    pub(super) about: String,
    /// Whether the claims describe another system's model, and are also evaluated for our core.
    #[serde(default)]
    pub(super) with_core: bool,
    /// Values of fields by name.
    pub(super) lists: Table,
    /// Cases by name.
    pub(super) cases: Table,
    /// This project's goals.
    #[serde(default, rename = "goal")]
    pub(super) goals: Vec<Claim>,
    /// The paper's statements, in its order.
    #[serde(default, rename = "claim")]
    pub(super) claims: Vec<Claim>,
    /// Figures of the paper, as tables.
    #[serde(default, rename = "table")]
    pub(super) tables: Vec<Figure>,
}

/// A stated value, in a form that the record can compare.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub(super) enum Stated {
    /// A single number.
    Number(f64),
    /// A range or a bound.
    Bound(Bound),
}

/// A range or a bound.
#[derive(Clone, Copy, Debug, PartialEq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub(super) enum Bound {
    Between(f64, f64),
    AtLeast(f64),
    AtMost(f64),
}

/// A claim or a goal. It has one of `measure`, `holds`, `input` and `not_modelled`.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Claim {
    /// Unique id among all claims.
    pub(super) id: String,
    /// The section, figure or table of the paper.
    pub(super) section: String,
    /// The paper's words.
    pub(super) words: String,
    /// The stated value; `None` for a direction.
    pub(super) stated: Option<Stated>,
    /// The unit of the stated number; empty for a ratio or a direction.
    #[serde(default)]
    pub(super) unit: String,
    /// Queries whose answers the other queries use.
    #[serde(default)]
    pub(super) values: Vec<String>,
    /// The query of a number.
    pub(super) measure: Option<String>,
    /// The query that decides whether a direction holds for the values.
    pub(super) holds: Option<String>,
    /// The comparison by which our core shows the direction of a number, such as `> 1`.
    pub(super) direction: Option<String>,
    /// The reason that our core cannot show the claim.
    pub(super) not_core: Option<String>,
    /// The text shown for a direction, with `{1}` for the first value; by default all values.
    #[serde(default)]
    pub(super) shows: String,
    /// Present if the number is an input of the model and says nothing about its results: a query
    /// of a parameter, or empty if the number is part of the runs' configuration.
    pub(super) input: Option<String>,
    /// The reason that no run can answer it.
    pub(super) not_modelled: Option<String>,
    /// Whether a parameter was fitted to this number. There is one such claim per paper.
    #[serde(default)]
    pub(super) fitted: bool,
    /// Whether the number was known while the parameters of the paper's machine were chosen. Such a
    /// claim is weaker evidence than others.
    #[serde(default)]
    pub(super) in_view: bool,
    /// The interpretation of the words if they are ambiguous, and the known causes of a failure.
    #[serde(default)]
    pub(super) note: String,
}

/// A figure of a paper as a table, with one line per case.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(super) struct Figure {
    /// The figure's title; empty if it belongs to the previous figure.
    #[serde(default)]
    pub(super) title: String,
    /// The content.
    pub(super) what: String,
    /// The meaning of the columns.
    pub(super) over: String,
    pub(super) unit: String,
    /// Each line's name and query. If there are lines of the model, these are our core's.
    pub(super) lines: Vec<(String, String)>,
    /// The same for the model of the paper's system.
    #[serde(default)]
    pub(super) model: Vec<(String, String)>,
    /// Values that the paper's text states, with their positions, by name.
    #[serde(default)]
    pub(super) stated: Vec<(String, Vec<(f64, f64)>)>,
    pub(super) digits: usize,
    /// The name of the figure's drawing, if it has one.
    #[serde(default)]
    pub(super) drawing: String,
    /// Whether both axes of the drawing are logarithmic.
    #[serde(default)]
    pub(super) is_logarithmic: bool,
    /// Whether only the drawing's horizontal axis is logarithmic.
    #[serde(default)]
    pub(super) has_logarithmic_places: bool,
    /// The text below the figure.
    #[serde(default)]
    pub(super) note: String,
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    fn all() -> impl Iterator<Item = (Paper, Claim)> {
        Paper::ALL.into_iter().flat_map(|paper| {
            let RowFile { claims, goals, .. } = paper.rows().expect("they can be read");
            claims.into_iter().chain(goals).map(move |claim| (paper, claim))
        })
    }

    #[test]
    fn every_row_has_an_id_and_one_query() {
        let mut ids = BTreeSet::new();
        for (_, claim) in all() {
            let Claim { id, measure, holds, input, not_modelled, .. } = &claim;
            assert!(ids.insert(id.clone()), "{id} stands twice");
            assert!(!claim.section.is_empty() && claim.words.len() > 3, "{id}");
            let ways = [measure, holds, input, not_modelled];
            assert_eq!(ways.into_iter().flatten().count(), 1, "{id}");
            assert!(measure.is_none() || claim.stated.is_some(), "{id}");
            assert!(holds.is_none() || claim.stated.is_none(), "{id}");
        }
    }

    #[test]
    fn spindle_and_rdmc_models_each_fit_one_figure() {
        let fitted = |paper| all().filter(|(of, claim)| *of == paper && claim.fitted).count();
        assert_eq!(Paper::ALL.map(fitted), [1, 1, 0, 0, 0, 0]);
    }
}
