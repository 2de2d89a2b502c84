//! The rules by which a claim holds.

use serde::Serialize;

use super::number::short;
use super::rows::{Bound, Stated};

/// Maximum deviation of a number from the paper's: a quarter of it.
const BAND: f64 = 0.25;

/// The result of a claim.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(super) enum ClaimVerdict {
    /// The number is within its band, or the direction is as stated.
    Held,
    /// The number is outside its band, or the direction differs.
    Failed,
    /// The number is a parameter of the model.
    Input,
    /// A parameter was fitted to the number.
    Fitted,
    /// No run can answer the claim.
    NotModelled,
    /// No value is stated.
    Measured,
}

impl ClaimVerdict {
    /// Returns the verdict in words.
    pub(super) const fn words(self) -> &'static str {
        match self {
            Self::Held => "held",
            Self::Failed => "FAILED",
            Self::Input => "input",
            Self::Fitted => "fitted",
            Self::NotModelled => "not modelled",
            Self::Measured => "measured",
        }
    }
}

/// For shares above this percentage, a note says whether the remainder is within the band as well:
/// for 97.6 %, a model can only be wrong about the other 2.4 %.
const NEARLY_ALL: f64 = 75.0;

/// Returns whether a measured number matches the stated one within the band.
pub(super) fn holds(stated: Stated, measured: f64) -> bool {
    match stated {
        Stated::Number(value) => is_near(value, measured),
        Stated::Bound(Bound::Between(low, high)) => {
            (low * (1.0 - BAND)..=high * (1.0 + BAND)).contains(&measured)
        }
        Stated::Bound(Bound::AtLeast(value)) => measured >= value * (1.0 - BAND),
        Stated::Bound(Bound::AtMost(value)) => measured <= value * (1.0 + BAND),
    }
}

/// Returns the remainder of a share of nearly all, in words, if it is outside the band. The verdict
/// does not depend on the remainder, because the band applies to the number that the paper states.
pub(super) fn leaves(stated: Stated, measured: f64, unit: &str) -> Option<String> {
    match stated {
        Stated::Number(value) if unit == "%" && (NEARLY_ALL..100.0).contains(&value) => {
            let (stated, measured) = (100.0 - value, 100.0 - measured);
            let words =
                format!("remainder: {} % stated, {} measured", short(stated), short(measured));
            (!is_near(stated, measured)).then_some(words)
        }
        _ => None,
    }
}

fn is_near(value: f64, measured: f64) -> bool {
    (measured - value).abs() <= BAND * value.abs()
}

/// Returns the measured number divided by the stated one. For a range, it is divided by the nearer
/// bound; within the range, the ratio is one.
pub(super) fn ratio(stated: Stated, measured: f64) -> Option<f64> {
    match stated {
        Stated::Number(value) => Some(measured / value),
        Stated::Bound(Bound::Between(low, high)) => Some(measured / measured.clamp(low, high)),
        Stated::Bound(Bound::AtLeast(value)) => Some((measured / value).min(1.0)),
        Stated::Bound(Bound::AtMost(value)) => Some((measured / value).max(1.0)),
    }
    .filter(|ratio| ratio.is_finite())
}

#[cfg(test)]
mod tests {
    use super::super::rows::Paper;
    use super::*;

    const fn bound(bound: Bound) -> Stated {
        Stated::Bound(bound)
    }

    #[test]
    fn figure_holds_within_a_quarter_of_stated_value() {
        let stated = Stated::Number(8.0);
        for (measured, is_held) in [(5.99, false), (6.0, true), (10.0, true), (10.01, false)] {
            assert_eq!(holds(stated, measured), is_held, "{measured}");
        }
        assert_eq!(ratio(stated, 6.0), Some(0.75));
        assert!(!holds(stated, f64::NAN));
    }

    #[test]
    fn tolerance_extends_beyond_ranges_and_bounds() {
        let range = bound(Bound::Between(20.0, 50.0));
        for (measured, is_held) in [(14.9, false), (15.0, true), (62.5, true), (62.6, false)] {
            assert_eq!(holds(range, measured), is_held, "{measured}");
        }
        assert_eq!((ratio(range, 30.0), ratio(range, 100.0)), (Some(1.0), Some(2.0)));
        let least = bound(Bound::AtLeast(30.0));
        assert!(holds(least, 22.5) && !holds(least, 22.4) && holds(least, 90.0));
        let most = bound(Bound::AtMost(16.0));
        assert!(holds(most, 20.0) && !holds(most, 20.1) && holds(most, 0.0));
        assert_eq!(ratio(most, 8.0), Some(1.0));
    }

    #[test]
    fn remaining_share_is_reported_but_not_judged() {
        let stated = Stated::Number(97.6);
        for (measured, is_near) in [(97.6, true), (98.1, true), (97.1, true), (96.9, false)] {
            assert!(holds(stated, measured));
            assert_eq!(leaves(stated, measured, "%").is_none(), is_near, "{measured}");
        }
        let words = leaves(stated, 96.0, "%");
        assert_eq!(words.as_deref(), Some("remainder: 2.4 % stated, 4 measured"));
        assert_eq!(leaves(stated, 96.0, "GB/s"), None, "no share");
        assert_eq!(leaves(Stated::Number(50.0), 60.0, "%"), None);
        assert_eq!(leaves(Stated::Number(100.0), 99.0, "%"), None, "it leaves nothing");
    }

    /// The paper's own numbers pass the record, and twice those numbers do not.
    #[test]
    fn verdict_accepts_exact_and_rejects_doubled_figures() {
        for paper in Paper::ALL {
            for claim in paper.rows().expect("they can be read").claims {
                let Some(stated) = claim.stated else { continue };
                let (right, wrong) = match stated {
                    Stated::Number(value) => (value, value * 2.0),
                    Stated::Bound(Bound::Between(low, high)) => ((low + high) / 2.0, high * 2.0),
                    Stated::Bound(Bound::AtLeast(value)) => (value * 2.0, value / 2.0),
                    Stated::Bound(Bound::AtMost(value)) => (value / 2.0, value * 2.0),
                };
                assert!(holds(stated, right) && !holds(stated, wrong), "{}", claim.id);
            }
        }
    }
}
