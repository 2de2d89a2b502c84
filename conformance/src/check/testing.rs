//! Small histories for tests.

use super::{CheckId, Outcome, Verdict, judge};

/// Returns the verdict on a history that must be readable.
pub(super) fn judged_by(text: &str) -> Verdict {
    judge(text.as_bytes()).expect("the history keeps its rules")
}

/// Returns the outcome of a check.
pub(super) fn outcome(verdict: &Verdict, check: CheckId) -> &Outcome {
    &verdict.of(check).outcome
}

/// Returns whether a check holds.
pub(super) fn held(verdict: &Verdict, check: CheckId) -> bool {
    matches!(outcome(verdict, check), Outcome::Held { judged: 1.. })
}

/// Returns whether a check is inconclusive.
pub(super) fn inconclusive(verdict: &Verdict, check: CheckId) -> bool {
    matches!(outcome(verdict, check), Outcome::Inconclusive(_))
}

/// Returns the broken checks, each with the lines that show it.
pub(super) fn broken(verdict: &Verdict) -> Vec<(CheckId, Vec<u64>)> {
    let lines = |outcome: &Outcome| match outcome {
        Outcome::Broken { finding, .. } => {
            assert_eq!(
                finding.witness.iter().filter(|witness| witness.culprit).count().min(1),
                1,
                "{finding:?}"
            );
            Some(finding.witness.iter().map(|witness| witness.line).collect())
        }
        _ => None,
    };
    verdict.judgements.iter().filter_map(|of| Some((of.check, lines(&of.outcome)?))).collect()
}

/// A history under construction. Adding a line returns its number.
pub(super) struct Play {
    text: String,
    lines: u64,
    sent: std::collections::BTreeMap<String, u64>,
}

impl Play {
    /// Creates a history of these nodes, which have started, and one group "g" to which all of them
    /// may send.
    pub(super) fn new(nodes: &[&str]) -> Self {
        let names: Vec<String> = nodes.iter().map(|node| format!("{node:?}")).collect();
        let names = names.join(",");
        Self::of(
            &format!(r#"{{"ev":"group","group":"g","members":[{names}],"senders":[{names}]}}"#),
            nodes,
        )
    }

    /// Without a line.
    pub(super) fn empty() -> Self {
        Self { text: String::new(), lines: 0, sent: std::collections::BTreeMap::new() }
    }

    /// Creates a history of these groups, and of these nodes, which have started.
    pub(super) fn of(groups: &str, nodes: &[&str]) -> Self {
        let mut play = Self::empty();
        groups.lines().for_each(|group| {
            play.line(group);
        });
        for node in nodes {
            play.line(&format!(r#"{{"ev":"start","t_ns":0,"node":"{node}","inc":1}}"#));
        }
        play
    }

    /// Adds a line unchanged.
    pub(super) fn line(&mut self, line: &str) -> u64 {
        self.text.push_str(line);
        self.text.push('\n');
        self.lines += 1;
        self.lines
    }

    /// Adds `count` messages that a node's first incarnation sends to "g".
    pub(super) fn sends(&mut self, node: &str, count: u64) -> Vec<u64> {
        let first = self.sent(node);
        self.sent.insert(node.to_owned(), first + count);
        let send = |number: u64| {
            self.line(&format!(
                r#"{{"ev":"multicast","t_ns":1,"node":"{node}","inc":1,"msg":"{node}/1/{number}","groups":["g"]}}"#
            ))
        };
        (first..first + count).map(send).collect()
    }

    /// Adds deliveries by a node's first incarnation through "g".
    pub(super) fn deliver(&mut self, node: &str, names: &[&str]) -> Vec<u64> {
        let names: Vec<(&str, &str)> = names.iter().map(|name| ("g", *name)).collect();
        self.deliver_in(node, &names)
    }

    /// Adds deliveries by a node's first incarnation, each through its group.
    pub(super) fn deliver_in(&mut self, node: &str, names: &[(&str, &str)]) -> Vec<u64> {
        let deliver = |(group, name): &(&str, &str)| {
            self.line(&format!(
                r#"{{"ev":"deliver","t_ns":1,"node":"{node}","inc":1,"group":"{group}","msg":"{name}"}}"#
            ))
        };
        names.iter().map(deliver).collect()
    }

    /// Adds a fault at a node.
    pub(super) fn fault(&mut self, kind: &str, node: &str) -> u64 {
        self.line(&format!(r#"{{"ev":"fault","t_ns":1,"kind":"{kind}","nodes":["{node}"]}}"#))
    }

    /// Ends a node's first incarnation as done.
    pub(super) fn end(&mut self, node: &str) -> u64 {
        self.ended(node, "done")
    }

    /// Ends a node's first incarnation with this reason.
    pub(super) fn ended(&mut self, node: &str, reason: &str) -> u64 {
        self.line(&format!(
            r#"{{"ev":"end","t_ns":9,"node":"{node}","inc":1,"reason":"{reason}"}}"#
        ))
    }

    /// Returns the number of messages that a node has sent to "g".
    pub(super) fn sent(&self, node: &str) -> u64 {
        *self.sent.get(node).unwrap_or(&0)
    }

    /// Returns the lines so far.
    pub(super) fn text(&self) -> &str {
        &self.text
    }

    /// Returns the verdict so far.
    pub(super) fn verdict(&self) -> Verdict {
        judged_by(&self.text)
    }
}
