//! A member changes a slot after the others have received it. A member that has already delivered
//! the message continues. Any other member can no longer deliver it, and must not wait for it.

use tramontane_core::fabric::LossCause;
use tramontane_core::ids::{NodeId, Rank};
use tramontane_core::layout::ViewColumn;
use tramontane_core::view::{Accepted, Ballot, Change, Halt, Stance, Status};

use super::members::NodeMember;
#[cfg(feature = "durable")]
use super::members::{Laid, open_laid};
use super::{NodesRun, SUBGROUP};

/// Returns three members; member 0 has sent one message, which all have received, and which member
/// 2 has delivered but member 1 has not.
fn received_and_not_delivered() -> NodesRun {
    let mut run = NodesRun::new(3, true, 5);
    bring_to_where_one_has_delivered(&mut run);
    run
}

fn bring_to_where_one_has_delivered(run: &mut NodesRun) {
    run.run(3, false);
    run.send(0);
    for rank in [0, 1, 2] {
        run.step(rank);
    }
    assert_eq!((run.delivered[&2].len(), run.delivered[&3].len()), (0, 1));
}

/// Returns three such members that also log their deliveries.
#[cfg(feature = "durable")]
fn received_and_not_logged() -> NodesRun {
    let mut run = NodesRun::new(3, true, 5);
    let laid = Laid { is_logged: true, ..Laid::default() };
    run.members = open_laid(1, &run.ids, true, 5, laid);
    bring_to_where_one_has_delivered(&mut run);
    run
}

/// Makes member 0 withdraw the message from its first slot.
fn change_the_slot(run: &NodesRun) {
    let member = &run.members[0];
    let ring = member.layout.ring(Rank(0), SUBGROUP).expect("it sends");
    let counter = ring.offset + ring.stride - 8;
    member.row.cell(counter).expect("a slot's counter").publish(0);
}

#[test]
fn member_that_cannot_deliver_the_trim_halts() {
    let mut run = received_and_not_delivered();
    change_the_slot(&run);
    run.stopped.insert(1);
    run.run_to_the_end_of_the_view(false);
    assert_eq!(run.members[1].node.status(), Status::Halted(Halt::ChangedBy(Rank(0))));
    assert_eq!(run.members[2].node.status(), Status::Installed, "it has delivered the message");
    assert!(run.delivered[&2].is_empty());
}

#[test]
fn slot_changed_during_trim_delivery_is_not_awaited() {
    let mut run = received_and_not_delivered();
    run.members[1].node.peer_lost(Rank(0));
    run.members[2].node.peer_lost(Rank(0));
    run.stopped.insert(1);
    // Member 2 learns of the loss first, and echoes; member 1 finds the decision and the changed
    // slot in one step.
    for _ in 0..40 {
        run.step(2);
    }
    change_the_slot(&run);
    run.run_to_the_end_of_the_view(false);
    assert_eq!(run.members[1].node.status(), Status::Halted(Halt::ChangedBy(Rank(0))));
    assert_eq!(run.members[2].node.status(), Status::Installed);
}

/// A member that logs echoes a sealed list only once its log has been shown every message up to the
/// trims. A member that cannot deliver up to the trims never echoes. So if one of three members has
/// stopped, the last member has no majority. Without logs the echo comes first, and the last member
/// continues.
#[cfg(feature = "durable")]
#[test]
fn logging_member_that_cannot_deliver_does_not_echo() {
    let mut run = received_and_not_logged();
    change_the_slot(&run);
    run.stopped.insert(1);
    run.run_to_the_end_of_the_view(false);
    assert_eq!(run.members[1].node.status(), Status::Halted(Halt::ChangedBy(Rank(0))));
    assert_eq!(run.members[2].node.status(), Status::Halted(Halt::NoMajority));
}

/// The view is ending for another reason, and the next view's memory is not ready yet.
#[test]
fn slot_changed_while_a_view_ends_is_reported() {
    let mut run = received_and_not_delivered();
    let mut lost = None;
    run.members[1].node.leave();
    // The leader's proposal wedges member 1, which has not checked for stable messages since then.
    run.step(0);
    change_the_slot(&run);
    for _ in 0..6 {
        run.now += 400;
        lost = lost.or(run.step_and_tell(1).0.lost);
    }
    assert_eq!(lost, Some((Rank(0), LossCause::Misbehaved)));
    assert!(run.members[1].node.suspects(Rank(0)));
}

/// VIE-6: messages delivered here cannot be beyond the end of the view. A leader that sets a lower
/// trim would make the others deliver less.
#[test]
fn leader_that_trims_below_deliveries_is_suspected() {
    for (is_below, suspected) in [(false, false), (true, true)] {
        let mut run = NodesRun::new(3, true, 5);
        run.run(3, false);
        run.send(0);
        run.run(20, false);
        let delivered = run.members[1].node.node().frontiers(SUBGROUP).expect("its own").delivered;
        assert!(delivered.0 > 0);
        let NodeMember { row, layout, .. } = &run.members[0];
        let put = |column, value| {
            let at = layout.view_offset(Rank(0), column).expect("a column");
            row.cell(at).expect("in the row").publish(value);
        };
        let own = Ballot(1);
        put(ViewColumn::Entry(0), Change::Join(NodeId(9)).encode(own));
        put(ViewColumn::Entry(1), Change::Seal.encode(own));
        put(ViewColumn::Trim(SUBGROUP), if is_below { delivered.0 } else { delivered.0 + 1 });
        let accepted = Accepted { ballot: own, count: 2 };
        put(ViewColumn::Stance, Stance { promise: Rank(0), accepted }.encode());
        for _ in 0..12 {
            run.step(1);
        }
        assert_eq!(run.members[1].node.suspects(Rank(0)), suspected);
    }
}
