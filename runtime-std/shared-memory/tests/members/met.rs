//! Processes that were met over a connection, and that may end before their memory is found.

use std::io::{Read as _, Write as _};
use std::os::unix::net::UnixStream;

use crate::support::{MappedMember, SharedFolder, VIEW, await_all, make, small};
use tramontane_core::fabric::{Event, Fabric as _, HostFabric as _, LossCause, ViewPlan};
use tramontane_core::ids::{NodeId, Rank};

const LOST: Event = Event::PeerLost { view: VIEW, peer: Rank(1), cause: LossCause::Exited };

fn plan(own: u16) -> ViewPlan<'static> {
    ViewPlan::of_layout(VIEW, Rank(own), Box::leak(Box::new(small(2))))
}

/// Returns member 0, which has met the process of node 11, and that process's end of the
/// connection.
fn met(place: &SharedFolder) -> (MappedMember, UnixStream) {
    let mut member = make(&place.root(), "met", &plan(0)).expect("memory");
    let (connection, other) = UnixStream::pair().expect("two sockets");
    member.fabric.keep_connection(NodeId(11), connection.into());
    (member.open(), other)
}

#[test]
fn peer_that_ends_before_discovery_is_lost() {
    let place = SharedFolder::new();
    let (mut member, mut other) = met(&place);
    other.write_all(b"unread").expect("sent");
    assert!(!member.fabric.check_peers(), "it may only be slow");
    assert_eq!(member.fabric.poll(), None);
    drop(other);
    assert!(member.fabric.check_peers());
    assert_eq!(member.fabric.poll(), Some(LOST));
    assert!(!member.fabric.check_peers(), "once");
}

#[test]
fn later_process_does_not_replace_the_met_one() {
    let place = SharedFolder::new();
    let (mut member, other) = met(&place);
    drop(other);
    let mut later = make(&place.root(), "met", &plan(1)).expect("memory").open();
    assert!(!later.is_ready());
    assert!(member.fabric.check_peers());
    assert_eq!(member.fabric.poll(), Some(LOST));
    assert!(!member.is_ready() && !later.is_ready());
}

#[test]
fn connection_closes_once_the_row_is_there() {
    let place = SharedFolder::new();
    let (member, mut other) = met(&place);
    let peer = make(&place.root(), "met", &plan(1)).expect("memory").open();
    let mut members = [member, peer];
    await_all(&mut members);
    assert_eq!(other.read(&mut [0]).expect("it is closed"), 0);
    drop(other);
    assert!(members.iter_mut().all(|member| !member.fabric.check_peers()));
}
