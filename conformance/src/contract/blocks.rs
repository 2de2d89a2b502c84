//! Blocks: in order, whole, with their number; and what a block costs that nobody waits for.
//!
//! For fabrics that carry blocks, beside the clauses for all: [`run`](super::run_blocks).

use tramontane_core::fabric::{
    Area, BlockEvent, Blocks, ErrorKind, Event, Fabric, FabricError, Region, Token,
};
use tramontane_core::ids::Rank;

use super::report::{Breach, Clause, Finding, Outcome, ensure};
use super::scene::{A, B, C, drain, ensure_same, open_all, wait};
use super::testbed::{Bench, VIEW};

/// What block memory a member of a bench has at least, in bytes. It starts as zeros.
pub const BLOCK_BYTES_MIN: usize = 65_536;

/// A bench whose fabric carries blocks.
pub trait BlockBench: Bench<Fabric: Blocks> {
    /// The region of every member's block memory.
    fn block_region(&self) -> Region;

    /// Fills a range of a member's own block memory.
    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]);

    /// What lies in a member's own block memory now.
    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8>;
}

/// All clauses about blocks, in the order in which they are run.
#[must_use]
pub fn clauses<T: BlockBench>() -> Vec<Clause<T>> {
    vec![
        Clause {
            id: "block-in-order",
            says: "Blocks of a peer go into the receives for it in order, whole, with number and length.",
            source: "Blocks; RDM-4",
            check: in_order,
        },
        Clause {
            id: "block-between-each-two",
            says: "Blocks of one peer do not take receives that wait for another.",
            source: "Blocks; RDM-4",
            check: between_each_two,
        },
        Clause {
            id: "block-sent-is-free",
            says: "Once a block is sent, its memory may change and what was received does not.",
            source: "BlockEvent::Sent; RDM-5",
            check: sent_is_free,
        },
        Clause {
            id: "block-receives-are-few",
            says: "As many receives are taken as the fabric says, for each peer, and then none is.",
            source: "BlockLimits::receives_max; RDM-4",
            check: receives_are_few,
        },
        Clause {
            id: "block-out-of-range",
            says: "Blocks outside the block memory, or to nobody, are refused for good.",
            source: "Blocks::send; ErrorKind::OutOfRange",
            check: out_of_range,
        },
        Clause {
            id: "block-unawaited",
            says: "A block without a receive loses the peer, and the others go on.",
            source: "Blocks; RDM-4",
            check: unawaited,
        },
        Clause {
            id: "block-too-long",
            says: "A block longer than its receive loses the peer, and no memory.",
            source: "Blocks; RDM-4",
            check: too_long,
        },
        Clause {
            id: "block-silent-after-cut",
            says: "Of a peer that was cut nothing more is reported.",
            source: "Blocks; Fabric::cut",
            check: silent_after_cut,
        },
    ]
}

/// Bytes of the blocks that the clauses send.
const BYTES: usize = 3000;

fn area(bench: &impl BlockBench, offset: usize) -> Area {
    Area { region: bench.block_region(), offset }
}

fn receive<T: BlockBench>(
    bench: &mut T,
    (at, from): (Rank, Rank),
    offset: usize,
    length: usize,
    token: u64,
) -> Result<(), Breach> {
    let into = area(bench, offset);
    let posted = bench.fabric(at).post_receive(VIEW, from, into, length, Token(token));
    posted.map_err(|error| Breach(format!("{at} cannot post a receive for {from}: {}", error.kind())))
}

fn send<T: BlockBench>(
    bench: &mut T,
    (from, to): (Rank, Rank),
    (offset, length): (usize, usize),
    number: u32,
    token: u64,
) -> Result<(), Breach> {
    let source = area(bench, offset);
    let sent = bench.fabric(from).send(VIEW, to, source, length, number, Token(token));
    sent.map_err(|error| Breach(format!("{from} cannot send a block to {to}: {}", error.kind())))
}

/// The next event of a member, which must come.
fn next<T: BlockBench>(bench: &mut T, member: Rank) -> Result<BlockEvent, Breach> {
    let mut event = None;
    wait(bench, |bench| {
        event = bench.fabric(member).poll_block();
        Ok(event.is_some())
    })?;
    event.ok_or_else(|| Breach(format!("{member} is never told what became of a block")))
}

fn expect<T: BlockBench>(bench: &mut T, member: Rank, event: BlockEvent) -> Result<(), Breach> {
    let seen = next(bench, member)?;
    ensure!(seen == event, "{member} is told {seen:?} and not {event:?}");
    Ok(())
}

fn in_order<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    for round in 0..3_u8 {
        for index in 0..4_u8 {
            let offset = usize::from(index) * BYTES;
            bench.fill_blocks(A, offset, &[1 + 10 * round + index; BYTES]);
            receive(bench, (B, A), offset, BYTES, u64::from(index))?;
        }
        // The last is short, the one before it empty.
        let lengths = [BYTES, 1, 0, 17];
        for (index, length) in lengths.into_iter().enumerate() {
            let number = u32::MAX - u32::from(round) - index as u32;
            send(bench, (A, B), (index * BYTES, length), number, 7)?;
        }
        for (index, length) in lengths.into_iter().enumerate() {
            let immediate = u32::MAX - u32::from(round) - index as u32;
            let token = Token(index as u64);
            expect(bench, B, BlockEvent::Received { peer: A, token, immediate, length })?;
            let value = 1 + 10 * round + index as u8;
            let seen = bench.look_blocks(B, index * BYTES, length);
            ensure_same(&seen, &vec![value; length], "a block that came")?;
            expect(bench, A, BlockEvent::Sent { peer: B, token: Token(7) })?;
        }
    }
    for member in [A, B] {
        let told = drain(bench, member)?;
        let completed = told.iter().any(|event| matches!(event, Event::Completed(_)));
        ensure!(!completed, "{member} is told of a block as of a list: {told:?}");
        ensure!(bench.fabric(member).poll_block().is_none(), "{member} is told of a block twice");
    }
    Ok(Finding::Holds)
}

fn between_each_two<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[0xaa; BYTES]);
    bench.fill_blocks(B, 0, &[0xbb; BYTES]);
    receive(bench, (C, B), 0, BYTES, 1)?;
    receive(bench, (C, A), BYTES, BYTES, 2)?;
    send(bench, (A, C), (0, BYTES), 5, 0)?;
    expect(bench, C, BlockEvent::Received { peer: A, token: Token(2), immediate: 5, length: BYTES })?;
    send(bench, (B, C), (0, BYTES), 6, 0)?;
    expect(bench, C, BlockEvent::Received { peer: B, token: Token(1), immediate: 6, length: BYTES })?;
    ensure_same(&bench.look_blocks(C, 0, BYTES), &[0xbb; BYTES], "the block of B")?;
    ensure_same(&bench.look_blocks(C, BYTES, BYTES), &[0xaa; BYTES], "the block of A")?;
    Ok(Finding::Holds)
}

fn sent_is_free<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    for round in 0..20_u8 {
        bench.fill_blocks(A, 0, &[round + 1; BYTES]);
        receive(bench, (B, A), 0, BYTES, 0)?;
        send(bench, (A, B), (0, BYTES), 0, 0)?;
        expect(bench, A, BlockEvent::Sent { peer: B, token: Token(0) })?;
        bench.fill_blocks(A, 0, &[0xff; BYTES]);
        let immediate = 0;
        expect(bench, B, BlockEvent::Received { peer: A, token: Token(0), immediate, length: BYTES })?;
        ensure_same(&bench.look_blocks(B, 0, BYTES), &[round + 1; BYTES], "a block that was sent")?;
    }
    Ok(Finding::Holds)
}

fn receives_are_few<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    let most = bench.fabric(A).block_limits().receives_max;
    ensure!(most > 0, "the fabric takes no receives at all");
    for peer in [B, C] {
        for _ in 0..most {
            receive(bench, (A, peer), 0, 8, 0)?;
        }
        let into = area(bench, 0);
        let result = bench.fabric(A).post_receive(VIEW, peer, into, 8, Token(0));
        let kind = result.map_err(|error| error.kind());
        ensure!(kind == Err(ErrorKind::QueueFull), "receive {} for one peer gives {kind:?}", most + 1);
    }
    Ok(Finding::Holds)
}

fn out_of_range<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    let huge = area(bench, usize::MAX - 4);
    let row = Area { region: Region::ROW, offset: 0 };
    let fine = area(bench, 0);
    let cases = [("beyond the memory", B, huge), ("in the row", B, row), ("to oneself", A, fine)];
    for (what, peer, place) in cases {
        let sent = bench.fabric(A).send(VIEW, peer, place, 8, 0, Token(0)).map_err(|error| error.kind());
        ensure!(sent == Err(ErrorKind::OutOfRange), "a block {what} gives {sent:?}");
        let posted = bench.fabric(A).post_receive(VIEW, peer, place, 8, Token(0));
        let posted = posted.map_err(|error| error.kind());
        ensure!(posted == Err(ErrorKind::OutOfRange), "a receive {what} gives {posted:?}");
    }
    Ok(Finding::Holds)
}

/// Waits until a member is told that it lost B, and nobody else.
fn ensure_loses_b<T: BlockBench>(bench: &mut T, member: Rank) -> Result<(), Breach> {
    let mut lost = false;
    wait(bench, |bench| {
        for event in drain(bench, member)? {
            if let Event::PeerLost { peer, .. } = event {
                ensure!(peer == B, "{member} is told that it lost {peer}");
                lost = true;
            }
        }
        Ok(lost)
    })?;
    ensure!(lost, "{member} is never told that its block was not taken");
    Ok(())
}

/// A and C still exchange a block.
fn ensure_others_go_on<T: BlockBench>(bench: &mut T) -> Result<(), Breach> {
    receive(bench, (C, A), 0, BYTES, 3)?;
    send(bench, (A, C), (0, BYTES), 9, 4)?;
    expect(bench, C, BlockEvent::Received { peer: A, token: Token(3), immediate: 9, length: BYTES })?;
    expect(bench, A, BlockEvent::Sent { peer: C, token: Token(4) })
}

fn unawaited<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    send(bench, (A, B), (0, BYTES), 1, 2)?;
    ensure_loses_b(bench, A)?;
    ensure_same(&bench.look_blocks(B, 0, BYTES), &[0; BYTES], "memory that nobody offered")?;
    ensure_others_go_on(bench)?;
    Ok(Finding::Holds)
}

fn too_long<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    receive(bench, (B, A), 0, 100, 1)?;
    send(bench, (A, B), (0, 200), 1, 2)?;
    ensure_loses_b(bench, A)?;
    ensure_same(&bench.look_blocks(B, 100, BYTES), &[0; BYTES], "memory behind the receive")?;
    ensure_others_go_on(bench)?;
    Ok(Finding::Holds)
}

fn silent_after_cut<T: BlockBench>(bench: &mut T) -> Outcome {
    open_all(bench)?;
    receive(bench, (B, A), 0, BYTES, 1)?;
    send(bench, (A, B), (0, BYTES), 1, 2)?;
    // It may be on its way, or here and not taken yet.
    bench.settle();
    bench.fabric(B).cut(VIEW, A);
    for _ in 0..100 {
        bench.pass();
        let told = bench.fabric(B).poll_block();
        ensure!(told.is_none(), "B cut A, and is told {told:?}");
    }
    let into = area(bench, 0);
    let result = bench.fabric(B).post_receive(VIEW, A, into, 8, Token(0));
    ensure!(result.is_err(), "a receive for a peer that was cut is taken");
    Ok(Finding::Holds)
}
