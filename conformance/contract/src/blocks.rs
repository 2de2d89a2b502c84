//! Blocks: delivered in order, complete and with their number; and the cost of a block without a
//! receive.
//!
//! These clauses are for fabrics that carry blocks, in addition to the clauses for all:
//! [`run`](crate::run_blocks).

use tramontane_core::fabric::{
    Area, BlockEvent, Blocks, Channel, ErrorKind, Event, Fabric, FabricError, Region, Token, Way,
};
use tramontane_core::ids::Rank;

use crate::report::{Breach, ClauseResult, Finding, clauses, ensure};
use crate::scene::{A, B, C, drain, ensure_same, open_all, wait};
use crate::testbed::{Bench, VIEW};

/// Smallest block memory of a bench member, in bytes. It starts as zeros.
pub const BLOCK_BYTES_MIN: usize = 65_536;

/// A bench whose fabric carries blocks.
pub trait BlockBench: Bench<Fabric: Blocks> {
    /// The region of every member's block memory.
    fn block_region(&self) -> Region;

    /// Fills a range of a member's own block memory.
    fn fill_blocks(&mut self, member: Rank, offset: usize, bytes: &[u8]);

    /// Returns the current contents of a range of a member's own block memory.
    fn look_blocks(&mut self, member: Rank, offset: usize, length: usize) -> Vec<u8>;
}

clauses! { pub BlockBench
    /// Blocks from a peer fill the receives posted for it in order, complete, with number and
    /// length.
    "block-in-order", "Blocks; RDM-4" => in_order;
    /// Blocks from one peer do not fill receives that wait for another.
    "block-between-each-two", "Blocks; RDM-4" => between_each_two;
    /// After a block has been sent, changing its memory does not change the received block.
    "block-sent-is-free", "BlockEvent::Sent; RDM-5" => sent_is_free;
    /// For each peer, the fabric accepts as many receives as its limit says, and no more.
    "block-receives-are-few", "BlockLimits::receives_max; RDM-4" => receives_are_few;
    /// If receives wait, the fabric accepts as many sends at once as its limit says. All of them
    /// complete and are reported, and then the same number is accepted again.
    "block-sends-are-taken", "BlockLimits::sends_max" => sends_are_taken;
    /// A send from outside the block memory, or to a rank that does not exist, is refused for good.
    "block-out-of-range", "Blocks::send; ErrorKind::OutOfRange" => out_of_range;
    /// A block without a receive causes the loss of the peer, and the other members continue.
    "block-unawaited", "Blocks; RDM-4" => unawaited;
    /// A block longer than its receive causes the loss of the peer, and overwrites no memory.
    "block-too-long", "Blocks; RDM-4" => too_long;
    /// After a peer has been cut off, nothing more is reported about it.
    "block-silent-after-cut", "Blocks; Fabric::cut" => silent_after_cut;
    /// Blocks on one channel neither fill nor wait for the receives of another.
    "block-channels-apart", "Blocks; Channel" => channels_apart;
    /// A channel that the fabric does not have is refused for good.
    "block-channels-counted", "BlockLimits::channels; ErrorKind::OutOfRange" => channels_counted;
    /// A closed channel reports nothing, and a late block on it harms no member.
    "block-closed-by-receiver", "Blocks::close" => closed_by_receiver;
    /// A block whose sender closed the channel arrives unchanged or not at all.
    "block-closed-by-sender", "Blocks::close" => closed_by_sender;
}

/// Length of the blocks that the clauses send, in bytes.
const BYTES: usize = 3000;

fn area(bench: &impl BlockBench, offset: usize) -> Area {
    Area { region: bench.block_region(), offset }
}

/// The reason why the clauses about channels do not apply.
const ONE_CHANNEL: Finding = Finding::NotApplicable("the fabric has one channel");

/// A second channel, if the fabric has one.
const OTHER: Channel = Channel(1);

/// Returns the way to a peer on the first channel.
const fn way(peer: Rank) -> Way {
    on(Channel(0), peer)
}

const fn on(channel: Channel, peer: Rank) -> Way {
    Way { view: VIEW, channel, peer }
}

/// Posts a receive at a member, and returns the kind of error.
fn try_receive<T: BlockBench>(
    bench: &mut T,
    at: Rank,
    from: Way,
    (into, length): (Area, usize),
    token: u64,
) -> Result<(), ErrorKind> {
    let posted = bench.fabric(at).post_receive(from, into, length, Token(token));
    posted.map_err(|error| error.kind())
}

/// Sends a block from a member, and returns the kind of error.
fn try_send<T: BlockBench>(
    bench: &mut T,
    from: Rank,
    to: Way,
    (source, length): (Area, usize),
    (number, token): (u32, u64),
) -> Result<(), ErrorKind> {
    let sent = bench.fabric(from).send(to, source, length, number, Token(token));
    sent.map_err(|error| error.kind())
}

fn receive<T: BlockBench>(
    bench: &mut T,
    at: Rank,
    from: Way,
    (offset, length): (usize, usize),
    token: u64,
) -> Result<(), Breach> {
    let into = area(bench, offset);
    let posted = try_receive(bench, at, from, (into, length), token);
    posted.map_err(|kind| Breach(format!("{at} cannot post a receive for {from:?}: {kind}")))
}

fn send<T: BlockBench>(
    bench: &mut T,
    from: Rank,
    to: Way,
    (offset, length): (usize, usize),
    named: (u32, u64),
) -> Result<(), Breach> {
    let source = area(bench, offset);
    let sent = try_send(bench, from, to, (source, length), named);
    sent.map_err(|kind| Breach(format!("{from} cannot send a block to {to:?}: {kind}")))
}

/// Waits for the next event of a member, which must arrive.
fn next<T: BlockBench>(bench: &mut T, member: Rank) -> Result<BlockEvent, Breach> {
    let mut event = None;
    wait(bench, |bench| {
        event = bench.fabric(member).poll_block();
        Ok(event.is_some())
    })?;
    event.ok_or_else(|| Breach(format!("{member} received no event about a block")))
}

fn expect<T: BlockBench>(bench: &mut T, member: Rank, event: BlockEvent) -> Result<(), Breach> {
    let seen = next(bench, member)?;
    ensure!(seen == event, "{member} gets {seen:?} instead of {event:?}");
    Ok(())
}

/// Checks that a member receives a block of this length and number, in the receive with this token.
fn expect_received<T: BlockBench>(
    bench: &mut T,
    member: Rank,
    way: Way,
    (token, immediate, length): (u64, u32, usize),
) -> Result<(), Breach> {
    let token = Token(token);
    expect(bench, member, BlockEvent::Received { way, token, immediate, length })
}

fn expect_sent<T: BlockBench>(
    bench: &mut T,
    member: Rank,
    way: Way,
    token: u64,
) -> Result<(), Breach> {
    expect(bench, member, BlockEvent::Sent { way, token: Token(token) })
}

fn in_order<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for round in 0..3_u8 {
        for index in 0..4_u8 {
            let offset = usize::from(index) * BYTES;
            bench.fill_blocks(A, offset, &[1 + 10 * round + index; BYTES]);
            receive(bench, B, way(A), (offset, BYTES), u64::from(index))?;
        }
        // The last block is short, and the one before it empty.
        let lengths = [BYTES, 1, 0, 17];
        for (index, length) in lengths.into_iter().enumerate() {
            let number = u32::MAX - u32::from(round) - index as u32;
            send(bench, A, way(B), (index * BYTES, length), (number, 7))?;
        }
        for (index, length) in lengths.into_iter().enumerate() {
            let immediate = u32::MAX - u32::from(round) - index as u32;
            expect_received(bench, B, way(A), (index as u64, immediate, length))?;
            let value = 1 + 10 * round + index as u8;
            let seen = bench.look_blocks(B, index * BYTES, length);
            ensure_same(&seen, &vec![value; length], "a received block")?;
            expect_sent(bench, A, way(B), 7)?;
        }
    }
    for member in [A, B] {
        let told = drain(bench, member)?;
        let completed = told.iter().any(|event| matches!(event, Event::Completed(_)));
        ensure!(!completed, "{member} gets a list's event for a block: {told:?}");
        ensure!(
            bench.fabric(member).poll_block().is_none(),
            "{member} gets two events for one block"
        );
    }
    Ok(Finding::Holds)
}

fn between_each_two<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[0xaa; BYTES]);
    bench.fill_blocks(B, 0, &[0xbb; BYTES]);
    receive(bench, C, way(B), (0, BYTES), 1)?;
    receive(bench, C, way(A), (BYTES, BYTES), 2)?;
    send(bench, A, way(C), (0, BYTES), (5, 0))?;
    expect_received(bench, C, way(A), (2, 5, BYTES))?;
    send(bench, B, way(C), (0, BYTES), (6, 0))?;
    expect_received(bench, C, way(B), (1, 6, BYTES))?;
    ensure_same(&bench.look_blocks(C, 0, BYTES), &[0xbb; BYTES], "the block of B")?;
    ensure_same(&bench.look_blocks(C, BYTES, BYTES), &[0xaa; BYTES], "the block of A")?;
    Ok(Finding::Holds)
}

fn sent_is_free<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    for round in 0..20_u8 {
        bench.fill_blocks(A, 0, &[round + 1; BYTES]);
        receive(bench, B, way(A), (0, BYTES), 0)?;
        send(bench, A, way(B), (0, BYTES), (0, 0))?;
        expect_sent(bench, A, way(B), 0)?;
        bench.fill_blocks(A, 0, &[0xff; BYTES]);
        expect_received(bench, B, way(A), (0, 0, BYTES))?;
        ensure_same(&bench.look_blocks(B, 0, BYTES), &[round + 1; BYTES], "a sent block")?;
    }
    Ok(Finding::Holds)
}

fn receives_are_few<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let most = bench.fabric(A).block_limits().receives_max;
    ensure!(most > 0, "the fabric accepts no receives at all");
    for peer in [B, C] {
        for _ in 0..most {
            receive(bench, A, way(peer), (0, 8), 0)?;
        }
        let into = area(bench, 0);
        let kind = try_receive(bench, A, way(peer), (into, 8), 0);
        ensure!(
            kind == Err(ErrorKind::QueueFull),
            "receive {} for one peer returns {kind:?}",
            most + 1
        );
    }
    Ok(Finding::Holds)
}

fn sends_are_taken<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let limits = bench.fabric(A).block_limits();
    ensure!(limits.sends_max > 0, "the fabric accepts no sends at all");
    let most = limits.sends_max.min(limits.receives_max);
    for turn in 0..2 {
        for _ in 0..most {
            receive(bench, B, way(A), (0, 8), 0)?;
        }
        bench.settle();
        let source = area(bench, 0);
        for sent in 0..most {
            let kind = try_send(bench, A, way(B), (source, 8), (0, 0));
            ensure!(kind.is_ok(), "send {} of {most} in turn {turn} returns {kind:?}", sent + 1);
        }
        let (mut gone, mut come) = (0, 0);
        let done = wait(bench, |bench| {
            while bench.fabric(A).poll_block().is_some() {
                gone += 1;
            }
            while bench.fabric(B).poll_block().is_some() {
                come += 1;
            }
            Ok(gone >= most && come >= most)
        })?;
        ensure!(done, "of {most} blocks, {gone} are reported as sent and {come} as received");
        ensure!((gone, come) == (most, most), "{gone} sent and {come} received, of {most}");
    }
    Ok(Finding::Holds)
}

fn out_of_range<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let huge = area(bench, usize::MAX - 4);
    let row = Area { region: Region::ROW, offset: 0 };
    let fine = area(bench, 0);
    let cases = [("beyond the memory", B, huge), ("in the row", B, row), ("to oneself", A, fine)];
    for (what, peer, place) in cases {
        let sent = try_send(bench, A, way(peer), (place, 8), (0, 0));
        ensure!(sent == Err(ErrorKind::OutOfRange), "a block {what} returns {sent:?}");
        let posted = try_receive(bench, A, way(peer), (place, 8), 0);
        ensure!(posted == Err(ErrorKind::OutOfRange), "a receive {what} returns {posted:?}");
    }
    Ok(Finding::Holds)
}

/// Waits until a member gets the event that it has lost B; it may not lose any other peer.
fn ensure_loses_b<T: BlockBench>(bench: &mut T, member: Rank) -> Result<(), Breach> {
    let mut lost = false;
    wait(bench, |bench| {
        for event in drain(bench, member)? {
            if let Event::PeerLost { peer, .. } = event {
                ensure!(peer == B, "{member} reports the loss of {peer}");
                lost = true;
            }
        }
        Ok(lost)
    })?;
    ensure!(lost, "{member} gets no event for its block without a receive");
    Ok(())
}

/// Checks that A and C still exchange a block.
fn ensure_others_go_on<T: BlockBench>(bench: &mut T) -> Result<(), Breach> {
    receive(bench, C, way(A), (0, BYTES), 3)?;
    send(bench, A, way(C), (0, BYTES), (9, 4))?;
    expect_received(bench, C, way(A), (3, 9, BYTES))?;
    expect_sent(bench, A, way(C), 4)
}

fn unawaited<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    send(bench, A, way(B), (0, BYTES), (1, 2))?;
    ensure_loses_b(bench, A)?;
    ensure_same(&bench.look_blocks(B, 0, BYTES), &[0; BYTES], "memory without a receive")?;
    ensure_others_go_on(bench)?;
    Ok(Finding::Holds)
}

fn too_long<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    receive(bench, B, way(A), (0, 100), 1)?;
    send(bench, A, way(B), (0, 200), (1, 2))?;
    ensure_loses_b(bench, A)?;
    ensure_same(&bench.look_blocks(B, 100, BYTES), &[0; BYTES], "memory after the receive")?;
    ensure_others_go_on(bench)?;
    Ok(Finding::Holds)
}

fn silent_after_cut<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    receive(bench, B, way(A), (0, BYTES), 1)?;
    send(bench, A, way(B), (0, BYTES), (1, 2))?;
    // The block may be in flight, or may have arrived without being polled.
    bench.settle();
    bench.fabric(B).cut(VIEW, A);
    for _ in 0..100 {
        bench.pass();
        let told = bench.fabric(B).poll_block();
        ensure!(told.is_none(), "B cut A, but gets {told:?}");
    }
    let into = area(bench, 0);
    let result = try_receive(bench, B, way(A), (into, 8), 0);
    ensure!(result.is_err(), "a receive for a cut peer is accepted");
    Ok(Finding::Holds)
}

/// Returns whether the fabric has a second channel.
fn has_channels<T: BlockBench>(bench: &mut T) -> bool {
    bench.fabric(A).block_limits().channels > 1
}

fn channels_apart<T: BlockBench>(bench: &mut T) -> ClauseResult {
    if !has_channels(bench) {
        return Ok(ONE_CHANNEL);
    }
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[1; BYTES]);
    bench.fill_blocks(A, BYTES, &[2; BYTES]);
    receive(bench, B, way(A), (0, BYTES), 10)?;
    receive(bench, B, on(OTHER, A), (BYTES, BYTES), 20)?;
    // The receive posted later is filled first.
    for (channel, offset, number, token) in [(OTHER, BYTES, 2, 20), (Channel(0), 0, 1, 10)] {
        send(bench, A, on(channel, B), (offset, BYTES), (number, number.into()))?;
        expect_received(bench, B, on(channel, A), (token, number, BYTES))?;
        ensure_same(
            &bench.look_blocks(B, offset, BYTES),
            &[number as u8; BYTES],
            "a block on its channel",
        )?;
        expect_sent(bench, A, on(channel, B), u64::from(number))?;
    }
    Ok(Finding::Holds)
}

fn channels_counted<T: BlockBench>(bench: &mut T) -> ClauseResult {
    open_all(bench)?;
    let beyond = on(Channel(bench.fabric(A).block_limits().channels), B);
    let place = area(bench, 0);
    let posted = try_receive(bench, A, beyond, (place, 8), 0);
    ensure!(
        posted == Err(ErrorKind::OutOfRange),
        "a receive on an unknown channel returns {posted:?}"
    );
    let sent = try_send(bench, A, beyond, (place, 8), (0, 0));
    ensure!(sent == Err(ErrorKind::OutOfRange), "a block on an unknown channel returns {sent:?}");
    bench.fabric(A).close(VIEW, beyond.channel);
    ensure_others_go_on(bench)?;
    Ok(Finding::Holds)
}

fn closed_by_receiver<T: BlockBench>(bench: &mut T) -> ClauseResult {
    if !has_channels(bench) {
        return Ok(ONE_CHANNEL);
    }
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    receive(bench, B, on(OTHER, A), (0, BYTES), 1)?;
    receive(bench, B, way(A), (BYTES, BYTES), 2)?;
    send(bench, A, on(OTHER, B), (0, BYTES), (3, 3))?;
    bench.settle();
    bench.fabric(B).close(VIEW, OTHER);
    bench.fabric(B).close(VIEW, OTHER);
    // One block finds no receive, and one is on the other channel.
    send(bench, A, on(OTHER, B), (0, BYTES), (4, 4))?;
    send(bench, A, way(B), (0, BYTES), (5, 5))?;
    expect_received(bench, B, way(A), (2, 5, BYTES))?;
    bench.settle();
    for member in [A, B, C] {
        let told = drain(bench, member)?;
        let lost = told.iter().find(|event| matches!(event, Event::PeerLost { .. }));
        ensure!(lost.is_none(), "{member} gets {lost:?} for a closed channel");
    }
    let told = bench.fabric(B).poll_block();
    ensure!(told.is_none(), "B closed the channel, but gets {told:?}");
    let place = area(bench, 0);
    let result = try_receive(bench, B, on(OTHER, A), (place, 8), 0);
    ensure!(
        result == Err(ErrorKind::OutOfRange),
        "a receive on a closed channel returns {result:?}"
    );
    Ok(Finding::Holds)
}

fn closed_by_sender<T: BlockBench>(bench: &mut T) -> ClauseResult {
    if !has_channels(bench) {
        return Ok(ONE_CHANNEL);
    }
    open_all(bench)?;
    bench.fill_blocks(A, 0, &[5; BYTES]);
    receive(bench, B, on(OTHER, A), (0, BYTES), 1)?;
    receive(bench, B, way(A), (BYTES, BYTES), 2)?;
    send(bench, A, on(OTHER, B), (0, BYTES), (3, 3))?;
    bench.fabric(A).close(VIEW, OTHER);
    bench.fill_blocks(A, 0, &[6; BYTES]);
    send(bench, A, way(B), (0, BYTES), (4, 4))?;
    let mut seen = next(bench, B)?;
    if let BlockEvent::Received { token: Token(1), .. } = seen {
        ensure_same(&bench.look_blocks(B, 0, BYTES), &[5; BYTES], "a block of a closed channel")?;
        seen = next(bench, B)?;
    }
    let expected =
        BlockEvent::Received { way: way(A), token: Token(2), immediate: 4, length: BYTES };
    ensure!(seen == expected, "B gets {seen:?} instead of {expected:?}");
    expect_sent(bench, A, way(B), 4)?;
    Ok(Finding::Holds)
}
