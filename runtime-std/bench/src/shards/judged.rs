//! What is judged by the figures: claims of the paper, and goals of this project.

use serde::Serialize;

/// What came of a claim or a goal.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum Verdict {
    Held,
    Failed,
    /// Not all that it needs was run.
    NotRun,
}

impl Verdict {
    /// In words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "FAILED",
            Self::NotRun => "not run",
        }
    }
}

/// A claim or a goal, and the figures by which it is judged.
#[derive(Clone, Debug, Serialize)]
pub(super) struct Judged {
    /// Where it is from.
    pub(super) source: &'static str,
    pub(super) words: &'static str,
    pub(super) seen: String,
    pub(super) verdict: Verdict,
    /// Why it fails, or how it was read.
    pub(super) note: &'static str,
}

/// Whether it holds, with the figures that say so. None if not all was run.
pub(super) type Seen = Option<(bool, String)>;

impl Judged {
    /// By what was seen.
    pub(super) fn by(
        source: &'static str,
        words: &'static str,
        seen: Seen,
        note: &'static str,
    ) -> Self {
        let (verdict, seen) = match seen {
            None => (Verdict::NotRun, String::new()),
            Some((true, seen)) => (Verdict::Held, seen),
            Some((false, seen)) => (Verdict::Failed, seen),
        };
        Self { source, words, seen, verdict, note }
    }
}
