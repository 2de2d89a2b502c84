//! The modules that carry messages: `smc`, `multicast`, `node`, `turn`.

use core::hint::black_box;

use super::{debug, display};
use crate::fabric::Local;
use tramontane_core::check::Checks;
use tramontane_core::fabric::LossCause;
use tramontane_core::ids::*;
use tramontane_core::layout::RingShape;
use tramontane_core::memory::{Line, NodeMemory, RowWriter};
use tramontane_core::multicast::*;
use tramontane_core::node::*;
use tramontane_core::smc::*;
use tramontane_core::turn::Turn;

pub fn call() {
    counters();
    outbox();
    multicast();
    errors();
    turn();
}

fn counters() {
    let counter = SlotCounter::decode(black_box(7));
    black_box(counter.encode());
    let cursor = black_box(RingCursor::START).next(black_box(4));
    black_box(cursor.since(black_box(RingCursor::default())));
    black_box(cursor.advanced(black_box(2), black_box(4)));
    debug((counter, cursor));
}

fn outbox() {
    static LINES: [Line; 4] = [const { Line::new() }; 4];
    let row = black_box(RowWriter::from_lines(&LINES));
    let shape =
        black_box(RingShape { offset: 0, stride: 64, slots: 4, capacity: 50, checks: Checks::Off });
    let cells = [const { HandOffCells::new() }; 1];
    let flags = [const { ReadyFlag::new() }; 4];
    debug((&cells, HandOffCells::default(), ReadyFlag::default()));
    // SAFETY: this is the only outbox over these lines, and nothing else uses them.
    let memory = unsafe { NodeMemory::new(&[], row, black_box(&cells), black_box(&flags)) };
    debug(&memory);
    let Ok(outbox) = Outbox::new(memory, &shape) else { return };
    outbox.declare_silence(black_box(3));
    black_box(outbox.reserved());
    debug(outbox);
    for length in black_box([9_usize, 50]) {
        match black_box(outbox.reserve(length)) {
            Ok(mut slot) => {
                black_box(slot.payload()).fill(black_box(1));
                slot.truncate(black_box(7));
                black_box(slot.position());
                debug(&slot);
                if black_box(false) {
                    slot.commit_large();
                } else if black_box(true) {
                    slot.commit();
                }
            }
            Err(error) => display(error),
        }
    }
    if let Ok(mut run) = black_box(outbox.reserve_run(black_box(2))) {
        black_box(run.left());
        debug(&run);
        match black_box(run.next(black_box(9))) {
            Ok(slot) => drop(slot),
            Err(error) => display(error),
        }
    }
    display(black_box(ReserveError::TooLarge { length: 99, limit: 9 }));
}

fn multicast() {
    let switches = black_box(Switches::default());
    black_box((
        switches.bits(),
        switches.contains(Switches::NULLS),
        switches.difference(Switches::NULLS),
    ));
    debug(switches);
    if let Some(order) = Order::new(black_box(3)) {
        let (round, sender) = order.turn(black_box(Place(7)));
        black_box((order.place(round, sender), order.senders(), order.round_limit()));
        black_box(order.frontier(black_box([Round(1), Round(2), Round(9)]).into_iter()));
        debug(black_box(order.with_checks(black_box(Checks::On))));
    }
    debug(black_box(Misbehaved(Rank(1))));
    display(black_box(Impossible::Received));
    black_box(black_box(Impossible::Received).code());
    black_box((SubgroupState::VACANT, SenderState::VACANT, Link::VACANT, MemberState::VACANT));
}

fn errors() {
    display(black_box(OpenError::WrongRows));
    display(black_box(StepError::OutOfRow));
    debug(black_box(Options::default()));
    let lost = Some((Rank(1), LossCause::Misbehaved));
    let progress = black_box(Progress { lost, ..Progress::default() });
    black_box(progress.is_idle());
}

fn turn() {
    let turn = Turn::new(black_box(5_u64));
    if let Some(mut held) = turn.take() {
        *held = held.wrapping_add(black_box(1));
    }
    debug(&turn);
    black_box(turn.into_inner());
}

/// Calls the remaining functions of a node after its group has run.
pub fn node(node: &mut Node<'_>, fabric: &mut Local) {
    let mut each = EachMessage(|message: Message<'_>| debug(message));
    let _ = black_box(node.step(black_box(Time(1)), fabric, &mut each));
    let mut all = |batch: &mut Batch<'_>| {
        black_box((batch.subgroup(), batch.size_hint()));
        black_box(batch.next());
        batch.for_each(|message| debug(message));
    };
    let _ = black_box(node.step(black_box(Time(2)), fabric, &mut all));
    debug(black_box(node.frontiers(black_box(SubgroupId(0)))));
    debug(black_box(node.frontiers_of(black_box(SubgroupId(0)), black_box(Rank(1)))));
    debug(node.outbox(black_box(SubgroupId(0))));
    black_box(node.own_delivered(black_box(SubgroupId(0))));
    black_box(node.own_delivered_everywhere(black_box(SubgroupId(0))));
    #[cfg(feature = "durable")]
    {
        let (subgroup, count) = black_box((SubgroupId(0), DurableCount(1)));
        node.set_durable(subgroup, count);
        debug(black_box(node.durable(subgroup)));
    }
    let _ = black_box(node.go_on_alone());
    black_box((node.is_settled(), node.is_lost(), node.is_alone(), node.rank(), node.view()));
}
