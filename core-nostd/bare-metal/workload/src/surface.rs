//! Calls every public function of the core, with arguments that the compiler cannot know.
//!
//! Linking looks at code that is called, so the proof covers what is called here and in the run of
//! the group. Results go to `black_box`, or the calls would be removed together with their panics.
//! `run` compares the names called here with the names that the core's sources make public.

use core::fmt::{self, Debug, Display, Write as _};
use core::hint::black_box;
use core::ptr::NonNull;

use tramontane_core::fabric::*;
use tramontane_core::ids::*;
use tramontane_core::layout::*;
use tramontane_core::memory::*;

/// Takes a text and forgets it.
struct Sink;

impl fmt::Write for Sink {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        black_box(text);
        Ok(())
    }
}

fn debug(value: impl Debug) {
    let _ = black_box(write!(Sink, "{:?} {:#?}", black_box(&value), black_box(&value)));
}

fn display(value: impl Display) {
    let _ = black_box(write!(Sink, "{} {:>9}", black_box(&value), black_box(&value)));
}

/// Everything, once. What it computes is of no interest.
pub fn call_everything() {
    ids();
    layouts();
    memory();
    fabric();
}

macro_rules! id {
    ($name:ident) => {
        let id = black_box($name::ZERO);
        black_box((id.get(), id.next()));
        debug(id);
        display(id);
    };
}

fn ids() {
    id!(NodeId);
    id!(Rank);
    id!(ViewId);
    id!(SubgroupId);
    id!(SenderRank);
    id!(Round);
    id!(Place);
    id!(Frontier);
    id!(Position);
    id!(Slot);
    id!(Time);
    black_box(black_box(Rank(1)).index());
    black_box(black_box(SubgroupId(1)).index());
    black_box(black_box(SenderRank(1)).index());
    black_box(black_box(Time(1)).after(black_box(2)));
    black_box(black_box(Time(1)).since(black_box(Time(2))));
}

fn layouts() {
    let ranks = [Rank(0), Rank(1)];
    let members = [NodeId(7), NodeId(9)];
    let subgroups = [Subgroup {
        members: black_box(&ranks),
        senders: black_box(&ranks),
        window: black_box(4),
        message_max: black_box(100),
        delivery: black_box(Delivery::Ordered),
    }];
    let group = Group { members: black_box(&members), subgroups: black_box(&subgroups) };
    let _ = black_box(group.check());
    debug(group);
    let (rank, id) = (black_box(Rank(1)), black_box(SubgroupId(0)));
    match Layout::new(black_box(group)) {
        Ok(layout) => {
            let layout = black_box(layout);
            black_box((layout.group().members.len(), layout.members()));
            black_box((layout.row_bytes(rank), layout.view_bytes(), layout.digest()));
            black_box((layout.control_offset(rank, id), layout.ring(rank, id)));
            black_box((layout.sender_rank(rank, id), layout.state_sizes(rank)));
            if let Some(subgroup) = layout.subgroup(id) {
                black_box((subgroup.has_member(rank), subgroup.has_sender(rank)));
            }
            debug(layout);
            debug(layout.ring(rank, id));
            debug(layout.state_sizes(rank));
        }
        Err(error) => {
            black_box(error.code());
            debug(error);
            display(error);
        }
    }
    black_box(black_box(ControlCell::Consumed(SenderRank(3))).offset());
    debug(black_box(ControlCell::Received));
}

fn memory() {
    static LINES: [Line; 8] = [const { Line::new() }; 8];
    black_box(Line::default());
    let lines = black_box(&LINES[..]);
    debug(lines);
    let writer = black_box(RowWriter::from_lines(lines));
    let shape = black_box(RingShape { offset: 64, stride: 32, slots: 8, capacity: 20 });
    let (at, slot) = (black_box(64), black_box(Slot(3)));
    black_box((writer.bytes(), writer.apply(at, black_box(&[7; 40][..])))).1.unwrap_or(());
    if let Ok(cell) = black_box(writer.cell(at)) {
        cell.publish(black_box(9));
        black_box(cell.load());
        debug(cell);
    }
    if let Ok(ring) = black_box(writer.ring(&shape)) {
        ring.counter(slot).publish(black_box(1));
        black_box((ring.reader().capacity(), ring.reader().length(slot)));
        black_box(ring.reader().counter(slot).load());
        debug(ring);
    }
    let row = black_box(writer.reader());
    debug((row, writer));
    let _ = black_box((row.bytes(), row.base(), row.cell(at), row.ring(&shape)));
    let _ = black_box(row.read(at, black_box(&mut [0; 40][..])));
    debug(black_box(OutOfRow));
    let base: NonNull<u8> = NonNull::from(lines).cast();
    // SAFETY: these lines are static, and both rows lie in them.
    let raw = unsafe { (Row::from_raw(base, black_box(512)), RowWriter::from_raw(base, black_box(512))) };
    black_box(raw);
    black_box(Row::from_lines(lines));
}

fn fabric() {
    let capabilities = black_box(Capabilities {
        promises: Promises::SHARED,
        writes_max: 4,
        write_bytes_max: 64,
        guard_bytes_max: 24,
    });
    black_box(capabilities.can_guard());
    debug(capabilities);
    let write = black_box(Write::of_row(black_box(8), black_box(9), black_box(Kind::Guard)));
    debug(write);
    debug(black_box(Event::PeerLost { peer: Rank(1), cause: LossCause::Left }));
    debug((black_box(ErrorKind::QueueFull), black_box(LossCause::Left)));
    black_box(FabricError::kind(&black_box(ErrorKind::Other)));
    display(black_box(ErrorKind::Other));
    display(black_box(LossCause::Left));
    let mut list = WriteList::new();
    let _ = black_box(list.push(write));
    black_box(&list);
}
