//! The views that each node was a member of, over time.

use std::borrow::Cow;

/// So many stays are held.
const STAYS_MAX: usize = 400;

/// That a node was in a view for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in super::super) struct Stay {
    pub(in super::super) group: String,
    pub(in super::super) node: String,
    /// Which start of the node.
    pub(in super::super) inc: u32,
    pub(in super::super) view: u64,
    pub(in super::super) members: Vec<String>,
    pub(in super::super) from_ns: u64,
    pub(in super::super) until_ns: u64,
}

/// All of them.
#[derive(Default)]
pub(super) struct Stays {
    all: Vec<Stay>,
    /// The places in `all` of those that last.
    open: Vec<usize>,
    left_out: u64,
}

impl Stays {
    /// A node goes on to a view.
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

    /// A node is no more.
    pub(super) fn gone(&mut self, t_ns: u64, node: &str) {
        self.close(t_ns, |stay| stay.node == node);
    }

    /// The history is at its end.
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
