//! Queries about a member's view, requests to a member, and the messages that it carries over into
//! the next view.

use super::members::{Laid, NodeMember, open, open_laid};
use super::{NodesRun, SUBGROUP};
use tramontane_core::fabric::{Capabilities, Promises};
use tramontane_core::ids::{NodeId, Position, Rank, ViewId};
use tramontane_core::layout::{Delivery, Group, Layout, Subgroup, ViewBlock, ViewColumn};
use tramontane_core::memory::{Line, NodeMemory, Row, RowWriter};
use tramontane_core::multicast::{Link, MemberState, SenderState, SubgroupState};
use tramontane_core::node::{
    Loan, OpenError, Options, State, UndeliveredMessage, ViewError, ViewLink, ViewLoan, ViewNode,
};
use tramontane_core::smc::{HandOffCells, Outbox, ReadyFlag, ReserveError};
use tramontane_core::view::{Halt, PeerState, RequestError, Status, Table, ViewOptions};

/// VIE-4, VIE-6: all members that stay agree on the leader, and on the end of the view.
#[test]
fn remaining_members_agree_on_leader_and_trim() {
    let mut run = NodesRun::new(3, true, 5);
    run.run(5, true);
    for member in &run.members {
        assert_eq!((member.node.leader(), member.node.trim(SUBGROUP)), (Rank(0), None));
    }
    run.stopped.insert(1);
    run.members[1].node.peer_lost(Rank(0));
    run.run_to_the_end_of_the_view(false);
    for member in &run.members[1..] {
        let frontiers = member.node.node().frontiers(SUBGROUP).expect("its subgroup");
        assert_eq!(member.node.leader(), Rank(1), "the first is gone");
        assert_eq!(member.node.trim(SUBGROUP), Some(frontiers.delivered));
        let installed = member.node.table().load(Rank(2), ViewColumn::Installed);
        assert_eq!(installed, 3, "the next view, plus one");
    }
    let trims = [1, 2].map(|rank: usize| run.members[rank].node.trim(SUBGROUP));
    assert_eq!(trims[0], trims[1]);
}

/// VIE-3: a denied member is suspected, and accuses no other.
#[test]
fn denied_member_halts() {
    let mut run = NodesRun::new(3, false, 5);
    run.run(5, false);
    run.members[0].node.denied_by(Rank(2));
    let status = (0..100).map(|_| run.step(0)).find(|status| status.is_final());
    assert_eq!(status, Some(Status::Halted(Halt::SuspectedBy(Rank(2)))));
    assert!((0..3).all(|rank| !run.members[0].node.suspects(Rank(rank))));
}

/// VIE-10: a withdrawn request admits no node.
#[test]
fn join_withdrawn_in_time_has_no_effect() {
    let mut run = NodesRun::new(3, true, 5);
    run.run(5, false);
    let member = &mut run.members[0].node;
    assert_eq!(member.withdraw_join(), Err(RequestError::NoJoinRequest));
    assert_eq!(member.request_join(NodeId(2)), Err(RequestError::IsMember));
    member.request_join(NodeId(9)).expect("a stranger");
    member.withdraw_join().expect("there is one");
    run.run(20, false);
    run.members[0].node.request_join(NodeId(8)).expect("a stranger");
    run.run_to_the_end_of_the_view(false);
    run.go_on();
    assert_eq!(run.ids, [1, 2, 3, 8].map(NodeId));
}

#[test]
fn number_of_pending_join_requests_is_bounded() {
    let mut run = NodesRun::new(3, true, 5);
    let member = &mut run.members[0].node;
    let asked = (0..100_000).map(|_| member.request_join(NodeId(9)));
    let refused = asked.enumerate().find(|(_, asked)| asked.is_err()).expect("there is an end");
    assert_eq!(refused, (0x7fff, Err(RequestError::TooMany)));
}

fn reserve(outbox: &Outbox<'static>, says: u8) -> tramontane_core::smc::Reservation<'static> {
    let mut reservation = outbox.reserve(1).expect("a slot is free");
    reservation.payload()[0] = says;
    reservation
}

fn outbox(member: &NodeMember) -> Outbox<'static> {
    member.node.node().outbox(SUBGROUP).expect("it sends")
}

/// VIE-7: each kind of reservation is carried over as it ended, in order, once all have ended.
#[test]
fn undelivered_messages_are_carried_over_unchanged() {
    let mut run = NodesRun::new(3, true, 5);
    run.stopped.insert(3);
    run.run(5, false);
    run.run_to_the_end_of_the_view(false);
    let old = outbox(&run.members[0]);
    reserve(&old, 1).commit();
    drop(reserve(&old, 2));
    reserve(&old, 3).commit_large();
    let building = reserve(&old, 4);
    let mut remains = run.members[0].node.node().undelivered(SUBGROUP).expect("it sends");
    assert!(!remains.was_sent(), "none was");
    assert_eq!(old.reserve(1).map(drop), Err(ReserveError::Full), "closed");
    let next = open(2, &[NodeId(1), NodeId(2)], true, 5);
    let new = outbox(&next[0]);
    assert_eq!(remains.carry(&old, &new), Ok(false), "one is being built");
    building.commit();
    assert_eq!(remains.carry(&old, &new), Ok(true));
    let after = remains.position();
    remains.pass();
    assert_eq!((remains.position(), remains.get(&old)), (after, None), "there is no more");
    // The contents of the next view's ring, if that view ends at once.
    let mut carried = next[0].node.node().undelivered(SUBGROUP).expect("it sends");
    let expected = [
        UndeliveredMessage::Message(&[1]),
        UndeliveredMessage::Dropped,
        UndeliveredMessage::Large(&[3]),
        UndeliveredMessage::Message(&[4]),
    ];
    for (position, message) in (0..).zip(expected) {
        assert_eq!(carried.position(), Position(position));
        assert_eq!(carried.get(&new), Some(message));
        carried.pass();
    }
    assert_eq!(carried.get(&new), None);
}

#[test]
fn messages_that_do_not_fit_are_kept() {
    let mut run = NodesRun::new(3, true, 5);
    run.stopped.insert(3);
    run.run(5, false);
    run.run_to_the_end_of_the_view(false);
    let old = outbox(&run.members[0]);
    reserve(&old, 1).commit();
    let mut remains = run.members[0].node.node().undelivered(SUBGROUP).expect("it sends");
    let next = open(2, &[NodeId(1), NodeId(2)], true, 5);
    let new = outbox(&next[0]);
    let full: Vec<_> = std::iter::from_fn(|| new.reserve(1).ok()).collect();
    assert_eq!(full.len(), 4);
    assert_eq!(remains.carry(&old, &new), Err(ReserveError::Full));
    assert_eq!(remains.get(&old), Some(UndeliveredMessage::Message(&[1])));
}

/// VIE-7: if the host passes the outbox of a view other than the one that ended, nothing is read
/// from it, because its slots may still be being built, or may hold messages of another view.
#[test]
fn outbox_of_another_view_is_not_read() {
    let ended_with = |window, says: u8| {
        let ids = [NodeId(1), NodeId(2)];
        let laid = Laid { window, ..Laid::default() };
        let members = open_laid(1, &ids, true, 5, laid);
        let outbox = outbox(&members[0]);
        reserve(&outbox, says).commit();
        let remains = members[0].node.node().undelivered(SUBGROUP).expect("it sends");
        (members, outbox, remains)
    };
    let (_one, first, of_first) = ended_with(4, 1);
    let (_two, second, of_second) = ended_with(5, 2);
    // Both outboxes are closed, at the same position.
    assert_eq!(of_first.get(&first), Some(UndeliveredMessage::Message(&[1])));
    assert_eq!(of_second.get(&second), Some(UndeliveredMessage::Message(&[2])));
    assert_eq!(of_first.get(&second), Some(UndeliveredMessage::Building));
    assert_eq!(of_second.get(&first), Some(UndeliveredMessage::Building));
    // An outbox that is not closed, or that was closed with more messages.
    let open = open_laid(1, &[NodeId(1), NodeId(2)], true, 5, Laid::default());
    let third = outbox(&open[0]);
    for says in [3, 4] {
        reserve(&third, says).commit();
        assert_eq!(of_first.get(&third), Some(UndeliveredMessage::Building));
    }
    let of_third = open[0].node.node().undelivered(SUBGROUP).expect("it sends");
    assert_eq!(of_first.get(&third), Some(UndeliveredMessage::Building));
    assert_eq!(of_third.get(&third), Some(UndeliveredMessage::Message(&[3])));
}

/// RDM-7: the same rule as with fixed membership.
#[cfg(feature = "blocks")]
#[test]
fn large_message_waits_for_blocks_in_a_view() {
    use tramontane_core::ids::SenderRank;
    let mut run = NodesRun::new(3, true, 5);
    let laid = Laid { is_large: true, ..Laid::default() };
    run.members = open_laid(1, &run.ids, true, 5, laid);
    reserve(&outbox(&run.members[0]), 7).commit_large();
    run.run(10, false);
    assert!(run.delivered.values().all(Vec::is_empty), "its blocks are nowhere else");
    for member in &mut run.members[1..] {
        member.node.large_arrived(SUBGROUP, SenderRank(0), 1);
    }
    run.run(10, false);
    assert!(run.delivered.values().all(|delivered| *delivered == [[7]]));
    for member in &run.members {
        let counts =
            [0, 1].map(SenderRank).map(|one| member.node.node().large_delivered(SUBGROUP, one));
        assert_eq!(counts, [1, 0], "so many are not needed any more");
    }
}

/// DUR-1: the same rule as with fixed membership.
#[cfg(feature = "durable")]
#[test]
fn message_durable_at_all_members_is_durable_everywhere() {
    use tramontane_core::ids::DurableCount;
    for shared in [true, false] {
        let mut run = NodesRun::new(3, shared, 5);
        let laid = Laid { is_logged: true, ..Laid::default() };
        run.members = open_laid(1, &run.ids, shared, 5, laid);
        run.send(0);
        run.run(20, false);
        let everywhere = |run: &NodesRun| {
            let counts = run.members[0].node.node().durable(SUBGROUP).expect("it is logged");
            (counts.here, counts.everywhere)
        };
        for rank in 0..3 {
            assert_eq!(everywhere(&run).1, DurableCount(0), "{rank} has not");
            run.members[rank].node.set_durable(SUBGROUP, DurableCount(1));
            run.run(20, false);
        }
        assert_eq!(everywhere(&run), (DurableCount(1), DurableCount(1)));
    }
}

/// The arguments for opening one of two nodes.
#[derive(Clone, Copy)]
struct OpenArguments {
    with_views: bool,
    in_subgroup: bool,
    rows: usize,
    peers: usize,
    next: usize,
    links: usize,
    capabilities: Capabilities,
}

fn opened(lent: OpenArguments) -> Option<ViewError> {
    let ranks = [Rank(0), Rank(1)];
    let members = if lent.in_subgroup { &ranks[..] } else { &ranks[1..] };
    let subgroups = [Subgroup {
        members,
        senders: members,
        window: 4,
        message_max: 16,
        delivery: Delivery::Ordered,
    }];
    let group = Group { members: &[NodeId(1), NodeId(2)], subgroups: &subgroups };
    let layout = if lent.with_views { Layout::with_views(group) } else { Layout::new(group) };
    let layout = layout.expect("a good group");
    let sizes = layout.state_sizes(Rank(0));
    let lines: Vec<Vec<Line>> = (0..lent.rows)
        .map(|rank| layout.row_bytes(Rank(rank as u16)) / 64)
        .map(|lines| (0..lines).map(|_| Line::new()).collect())
        .collect();
    let rows: Vec<Row<'_>> = lines.iter().map(|lines| Row::from_lines(lines)).collect();
    let cells: Vec<_> = (0..sizes.handoffs).map(|_| HandOffCells::new()).collect();
    let ready: Vec<_> = (0..sizes.ready).map(|_| ReadyFlag::new()).collect();
    // SAFETY: only one node uses the memory.
    let memory =
        unsafe { NodeMemory::new(&rows, RowWriter::from_lines(&lines[0]), &cells, &ready) };
    let state = State {
        subgroups: &mut vec![SubgroupState::VACANT; sizes.subgroups],
        senders: &mut vec![SenderState::VACANT; sizes.senders],
        members: &mut vec![MemberState::VACANT; sizes.members],
        links: &mut vec![Link::VACANT; sizes.links],
    };
    let loan = ViewLoan {
        node: Loan { memory, state },
        peers: &mut vec![PeerState::default(); lent.peers],
        next: &mut vec![NodeId(0); lent.next],
        links: &mut vec![ViewLink::default(); lent.links],
    };
    let options = ViewOptions {
        heartbeat_interval_ns: 1_000,
        failure_timeout_ns: 20_000,
        first_timeout_ns: 40_000,
        members_max: 8,
        majority: true,
    };
    let (view, own, limits) = (ViewId(1), Rank(0), lent.capabilities);
    ViewNode::open(view, layout, own, loan, Options::default(), options, limits).err()
}

/// VIE-11: opening a view requires enough memory and state, and a fabric that can carry it.
#[test]
fn view_requires_enough_memory_state_and_fabric() {
    let limits = Capabilities {
        promises: Promises::WRITE_ORDER,
        writes_max: 4,
        write_bytes_max: 4096,
        guard_bytes_max: 24,
        write_overhead_bytes: 24,
    };
    let right = OpenArguments {
        with_views: true,
        in_subgroup: true,
        rows: 2,
        peers: 2,
        next: 8,
        links: 2,
        capabilities: limits,
    };
    assert_eq!(opened(right), None);
    let small = |capabilities| opened(OpenArguments { capabilities, ..right });
    for (lent, error) in [
        (OpenArguments { rows: 1, ..right }, ViewError::Node(OpenError::WrongRows)),
        (OpenArguments { with_views: false, ..right }, ViewError::WrongState),
        (OpenArguments { peers: 1, ..right }, ViewError::WrongState),
        (OpenArguments { links: 1, ..right }, ViewError::WrongState),
        (OpenArguments { links: 3, ..right }, ViewError::WrongState),
        (OpenArguments { next: 1, ..right }, ViewError::WrongState),
    ] {
        assert_eq!(opened(lent), Some(error));
    }
    let visible = Capabilities { promises: Promises::COMPLETION_VISIBLE, ..limits };
    assert_eq!(small(visible), Some(ViewError::NoWriteOrder));
    // The columns of two members and a subgroup take more bytes than a slot.
    let columns = Capabilities { write_bytes_max: 128, ..limits };
    assert_eq!(small(columns), Some(ViewError::FabricTooSmall));
    // A write size that just fits the columns is enough if the node itself needs less.
    let bytes = ViewBlock::new(2, 1).bytes();
    let outside = |bytes| {
        let capabilities = Capabilities { write_bytes_max: bytes, ..limits };
        opened(OpenArguments { in_subgroup: false, capabilities, ..right })
    };
    assert_eq!(outside(bytes - 1), Some(ViewError::FabricTooSmall));
    assert_eq!(outside(bytes), None);
    for few in
        [Capabilities { writes_max: 3, ..limits }, Capabilities { guard_bytes_max: 16, ..limits }]
    {
        // The fabric is refused whether or not the node itself needs that limit.
        assert_eq!(small(few), Some(ViewError::Node(OpenError::FabricTooSmall)));
        let outside = OpenArguments { in_subgroup: false, capabilities: few, ..right };
        assert_eq!(opened(outside), Some(ViewError::FabricTooSmall));
    }
}
