//! A machine on which the writes of a device become visible out of order (HAL-1): a guard is
//! visible at once, but the content that it guards becomes visible only after the reader's next
//! barrier. A reader that takes a length, a payload or a column of a view without a barrier reads
//! the old value.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use crate::common::{Carries, fabric};
use tramontane_core::fabric::{Capabilities, ErrorKind, Event, Kind, Promises, WRITES_MAX, Write};
use tramontane_core::ids::Rank;
use tramontane_core::memory::RowWriter;

/// Bytes written at an offset of an owner's row.
struct WrittenBytes {
    owner: usize,
    offset: usize,
    bytes: Vec<u8>,
    kind: Kind,
}

/// The writes in flight to one reader.
#[derive(Default)]
struct Inbox {
    /// Lists of writes that have not arrived.
    coming: VecDeque<Vec<WrittenBytes>>,
    /// Content that has arrived but is not visible yet.
    hidden: Vec<WrittenBytes>,
}

/// One member's fabric.
pub struct Weak<'r> {
    own: usize,
    /// Each owner's row, as each reader sees it.
    copies: Vec<Vec<RowWriter<'r>>>,
    inboxes: Rc<RefCell<Vec<Inbox>>>,
}

impl Weak<'_> {
    fn store(&self, what: &WrittenBytes) {
        self.copies[what.owner][self.own].apply(what.offset, &what.bytes).expect("in the row");
    }

    /// Makes everything that has arrived visible.
    fn show(&self) {
        for content in std::mem::take(&mut self.inboxes.borrow_mut()[self.own].hidden) {
            self.store(&content);
        }
    }

    /// Receives the next list of writes; its guards are visible at once.
    fn arrive(&self) {
        let inbox = &mut self.inboxes.borrow_mut()[self.own];
        for write in inbox.coming.pop_front().unwrap_or_default() {
            match write.kind {
                Kind::Guard => self.store(&write),
                Kind::Content => inbox.hidden.push(write),
            }
        }
    }
}

impl Carries for Weak<'_> {
    fn limits(&self) -> Capabilities {
        Capabilities {
            promises: Promises::WRITE_ORDER,
            writes_max: WRITES_MAX,
            write_bytes_max: 4096,
            guard_bytes_max: 32,
            write_overhead_bytes: 24,
        }
    }
    fn carry(&mut self, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        let row = self.copies[self.own][self.own].reader();
        let carried = writes.iter().map(|write| {
            let mut bytes = vec![0; write.length];
            row.read(write.source.offset, &mut bytes).expect("in the row");
            WrittenBytes { owner: self.own, offset: write.target.offset, bytes, kind: write.kind }
        });
        self.inboxes.borrow_mut()[to.index()].coming.push_back(carried.collect());
        Ok(())
    }
    /// Writes that arrived before this step have become visible by now.
    fn next_event(&mut self) -> Option<Event> {
        self.show();
        self.arrive();
        None
    }
    /// More writes arrive during a step.
    fn barrier(&self) {
        self.show();
        self.arrive();
    }
}

fabric!(Weak<'_>);

/// Returns the fabric of each member over these copies.
pub fn network<'r>(copies: &[Vec<RowWriter<'r>>]) -> Vec<Weak<'r>> {
    let inboxes = Rc::new(RefCell::new(copies.iter().map(|_| Inbox::default()).collect()));
    let end = |own| Weak { own, copies: copies.to_vec(), inboxes: Rc::clone(&inboxes) };
    (0..copies.len()).map(end).collect()
}
