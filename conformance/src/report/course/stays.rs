//! The views that each node was a member of, over time.

use std::borrow::Cow;

/// Limit of stored stays.
const STAYS_MAX: usize = 400;

/// A node's membership of one view for some time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Stay {
    pub(in super::super) group: String,
    pub(in super::super) node: String,
    /// The number of the node's incarnation.
    pub(in super::super) inc: u32,
    pub(in super::super) view: u64,
    pub(in super::super) members: Vec<String>,
    pub(in super::super) from_ns: u64,
    pub(in super::super) until_ns: u64,
}

/// All stays.
#[derive(Default)]
pub(super) struct Stays {
    all: Vec<Stay>,
    /// The indexes in `all` of the stays that have not ended.
    open: Vec<usize>,
    left_out: u64,
}

impl Stays {
    /// Notes that a node installs a view.
    pub(super) fn install(
        &mut self,
        t_ns: u64,
        (node, inc): (&str, u32),
        group: &str,
        view: u64,
        members: &[Cow<'_, str>],
    ) {
        self.close(t_ns, |stay| stay.node == node && stay.group == group);
        if self.all.len() >= STAYS_MAX {
            self.left_out += 1;
            return;
        }
        self.open.push(self.all.len());
        self.all.push(Stay {
            group: group.to_owned(),
            node: node.to_owned(),
            inc,
            view,
            members: members.iter().map(ToString::to_string).collect(),
            from_ns: t_ns,
            until_ns: t_ns,
        });
    }

    /// Records that a node has exited.
    pub(super) fn gone(&mut self, t_ns: u64, node: &str) {
        self.close(t_ns, |stay| stay.node == node);
    }

    /// Ends all stays at the end of the history.
    pub(super) fn end(&mut self, t_ns: u64) {
        self.close(t_ns, |_| true);
    }

    fn close(&mut self, t_ns: u64, ends: impl Fn(&Stay) -> bool) {
        let all = &mut self.all;
        self.open.retain(|place| {
            let stay = &mut all[*place];
            let over = ends(stay);
            if over {
                stay.until_ns = t_ns;
            }
            !over
        });
    }

    pub(super) fn all(&self) -> &[Stay] {
        &self.all
    }

    pub(super) fn left_out(&self) -> u64 {
        self.left_out
    }
}
