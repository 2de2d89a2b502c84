//! The module `tram`: an overlay of two groups, their replicas and a client, in the same memory. A
//! leader is elected, both groups deliver a message, and a snapshot is carried from one replica to
//! another.

use core::hint::black_box;

use super::{debug, display};
use crate::entries;
use tramontane_core::fabric::*;
use tramontane_core::ids::*;
use tramontane_core::memory::{Line, Row, RowWriter};
use tramontane_core::tram::*;

const LOG_LINES: usize = 1024;
const ROW_LINES: usize = 64;
const REPLICAS: usize = 4;
const PROCESSES: usize = REPLICAS + 1;
const LINKS: usize = 8;

/// Rows of each process in its view with each other process. A process's own row has that process's
/// index first.
static ROWS: [[[Line; ROW_LINES]; PROCESSES]; PROCESSES] =
    [const { [const { [const { Line::new() }; ROW_LINES] }; PROCESSES] }; PROCESSES];
static LOGS: [[Line; LOG_LINES]; REPLICAS] =
    [const { [const { Line::new() }; LOG_LINES] }; REPLICAS];

pub fn call() {
    values();
    let groups = black_box([
        Group { parent: None, replicas: 3 },
        Group { parent: Some(GroupId(0)), replicas: 1 },
    ]);
    let limits = black_box(Limits {
        clients: 1,
        log_entries: 8,
        client_window: 2,
        parent_window: 2,
        payload_max: 64,
    });
    match Overlay::new(&groups, limits) {
        Ok(overlay) => {
            tree(&overlay);
            group(&overlay);
        }
        Err(error) => display(error),
    }
}

fn values() {
    let timestamp = Timestamp::new(black_box(3), black_box(1), black_box(Rank(2)));
    display(timestamp);
    debug((timestamp.round(), timestamp.rank(), Timestamp::from_cell(timestamp.cell())));
    for error in [
        OverlayError::NoGroups,
        OverlayError::TooManyGroups,
        OverlayError::Replicas(GroupId(1)),
        OverlayError::UnknownParent(GroupId(1)),
        OverlayError::Cycle(GroupId(1)),
        OverlayError::SecondRoot(GroupId(1)),
        OverlayError::TooManyChildren(GroupId(1)),
        OverlayError::Limits,
    ] {
        display(black_box(error));
    }
    for error in [
        OpenError::NoSuchReplica,
        OpenError::StateTooSmall,
        OpenError::FabricPromises,
        OpenError::FabricTooSmall,
    ] {
        display(black_box(error));
    }
    for error in [
        SendError::Full,
        SendError::TooLong,
        SendError::NoDestination,
        SendError::UnknownDestination,
        SendError::Closed,
    ] {
        display(black_box(error));
    }
    for halt in [Halt::OutOfRow, Halt::NotContinued, Halt::NoEntry] {
        display(black_box(halt));
    }
}

fn tree(overlay: &Overlay) {
    let set = Destinations::of(black_box(GroupId(0))).with(black_box(GroupId(1)));
    debug((set.count(), set.contains(black_box(GroupId(1))), set.meets(overlay.all())));
    black_box((set.is_within(overlay.all()), set.iter().last(), overlay.len()));
    black_box((overlay.is_empty(), overlay.limits(), overlay.digest()));
    black_box(overlay.clone().with_references(black_box(16)).references_from());
    black_box(overlay.clone().with_answers(black_box(16)).answer_max());
    black_box((overlay.parent(black_box(GroupId(1))), overlay.reach(black_box(GroupId(0)))));
    black_box((overlay.children(GroupId(0)).last(), overlay.quorum(black_box(GroupId(0)))));
    black_box((overlay.children_count(GroupId(0)), overlay.replicas(black_box(GroupId(1)))));
    black_box(overlay.lowest_common_ancestor(black_box(set)));
    let shape = Shape::of(overlay, black_box(GroupId(0)));
    black_box((shape.entries(), shape.log_bytes(), shape.payload_max(), shape.list_bytes()));
    black_box((shape.peer_row_bytes(), shape.client_row_bytes(), shape.child_row_bytes()));
    black_box((shape.reply_row_bytes(black_box(2)), shape.parent_row_bytes()));
    black_box(ReplicaBytes::of(overlay, black_box(GroupId(0))));
    let links = ReplicaLinks::of(overlay, black_box(GroupId(0)));
    let other = ReplicaId { group: GroupId(1), rank: Rank(0) };
    display(black_box(other));
    black_box((links.len(), links.is_empty(), links.role(black_box(LinkId(3)))));
    black_box(links.find_replica(overlay, GroupId(0), black_box(other)));
    let links = ClientLinks::of(overlay);
    black_box((links.len(), links.is_empty(), links.replica(black_box(LinkId(3)))));
}

/// The memory of one process, with the process at the other end of each of its links.
struct Lent<'l> {
    process: usize,
    peers: &'l [Option<usize>; LINKS],
}

impl Memory for Lent<'_> {
    fn log(&self) -> RowWriter<'_> {
        RowWriter::from_lines(LOGS.get(self.process).map_or(&[], |log| &log[..]))
    }

    fn link(&self, link: LinkId) -> Option<(RowWriter<'_>, Row<'_>)> {
        let peer = (*self.peers.get(link.index())?)?;
        let own = ROWS.get(self.process)?.get(peer)?;
        let theirs = ROWS.get(peer)?.get(self.process)?;
        Some((RowWriter::from_lines(own), Row::from_lines(theirs)))
    }
}

/// A fabric in which all rows are shared and a log accepts the writes that its owner has granted. A
/// view's id contains its two processes.
struct Shared {
    process: usize,
    granted: [Option<usize>; REPLICAS],
    done: heapless::Vec<Token, 64>,
}

/// For each process, the process that may write to its log.
type Rights = [Option<usize>; REPLICAS];

fn peer_of(view: ViewId, process: usize) -> usize {
    let pair = usize::try_from(view.0).unwrap_or(0);
    let (low, high) = (pair & 0xff, (pair >> 8) & 0xff);
    if low == process { high } else { low }
}

fn view_of(one: usize, other: usize) -> ViewId {
    let (low, high) = (one.min(other), one.max(other));
    ViewId(u64::try_from(low | (high << 8)).unwrap_or(0))
}

impl Shared {
    fn copy(&self, from: (usize, usize), to: (usize, usize), length: usize) -> Option<()> {
        let (source, target) = (LOGS.get(from.0)?, LOGS.get(to.0)?);
        let writer = RowWriter::from_lines(target);
        writer.copy_from(to.1, &Row::from_lines(source), from.1, length).ok()
    }
}

impl Fabric for Shared {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        Capabilities {
            promises: Promises::all(),
            writes_max: 8,
            write_bytes_max: 1 << 16,
            guard_bytes_max: 24,
            write_overhead_bytes: 24,
        }
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn ready(&self, _: ViewId, _: Rank) -> bool {
        black_box(true)
    }

    fn cut(&mut self, _: ViewId, _: Rank) {}

    fn retire(&mut self, _: ViewId) -> bool {
        true
    }

    fn post(
        &mut self,
        view: ViewId,
        _: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        let peer = peer_of(view, self.process);
        for write in writes.iter().filter(|write| write.target.region == LOG) {
            if self.granted.get(peer) != Some(&Some(self.process)) {
                return Err(ErrorKind::Revoked);
            }
            if write.source.region == LOG {
                let from = (self.process, write.source.offset);
                self.copy(from, (peer, write.target.offset), write.length)
                    .ok_or(ErrorKind::OutOfRange)?;
                continue;
            }
            let own = ROWS.get(self.process).and_then(|rows| rows.get(peer));
            let (own, log) = (own.ok_or(ErrorKind::Other)?, LOGS.get(peer));
            let log = RowWriter::from_lines(log.ok_or(ErrorKind::OutOfRange)?);
            let row = Row::from_lines(own);
            log.copy_from(write.target.offset, &row, write.source.offset, write.length)
                .map_err(|_| ErrorKind::OutOfRange)?;
        }
        match token {
            Some(token) => self.done.push(token).map_err(|_| ErrorKind::QueueFull),
            None => Ok(()),
        }
    }

    fn poll(&mut self) -> Option<Event> {
        self.done.pop().map(Event::Completed)
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        true
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}

impl Permissions for Shared {
    fn grant(&mut self, view: ViewId, _: Rank, _: Region) -> Result<(), ErrorKind> {
        let peer = peer_of(view, self.process);
        if let Some(granted) = self.granted.get_mut(self.process) {
            *granted = Some(peer);
        }
        Ok(())
    }

    fn revoke(&mut self, _: ViewId, _: Rank, _: Region) -> Result<(), ErrorKind> {
        if let Some(granted) = self.granted.get_mut(self.process) {
            *granted = None;
        }
        Ok(())
    }

    fn may_write(&self, view: ViewId, _: Rank, _: Region) -> bool {
        self.granted.get(self.process) == Some(&Some(peer_of(view, self.process)))
    }

    fn read(
        &mut self,
        view: ViewId,
        _: Rank,
        source: Area,
        into: Area,
        length: usize,
        token: Token,
    ) -> Result<(), ErrorKind> {
        let from = (peer_of(view, self.process), source.offset);
        self.copy(from, (self.process, into.offset), length).ok_or(ErrorKind::OutOfRange)?;
        self.done.push(token).map_err(|_| ErrorKind::QueueFull)
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        None
    }
}

/// Returns the fabric of a process for one step, with the permissions of all processes.
fn end(process: usize, rights: Rights, done: heapless::Vec<Token, 64>) -> Shared {
    Shared { process, granted: rights, done }
}

const fn id(process: usize) -> ReplicaId {
    match process {
        0 => ReplicaId { group: GroupId(0), rank: Rank(0) },
        1 => ReplicaId { group: GroupId(0), rank: Rank(1) },
        2 => ReplicaId { group: GroupId(0), rank: Rank(2) },
        _ => ReplicaId { group: GroupId(1), rank: Rank(0) },
    }
}

/// Returns the process at the other end of each link of a replica.
fn peers_of(overlay: &Overlay, process: usize) -> [Option<usize>; LINKS] {
    let mut peers = [None; LINKS];
    let links = ReplicaLinks::of(overlay, id(process).group);
    for other in (0..REPLICAS).filter(|other| *other != process) {
        let link = links.find_replica(overlay, id(process).group, id(other));
        if let Some(place) = link.and_then(|link| peers.get_mut(link.index())) {
            *place = Some(other);
        }
    }
    let client = links.find(LinkRole::Client(ClientNumber(0)));
    if let Some(place) = client.and_then(|link| peers.get_mut(link.index())) {
        *place = Some(REPLICAS);
    }
    peers
}

fn group(overlay: &Overlay) {
    let options = ReplicaOptions { heartbeat_ns: 1, is_durable: true, ..ReplicaOptions::default() };
    let options = black_box(options);
    let capabilities = end(0, [None; REPLICAS], heapless::Vec::new()).capabilities();
    let mut links = [[LinkState::default(); LINKS]; REPLICAS];
    let mut sources = [[SourceState::default(); 2]; REPLICAS];
    let mut payloads = [[0; 64]; REPLICAS];
    let mut replies = [[0; 3]; REPLICAS];
    let lent = links.iter_mut().zip(sources.iter_mut()).zip(payloads.iter_mut());
    let lent = lent.zip(replies.iter_mut());
    let mut replicas: heapless::Vec<Replica<'_>, REPLICAS> = heapless::Vec::new();
    for (process, (((links, sources), payload), replies)) in (0..REPLICAS).zip(lent) {
        let id = id(process);
        let replies = replies.get_mut(..Replica::reply_cells(overlay)).unwrap_or(&mut []);
        let lent = LentState { links, sources, replies, payload };
        match Replica::open(overlay, id, options, capabilities, lent) {
            Ok(replica) => {
                let _ = replicas.push(replica);
            }
            Err(error) => display(error),
        }
    }
    let mut state = [ClientLink::default(); LINKS];
    let mut groups = [GroupState::default(); 2];
    let mut messages = [MessageState::default(); 2];
    let mut payload = [0; 128];
    let options = black_box(ClientOptions { number: ClientNumber(0), incarnation: 1 });
    let Ok(mut client) = Client::open(
        overlay,
        options,
        capabilities,
        &mut state,
        &mut groups,
        &mut messages,
        &mut payload,
    ) else {
        return;
    };
    let delivered = run(overlay, &mut replicas, &mut client);
    black_box(delivered);
}

fn run(overlay: &Overlay, replicas: &mut [Replica<'_>], client: &mut Client<'_>) -> u32 {
    let mut peers = [[None; LINKS]; PROCESSES];
    for (process, peers) in (0..REPLICAS).zip(peers.iter_mut()) {
        *peers = peers_of(overlay, process);
    }
    if let Some(of_client) = peers.get_mut(REPLICAS) {
        for process in 0..REPLICAS {
            let link = client.links().find(id(process));
            if let Some(place) = link.and_then(|link| of_client.get_mut(link.index())) {
                *place = Some(process);
            }
        }
    }
    attach(replicas, client, &peers);
    let mut rights: Rights = [None; REPLICAS];
    let mut delivered = 0_u32;
    let to = Destinations::of(GroupId(0)).with(GroupId(1));
    for now in 1..black_box(60_u64) {
        if now == black_box(30) {
            debug(client.multicast(to, black_box(&[1, 2, 3]), black_box(Answers::All)));
        }
        for (process, replica) in (0..REPLICAS).zip(replicas.iter_mut()) {
            let Some(peers) = peers.get(process) else { continue };
            let memory = Lent { process, peers };
            let mut fabric = end(process, rights, heapless::Vec::new());
            // Posts complete at once, but only the second step sees their completions.
            for _ in 0..2 {
                let mut deliver = |message: &Delivered<'_>| {
                    delivered = delivered.saturating_add(1);
                    black_box(message.payload.len());
                    1
                };
                let stepped = entries::replica_step(|| {
                    replica.step(Time(now), &mut fabric, &memory, &mut deliver)
                });
                black_box(stepped.map(|progress| progress.is_idle()).ok());
            }
            save(replica, &memory);
            rights = fabric.granted;
        }
        let Some(peers) = peers.get(REPLICAS) else { continue };
        let memory = Lent { process: REPLICAS, peers };
        let mut fabric = end(REPLICAS, rights, heapless::Vec::new());
        let stepped = entries::client_step(|| client.step(Time(now), &mut fabric, &memory));
        black_box(stepped.is_ok());
        while let Some(answered) = client.poll() {
            client.replies(&answered, &memory, |replica, answer, leads| {
                let length = client.answer(&answered, replica, &memory, black_box(&mut [0; 8]));
                black_box((replica, answer, leads, length));
            });
            black_box(client.has_answers());
        }
        if now == black_box(50) {
            client.leave();
            black_box(client.has_left(&memory).is_ok());
        }
    }
    black_box((client.under_way(), client.is_closed(), client.stage(black_box(LinkId(1)))));
    client.detach(black_box(LinkId(1)));
    snapshot(replicas, &peers);
    if let Some(peers) = peers.first() {
        recover(replicas, &Lent { process: 0, peers });
    }
    delivered
}

fn attach(
    replicas: &mut [Replica<'_>],
    client: &mut Client<'_>,
    peers: &[[Option<usize>; LINKS]; PROCESSES],
) {
    for (process, peers) in (0..PROCESSES).zip(peers.iter()) {
        let memory = Lent { process, peers };
        for (link, peer) in (0..LINKS).zip(peers.iter()) {
            let (Ok(link), Some(peer)) = (u16::try_from(link), *peer) else { continue };
            let attachment = Attachment {
                view: view_of(process, peer),
                peer: Rank(u16::from(peer > process)),
                incarnation: 1,
            };
            let link = LinkId(link);
            let attached = match replicas.get_mut(process) {
                Some(replica) => replica.attach(Time(0), link, attachment, &memory),
                None => client.attach(Time(0), link, attachment, &memory),
            };
            black_box(attached.is_ok());
        }
    }
}

/// Saves what a step has left unsaved, on a disk that forgets it.
fn save(replica: &mut Replica<'_>, memory: &Lent<'_>) {
    if let Ok(Some(Unsaved { from, record })) = replica.take_unsaved(memory) {
        let mut buffer = [0; 1024];
        black_box(replica.copy_entry(black_box(from), memory, &mut buffer).is_ok());
        let record = LogRecord::from_cells(black_box(record.cells()));
        black_box((record.tail(), record.is_voter()));
        replica.saved(record);
    }
}

/// Puts the last entries of one replica into another.
fn recover(replicas: &mut [Replica<'_>], memory: &Lent<'_>) {
    let Some((first, rest)) = replicas.split_first_mut() else { return };
    let Some(second) = rest.first_mut() else { return };
    let (record, mut buffer) = (first.taken_record(), [0; 1024]);
    let mut deliver = |message: &Delivered<'_>| black_box(message.payload.len() < 4).into();
    for place in 0..black_box(record.tail()) {
        let copied = first.copy_entry(place, memory, &mut buffer);
        let bytes = copied.ok().flatten().and_then(|length| buffer.get(..length));
        let entry = (place, black_box(bytes.unwrap_or(&[])));
        black_box(second.recover_entry(&record, entry, memory, &mut deliver).is_ok());
    }
    black_box(second.recover(&record, memory).is_ok());
    let shown = first.shown_by(black_box(LinkId(1)), memory).unwrap_or_default();
    let saved = LeastSaved::from_cells(black_box(second.least_saved().cells()));
    black_box((saved.covers(&shown), saved.and(&shown)));
}

fn snapshot(replicas: &mut [Replica<'_>], peers: &[[Option<usize>; LINKS]; PROCESSES]) {
    let [first, second, ..] = replicas else { return };
    let mut cells = [0; 16];
    let count = first.snapshot_cells();
    if let Some(cells) = cells.get_mut(..count) {
        black_box(first.snapshot(cells));
        if let Some(peers) = peers.get(1) {
            black_box(second.wants_snapshot(black_box(cells)));
            black_box(second.restore(cells, &Lent { process: 1, peers }).is_ok());
        }
    }
    black_box((first.id(), first.is_leader(), first.is_voter(), first.promised()));
    black_box((first.delivered(), first.needs_snapshot(), first.links().len()));
    black_box(first.stage(black_box(LinkId(1))));
    if let Some(peers) = peers.first() {
        let memory = Lent { process: 0, peers };
        black_box(first.log_counts(&memory).is_ok());
        black_box(first.is_voting_here(black_box(Rank(1)), &memory).is_ok());
    }
    let mut posting = Posting::new(&end(0, [None; REPLICAS], heapless::Vec::new()).capabilities());
    let area = Area { region: LOG, offset: black_box(64) };
    black_box((posting.room(), posting.content(area, area, 8), posting.guard(area, area, 8)));
    black_box(posting.writes().len());
    first.detach(Time(99), black_box(LinkId(1)));
}
