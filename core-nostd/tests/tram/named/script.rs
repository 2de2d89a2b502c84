//! A world in which a test says which processes reach each other, and until when.

use tramontane_core::ids::{ClientNumber, GroupId, Rank};
use tramontane_core::tram::{Answers, Destinations, MessageId, ReplicaId};

use crate::judge::{missing, safety};
use crate::world::{Settings, World};

pub(super) const P: [ReplicaId; 3] = group(0);
pub(super) const C: [ReplicaId; 3] = group(1);

const fn group(group: u16) -> [ReplicaId; 3] {
    let group = GroupId(group);
    [
        ReplicaId { group, rank: Rank(0) },
        ReplicaId { group, rank: Rank(1) },
        ReplicaId { group, rank: Rank(2) },
    ]
}

pub(super) const STAMP: usize = 0;
pub(super) const TAIL: usize = 1;
pub(super) const DECIDED: usize = 2;

/// A scripted world.
pub(super) struct Script {
    pub(super) world: World,
}

impl Script {
    /// Opens a world in which all groups have leaders, all logs have their stamps, and each client
    /// is registered in all groups.
    pub(super) fn new(parents: &[Option<u16>]) -> Self {
        Self::of(parents, 3)
    }

    pub(super) fn of(parents: &[Option<u16>], replicas: u16) -> Self {
        Self::with(parents, replicas, Settings::default())
    }

    /// Opens a world in which a parent writes to all replicas of a child, rather than only to its
    /// leader.
    pub(super) fn serving_all(parents: &[Option<u16>]) -> Self {
        Self::with(parents, 3, Settings { leaders_alone: false, ..Settings::default() })
    }

    /// Opens a world whose entries refer to the payloads of the script's messages.
    pub(super) fn by_reference(parents: &[Option<u16>]) -> Self {
        Self::with(parents, 3, Settings { references_from: 16, ..Settings::default() })
    }

    /// Opens a world like `by_reference`, in which a step takes the payload of one message.
    pub(super) fn by_reference_one_a_step(parents: &[Option<u16>]) -> Self {
        let settings = Settings { references_from: 16, run_bytes: 1, ..Settings::default() };
        Self::with(parents, 3, settings)
    }

    /// Opens a world like `by_reference`, with more replicas and clients.
    pub(super) fn by_reference_of(replicas: u16, clients: u16) -> Self {
        let settings = Settings { references_from: 16, clients, ..Settings::default() };
        Self::with(&[None], replicas, settings)
    }

    /// Opens a world like `by_reference`, in which a list to a log has room for one payload.
    pub(super) fn by_reference_in_short_lists(parents: &[Option<u16>]) -> Self {
        let settings =
            Settings { references_from: 16, write_bytes_max: 400, ..Settings::default() };
        Self::with(parents, 3, settings)
    }

    /// Opens a world in which a list to a log has room for several writes, but for few bytes.
    pub(super) fn in_short_lists(parents: &[Option<u16>]) -> Self {
        let settings = Settings { writes_max: 8, write_bytes_max: 400, ..Settings::default() };
        Self::with(parents, 3, settings)
    }

    fn with(parents: &[Option<u16>], replicas: u16, settings: Settings) -> Self {
        let settings = Settings { log_entries: 32, ..settings };
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
                // All others continue, so that those of the other group hear each other.
                let others: Vec<ReplicaId> =
                    all.iter().copied().filter(|id| Some(*id) != leader).collect();
                script.leads(group[0], &others);
            }
        }
        script.among(&all, &[0, 1], |world| {
            let stamp = |id: &ReplicaId| world.log_control(*id)[STAMP];
            all.iter().all(|id| stamp(id) == stamp(&ReplicaId { rank: Rank(0), ..*id }))
        });
        script
    }

    /// Runs some replicas and clients until a condition holds, which is checked after each step and
    /// each write that lands.
    pub(super) fn among(
        &mut self,
        ids: &[ReplicaId],
        clients: &[u16],
        holds: impl Fn(&World) -> bool,
    ) {
        let does_come = self.does_come(ids, clients, 4_000, holds);
        assert_eq!(self.world.complaints.first(), None);
        assert!(does_come, "it does not come to that");
    }

    pub(super) fn does_come(
        &mut self,
        ids: &[ReplicaId],
        clients: &[u16],
        rounds: usize,
        holds: impl Fn(&World) -> bool,
    ) -> bool {
        let numbers: Vec<ClientNumber> = clients.iter().copied().map(ClientNumber).collect();
        self.world.allow_only(ids, &numbers);
        self.goes_on(ids, clients, rounds, holds)
    }

    /// Runs the replicas like `does_come`, without changing which processes reach each other.
    pub(super) fn goes_on(
        &mut self,
        ids: &[ReplicaId],
        clients: &[u16],
        rounds: usize,
        holds: impl Fn(&World) -> bool,
    ) -> bool {
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
            for number in clients {
                self.world.step_client(ClientNumber(*number));
            }
            self.world.now += 200 * ids.len() as u64;
            self.world.reconnect();
        }
        false
    }

    /// Lets some replicas deliver messages from a client, one at a time, while the other replicas
    /// do not hear of them.
    pub(super) fn go_on(&mut self, among: &[ReplicaId], client: u16, messages: u32) -> MessageId {
        let mut last = None;
        for _ in 0..messages {
            let message = self.multicast(client, here());
            self.among(among, &[client], |world| {
                let is_there = |id: &ReplicaId| world.has_delivered(*id, message);
                world.sent[&message].answered && among.iter().all(is_there)
            });
            last = Some(message);
        }
        last.expect("some")
    }

    /// Lets some replicas step `rounds` times, while writes and reads land among `reached`.
    pub(super) fn moves(&mut self, stepping: &[ReplicaId], reached: &[ReplicaId], rounds: usize) {
        self.world.allow_only(reached, &[]);
        for _ in 0..rounds {
            for id in stepping {
                self.world.step_replica(*id);
                while self.world.network.borrow_mut().deliver_if_any_can() {}
            }
            self.world.now += 200;
        }
    }

    /// Ends the connection between two replicas.
    pub(super) fn disconnect(&mut self, replicas: [ReplicaId; 2]) {
        let processes = replicas.map(|id| self.world.process_of(id).expect("it runs"));
        self.world.network.borrow_mut().disconnect(processes);
    }

    /// Runs all replicas and a client for `rounds` rounds while time stands still, so that no
    /// heartbeat is due.
    pub(super) fn at_one_moment(&mut self, client: u16, rounds: usize) {
        let (all, now) = (self.world.ids(), self.world.now);
        for _ in 0..rounds {
            self.moves(&all, &all, 1);
            self.world.now = now;
            self.world.allow_only(&all, &[ClientNumber(client)]);
            self.world.step_client(ClientNumber(client));
            while self.world.network.borrow_mut().deliver_if_any_can() {}
        }
    }

    /// Lets a replica become leader by a campaign among some replicas.
    pub(super) fn leads(&mut self, id: ReplicaId, among: &[ReplicaId]) {
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

    /// Multicasts a client's message that only one replica orders.
    pub(super) fn ordered_by(&mut self, id: ReplicaId, client: u16, to: Destinations) -> MessageId {
        let message = self.multicast(client, to);
        let tail = self.world.log_control(id)[TAIL];
        self.among(&[id], &[client], |world| world.log_control(id)[TAIL] > tail);
        message
    }

    pub(super) fn multicast(&mut self, client: u16, to: Destinations) -> MessageId {
        self.multicast_for(client, to, Answers::OneOfEach)
    }

    pub(super) fn multicast_for(
        &mut self,
        client: u16,
        to: Destinations,
        answers: Answers,
    ) -> MessageId {
        self.world.multicast_for(ClientNumber(client), to, 24, answers).expect("there is room")
    }

    pub(super) fn delivers(
        &mut self,
        id: ReplicaId,
        message: MessageId,
        among: &[ReplicaId],
        clients: &[u16],
    ) {
        self.among(among, clients, |world| world.has_delivered(id, message));
    }

    /// Ends the script: all processes reach each other, and nothing may be missing.
    pub(super) fn end(mut self) {
        self.world.network.borrow_mut().heal();
        let is_over = self.world.run_until(400_000, |world| missing(world).is_empty());
        assert_eq!(safety(&self.world), Vec::<String>::new());
        assert!(is_over, "{:?}", missing(&self.world));
    }
}

pub(super) fn here() -> Destinations {
    Destinations::of(GroupId(0))
}

pub(super) fn both() -> Destinations {
    here().with(GroupId(1))
}
