//! The modules that do not depend on a group's traffic: `ids`, `layout`, `memory`, `fabric`.

use core::hint::black_box;
use core::ptr::NonNull;

use super::{debug, display};
use tramontane_core::check::Checks;
use tramontane_core::fabric::*;
use tramontane_core::ids::*;
use tramontane_core::layout::*;
use tramontane_core::memory::*;

pub fn call() {
    checks();
    ids();
    layouts();
    rows();
    fabric();
}

fn checks() {
    let checks = black_box(Checks::On);
    black_box((checks.seal(black_box(7)), checks.unseal(black_box(7)), checks.is_on()));
    debug(checks);
}

macro_rules! id {
    ($($name:ident)*) => {$(
        let id = black_box($name::ZERO);
        black_box((id.get(), id.next()));
        display(id);
    )*};
}

fn ids() {
    id!(NodeId Rank ViewId SubgroupId SenderRank Round Place Frontier Position Slot Time);
    black_box((black_box(Rank(1)).index(), black_box(SubgroupId(1)).index()));
    black_box(black_box(SenderRank(1)).index());
    let (one, two) = (black_box(Time(1)), black_box(Time(2)));
    black_box((one.after(black_box(2)), one.since(two)));
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
            debug(layout.step_bounds(rank, black_box(7)));
            black_box(layout.allows_large(id));
            #[cfg(feature = "durable")]
            match layout.with_logged(black_box(&[SubgroupId(0)])) {
                Ok(layout) => {
                    black_box(layout.is_logged(id));
                }
                Err(error) => display(error),
            }
            if let Some(subgroup) = layout.subgroup(id) {
                black_box((subgroup.has_member(rank), subgroup.has_sender(rank)));
            }
            #[cfg(feature = "relays")]
            relays(layout, rank, id);
            debug(layout.ring(rank, id));
            black_box((layout.digest_of(black_box(ByteOrder::Big)), layout.line_size().bytes()));
            if let Err(mismatch) = layout.compare_digest(black_box(7)) {
                black_box(mismatch.code());
                display(mismatch);
            }
            match layout.with_line_size(black_box(LineSize::Bytes128)) {
                Ok(layout) => debug((black_box(ByteOrder::OWN), layout.line_size())),
                Err(error) => display(error),
            }
            match layout.with_checks() {
                Ok(layout) => {
                    black_box((layout.checks(), layout.is_fixed()));
                }
                Err(error) => display(error),
            }
        }
        Err(error) => {
            black_box(error.code());
            display(error);
        }
    }
    black_box(black_box(ControlCell::Consumed(SenderRank(3))).offset());
    debug(black_box(ControlCell::Received));
}

#[cfg(feature = "relays")]
fn relays(layout: Layout<'_>, rank: Rank, id: SubgroupId) {
    match layout.with_relays(black_box(&[SubgroupId(0)])) {
        Ok(layout) => {
            black_box(layout.is_relayed(id));
            debug(layout.stripes(id, rank, black_box(Rank(0))));
            layout.relayed_to(rank).for_each(debug);
            ViewPlan::of_layout(black_box(ViewId(1)), rank, &layout).relayed().for_each(debug);
        }
        Err(error) => display(error),
    }
    black_box(black_box(Region::copy_of(rank)).owner());
}

fn rows() {
    static LINES: [Line; 8] = [const { Line::new() }; 8];
    black_box(Line::default());
    let lines = black_box(&LINES[..]);
    debug(lines);
    let writer = black_box(RowWriter::from_lines(lines));
    let shape = black_box(RingShape {
        offset: 64,
        stride: 32,
        slots: 8,
        capacity: 20,
        checks: Checks::Off,
    });
    let (at, slot) = (black_box(64), black_box(Slot(3)));
    let _ = black_box((writer.bytes(), writer.apply(at, black_box(&[7; 40][..]))));
    if let Ok(cell) = black_box(writer.cell(at)) {
        cell.publish(black_box(9));
        black_box(cell.load());
        debug(cell);
    }
    if let Ok(ring) = black_box(writer.ring(&shape)) {
        ring.counter(slot).publish(black_box(1));
        black_box(ring.reader().capacity());
        black_box(ring.reader().counter(slot).load());
        black_box(ring.reader().slots());
        debug(ring.reader().counter(slot));
    }
    if let Ok(place) = RingPlace::new(&shape) {
        let place = black_box(place);
        let _ = black_box((writer.ring_at(&place), writer.reader().ring_at(&place)));
        black_box(place.offset());
    }
    let row = black_box(writer.reader());
    debug((row, writer, black_box(OutOfRow)));
    let _ = black_box((row.bytes(), row.base(), row.cell(at), row.ring(&shape)));
    let _ = black_box(row.read(at, black_box(&mut [0; 40][..])));
    let base: NonNull<u8> = NonNull::from(lines).cast();
    // SAFETY: these lines are static, and both rows are inside them.
    black_box(unsafe { (Row::from_raw(base, 512), RowWriter::from_raw(base, 512)) });
    black_box(Row::from_lines(lines));
}

fn fabric() {
    let promises = black_box(Promises::SHARED);
    black_box((promises.bits(), promises.contains(Promises::WRITE_ORDER), promises.is_empty()));
    black_box((Promises::from_bits(black_box(3)), Promises::from_bits_truncate(black_box(99))));
    let capabilities = black_box(Capabilities {
        promises,
        writes_max: 4,
        write_bytes_max: 64,
        guard_bytes_max: 24,
        write_overhead_bytes: 24,
    });
    black_box(capabilities.can_guard());
    debug(capabilities);
    let write = black_box(Write::of_row(black_box(8), black_box(9), black_box(Kind::Guard)));
    debug((write, black_box(Token(1))));
    debug(black_box(Event::PeerLost { view: ViewId(1), peer: Rank(1), cause: LossCause::Left }));
    black_box(FabricError::kind(&black_box(ErrorKind::Other)));
    display(black_box(ErrorKind::Other));
    display(black_box(LossCause::Left));
    let mut list = WriteList::new();
    let _ = black_box(list.push(write));
    debug(&list);
}
