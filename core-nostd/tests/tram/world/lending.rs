//! The state and link memory lent to a process of a world.

use std::cell::RefCell;
use std::rc::Rc;

use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::tram::{LinkId, Memory};

use crate::network::{RowPair, TestNetwork};
use crate::random::Random;

/// State that is lent for as long as its owner lives, and freed afterwards.
pub struct Leased<T>(*mut [T]);

impl<T: Default + Clone> Leased<T> {
    pub fn new(count: usize) -> Self {
        Self(Box::into_raw(vec![T::default(); count].into_boxed_slice()))
    }

    /// Lends the state, once.
    pub fn lend(&self) -> &'static mut [T] {
        // SAFETY: made by `new`, and lent once: the borrower is dropped before this.
        unsafe { &mut *self.0 }
    }
}

impl<T> Drop for Leased<T> {
    fn drop(&mut self) {
        // SAFETY: made by `new`, and the borrower was declared, and so dropped, before this.
        drop(unsafe { Box::from_raw(self.0) });
    }
}

/// The memory of one process.
pub struct Lending {
    pub log: Rc<Vec<Line>>,
    pub links: Vec<Option<Rc<RowPair>>>,
    /// Links whose rows are hidden from the process.
    hidden: Vec<bool>,
    /// The network that moves while the process steps.
    network: Rc<RefCell<TestNetwork>>,
}

impl Lending {
    /// Makes the memory of a process without attached links.
    pub fn new(log: Rc<Vec<Line>>, links: usize, network: &Rc<RefCell<TestNetwork>>) -> Self {
        let network = Rc::clone(network);
        Self { log, links: vec![None; links], hidden: vec![false; links], network }
    }

    /// Returns a cell of the log.
    pub fn cell_of_log(&self, offset: usize) -> u64 {
        Row::from_lines(&self.log).cell(offset).expect("in the log").load()
    }

    /// Hides `percent` percent of the links.
    pub fn hide(&mut self, percent: usize, random: &mut Random) {
        if percent > 0 {
            self.hidden.fill_with(|| random.chance(percent));
        }
    }

    /// Makes all links visible again.
    pub fn show(&mut self) {
        self.hidden.fill(false);
    }
}

impl Memory for Lending {
    fn log(&self) -> RowWriter<'_> {
        RowWriter::from_lines(&self.log)
    }

    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)> {
        self.network.borrow_mut().move_within_a_step();
        let rows = self.links.get(link.index())?.as_ref()?;
        if self.hidden[link.index()] {
            return None;
        }
        Some((RowWriter::from_lines(&rows.own), Row::from_lines(&rows.copy)))
    }
}
