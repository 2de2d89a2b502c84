//! A network of processes for tests, with views of two members, regions with permissions, and
//! writes that land piece by piece at times chosen by a seed.

mod end;
mod placing;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use tramontane_core::fabric::{ErrorKind, Event, LossCause, PermissionEvent, Region, Token};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};

use super::random::Random;
pub use end::{NetworkEnd, capabilities};
use placing::Placing;

/// The two rows of a view at one of its members.
pub struct RowPair {
    pub own: Vec<Line>,
    pub copy: Vec<Line>,
}

fn lines(bytes: usize) -> Vec<Line> {
    (0..bytes.div_ceil(64)).map(|_| Line::new()).collect()
}

/// A view at one of its two members.
struct ViewEnd {
    process: usize,
    rows: Rc<RowPair>,
}

enum Flight {
    /// Bytes that land at an offset of a region, and the number that have landed.
    Write { region: Region, offset: usize, bytes: FlightBytes, landed: usize },
    /// All earlier writes have landed.
    Done(Token),
    /// A part of the target's region is read into the local region.
    Read { source: usize, into: usize, length: usize, done: usize, token: Token },
}

enum FlightBytes {
    /// The bytes as they were when posted.
    Taken(Vec<u8>),
    /// The bytes are read from the writer's memory when they land.
    Late { region: Region, offset: usize, length: usize },
}

struct NetworkView {
    ends: [ViewEnd; 2],
    /// Writes in flight, indexed by the rank of the writer.
    flights: [VecDeque<Flight>; 2],
    /// Writes that have completed but are not visible yet, indexed by the rank of the writer.
    placing: [VecDeque<Placing>; 2],
    /// Whether the peer's log refuses the writer's writes until the writer knows of the denial,
    /// indexed by the rank of the writer.
    denied: [bool; 2],
    /// Whether the writer knows that its peer is ready, indexed by the rank of the writer.
    knows_ready: [bool; 2],
}

struct NetworkProcess {
    is_alive: bool,
    log: Rc<Vec<Line>>,
    /// Views whose peers may write to the log.
    rights: BTreeSet<ViewId>,
    events: VecDeque<Event>,
    permissions: VecDeque<PermissionEvent>,
}

/// The whole network.
pub struct TestNetwork {
    processes: Vec<NetworkProcess>,
    /// Views, indexed by id, from zero.
    views: Vec<Option<NetworkView>>,
    /// Links with something in flight, each listed once: a view, and the rank of its writer.
    busy: Vec<(usize, usize)>,
    /// Pairs of processes, from and to, between which nothing moves.
    blocked: BTreeSet<(usize, usize)>,
    pub random: Random,
    /// Whether a write lands in one piece.
    pub lands_whole: bool,
    /// Whether all contents are read when they land, rather than only half of them.
    pub reads_late: bool,
    pub pieces: u64,
    pub denials: u64,
    /// Percentage of calls that are refused once; an idle event is returned equally often.
    pub refuses: usize,
    pub refusals: u64,
    whims: Random,
    /// Number of accepted lists, by the process that posted them.
    pub lists: BTreeMap<usize, u64>,
    /// Maximum number of bytes in a write, in a list to a log, and in a read.
    pub write_bytes_max: usize,
    /// Maximum number of writes in a list.
    pub writes_max: usize,
    /// Probability in percent that a piece lands when a process, during its step, asks for the rows
    /// of a link.
    pub lands_within: usize,
    /// Whether views connected now stay unready.
    pub is_slow_to_open: bool,
    /// If not zero, writes complete before they are visible. Probability in percent that such a
    /// write is placed next, rather than another one taken.
    pub places_percent: usize,
    /// Number of writes that were lost after they had completed.
    pub discarded: u64,
    /// Whether the last of a process's reads in flight from a peer is carried out first.
    pub reads_last_first: bool,
}

impl TestNetwork {
    pub fn new(seed: u64) -> Rc<RefCell<Self>> {
        Rc::new(RefCell::new(Self {
            processes: Vec::new(),
            views: vec![None],
            busy: Vec::new(),
            blocked: BTreeSet::new(),
            random: Random::new(seed),
            lands_whole: false,
            reads_late: false,
            pieces: 0,
            denials: 0,
            refuses: 0,
            refusals: 0,
            whims: Random::new(seed ^ 0x77),
            lists: BTreeMap::new(),
            write_bytes_max: capabilities().write_bytes_max,
            writes_max: capabilities().writes_max,
            lands_within: 0,
            is_slow_to_open: false,
            places_percent: 0,
            discarded: 0,
            reads_last_first: false,
        }))
    }

    /// Decides whether a call is refused.
    fn refuse(&mut self) -> Result<(), ErrorKind> {
        if self.refuses == 0 || !self.whims.chance(self.refuses) {
            return Ok(());
        }
        self.refusals += 1;
        Err(ErrorKind::QueueFull)
    }

    /// Occasionally returns an event without meaning.
    fn idle_event(&mut self) -> Option<Event> {
        self.refuse().err()?;
        // No view has these ids, and no link without a view has them either.
        let view = ViewId(if self.whims.chance(50) { 0 } else { u64::MAX });
        let peer = Rank(0);
        Some(match self.whims.below(4) {
            0 => Event::Woken,
            1 => Event::Ready { view, peer },
            2 => Event::PeerLost { view, peer, cause: LossCause::Left },
            // The token of a list that no process in this test has posted.
            _ => Event::Completed(Token(u64::MAX)),
        })
    }

    /// Adds a process with `log_bytes` bytes of log.
    pub fn add(&mut self, log_bytes: usize) -> usize {
        self.processes.push(NetworkProcess {
            is_alive: true,
            log: Rc::new(lines(log_bytes)),
            rights: BTreeSet::new(),
            events: VecDeque::new(),
            permissions: VecDeque::new(),
        });
        self.processes.len() - 1
    }

    pub fn log(&self, process: usize) -> Rc<Vec<Line>> {
        Rc::clone(&self.processes[process].log)
    }

    /// Opens a view of two processes whose rows have `bytes` bytes.
    pub fn connect(
        &mut self,
        processes: [usize; 2],
        bytes: [usize; 2],
    ) -> (ViewId, [Rc<RowPair>; 2]) {
        let view = ViewId(self.views.len() as u64);
        let rows = [0, 1].map(|end: usize| {
            Rc::new(RowPair { own: lines(bytes[end]), copy: lines(bytes[1 - end]) })
        });
        let ends = [0, 1]
            .map(|end: usize| ViewEnd { process: processes[end], rows: Rc::clone(&rows[end]) });
        let flights = [VecDeque::new(), VecDeque::new()];
        self.views.push(Some(NetworkView {
            ends,
            flights,
            placing: [VecDeque::new(), VecDeque::new()],
            denied: [false; 2],
            knows_ready: [false; 2],
        }));
        (view, rows)
    }

    /// Ends a process: its writes in flight are lost, and its peers receive an event.
    pub fn crash(&mut self, process: usize) {
        self.processes[process].is_alive = false;
        self.processes[process].rights.clear();
        for id in 0..self.views.len() {
            for end in 0..2 {
                let Some(view) = self.views[id].as_mut() else { continue };
                if view.ends[end].process == process {
                    view.flights = [VecDeque::new(), VecDeque::new()];
                    let peer = view.ends[1 - end].process;
                    self.processes[peer].events.push_back(Event::PeerLost {
                        view: ViewId(id as u64),
                        peer: Rank(end as u16),
                        cause: LossCause::Exited,
                    });
                    self.end_placing(id, end);
                }
            }
        }
    }

    /// Returns the tokens of a process's reads from its peers' logs.
    pub fn reads(&self, process: usize) -> Vec<Token> {
        let token = |flight: &Flight| match flight {
            Flight::Read { token, .. } => Some(*token),
            Flight::Write { .. } | Flight::Done(_) => None,
        };
        let of_view = |view: &NetworkView| {
            let ends = view.ends.iter().zip(&view.flights);
            let own = ends.filter(|(end, _)| end.process == process);
            own.flat_map(|(_, flights)| flights.iter().filter_map(token)).collect::<Vec<_>>()
        };
        self.views.iter().flatten().flat_map(of_view).collect()
    }

    /// Reports a completion to a process.
    pub fn complete(&mut self, process: usize, token: Token) {
        self.processes[process].events.push_back(Event::Completed(token));
    }

    /// Ends the connections between two processes. Everything in flight on them is lost, and both
    /// processes receive an event.
    pub fn disconnect(&mut self, processes: [usize; 2]) {
        for (id, place) in self.views.iter_mut().enumerate() {
            let Some(view) = place else { continue };
            let ends = [0, 1].map(|end: usize| view.ends[end].process);
            if !processes.iter().all(|process| ends.contains(process)) {
                continue;
            }
            *place = None;
            for (end, process) in ends.into_iter().enumerate() {
                let (view, peer) = (ViewId(id as u64), Rank(1 - end as u16));
                let lost = Event::PeerLost { view, peer, cause: LossCause::Unreachable };
                self.processes[process].events.push_back(lost);
            }
        }
    }

    pub fn block(&mut self, from: usize, to: usize) {
        self.blocked.insert((from, to));
    }

    /// Blocks all traffic except that between these processes.
    pub fn allow_only(&mut self, processes: &[usize]) {
        let all = 0..self.processes.len();
        let ways = all.clone().flat_map(|from| all.clone().map(move |to| (from, to)));
        let is_closed =
            |(from, to): &(usize, usize)| !processes.contains(from) || !processes.contains(to);
        self.blocked = ways.filter(is_closed).collect();
    }

    pub fn heal(&mut self) {
        self.blocked.clear();
    }

    /// Returns the number of reads by a process into the same offset of its own log.
    pub fn reads_in_place(&self, process: usize) -> usize {
        let is_in_place = |flight: &&Flight| match flight {
            Flight::Read { source, into, .. } => source == into,
            Flight::Write { .. } | Flight::Done(_) => false,
        };
        let of_view = |view: &NetworkView| {
            let ends = view.ends.iter().zip(&view.flights);
            let own = ends.filter(|(end, _)| end.process == process);
            own.map(|(_, flights)| flights.iter().filter(is_in_place).count()).sum::<usize>()
        };
        self.views.iter().flatten().map(of_view).sum()
    }

    /// Returns the number of events that a process has not taken yet.
    pub fn events(&self, process: usize) -> usize {
        self.processes[process].events.len()
    }

    /// Returns the processes to which a process has writes in flight.
    pub fn writes_to(&self, process: usize) -> BTreeSet<usize> {
        self.writes_in_order(process).into_iter().collect()
    }

    /// Returns the processes to which a process has writes in flight, in the order in which the
    /// first of these was posted.
    pub fn writes_in_order(&self, process: usize) -> Vec<usize> {
        let target = |(id, end): &(usize, usize)| {
            let view = self.views[*id].as_ref()?;
            let is_writing = view.ends[*end].process == process && !view.flights[*end].is_empty();
            is_writing.then(|| view.ends[1 - end].process)
        };
        let mut targets = Vec::new();
        // A link that was idle in between may be listed twice.
        for process in self.busy.iter().rev().filter_map(target) {
            if !targets.contains(&process) {
                targets.insert(0, process);
            }
        }
        targets
    }

    /// Occasionally lets a piece land while a process is in the middle of its step.
    pub fn move_within_a_step(&mut self) {
        if self.lands_within > 0 && self.whims.chance(self.lands_within) {
            self.deliver_if_any_can();
        }
    }

    /// Lets one piece of something in flight land. Returns false if nothing that was tried can
    /// move.
    pub fn deliver(&mut self) -> bool {
        for _ in 0..4 {
            if self.busy.is_empty() {
                return false;
            }
            let at = self.random.below(self.busy.len());
            match self.open_way(at) {
                None => {
                    self.busy.swap_remove(at);
                }
                Some(true) => {
                    let (id, end) = self.busy[at];
                    self.move_one(ViewId(id as u64), end);
                    return true;
                }
                Some(false) => {}
            }
        }
        false
    }

    /// Lets one piece land like `deliver`, but returns false only if nothing at all can move.
    pub fn deliver_if_any_can(&mut self) -> bool {
        let first = self.random.below(self.busy.len().max(1));
        let mut order = (0..self.busy.len()).map(|at| (first + at) % self.busy.len());
        let Some(at) = order.find(|at| self.open_way(*at) == Some(true)) else { return false };
        let (id, end) = self.busy[at];
        self.move_one(ViewId(id as u64), end);
        true
    }

    /// Returns whether the traffic of a link can move, or `None` if there is none.
    fn open_way(&self, at: usize) -> Option<bool> {
        let (id, end) = self.busy[at];
        let view = self.views[id].as_ref().filter(|view| !view.is_idle(end))?;
        let way = (view.ends[end].process, view.ends[1 - end].process);
        Some(!self.blocked.contains(&way))
    }

    fn view_mut(&mut self, view: ViewId) -> Option<&mut NetworkView> {
        self.views.get_mut(view.0 as usize)?.as_mut()
    }

    /// Marks a link as having something in flight.
    fn is_busy(&mut self, view: ViewId, end: usize, had: usize) {
        if had == 0 {
            self.busy.push((view.0 as usize, end));
        }
    }

    fn move_one(&mut self, id: ViewId, end: usize) {
        self.pieces += 1;
        if self.places_next(id.0 as usize, end) {
            return self.place(id.0 as usize, end);
        }
        let places_late = self.places_percent > 0;
        let piece =
            if self.lands_whole || places_late { usize::MAX } else { 8 << self.random.below(7) };
        let Some(view) = self.views.get_mut(id.0 as usize).and_then(Option::as_mut) else { return };
        let (writer, target) = (view.ends[end].process, view.ends[1 - end].process);
        let own = Rc::clone(&view.ends[end].rows);
        let theirs = Rc::clone(&view.ends[1 - end].rows);
        if self.reads_last_first {
            let is_read = |flight: &Flight| matches!(flight, Flight::Read { .. });
            let last = view.flights[end].iter().rposition(is_read);
            if let (Some(last), true) = (last, view.flights[end].front().is_some_and(is_read)) {
                view.flights[end].swap(0, last);
            }
        }
        let Some(flight) = view.flights[end].front_mut() else { return };
        match flight {
            Flight::Done(token) => {
                let event = Event::Completed(*token);
                view.flights[end].pop_front();
                self.processes[writer].events.push_back(event);
            }
            Flight::Write { region, offset, bytes, landed } => {
                if *region != Region::ROW && !self.processes[target].rights.contains(&id) {
                    // The rest of this list is dropped, together with everything after it to the
                    // region.
                    view.flights[end].retain(|flight| match flight {
                        Flight::Write { region, .. } => *region == Region::ROW,
                        Flight::Done(_) | Flight::Read { .. } => false,
                    });
                    view.denied[end] = true;
                    self.denials += 1;
                    let (peer, region) = (Rank(1 - end as u16), Region(1));
                    let events = &mut self.processes[writer].permissions;
                    events.push_back(PermissionEvent::Denied { view: id, peer, region });
                    return;
                }
                let length = bytes.length();
                let count = piece.min(length - *landed);
                let part = match bytes {
                    FlightBytes::Taken(bytes) => bytes[*landed..*landed + count].to_vec(),
                    FlightBytes::Late { region, offset, .. } => {
                        let mut part = vec![0; count];
                        let source = if *region == Region::ROW {
                            Row::from_lines(&own.own)
                        } else {
                            Row::from_lines(&self.processes[writer].log)
                        };
                        source.read(*offset + *landed, &mut part).expect("posted in range");
                        part
                    }
                };
                if places_late {
                    let write = Placing::new(*region, *offset, part);
                    view.flights[end].pop_front();
                    view.placing[end].push_back(write);
                    return;
                }
                let at = *offset + *landed;
                let into = if *region == Region::ROW {
                    RowWriter::from_lines(&theirs.copy)
                } else {
                    RowWriter::from_lines(&self.processes[target].log)
                };
                into.apply(at, &part).expect("posted in range");
                *landed += count;
                if *landed == length {
                    view.flights[end].pop_front();
                }
            }
            Flight::Read { source, into, length, done, token } => {
                let count = piece.min(*length - *done);
                let mut part = vec![0; count];
                let from = Row::from_lines(&self.processes[target].log);
                from.read(*source + *done, &mut part).expect("in range");
                let log = RowWriter::from_lines(&self.processes[writer].log);
                log.apply(*into + *done, &part).expect("in range");
                *done += count;
                if *done == *length {
                    let event = Event::Completed(*token);
                    view.flights[end].pop_front();
                    self.processes[writer].events.push_back(event);
                }
            }
        }
    }
}

impl FlightBytes {
    fn length(&self) -> usize {
        match self {
            Self::Taken(bytes) => bytes.len(),
            Self::Late { length, .. } => *length,
        }
    }
}
