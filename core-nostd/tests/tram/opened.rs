//! Opening and querying replicas and clients: refused arguments, and the values that they report
//! about themselves.

use std::rc::Rc;

use tramontane_core::fabric::{Capabilities, Promises};
use tramontane_core::ids::{ClientNumber, GroupId, Rank, Time, ViewId};
use tramontane_core::memory::Line;
use tramontane_core::tram::{
    Answers, Attachment, Client, ClientLinks, ClientOptions, Destinations, Group, LentState,
    Limits, LinkId, LinkRole, OpenError, Overlay, OverlayError, REPLICAS_MAX, Replica, ReplicaId,
    ReplicaLinks, ReplicaOptions, SendError, Shape, Stage,
};

use super::judge::{missing, safety};
use super::network::capabilities;
use super::world::{Leased, Settings, World, tree};

const ROOT: GroupId = GroupId(0);
const CHILD: GroupId = GroupId(1);
const NUMBER: ClientNumber = ClientNumber(0);
const FIRST: ReplicaId = ReplicaId { group: ROOT, rank: Rank(0) };
/// A link that does not exist.
const NOWHERE: LinkId = LinkId(999);

fn overlay() -> Overlay {
    tree(&[None, Some(0)], 3, &Settings::default())
}

/// Opens a replica on slices of these lengths, and returns the error.
fn replica(id: ReplicaId, lengths: [usize; 4], limits: Capabilities) -> Option<OpenError> {
    replica_of(&overlay(), id, lengths, limits)
}

fn replica_of(
    overlay: &Overlay,
    id: ReplicaId,
    lengths: [usize; 4],
    limits: Capabilities,
) -> Option<OpenError> {
    let state = (
        Leased::new(lengths[0]),
        Leased::new(lengths[1]),
        Leased::new(lengths[2]),
        Leased::new(lengths[3]),
    );
    let lent = LentState {
        links: state.0.lend(),
        sources: state.1.lend(),
        replies: state.2.lend(),
        payload: state.3.lend(),
    };
    let options = ReplicaOptions::default();
    let opened = Replica::open(overlay, id, options, limits, lent);
    if let Ok(replica) = &opened {
        assert_eq!(
            (replica.id(), replica.is_voter()),
            (id, true),
            "by default it founds its group"
        );
    }
    opened.err()
}

#[test]
fn replica_requires_enough_state_and_capable_fabric() {
    let overlay = overlay();
    let settings = Settings::default();
    let links = ReplicaLinks::of(&overlay, ROOT);
    assert!(!overlay.is_empty() && !links.is_empty());
    let sources = usize::from(settings.clients) + 1;
    let right =
        [links.len(), sources, Replica::reply_cells(&overlay), settings.payload_max as usize];
    let good = capabilities();
    assert_eq!(replica(FIRST, right, good), None);
    for none in [ReplicaId { rank: Rank(3), ..FIRST }, ReplicaId { group: GroupId(9), ..FIRST }] {
        assert_eq!(replica(none, right, good), Some(OpenError::NoSuchReplica));
    }
    for slice in 0..4 {
        let mut fewer = right;
        fewer[slice] -= 1;
        assert_eq!(replica(FIRST, fewer, good), Some(OpenError::StateTooSmall), "{slice}");
    }
    // A follower reports what it has seen, so a completion need not promise it (TRM-3).
    for (promises, refused) in [
        (Promises::WRITE_ORDER, None),
        (Promises::COMPLETION_VISIBLE, Some(OpenError::FabricPromises)),
    ] {
        let limits = Capabilities { promises, ..good };
        assert_eq!(replica(FIRST, right, limits), refused);
    }
    for limits in [
        Capabilities { write_bytes_max: Shape::of(&overlay, ROOT).payload_max() as usize, ..good },
        Capabilities { write_bytes_max: 8, ..good },
        Capabilities { writes_max: 3, ..good },
        Capabilities { guard_bytes_max: 16, ..good },
    ] {
        assert_eq!(replica(FIRST, right, limits), Some(OpenError::FabricTooSmall));
    }
}

/// TRM-7: an answer and its length are posted in one write.
#[test]
fn fabric_must_carry_the_longest_answer() {
    let settings = Settings::default();
    let sources = usize::from(settings.clients) + 1;
    for (answer_max, refused) in [(992, None), (993, Some(OpenError::FabricTooSmall))] {
        let overlay = overlay().with_answers(answer_max);
        let links = ReplicaLinks::of(&overlay, ROOT).len();
        let cells = Replica::reply_cells(&overlay);
        let right = [links, sources, cells, settings.payload_max as usize];
        let limits = Capabilities { write_bytes_max: 1_000, ..capabilities() };
        assert_eq!(replica_of(&overlay, FIRST, right, limits), refused, "{answer_max}");
    }
}

fn client(
    options: ClientOptions,
    lengths: [usize; 4],
    limits: Capabilities,
) -> Result<(), OpenError> {
    let overlay = overlay();
    let state = (
        Leased::new(lengths[0]),
        Leased::new(lengths[1]),
        Leased::new(lengths[2]),
        Leased::new(lengths[3]),
    );
    let (links, groups) = (state.0.lend(), state.1.lend());
    let (messages, payloads) = (state.2.lend(), state.3.lend());
    let opened = Client::open(&overlay, options, limits, links, groups, messages, payloads);
    opened.map(|client| {
        let of_overlay = ClientLinks::of(&overlay);
        assert_eq!(client.links().len(), of_overlay.len());
        assert!(!of_overlay.is_empty() && of_overlay.replica(NOWHERE).is_none());
    })
}

#[test]
fn client_requires_valid_number_and_enough_state() {
    let settings = Settings::default();
    let window = settings.window as usize;
    let right = [6, 2, window, window * settings.payload_max as usize];
    let options = ClientOptions { number: NUMBER, incarnation: 1 };
    let good = capabilities();
    assert_eq!(client(options, right, good), Ok(()));
    for none in [
        ClientOptions { number: ClientNumber(settings.clients), ..options },
        ClientOptions { incarnation: 0, ..options },
    ] {
        assert_eq!(client(none, right, good), Err(OpenError::NoSuchReplica));
    }
    for slice in 0..4 {
        let mut fewer = right;
        fewer[slice] -= 1;
        assert_eq!(client(options, fewer, good), Err(OpenError::StateTooSmall), "{slice}");
    }
    let limits = Capabilities { promises: Promises::COMPLETION_VISIBLE, ..good };
    assert_eq!(client(options, right, limits), Err(OpenError::FabricPromises));
}

/// A client's links to the replicas of one group follow those of the previous group.
#[test]
fn client_has_no_link_to_a_nonexistent_replica() {
    let overlay = overlay();
    let links = ClientLinks::of(&overlay);
    let found = [2, 3].map(|rank| links.find(ReplicaId { rank: Rank(rank), ..FIRST }));
    assert_eq!(found, [Some(LinkId(2)), None]);
}

#[test]
fn undeliverable_messages_are_refused() {
    let settings = Settings::default();
    let mut world = World::new(&[None, Some(0)], 3, settings);
    let to = Destinations::of(ROOT).with(CHILD);
    assert_eq!(to.count(), 2);
    let long = settings.payload_max as usize;
    let mut multicast = |to, length| world.multicast(NUMBER, to, length).map(drop);
    assert_eq!(multicast(Destinations::default(), 1), Err(SendError::NoDestination));
    assert_eq!(multicast(Destinations::of(GroupId(2)), 1), Err(SendError::UnknownDestination));
    // A set cannot contain a group number that no overlay can have.
    assert_eq!(multicast(Destinations::of(GroupId(64)), 1), Err(SendError::NoDestination));
    assert_eq!(multicast(to, long + 1), Err(SendError::TooLong));
    for _ in 0..settings.window {
        assert_eq!(multicast(to, long), Ok(()));
    }
    assert_eq!(multicast(to, 1), Err(SendError::Full));
    assert_eq!(world.clients[&NUMBER].client.under_way(), u64::from(settings.window));
}

/// TRM-7: a client waits for the replicas for which it was asked to wait, and sees which ones they
/// were.
#[test]
fn client_sees_which_replicas_answered() {
    let mut world = World::new(&[None, Some(0)], 3, Settings::default());
    let to = Destinations::of(ROOT).with(CHILD);
    for answers in [Answers::OneOfEach, Answers::Leaders, Answers::All] {
        let id = world.multicast_for(NUMBER, to, 8, answers).expect("there is room");
        assert!(world.run_until(400_000, |world| missing(world).is_empty()), "{answers:?}");
        for group in to.iter() {
            let of_group = world.replied[&id].iter().filter(|(replica, _)| replica.group == group);
            let (count, leads) =
                of_group.fold((0, false), |(count, any), (_, leads)| (count + 1, any || *leads));
            match answers {
                Answers::OneOfEach => assert!(count >= 1),
                Answers::Leaders => assert!(leads, "{group}"),
                Answers::All => assert_eq!(count, 3, "{group}"),
            }
        }
    }
    assert_eq!(safety(&world), Vec::<String>::new());
}

/// TRM-5: from these values a host sees that its group is whole, or lost.
#[test]
fn replica_reports_log_counts_and_number_of_voters() {
    let mut world = World::new(&[None, Some(0)], 3, Settings::default());
    for _ in 0..5 {
        world.multicast(NUMBER, Destinations::of(ROOT), 8).expect("there is room");
        assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    }
    let gone = ReplicaId { rank: Rank(2), ..FIRST };
    world.crash_replica(gone);
    world.run(20_000);
    let running = &world.replicas[&FIRST];
    let counts = running.replica.log_counts(&&running.memory).expect("it fits");
    assert_eq!(counts.delivered, running.replica.delivered());
    assert!(counts.delivered >= 5 && counts.delivered <= counts.decided, "{counts:?}");
    assert!(counts.decided <= counts.tail);
    let votes = [0, 1, 2, 3]
        .map(|rank| running.replica.is_voting_here(Rank(rank), &&running.memory).expect("it fits"));
    assert_eq!(votes, [true, true, false, false], "one is gone, and one is none");
    // The replica returns, and is connected before it counts again.
    world.start_replica(gone, false);
    let mut before = 0;
    while !world.replicas[&gone].replica.is_voter() {
        let running = &world.replicas[&FIRST];
        let link = running.replica.links().find(LinkRole::Peer(gone.rank)).expect("a link");
        if running.replica.stage(link) == Stage::Ready {
            let is_voting = running.replica.is_voting_here(gone.rank, &&running.memory);
            assert_eq!(is_voting, Ok(false));
            before += 1;
        }
        world.advance();
    }
    assert!(before > 0);
}

/// TRM-5: a replica whose connection is not open yet does not count as present, whatever its row
/// says. A host that counted it would regard its group as whole.
#[test]
fn unconnected_replica_does_not_count_as_present() {
    const STANDING: usize = 48;
    let mut world = World::new(&[None], 3, Settings::default());
    world.poke(FIRST, LinkId(1), STANDING, 1 << 3 | 1);
    let is_voting = |world: &World| {
        let running = &world.replicas[&FIRST];
        let stage = running.replica.stage(LinkId(1));
        (stage, running.replica.is_voting_here(Rank(1), &&running.memory))
    };
    assert_eq!(is_voting(&world), (Stage::Waiting, Ok(false)));
    world.step_replica(FIRST);
    assert_eq!(is_voting(&world), (Stage::Ready, Ok(true)));
}

/// A mistake by the host does not affect the links that exist.
#[test]
fn attaching_a_nonexistent_link_has_no_effect() {
    let mut world = World::new(&[None], 3, Settings::default());
    let nobody = Attachment { view: ViewId(1), peer: Rank(0), incarnation: 1 };
    let running = world.replicas.get_mut(&FIRST).expect("it runs");
    running.replica.attach(Time(1), NOWHERE, nobody, &running.memory).expect("it fits");
    assert_eq!(running.replica.stage(NOWHERE), Stage::Absent);
    running.replica.detach(Time(1), NOWHERE);
    let running = world.clients.get_mut(&NUMBER).expect("it runs");
    running.client.attach(Time(1), NOWHERE, nobody, &running.memory).expect("it fits");
    assert_eq!(running.client.stage(NOWHERE), Stage::Absent);
    running.client.detach(NOWHERE);
    world.multicast(NUMBER, Destinations::of(ROOT), 8).expect("there is room");
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    assert_eq!(safety(&world), Vec::<String>::new());
}

/// A client waits for its fabric, and steps do not restore a detached link.
#[test]
fn client_link_becomes_ready_when_its_fabric_does() {
    let mut world = World::new(&[None], 3, Settings { clients: 1, ..Settings::default() });
    let stages =
        |world: &World| [0, 1, 2].map(|at| world.clients[&NUMBER].client.stage(LinkId(at)));
    world.network.borrow_mut().is_slow_to_open = true;
    for id in world.ids() {
        world.connect_client(NUMBER, id);
    }
    world.step_client(NUMBER);
    assert_eq!(stages(&world), [Stage::Waiting; 3]);
    world.network.borrow_mut().is_slow_to_open = false;
    world.step_client(NUMBER);
    assert_eq!(stages(&world), [Stage::Ready; 3]);
    world.clients.get_mut(&NUMBER).expect("it runs").client.detach(LinkId(1));
    world.step_client(NUMBER);
    assert_eq!(stages(&world), [Stage::Ready, Stage::Absent, Stage::Ready]);
}

/// A host attaches a link before it has the link's rows. Messages that the client multicasts in the
/// meantime are sent once the rows are available.
#[test]
fn client_sends_queued_messages_once_rows_exist() {
    let mut world = World::new(&[None], 3, Settings { clients: 1, ..Settings::default() });
    let is_calm =
        |world: &World| world.leader(ROOT).is_some() && world.written_to(NUMBER).is_empty();
    assert!(world.run_until(200_000, is_calm));
    let hide = |world: &mut World| {
        world.clients.get_mut(&NUMBER).expect("it runs").memory.hide(100, &mut world.random);
    };
    hide(&mut world);
    for id in world.ids() {
        world.connect_client(NUMBER, id);
    }
    let to = Destinations::of(ROOT);
    let first = world.multicast(NUMBER, to, 8).expect("there is room");
    for _ in 0..10 {
        hide(&mut world);
        world.step_client(NUMBER);
    }
    assert!(world.written_to(NUMBER).is_empty(), "it has no rows");
    // The client's steps have rows again.
    world.multicast(NUMBER, to, 8).expect("there is room");
    world.leave(NUMBER);
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    assert!(world.ids().iter().all(|id| world.has_delivered(*id, first)));
    assert_eq!(safety(&world), Vec::<String>::new());
    assert!(world.run_until(400_000, |world| world.has_left(NUMBER)), "and it leaves as any");
}

/// TRM-5: a snapshot of another overlay or of an earlier state changes nothing.
#[test]
fn mismatched_or_older_snapshot_is_refused() {
    let mut world = World::new(&[None], 3, Settings::default());
    let replica = &world.replicas[&FIRST].replica;
    let count = replica.snapshot_cells();
    let mut old = vec![0; count];
    replica.snapshot(&mut old).expect("as many cells");
    for wrong in [0, 1, count - 1, count + 1] {
        assert_eq!(replica.snapshot(&mut vec![0; wrong]), None, "{wrong} of {count}");
    }
    world.multicast(NUMBER, Destinations::of(ROOT), 8).expect("there is room");
    assert!(world.run_until(400_000, |world| missing(world).is_empty()));
    let ids = world.ids();
    let follower = ids.iter().find(|id| world.leader(ROOT) != Some(**id)).expect("one of three");
    let running = world.replicas.get_mut(follower).expect("it runs");
    let before = running.replica.delivered();
    assert!(before > 0);
    for wrong in [0, 1, count - 1, count + 1] {
        let cells = vec![u64::MAX; wrong];
        assert_eq!(running.replica.restore(&cells, &running.memory), Ok(false), "{wrong}");
    }
    assert_eq!(running.replica.restore(&old, &running.memory), Ok(false), "it is older");
    assert_eq!(running.replica.delivered(), before);
    // A later state, except that the second client has an impossible incarnation.
    let saved = |replica: &Replica<'_>| {
        let mut cells = vec![0; count];
        replica.snapshot(&mut cells).expect("as many cells");
        cells
    };
    let now = saved(&running.replica);
    let mut later = now.clone();
    (later[0], later[1], later[6]) = (before + 9, 77, u64::MAX);
    assert_eq!(running.replica.restore(&later, &running.memory), Ok(false), "no such client");
    assert_eq!(saved(&running.replica), now, "nothing of it is taken over");
    later[6] = now[6];
    let leader = world.leader(ROOT).expect("a leader");
    let running = world.replicas.get_mut(&leader).expect("it runs");
    let now = saved(&running.replica);
    assert_eq!(running.replica.restore(&later, &running.memory), Ok(false), "it leads");
    assert_eq!(saved(&running.replica), now);
}

/// The header in a group with many children is longer than a slot of a short message.
#[test]
fn list_must_fit_longest_header_and_payload() {
    let of = |parent: Option<u16>| Group { parent: parent.map(GroupId), replicas: 1 };
    let groups: Vec<Group> = [of(None)].into_iter().chain((0..16).map(|_| of(Some(0)))).collect();
    let limits =
        Limits { clients: 1, log_entries: 2, client_window: 1, parent_window: 1, payload_max: 1 };
    let overlay = Overlay::new(&groups, limits).expect("a tree");
    let links = ReplicaLinks::of(&overlay, ROOT).len();
    let open = |write_bytes_max| {
        let state = (Leased::new(links), Leased::new(2), Leased::new(2), Leased::new(1));
        let lent = LentState {
            links: state.0.lend(),
            sources: state.1.lend(),
            replies: state.2.lend(),
            payload: state.3.lend(),
        };
        let limits = Capabilities { write_bytes_max, ..capabilities() };
        Replica::open(&overlay, FIRST, ReplicaOptions::default(), limits, lent).err()
    };
    assert_eq!(open(128), Some(OpenError::FabricTooSmall), "a slot, and no header");
    // A list to a log has the header, the payload and the control line; a smaller fabric could
    // never send it.
    let entry = 192 + 1 + 32;
    assert_eq!(open(entry - 1), Some(OpenError::FabricTooSmall));
    assert_eq!(open(entry), None);
}

/// Slots occupy whole lines. If messages are short, slots are longer than an entry.
#[test]
fn fabric_must_carry_a_slot_in_one_write() {
    let settings = Settings { payload_max: 1, ..Settings::default() };
    let overlay = tree(&[None], 3, &settings);
    let links = ReplicaLinks::of(&overlay, ROOT).len();
    let sources = usize::from(settings.clients) + 1;
    let open = |write_bytes_max| {
        let replies = Leased::new(Replica::reply_cells(&overlay));
        let state = (Leased::new(links), Leased::new(sources), replies, Leased::new(1));
        let lent = LentState {
            links: state.0.lend(),
            sources: state.1.lend(),
            replies: state.2.lend(),
            payload: state.3.lend(),
        };
        let limits = Capabilities { write_bytes_max, ..capabilities() };
        Replica::open(&overlay, FIRST, ReplicaOptions::default(), limits, lent).err()
    };
    for write_bytes_max in [64, 100, 127] {
        assert_eq!(open(write_bytes_max), Some(OpenError::FabricTooSmall), "{write_bytes_max}");
    }
    assert_eq!(open(128), None);
}

#[test]
fn overlay_limits_clients_and_replicas() {
    let limits = *overlay().limits();
    let with = |replicas: usize, clients| {
        let replicas = u16::try_from(replicas).expect("few");
        Overlay::new(&[Group { parent: None, replicas }], Limits { clients, ..limits }).err()
    };
    for replicas in [1, REPLICAS_MAX] {
        assert_eq!(with(replicas, 1), None);
    }
    for replicas in [0, REPLICAS_MAX + 1] {
        assert_eq!(with(replicas, 1), Some(OverlayError::Replicas(ROOT)));
    }
    assert_eq!(with(1, 0), Some(OverlayError::Limits));
}

/// The host provides memory that is shorter than required.
#[test]
fn replica_with_a_too_short_log_stops() {
    let mut world = World::new(&[None], 3, Settings::default());
    let running = world.replicas.get_mut(&FIRST).expect("it runs");
    running.memory.log = Rc::new(vec![Line::new()]);
    world.multicast(NUMBER, Destinations::of(ROOT), 8).expect("there is room");
    world.run(50_000);
    let said: Vec<&String> = world.complaints.iter().filter(|one| one.contains("fit")).collect();
    assert!(!said.is_empty() && said.len() == world.complaints.len(), "{:?}", world.complaints);
    assert!(said.iter().all(|one| one.starts_with(&FIRST.to_string())), "the others go on");
}
