//! The input lines that a node handed over to its group. When the node ends, it reports the lines
//! that were not sent and those that may have been.

use std::collections::VecDeque;
use std::ops::RangeInclusive;

use tramontane_runtime::group::{Ordinal, Unsent};

/// Lines that were read but not handed over to the group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Lost {
    /// The first.
    pub(super) from: u64,
    /// The last.
    pub(super) to: u64,
    /// Whether the last of these lines is complete.
    pub(super) has_end: bool,
}

/// Numbers of the last lines, each with its message's ordinal. Keeps as many as a member may leave
/// unsent when it ends.
#[derive(Debug)]
pub(super) struct SentLines {
    lines: VecDeque<(u64, Ordinal)>,
    lines_max: usize,
    lost: Option<Lost>,
}

impl SentLines {
    /// Keeps the last `lines_max` lines.
    pub(super) fn new(lines_max: usize) -> Self {
        Self { lines: VecDeque::new(), lines_max, lost: None }
    }

    /// Notes a line that was handed over to the group.
    pub(super) fn add(&mut self, number: u64, ordinal: Ordinal) {
        if self.lines.len() >= self.lines_max {
            self.lines.pop_front();
        }
        self.lines.push_back((number, ordinal));
    }

    /// Notes that the next lines were read but not handed over.
    pub(super) fn lose(&mut self, lines: Lost) {
        let from = self.lost.map_or(lines.from, |lost| lost.from);
        self.lost = Some(Lost { from, ..lines });
    }

    pub(super) fn lost(&self) -> Option<Lost> {
        self.lost
    }

    /// Advises what to do about the lines that were unfinished when this member ended. Lines that
    /// were sent may be delivered elsewhere, so resending them could duplicate them.
    pub(super) fn advice(&self, unsent: &[Unsent]) -> Vec<String> {
        let numbers = |was_sent: bool| {
            let unsent = unsent.iter().filter(move |unsent| unsent.was_sent == was_sent);
            unsent.filter_map(|unsent| self.number(unsent.ordinal))
        };
        let mut advice = Vec::new();
        let lost = self.lost.into_iter().flat_map(|lost| lost.from..=lost.to);
        let (kept, count) = listed(numbers(false).chain(lost));
        if count > 0 {
            let part = match self.lost {
                Some(Lost { to, has_end: false, .. }) => format!(" (line {to} in part)"),
                _ => String::new(),
            };
            advice.push(format!(
                "input lines that were read but not sent: {kept}{part}; send them again"
            ));
        }
        let (sent, count) = listed(numbers(true));
        if count > 0 {
            advice.push(format!(
                "input lines that were sent, and that others may have delivered: {sent}; check a \
                 log before you send them again"
            ));
        }
        advice
    }

    fn number(&self, ordinal: Ordinal) -> Option<u64> {
        let at = self.lines.binary_search_by_key(&ordinal, |(_, ordinal)| *ordinal).ok()?;
        self.lines.get(at).map(|(number, _)| *number)
    }
}

/// Formats ascending numbers as a list, such as `4, 6 to 9`, and counts them.
fn listed(numbers: impl Iterator<Item = u64>) -> (String, usize) {
    let mut runs: Vec<RangeInclusive<u64>> = Vec::new();
    let mut count = 0;
    for number in numbers {
        count += 1;
        match runs.last_mut() {
            Some(run) if *run.end() + 1 == number => *run = *run.start()..=number,
            _ => runs.push(number..=number),
        }
    }
    let run = |run: &RangeInclusive<u64>| match (run.start(), run.end()) {
        (one, other) if one == other => one.to_string(),
        (first, last) => format!("{first} to {last}"),
    };
    let text = runs.iter().map(run).collect::<Vec<_>>().join(", ");
    (text, count)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent_lines(lines: &[(u64, u64)]) -> SentLines {
        let mut sent_lines = SentLines::new(100);
        for (number, ordinal) in lines {
            sent_lines.add(*number, Ordinal(*ordinal));
        }
        sent_lines
    }

    fn unsent(ordinal: u64, was_sent: bool) -> Unsent {
        let subgroup = tramontane_core::ids::SubgroupId(0);
        Unsent { subgroup, ordinal: Ordinal(ordinal), payload: b"line".to_vec(), was_sent }
    }

    #[test]
    fn advice_numbers_unsent_lines_correctly_after_refusals() {
        // Line 3 was refused; lines 1 and 2 have been delivered.
        let mut sent_lines = sent_lines(&[(1, 0), (2, 1), (4, 2), (5, 3), (6, 4)]);
        assert_eq!(sent_lines.advice(&[]), [""; 0]);
        let rest = [unsent(2, true), unsent(3, false), unsent(4, false)];
        let [kept, sent] =
            <[String; 2]>::try_from(sent_lines.advice(&rest)).expect("two sentences");
        assert_eq!(kept, "input lines that were read but not sent: 5 to 6; send them again");
        assert!(sent.contains("may have delivered: 4; check a log before"), "{sent}");

        sent_lines.lose(Lost { from: 7, to: 7, has_end: true });
        sent_lines.lose(Lost { from: 9, to: 9, has_end: false });
        let [kept] = <[String; 1]>::try_from(sent_lines.advice(&rest[1..])).expect("a sentence");
        assert_eq!(
            kept,
            "input lines that were read but not sent: 5 to 9 (line 9 in part); send them again"
        );
    }

    #[test]
    fn number_of_remembered_sent_lines_is_bounded() {
        let mut sent_lines = SentLines::new(2);
        (0..9).for_each(|number| sent_lines.add(number + 1, Ordinal(number)));
        assert_eq!(sent_lines.lines.len(), 2);
        assert!(sent_lines.advice(&[unsent(8, true)])[0].contains(": 9;"));
    }
}
