//! A network of processes for tests: views of two, regions with rights, and writes that land piece
//! by piece at moments that a seed chooses.

mod end;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::rc::Rc;

use tramontane_core::fabric::{ErrorKind, Event, LossCause, PermissionEvent, Region, Token};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::{Line, Row, RowWriter};

use super::random::Random;
pub use end::{NetworkEnd, capabilities};

/// The two rows of a view at one of its members.
pub struct Rows {
    pub own: Vec<Line>,
    pub copy: Vec<Line>,
}

fn lines(bytes: usize) -> Vec<Line> {
    (0..bytes.div_ceil(64)).map(|_| Line::new()).collect()
}

/// One end of a view.
struct End {
    process: usize,
    rows: Rc<Rows>,
}

enum Flight {
    /// Bytes that land at a place of a region, and how many have.
    Write { region: Region, offset: usize, bytes: Bytes, landed: usize },
    /// All before is there.
    Done(Token),
    /// A piece of the target's region goes into the own one.
    Read { source: usize, into: usize, length: usize, done: usize, token: Token },
}

enum Bytes {
    /// As they were when they were posted.
    Taken(Vec<u8>),
    /// Read from the writer's memory when they land.
    Late { region: Region, offset: usize, length: usize },
}

struct View {
    ends: [End; 2],
    /// By the rank of the writer.
    flights: [VecDeque<Flight>; 2],
    /// By the rank of the writer: its peer's logs take nothing until the writer knows.
    denied: [bool; 2],
    /// By the rank of the writer: it has been told that its peer is ready.
    knows_ready: [bool; 2],
}

struct Process {
    is_alive: bool,
    log: Rc<Vec<Line>>,
    /// Which peers may write to the log: by view.
    rights: BTreeSet<ViewId>,
    events: VecDeque<Event>,
    permissions: VecDeque<PermissionEvent>,
}

/// The whole network.
pub struct Network {
    processes: Vec<Process>,
    /// By id, from zero.
    views: Vec<Option<View>>,
    /// Ways on which something is under way, each once: a view, and the rank of its writer.
    busy: Vec<(usize, usize)>,
    /// Pairs of processes between which nothing moves, from and to.
    blocked: BTreeSet<(usize, usize)>,
    pub random: Random,
    /// A write lands in one piece.
    pub lands_whole: bool,
    /// All contents are read when they land, and not only half of them.
    pub reads_late: bool,
    pub pieces: u64,
    pub denials: u64,
    /// How many of a hundred calls are refused for once; as often, an event says nothing.
    pub refuses: usize,
    pub refusals: u64,
    whims: Random,
    /// Lists that were taken, by the process that posted them.
    pub lists: BTreeMap<usize, u64>,
    /// The most bytes of a write, of a list to a log, and of a read.
    pub write_bytes_max: usize,
    /// How often of a hundred times a piece lands when a process, in the middle of its step, asks
    /// for the rows of a link.
    pub lands_within: usize,
    /// Nobody is ready for a view that is connected now.
    pub is_slow_to_open: bool,
    /// Of the reads that a process has under way at a peer, the last is carried out first.
    pub reads_last_first: bool,
}

impl Network {
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
            write_bytes_max: 32_768,
            lands_within: 0,
            is_slow_to_open: false,
            reads_last_first: false,
        }))
    }

    /// Whether a call is refused.
    fn refuse(&mut self) -> Result<(), ErrorKind> {
        if self.refuses == 0 || !self.whims.chance(self.refuses) {
            return Ok(());
        }
        self.refusals += 1;
        Err(ErrorKind::QueueFull)
    }

    /// An event that says nothing to anybody.
    fn idle_event(&mut self) -> Option<Event> {
        self.refuse().err()?;
        // No view has these ids, not even a link that has none.
        let view = ViewId(if self.whims.chance(50) { 0 } else { u64::MAX });
        let peer = Rank(0);
        Some(match self.whims.below(4) {
            0 => Event::Woken,
            1 => Event::Ready { view, peer },
            2 => Event::PeerLost { view, peer, cause: LossCause::Left },
            // Of a list that nobody here has posted.
            _ => Event::Completed(Token(u64::MAX)),
        })
    }

    /// A process with so many bytes of log.
    pub fn add(&mut self, log_bytes: usize) -> usize {
        self.processes.push(Process {
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

    /// Opens a view of two processes whose rows have so many bytes.
    pub fn connect(&mut self, processes: [usize; 2], bytes: [usize; 2]) -> (ViewId, [Rc<Rows>; 2]) {
        let view = ViewId(self.views.len() as u64);
        let rows = [0, 1].map(|end: usize| {
            Rc::new(Rows { own: lines(bytes[end]), copy: lines(bytes[1 - end]) })
        });
        let ends =
            [0, 1].map(|end: usize| End { process: processes[end], rows: Rc::clone(&rows[end]) });
        let flights = [VecDeque::new(), VecDeque::new()];
        self.views.push(Some(View { ends, flights, denied: [false; 2], knows_ready: [false; 2] }));
        (view, rows)
    }

    /// A process ends: what it has under way is lost, and its peers are told.
    pub fn crash(&mut self, process: usize) {
        self.processes[process].is_alive = false;
        self.processes[process].rights.clear();
        for (id, view) in self.views.iter_mut().enumerate() {
            let Some(view) = view else { continue };
            for end in 0..2 {
                if view.ends[end].process == process {
                    view.flights = [VecDeque::new(), VecDeque::new()];
                    let peer = view.ends[1 - end].process;
                    self.processes[peer].events.push_back(Event::PeerLost {
                        view: ViewId(id as u64),
                        peer: Rank(end as u16),
                        cause: LossCause::Exited,
                    });
                }
            }
        }
    }

    /// The tokens of what a process reads of its peers' logs.
    pub fn reads(&self, process: usize) -> Vec<Token> {
        let token = |flight: &Flight| match flight {
            Flight::Read { token, .. } => Some(*token),
            Flight::Write { .. } | Flight::Done(_) => None,
        };
        let of_view = |view: &View| {
            let ends = view.ends.iter().zip(&view.flights);
            let own = ends.filter(|(end, _)| end.process == process);
            own.flat_map(|(_, flights)| flights.iter().filter_map(token)).collect::<Vec<_>>()
        };
        self.views.iter().flatten().flat_map(of_view).collect()
    }

    /// A process is told that something is done.
    pub fn complete(&mut self, process: usize, token: Token) {
        self.processes[process].events.push_back(Event::Completed(token));
    }

    /// The connections between two processes end. What is under way there is lost, and both are
    /// told.
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

    /// Nothing moves but between these processes.
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

    /// How much a process reads into the same place of its own log.
    pub fn reads_in_place(&self, process: usize) -> usize {
        let is_in_place = |flight: &&Flight| match flight {
            Flight::Read { source, into, .. } => source == into,
            Flight::Write { .. } | Flight::Done(_) => false,
        };
        let of_view = |view: &View| {
            let ends = view.ends.iter().zip(&view.flights);
            let own = ends.filter(|(end, _)| end.process == process);
            own.map(|(_, flights)| flights.iter().filter(is_in_place).count()).sum::<usize>()
        };
        self.views.iter().flatten().map(of_view).sum()
    }

    /// How many events a process has not taken.
    pub fn events(&self, process: usize) -> usize {
        self.processes[process].events.len()
    }

    /// The processes to which a process has something under way.
    pub fn writes_to(&self, process: usize) -> BTreeSet<usize> {
        self.writes_in_order(process).into_iter().collect()
    }

    /// The same, in the order in which the first of what is under way to each was posted.
    pub fn writes_in_order(&self, process: usize) -> Vec<usize> {
        let target = |(id, end): &(usize, usize)| {
            let view = self.views[*id].as_ref()?;
            let is_writing = view.ends[*end].process == process && !view.flights[*end].is_empty();
            is_writing.then(|| view.ends[1 - end].process)
        };
        let mut targets = Vec::new();
        // A way on which nothing was under way in between may be there twice.
        for process in self.busy.iter().rev().filter_map(target) {
            if !targets.contains(&process) {
                targets.insert(0, process);
            }
        }
        targets
    }

    /// A process is in the middle of its step.
    pub fn move_within_a_step(&mut self) {
        if self.lands_within > 0 && self.whims.chance(self.lands_within) {
            self.deliver_if_any_can();
        }
    }

    /// Lets one piece of something under way land. False if nothing that was tried can move.
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

    /// The same, and false only if nothing can move.
    pub fn deliver_if_any_can(&mut self) -> bool {
        let first = self.random.below(self.busy.len().max(1));
        let mut order = (0..self.busy.len()).map(|at| (first + at) % self.busy.len());
        let Some(at) = order.find(|at| self.open_way(*at) == Some(true)) else { return false };
        let (id, end) = self.busy[at];
        self.move_one(ViewId(id as u64), end);
        true
    }

    /// Whether what is under way there can move. None if nothing is.
    fn open_way(&self, at: usize) -> Option<bool> {
        let (id, end) = self.busy[at];
        let view = self.views[id].as_ref().filter(|view| !view.flights[end].is_empty())?;
        let way = (view.ends[end].process, view.ends[1 - end].process);
        Some(!self.blocked.contains(&way))
    }

    fn view_mut(&mut self, view: ViewId) -> Option<&mut View> {
        self.views.get_mut(view.0 as usize)?.as_mut()
    }

    /// Something is under way there.
    fn is_busy(&mut self, view: ViewId, end: usize, had: usize) {
        if had == 0 {
            self.busy.push((view.0 as usize, end));
        }
    }

    fn move_one(&mut self, id: ViewId, end: usize) {
        self.pieces += 1;
        let piece = if self.lands_whole { usize::MAX } else { 8 << self.random.below(7) };
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
                    // The rest of this list is given up, with all behind it to the region.
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
                    Bytes::Taken(bytes) => bytes[*landed..*landed + count].to_vec(),
                    Bytes::Late { region, offset, .. } => {
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

impl Bytes {
    fn length(&self) -> usize {
        match self {
            Self::Taken(bytes) => bytes.len(),
            Self::Late { length, .. } => *length,
        }
    }
}
