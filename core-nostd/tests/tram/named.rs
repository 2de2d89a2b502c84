//! The histories by which protocols of this kind lose messages, step by step: those that TRM-3 to
//! TRM-7 name, and one of our own. Each says who reaches whom, and how far that goes. Replicas
//! are named by their ranks: `P` for the parent's, or the only group's, and `C` for
//! the child's.
//!
//! At the end all reach all, and each message must be delivered everywhere, once and in one order.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Answers, Destinations, MessageId, ReplicaId};

use super::judge::{missing, safety};
use super::world::{Settings, World};

const P: [ReplicaId; 3] = group(0);
const C: [ReplicaId; 3] = group(1);

const fn group(group: u16) -> [ReplicaId; 3] {
    let group = GroupId(group);
    [
        ReplicaId { group, rank: Rank(0) },
        ReplicaId { group, rank: Rank(1) },
        ReplicaId { group, rank: Rank(2) },
    ]
}

const STAMP: usize = 0;
const TAIL: usize = 1;
const DECIDED: usize = 2;

/// A world in which the text says who reaches whom.
struct Script {
    world: World,
}

impl Script {
    /// All groups have leaders, all logs their stamps, and each client its place in all groups.
    fn new(parents: &[Option<u16>]) -> Self {
        Self::of(parents, 3)
    }

    fn of(parents: &[Option<u16>], replicas: u16) -> Self {
        let settings = Settings { log_entries: 32, ..Settings::default() };
        let mut world = World::new(parents, replicas, settings);
        world.network.borrow_mut().lands_whole = true;
        for number in 0..world.settings.clients {
            for group in world.overlay.all().iter() {
                let to = Destinations::of(group);
                world.multicast(ClientNumber(number), to, 8).expect("a window's");
            }
        }
        assert!(world.run_until(100_000, |world| missing(world).is_empty()));
        let mut script = Self { world };
        let all = script.world.ids();
        script.among(&all, &[0, 1], |world| {
            let decided = |id: &ReplicaId| world.log_control(*id)[DECIDED];
            all.iter().all(|id| decided(id) == world.log_control(*id)[TAIL])
                && (0..world.overlay.len()).all(|at| world.leader(GroupId(at as u16)).is_some())
        });
        for group in [P, C].iter().take(parents.len()) {
            let leader = script.world.leader(group[0].group);
            if leader != Some(group[0]) {
                let others: Vec<ReplicaId> =
                    group.iter().copied().filter(|id| Some(*id) != leader).collect();
                script.leads(group[0], &others);
            }
        }
        script.among(&all, &[0, 1], |world| {
            let stamp = |id: &ReplicaId| world.log_control(*id)[STAMP];
            all.iter().all(|id| stamp(id) == stamp(&ReplicaId { rank: Rank(0), ..*id }))
        });
        script
    }

    /// Goes on among some replicas and clients, until something holds: looked at after each step
    /// and each write that lands.
    fn among(&mut self, ids: &[ReplicaId], clients: &[u16], holds: impl Fn(&World) -> bool) {
        let does_come = self.does_come(ids, clients, 4_000, holds);
        assert_eq!(self.world.complaints.first(), None);
        assert!(does_come, "it does not come to that");
    }

    fn does_come(
        &mut self,
        ids: &[ReplicaId],
        clients: &[u16],
        rounds: usize,
        holds: impl Fn(&World) -> bool,
    ) -> bool {
        let clients: Vec<ClientNumber> = clients.iter().copied().map(ClientNumber).collect();
        self.world.allow_only(ids, &clients);
        for _ in 0..rounds {
            for id in ids {
                self.world.step_replica(*id);
                if holds(&self.world) {
                    return true;
                }
                for _ in 0..8 {
                    let has_landed = self.world.network.borrow_mut().deliver_if_any_can();
                    if holds(&self.world) {
                        return true;
                    }
                    if !has_landed {
                        break;
                    }
                }
            }
            for number in &clients {
                self.world.step_client(*number);
            }
            self.world.now += 200 * ids.len() as u64;
            self.world.reconnect();
        }
        false
    }

    /// Some replicas step so many times, and writes and reads land between more of them.
    fn moves(&mut self, stepping: &[ReplicaId], reached: &[ReplicaId], rounds: usize) {
        self.world.allow_only(reached, &[]);
        for _ in 0..rounds {
            for id in stepping {
                self.world.step_replica(*id);
                while self.world.network.borrow_mut().deliver_if_any_can() {}
            }
            self.world.now += 200;
        }
    }

    /// A replica comes to lead, by a campaign among some.
    fn leads(&mut self, id: ReplicaId, among: &[ReplicaId]) {
        let before = self
            .world
            .leader(id.group)
            .map(|leader| (leader, self.world.replicas[&leader].replica.promised()));
        self.among(among, &[], |world| {
            let replica = &world.replicas[&id].replica;
            let is_new = before.is_none_or(|(leader, promised)| {
                leader == id && replica.promised() == promised || replica.promised() > promised
            });
            replica.is_leader() && is_new && world.leader(id.group) == Some(id)
        });
    }

    /// A client multicasts a message, and one replica alone orders it.
    fn ordered_by(&mut self, id: ReplicaId, client: u16, to: Destinations) -> MessageId {
        let message = self.multicast(client, to);
        let tail = self.world.log_control(id)[TAIL];
        self.among(&[id], &[client], |world| world.log_control(id)[TAIL] > tail);
        message
    }

    fn multicast(&mut self, client: u16, to: Destinations) -> MessageId {
        self.multicast_for(client, to, Answers::OneOfEach)
    }

    fn multicast_for(&mut self, client: u16, to: Destinations, answers: Answers) -> MessageId {
        self.world.multicast_for(ClientNumber(client), to, 24, answers).expect("there is room")
    }

    fn delivers(
        &mut self,
        id: ReplicaId,
        message: MessageId,
        among: &[ReplicaId],
        clients: &[u16],
    ) {
        self.among(among, clients, |world| world.has_delivered(id, message));
    }

    /// All reach all.
    fn end(mut self) {
        self.world.network.borrow_mut().heal();
        let is_over = self.world.run_until(400_000, |world| missing(world).is_empty());
        assert_eq!(safety(&self.world), Vec::<String>::new());
        assert!(is_over, "{:?}", missing(&self.world));
    }
}

fn here() -> Destinations {
    Destinations::of(GroupId(0))
}

fn both() -> Destinations {
    here().with(GroupId(1))
}

/// TRM-4: leader 1 puts A on its own log alone, leader 2 puts B on its own alone. Leader 3 takes A
/// and delivers it. Leader 4 finds A and B, and must take A.
#[test]
fn what_a_third_leader_took_from_the_first_goes_before_what_the_second_had() {
    let mut script = Script::new(&[None]);
    let a = script.ordered_by(P[0], 0, here());
    script.leads(P[1], &P[1..]);
    script.ordered_by(P[1], 1, here());
    script.delivers(P[0], a, &[P[0], P[2]], &[]);
    script.leads(P[1], &P[1..]);
    script.delivers(P[1], a, &P[1..], &[]);
    script.end();
}

/// TRM-4: leader 1 has X and Y alone. Leader 2 decides Y in X's place. Leader 3, which is the first
/// again, must take Y once.
#[test]
fn a_message_that_stands_in_two_logs_at_two_places_is_taken_once() {
    let mut script = Script::new(&[None]);
    script.ordered_by(P[0], 0, here());
    let y = script.ordered_by(P[0], 1, here());
    script.leads(P[1], &P[1..]);
    script.delivers(P[1], y, &P[1..], &[1]);
    script.delivers(P[0], y, &[P[0], P[2]], &[]);
    script.end();
}

/// TRM-3: a leader that was deposed has a dead entry, and grants its log late. What it is shown as
/// decided must not make it deliver that.
#[test]
fn a_dead_entry_is_not_delivered_by_a_replica_that_grants_late() {
    let mut script = Script::new(&[None]);
    script.ordered_by(P[0], 0, here());
    script.leads(P[1], &P[1..]);
    let mut last = None;
    for _ in 0..3 {
        let message = script.multicast(1, here());
        script.delivers(P[2], message, &P[1..], &[1]);
        last = Some(message);
    }
    script.delivers(P[0], last.expect("three"), &P[..2], &[]);
    script.end();
}

/// TRM-3: a leader dies while it puts its stamp on a follower's log. A log with its stamp must have
/// all that was decided before.
#[test]
fn a_log_that_has_a_stamp_has_all_before_it() {
    let mut script = Script::new(&[None]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        script.delivers(P[0], message, &P[..2], &[0]);
    }
    script.leads(P[1], &P[1..]);
    let stamp = script.world.replicas[&P[1]].replica.promised().cell();
    script.among(&P[1..], &[], |world| world.log_control(P[2])[STAMP] == stamp);
    script.leads(P[0], &[P[0], P[2]]);
    let b = script.multicast(1, here());
    script.delivers(P[2], b, &[P[0], P[2]], &[1]);
    script.end();
}

/// TRM-3: of five replicas, four have decided A. Leader 1's write of it to replica 4 is under way,
/// and is read from leader 1's log as it lands: its header has landed, and its payload not. Leader
/// 2 goes once around the logs, that of leader 1 among them. Replica 4 must not deliver A with the
/// bytes of another message.
#[test]
fn a_write_under_way_does_not_read_what_the_next_leader_writes() {
    let mut script = Script::of(&[None], 5);
    let [three, last] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let four = [P[0], P[1], P[2], three];
    script.world.network.borrow_mut().reads_late = true;
    let place = script.world.log_control(P[0])[TAIL];
    let a = script.multicast(0, here());
    for id in four {
        script.delivers(id, a, &four, &[0]);
    }
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.ordered_at(last, place) != Some(a) {
        assert!(script.world.network.borrow_mut().deliver_if_any_can(), "its header comes there");
    }
    assert!(!script.world.has_bytes(last, a), "its payload has not landed");
    script.leads(P[1], &four[1..]);
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(1, here());
        for id in four {
            script.delivers(id, message, &four, &[1]);
        }
    }
    script.world.allow_only(&[P[0], last], &[]);
    while script.world.network.borrow_mut().deliver_if_any_can() {}
    script.does_come(&[last], &[], 10, |_| false);
    script.end();
}

/// TRM-3: leader 1 has X and Y alone, and leader 2 Y and Z. Leader 2 is cut off when it has
/// replaced X by Y in the log of the first, whose old entries must not count any more.
#[test]
fn a_log_that_is_being_replaced_does_not_count() {
    let mut script = Script::new(&[None]);
    let place = script.world.log_control(P[0])[TAIL];
    script.ordered_by(P[0], 0, here());
    let y = script.ordered_by(P[0], 1, here());
    script.leads(P[1], &P[1..]);
    let tail = script.world.log_control(P[1])[TAIL];
    script.among(&P[1..2], &[1], |world| world.log_control(P[1])[TAIL] > tail);
    script.among(&P[..2], &[], |world| world.ordered_at(P[0], place) == Some(y));
    script.leads(P[0], &[P[0], P[2]]);
    script.end();
}

/// TRM-4: of five replicas, leader 1 has X alone, and leader 2 has B and another on two logs, no
/// quorum. Leader 1 is cut off when it has copied B. In the next campaign, without B, it must not
/// lead with X and the bytes of B.
#[test]
fn a_log_that_is_copied_over_does_not_count() {
    let mut script = Script::of(&[None], 5);
    let [third, last] = [3, 4].map(|rank| ReplicaId { group: GroupId(0), rank: Rank(rank) });
    script.ordered_by(P[0], 0, here());
    script.leads(P[1], &[P[1], P[2], third]);
    let b = script.ordered_by(P[1], 1, here());
    script.ordered_by(P[1], 1, here());
    let own = script.world.log_control(P[1]);
    script.among(&P[1..], &[], |world| world.log_control(P[2])[..DECIDED] == own[..DECIDED]);
    script.among(&[P[0], P[2], last], &[], |world| world.has_bytes(P[0], b));
    script.leads(P[0], &[P[0], third, last]);
    let c = script.multicast(0, here());
    script.delivers(P[0], c, &[P[0], third, last], &[0]);
    script.end();
}

/// TRM-5: A is on replicas 0 and 1. Replica 1 comes back without memory. Without replica 0 it must
/// not lead, nor let replica 2 lead.
#[test]
fn a_replica_without_memory_makes_no_quorum_that_leads() {
    let mut script = Script::new(&[None]);
    let a = script.multicast(0, here());
    script.delivers(P[0], a, &P[..2], &[0]);
    script.world.gives_snapshots = false;
    script.world.crash_replica(P[1]);
    script.world.start_replica(P[1], false);
    script.multicast(1, here());
    let has_led = script.does_come(&P[1..], &[1], 1_000, |world| {
        P[1..].iter().any(|id| world.replicas[id].replica.is_leader())
    });
    assert!(!has_led, "nobody there knows of A");
    script.world.gives_snapshots = true;
    script.end();
}

/// TRM-5: leader 1 of replicas 1 and 2 decides B. Replica 2 comes back without memory, and gives
/// its log to replica 0, which has not heard that it was deposed. They must decide nothing.
#[test]
fn a_replica_without_memory_makes_no_quorum_that_decides() {
    let mut script = Script::new(&[None]);
    script.leads(P[1], &P[1..]);
    let b = script.multicast(1, here());
    script.delivers(P[1], b, &P[1..], &[1]);
    script.world.gives_snapshots = false;
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    let decided = script.world.log_control(P[0])[DECIDED];
    script.multicast(0, here());
    let has_decided = script.does_come(&[P[0], P[2]], &[0], 1_000, |world| {
        world.log_control(P[0])[DECIDED] > decided || world.replicas[&P[2]].replica.is_voter()
    });
    assert!(!has_decided, "nobody there knows of B");
    script.world.gives_snapshots = true;
    script.end();
}

/// TRM-6: a child's group has a message that its parent's leader passed on early. The next leader
/// of the parent decides another in its place: the child must replace it, and deliver the first
/// only once the parent has ordered it anew.
#[test]
fn a_child_takes_one_message_of_two_parents_leaders() {
    let mut script = Script::new(&[None, Some(0)]);
    let m = script.ordered_by(P[0], 0, both());
    let tails = C.map(|id| script.world.log_control(id)[TAIL]);
    script.among(&[P[0], C[0], C[1], C[2]], &[], |world| {
        (0..3).all(|at| world.log_control(C[at])[TAIL] > tails[at])
    });
    script.leads(P[1], &P[1..]);
    let n = script.multicast(1, both());
    script.delivers(C[1], n, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    assert!(C.iter().all(|id| !script.world.has_delivered(*id, m)), "it was never decided");
    script.end();
}

/// TRM-6: the first leader of the parent leads again, with another message at a position that it
/// has passed on early. Its rows towards the child must not show one message decided as another.
#[test]
fn a_parents_leader_that_leads_again_does_not_rewrite_its_rows() {
    let mut script = Script::new(&[None, Some(0)]);
    script.ordered_by(P[0], 0, both());
    let tails = C.map(|id| script.world.log_control(id)[TAIL]);
    script.among(&[P[0], C[0], C[1], C[2]], &[], |world| {
        (0..3).all(|at| world.log_control(C[at])[TAIL] > tails[at])
    });
    script.leads(P[1], &P[1..]);
    let n = script.multicast(1, both());
    script.delivers(P[1], n, &P[1..], &[1]);
    script.delivers(P[0], n, &[P[0], P[2]], &[]);
    script.delivers(C[1], n, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// TRM-6: a child is out of reach for longer than its parent's log is. What the parent keeps for it
/// bounds what the parent takes.
#[test]
fn a_log_keeps_what_a_child_has_not_taken() {
    let mut script = Script::new(&[None, Some(0)]);
    let entries = u64::from(script.world.settings.log_entries);
    let first = script.multicast(0, both());
    script.delivers(P[0], first, &P, &[0]);
    let place = script.world.log_control(P[0])[TAIL];
    let mut last = first;
    for _ in 0..2 * entries {
        let Ok(message) = script.world.multicast(ClientNumber(1), here(), 24) else { break };
        last = message;
        script.does_come(&P, &[1], 40, |world| world.has_delivered(P[0], message));
    }
    assert!(!script.world.has_delivered(P[0], last), "the log is full");
    assert!(script.world.log_control(P[0])[TAIL] < place + entries);
    script.end();
}

/// TRM-6: replica 2 is out of reach, and writes to its log are under way that are read as they
/// land. The others go once around the log: what lands later must not be of the next lap.
#[test]
fn a_slot_is_not_reused_while_a_write_reads_it() {
    let mut script = Script::new(&[None]);
    script.world.network.borrow_mut().reads_late = true;
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(0, here());
        script.delivers(P[0], message, &P[..2], &[0]);
    }
    script.end();
}

/// TRM-6: replica 0 has a snapshot, and not yet the entry below it that the child lacks. It must
/// not lead before it has that.
#[test]
fn a_replica_with_a_snapshot_does_not_lead_before_its_log_is_whole() {
    let mut script = Script::new(&[None, Some(0)]);
    script.leads(P[1], &P[1..]);
    // The child has all that came before M.
    script.does_come(&[P[1], P[2], C[0], C[1], C[2]], &[], 100, |_| false);
    let decide = |script: &mut Script, client, to| {
        let message = script.multicast(client, to);
        script.delivers(P[2], message, &P[1..], &[client]);
        message
    };
    for _ in 0..3 {
        decide(&mut script, 1, here());
    }
    let m = decide(&mut script, 0, both());
    for _ in 0..script.world.settings.log_entries - 2 {
        decide(&mut script, 1, here());
    }
    script.among(&P[..2], &[], |world| world.restored > 0);
    script.delivers(C[1], m, &[P[0], P[2], C[0], C[1], C[2]], &[]);
    script.end();
}

/// Replica 1 has copied the headers of a log that it was given, and its reads of payloads are under
/// way when that log is given to replica 0. Replica 0 goes once around the log. Replica 1 must not
/// lead with what it reads there then.
#[test]
fn a_payload_that_a_later_leader_has_replaced_is_not_copied() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, first, second) =
        ([P[0], P[2], three, four], [P[1], P[2], three], [P[0], P[2], four]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        for id in others {
            script.delivers(id, message, &others, &[0]);
        }
    }
    script.among(&first, &[], |world| world.reads_payloads(P[1]));
    for _ in 0..script.world.settings.log_entries + 4 {
        let message = script.multicast(1, here());
        script.delivers(P[0], message, &second, &[1]);
        script.delivers(P[2], message, &second, &[1]);
    }
    script.does_come(&first, &[], 100, |_| false);
    script.end();
}

/// TRM-4: replica 1 has X alone. Leader 2 decides Y at that place with two others, and is about to
/// replace X in the log of replica 1. Replica 0 asks for that log meanwhile. It must not read the
/// entries before the log is granted, and the stamp of leader 2 after it: X would count as decided.
#[test]
fn a_log_is_not_read_before_it_is_granted() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    script.leads(P[1], &[P[1], P[2], three]);
    let place = script.world.log_control(P[1])[TAIL];
    script.ordered_by(P[1], 0, here());
    script.leads(P[2], &[P[2], three, four]);
    let y = script.multicast(1, here());
    for id in [P[2], three] {
        script.delivers(id, y, &[P[2], three, four], &[1]);
    }
    let stamp = script.world.log_control(P[2])[STAMP];
    let promised = script.world.replicas[&P[2]].replica.promised();
    script.among(&[P[1], P[2]], &[], |world| world.replicas[&P[1]].replica.promised() == promised);
    let asks = [P[0], P[1], three];
    script.among(&asks, &[], |world| world.replicas[&P[0]].replica.promised() > promised);
    script.moves(&[P[0], three], &asks, 40);
    script.moves(&[P[2]], &[P[1], P[2]], 40);
    assert_eq!(script.world.log_control(P[1])[STAMP], stamp, "it has leader 2's stamp");
    assert_eq!(script.world.ordered_at(P[1], place), Some(y));
    script.does_come(&asks, &[], 100, |_| false);
    script.end();
}

/// Replica 1 copies the log of replica 2, which loses its memory and comes back. Replica 1 must not
/// take what replica 2 has now for the rest.
#[test]
fn a_copy_ends_with_the_replica_that_it_was_made_of() {
    let mut script = Script::of(&[None], 5);
    let [three, four] = [3, 4].map(|rank| ReplicaId { rank: Rank(rank), ..P[0] });
    let (others, next) = ([P[0], P[2], three, four], [P[1], P[2], three, four]);
    for _ in 0..3 {
        let message = script.multicast(0, here());
        for id in others {
            script.delivers(id, message, &others, &[0]);
        }
    }
    script.among(&next, &[], |world| world.reads_payloads(P[1]));
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    script.does_come(&next, &[], 100, |_| false);
    script.end();
}

/// The parent's leader passes a message on while it alone has it, and is lost with the client.
/// Nothing more goes from the parent to the child. What a client multicasts to the child alone must
/// not wait behind the lost message.
#[test]
fn a_lost_message_that_was_passed_on_does_not_hold_up_the_child() {
    let mut script = Script::new(&[None, Some(0)]);
    let tail = script.world.log_control(C[0])[TAIL];
    script.multicast(0, both());
    script.among(&[P[0], C[0], C[1], C[2]], &[0], |world| {
        C.iter().all(|id| world.log_control(*id)[TAIL] > tail)
    });
    assert_eq!(script.world.log_control(C[0])[DECIDED], tail, "the parent has not decided it");
    script.world.crash_client(ClientNumber(0));
    script.world.crash_replica(P[0]);
    let message = script.multicast(1, Destinations::of(GroupId(1)));
    script.delivers(C[1], message, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    script.world.start_replica(P[0], false);
    script.end();
}

/// The parent's leader passes two messages on while it alone has them, and is deposed. The next one
/// orders a null at the position of the first, and nothing at that of the second. The child must
/// not take the second: what a client multicasts to the child alone would wait behind it.
#[test]
fn what_a_deposed_leader_passed_on_is_not_taken_behind_the_next_ones_null() {
    let mut script = Script::new(&[None, Some(0)]);
    let tail = script.world.log_control(P[0])[TAIL];
    for _ in 0..2 {
        script.multicast(0, both());
    }
    script.among(&P[..1], &[0], |world| world.log_control(P[0])[TAIL] == tail + 2);
    script.moves(&P[..1], &[P[0], C[0], C[1], C[2]], 20);
    script.world.crash_client(ClientNumber(0));
    script.leads(P[1], &P[1..]);
    let message = script.multicast(1, Destinations::of(GroupId(1)));
    script.delivers(C[1], message, &[P[1], P[2], C[0], C[1], C[2]], &[1]);
    script.end();
}

/// TRM-7: all connections of a client break before a reply to its message comes. The replicas show
/// their replies over the new ones, also one that took a snapshot instead of the message.
#[test]
fn a_client_that_was_away_is_told_who_delivered() {
    let mut script = Script::new(&[None]);
    let a = script.multicast_for(0, here(), Answers::All);
    let tail = script.world.log_control(P[0])[TAIL];
    script.among(&P[..2], &[0], |world| world.log_control(P[0])[TAIL] > tail);
    for id in [P[0], P[1]] {
        script.delivers(id, a, &P[..2], &[]);
    }
    script.world.crash_replica(P[2]);
    script.world.start_replica(P[2], false);
    assert!(script.world.has_delivered(P[2], a), "its snapshot has it");
    for id in P {
        script.world.connect_client(ClientNumber(0), id);
    }
    assert!(!script.world.sent[&a].answered);
    script.among(&P, &[0], |world| world.sent[&a].answered);
    script.end();
}

/// TRM-7: replica 2 delivers a client's message after the client has come again. Its reply must not
/// answer the message of the same number that the client multicasts now.
#[test]
fn a_reply_to_a_former_self_answers_nothing() {
    let mut script = Script::new(&[None]);
    let number = ClientNumber(0);
    script.world.crash_client(number);
    script.world.start_client(number);
    let before = script.multicast(0, here());
    for id in &P[..2] {
        script.delivers(*id, before, &P[..2], &[0]);
    }
    script.world.crash_client(number);
    script.world.start_client(number);
    script.delivers(P[2], before, &P, &[]);
    script.world.allow_only(&P, &[number]);
    for _ in 0..10 {
        P.iter().for_each(|id| script.world.step_replica(*id));
        while script.world.network.borrow_mut().deliver_if_any_can() {}
    }
    script.world.allow_only(&[], &[]);
    let message = script.multicast(0, here());
    assert_eq!(message.number, before.number);
    script.world.step_client(number);
    assert!(!script.world.sent[&message].answered);
    script.end();
}

/// TRM-7: a client's message is in the log of the next leader, which has not delivered it, and in
/// the client's ring there: it is ordered once.
#[test]
fn a_clients_message_is_ordered_once_by_two_leaders() {
    let mut script = Script::new(&[None]);
    let a = script.multicast(0, here());
    let before = script.world.log_control(P[1]);
    script.among(&P[..2], &[0], |world| world.log_control(P[1])[TAIL] > before[TAIL]);
    assert_eq!(script.world.log_control(P[1])[DECIDED], before[DECIDED]);
    script.leads(P[1], &P[1..]);
    script.delivers(P[2], a, &P[1..], &[0]);
    let b = script.multicast(0, here());
    script.delivers(P[2], b, &P[1..], &[0]);
    script.end();
}

/// TRM-7: a client has written a message to one replica alone when it comes again elsewhere. That
/// replica leads next, and has not met the client's new incarnation: the message is void.
#[test]
fn what_an_old_incarnation_left_unordered_is_void() {
    let mut script = Script::new(&[None]);
    let client = ClientNumber(0);
    let x = script.multicast(0, here());
    assert!(!script.does_come(&P[1..2], &[0], 20, |world| world.has_delivered(P[1], x)));
    script.world.silence_client(client);
    script.world.start_client_towards(client, &P[..1]);
    let y = script.multicast(0, here());
    script.delivers(P[1], y, &P[..2], &[0]);
    script.leads(P[1], &P[1..]);
    let is_ordered = script.does_come(&P[1..], &[], 300, |world| world.has_delivered(P[1], x));
    assert!(!is_ordered, "its client has come again");
    script.world.connect_client(client, P[1]);
    script.world.connect_client(client, P[2]);
    script.end();
}
