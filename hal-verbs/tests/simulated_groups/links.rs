//! Paths between devices that are cut, slow or lossy for a while.

use tramontane_verbs::fake::Link;

/// The end time of a trouble that never ends.
pub const NEVER: u64 = u64::MAX;

/// The trouble of a path, with its start and end in ns.
#[derive(Clone, Copy, Debug)]
struct Trouble {
    from: usize,
    to: usize,
    until: u64,
    is_cut: bool,
    delay_ns: u64,
    loss_per_million: u32,
}

impl Trouble {
    const fn of((from, to): (usize, usize), until: u64) -> Self {
        Self { from, to, until, is_cut: false, delay_ns: 0, loss_per_million: 0 }
    }
}

/// All current troubles.
#[derive(Debug, Default)]
pub struct Troubles(Vec<Trouble>);

/// A path and its new properties.
pub type LinkChange = (usize, usize, Link);

impl Troubles {
    /// Cuts a path until the given time.
    pub fn cut(&mut self, way: (usize, usize), until: u64) -> LinkChange {
        self.add(Trouble { is_cut: true, ..Trouble::of(way, until) })
    }

    /// Slows a path down until the given time.
    pub fn slow(&mut self, way: (usize, usize), until: u64, delay_ns: u64) -> LinkChange {
        self.add(Trouble { delay_ns, ..Trouble::of(way, until) })
    }

    /// Loses `loss_per_million` out of a million messages on a path until the given time.
    pub fn lose(&mut self, way: (usize, usize), until: u64, loss_per_million: u32) -> LinkChange {
        self.add(Trouble { loss_per_million, ..Trouble::of(way, until) })
    }

    fn add(&mut self, trouble: Trouble) -> LinkChange {
        self.0.push(trouble);
        self.now_of(trouble.from, trouble.to)
    }

    /// Returns when the next trouble ends, or `None` if none ever does.
    pub fn next_end(&self) -> Option<u64> {
        self.0.iter().map(|trouble| trouble.until).min().filter(|until| *until < NEVER)
    }

    /// Removes the troubles that are over.
    pub fn end(&mut self, now: u64) -> Vec<LinkChange> {
        let is_over = |trouble: &Trouble| trouble.until <= now;
        let over: Vec<Trouble> = self.0.iter().copied().filter(is_over).collect();
        self.0.retain(|trouble| !is_over(trouble));
        over.iter().map(|trouble| self.now_of(trouble.from, trouble.to)).collect()
    }

    fn now_of(&self, from: usize, to: usize) -> LinkChange {
        let here = || self.0.iter().filter(|trouble| (trouble.from, trouble.to) == (from, to));
        let link = Link {
            is_cut: here().any(|trouble| trouble.is_cut),
            delay_ns: here().map(|trouble| trouble.delay_ns).sum(),
            loss_per_million: here().map(|trouble| trouble.loss_per_million).max().unwrap_or(0),
            ..Link::default()
        };
        (from, to, link)
    }
}
