//! The second implementation of every check, written exactly as `docs/checks.md` defines them, over
//! a whole history in memory.
//!
//! The implementation is deliberately slow. It shares only the names of the checks and the reading
//! of lines with the fast judge, so that a mistake in one is not a mistake in both. It returns only
//! the outcome of each check, without a reason.

mod delivery;
mod durability;
mod format;
mod integrity;
mod membership;
mod order;
mod progress;
mod terms;
mod views;

use tramontane_conformance::check::CheckId;
use tramontane_conformance::history::{Event, HistoryError, Reader, Trouble, parse};

use terms::NaiveHistory;

/// The outcome of a check, without the reasons.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CheckOutcome {
    /// It holds.
    Held,
    /// The promise is broken.
    Broken,
    /// The rest of the history would have decided.
    Inconclusive,
    /// There was nothing to judge.
    NotJudged,
}

/// The findings of a check in a history: the number of cases, and how many of them are broken.
#[derive(Clone, Copy, Debug, Default)]
pub struct Findings {
    cases: usize,
    broken: usize,
}

impl Findings {
    /// Counts one case.
    fn case(&mut self) {
        self.cases += 1;
    }

    /// Counts one violation, if `broken`.
    fn broken_if(&mut self, broken: bool) {
        self.broken += usize::from(broken);
    }
}

/// Returns the outcome of each check, in the order of [`CheckId::ALL`].
///
/// # Errors
/// Fails at the first line that no history may have.
pub fn judge(history: &[u8]) -> Result<Vec<(CheckId, CheckOutcome)>, HistoryError> {
    let (events, unread) = read(history);
    if let Some((line, contradiction)) = format::contradiction(&events) {
        return Err(HistoryError { line, trouble: Trouble::Contradiction(contradiction) });
    }
    match unread {
        Some(error) if error.trouble != Trouble::Cut => return Err(error),
        _ => {}
    }
    let as_it_is = NaiveHistory::new(&events, false);
    let were_all_done = NaiveHistory::new(&events, true);
    Ok(CheckId::ALL.iter().map(|id| (*id, kind(*id, &as_it_is, &were_all_done))).collect())
}

/// Returns the records up to the end or the first unreadable line, and the problem with that line.
fn read(history: &[u8]) -> (Vec<(u64, Event<'_>)>, Option<HistoryError>) {
    let unread = first_unreadable(history);
    let readable = unread.as_ref().map_or(u64::MAX, |error| error.line);
    let lines = (1..readable).zip(history.split(|byte| *byte == b'\n'));
    let records = lines.filter_map(|(number, line)| {
        let text = std::str::from_utf8(line).ok()?.trim_ascii();
        Some((number, parse(text).ok()?))
    });
    (records.collect(), unread)
}

fn first_unreadable(history: &[u8]) -> Option<HistoryError> {
    let mut reader = Reader::new(history);
    loop {
        match reader.next_event() {
            Ok(Some(_)) => {}
            Ok(None) => return None,
            Err(error) => return Some(error),
        }
    }
}

fn kind(
    id: CheckId,
    as_it_is: &NaiveHistory<'_>,
    were_all_done: &NaiveHistory<'_>,
) -> CheckOutcome {
    if builds_on_what_is_broken(id, as_it_is) {
        return CheckOutcome::NotJudged;
    }
    let found = state(id, as_it_is);
    if found.broken > 0 {
        CheckOutcome::Broken
    } else if !builds_on_what_is_broken(id, were_all_done) && state(id, were_all_done).broken > 0 {
        CheckOutcome::Inconclusive
    } else if found.cases > 0 {
        CheckOutcome::Held
    } else {
        CheckOutcome::NotJudged
    }
}

/// Returns whether the check is one of the two that are not judged after another has failed.
fn builds_on_what_is_broken(id: CheckId, world: &NaiveHistory<'_>) -> bool {
    let before: &[CheckId] = match id {
        CheckId::AcyclicOrder => &[CheckId::TotalOrder],
        CheckId::PrefixOrder => &[
            CheckId::SenderOrder,
            CheckId::TotalOrder,
            CheckId::AcyclicOrder,
            CheckId::Validity,
            CheckId::Agreement,
            CheckId::ViewSameSet,
            CheckId::UniformAgreement,
            CheckId::RemovedSilent,
        ],
        _ => &[],
    };
    before.iter().any(|id| state(*id, world).broken > 0)
}

fn state(id: CheckId, world: &NaiveHistory<'_>) -> Findings {
    match id {
        CheckId::IntegrityOnce => integrity::once(world),
        CheckId::IntegritySent => integrity::sent(world),
        CheckId::IntegrityAddressee => integrity::addressee(world),
        CheckId::IntegrityBytes => integrity::bytes(world),
        CheckId::NullsInvisible => integrity::nulls_invisible(world),
        CheckId::Validity => delivery::validity(world),
        CheckId::Agreement => delivery::agreement(world),
        CheckId::UniformAgreement => delivery::uniform_agreement(world),
        CheckId::SenderOrder => order::sender_order(world),
        CheckId::TotalOrder => order::total_order(world),
        CheckId::AcyclicOrder => order::acyclic_order(world),
        CheckId::PrefixOrder => order::prefix_order(world),
        CheckId::ViewUnique => views::unique(world),
        CheckId::ViewRising => views::rising(world),
        CheckId::ViewSelf => views::includes_self(world),
        CheckId::ViewMajority => views::majority(world),
        CheckId::ViewDelivery => views::delivery(world),
        CheckId::ViewSameSet => delivery::same_set(world),
        CheckId::RemovedSilent => delivery::removed_silent(world),
        CheckId::Quiescence => progress::quiescence(world),
        CheckId::DurablePrefix => durability::prefix(world),
        CheckId::DurableKept => durability::kept(world),
        CheckId::Liveness => progress::liveness(world),
    }
}
