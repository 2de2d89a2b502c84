//! A fabric with one thing wrong with it, around one that is right.

use std::cell::Cell;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

use tramontane_core::fabric::{
    Capabilities, ErrorKind, Event, Fabric, Kind, LossCause, Promises, Region, Token, ViewMemory,
    Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::layout::CACHE_LINE;

use crate::fault::Fault;

/// Long enough to be seen, and far below what a clause allows for all its calls.
const A_WHILE: Duration = Duration::from_millis(3);

/// A fabric, spoilt.
pub struct Spoilt<F> {
    inner: F,
    fault: Fault,
    own: Rank,
    members: u16,
    row_bytes: usize,
    questions: Cell<usize>,
    posts: u64,
    arms: u64,
    wakes: u64,
    polls: u64,
    unpolled: u64,
    told: VecDeque<Event>,
    held: Option<(Vec<Write>, u64)>,
    full: BTreeSet<Rank>,
    cut: BTreeSet<Rank>,
}

impl<F: Fabric<Error = ErrorKind>> Spoilt<F> {
    pub fn new(inner: F, fault: Fault) -> Self {
        Self {
            inner,
            fault,
            own: Rank(0),
            members: 0,
            row_bytes: 0,
            questions: Cell::new(0),
            posts: 0,
            arms: 0,
            wakes: 0,
            polls: 0,
            unpolled: 0,
            told: VecDeque::new(),
            held: None,
            full: BTreeSet::new(),
            cut: BTreeSet::new(),
        }
    }

    fn others(&self, than: Rank) -> impl Iterator<Item = Rank> + use<F> {
        let own = self.own;
        (0..self.members).map(Rank).filter(move |rank| *rank != own && *rank != than)
    }

    /// A write as the fault has it.
    fn spoil(&self, write: Write) -> Write {
        let mut spoilt = write;
        match self.fault {
            Fault::IgnoresTargets => spoilt.target = write.source,
            Fault::IgnoresRegions => {
                (spoilt.source.region, spoilt.target.region) = (Region::ROW, Region::ROW);
            }
            Fault::WidensWrites if write.kind == Kind::Content && write.source == write.target => {
                let start = write.source.offset / CACHE_LINE * CACHE_LINE;
                let end = (write.source.offset + write.length).next_multiple_of(CACHE_LINE);
                spoilt = Write::of_row(start, end.min(self.row_bytes) - start, write.kind);
            }
            Fault::ClampsRanges => {
                let start = write.source.offset.max(write.target.offset).min(self.row_bytes);
                spoilt =
                    Write::of_row(start, write.length.min(self.row_bytes - start), Kind::Content);
            }
            Fault::CutsLargeGuards if write.kind == Kind::Guard => {
                spoilt.length = write.length.min(self.inner.capabilities().guard_bytes_max);
            }
            Fault::ReadsGuardsLate => spoilt.kind = Kind::Content,
            _ => {}
        }
        spoilt
    }

    /// A list as the fault has it.
    fn spoil_list(&self, writes: &[Write]) -> Vec<Write> {
        let mut spoilt: Vec<Write> = writes.iter().map(|write| self.spoil(*write)).collect();
        match self.fault {
            Fault::DropsAWrite if spoilt.len() > 1 => drop(spoilt.pop()),
            Fault::CutsLongLists => spoilt.truncate(self.inner.capabilities().writes_max),
            Fault::SwapsWrites => spoilt.reverse(),
            _ => {}
        }
        spoilt
    }

    /// Posts every fifth list after the three that follow it, and the others at once. The order hunt posts
    /// four lists a round, so sooner or later it is any of the four.
    fn hold_back(&mut self, view: ViewId, to: Rank, writes: &[Write]) -> Result<(), ErrorKind> {
        if let Some((list, since)) = self.held.take() {
            if self.posts > since + 3 {
                self.inner.post(view, to, &list, None)?;
            } else {
                self.held = Some((list, since));
            }
        } else if self.posts.is_multiple_of(5) {
            self.held = Some((writes.to_vec(), self.posts));
            return Ok(());
        }
        self.inner.post(view, to, writes, None)
    }

    /// What the fault makes of a post before anything is posted.
    fn refuses(&self, view: ViewId, to: Rank, writes: &[Write]) -> Option<Result<(), ErrorKind>> {
        match self.fault {
            Fault::RefusesFullLists if writes.len() == self.inner.capabilities().writes_max => {
                Some(Err(ErrorKind::OutOfRange))
            }
            Fault::TakesPostsToNobody if to == self.own || !self.inner.ready(view, to) => {
                Some(Ok(()))
            }
            Fault::PostsTooEarly if !self.inner.ready(view, to) => Some(Ok(())),
            Fault::StaysFull if self.full.contains(&to) => Some(Err(ErrorKind::QueueFull)),
            Fault::FullForAll if self.full.iter().any(|full| *full != to) => {
                Some(Err(ErrorKind::QueueFull))
            }
            Fault::CutsInTurns | Fault::CutsOneWay if self.cut.contains(&to) => {
                Some(Err(ErrorKind::PeerLost))
            }
            _ => None,
        }
    }

    /// What the fault makes of a post that was refused.
    fn after_refusal(
        &mut self,
        (view, to): (ViewId, Rank),
        writes: &[Write],
        token: Option<Token>,
        kind: ErrorKind,
    ) -> Result<(), ErrorKind> {
        match (self.fault, kind) {
            (Fault::PostsTheGoodPart, ErrorKind::OutOfRange) => {
                for write in writes {
                    let _ = self.inner.post(view, to, &[*write], None);
                }
            }
            (Fault::PostsWhatFits, ErrorKind::QueueFull) => {
                for write in writes {
                    if self.inner.post(view, to, &[*write], None).is_err() {
                        break;
                    }
                }
            }
            (Fault::CompletesRefused, _) => self.told.extend(token.map(Event::Completed)),
            (Fault::TakesPostsToTheLost, ErrorKind::PeerLost) => return Ok(()),
            (Fault::WaitsForRoom, ErrorKind::QueueFull) => std::thread::sleep(A_WHILE),
            (_, ErrorKind::QueueFull) => {
                self.full.insert(to);
            }
            _ => {}
        }
        Err(kind)
    }

    /// What the fault makes of an event.
    fn retell(&mut self, event: Event) -> Option<Event> {
        self.polls += 1;
        match (self.fault, event) {
            (Fault::CompletesTwice, Event::Completed(_))
            | (Fault::TellsReadyTwice, Event::Ready { .. })
            | (Fault::TellsLossTwice, Event::PeerLost { .. }) => self.told.push_back(event),
            (Fault::NeverTellsReady, Event::Ready { .. })
            | (Fault::NeverTellsLoss, Event::PeerLost { .. }) => {
                return None;
            }
            (Fault::LosesTheWrongPeer, Event::PeerLost { view, peer, cause }) => {
                let other = self.others(peer).next()?;
                return Some(Event::PeerLost { view, peer: other, cause });
            }
            (Fault::LosesCompletions, Event::Completed(_)) if self.polls.is_multiple_of(3) => {
                return None;
            }
            (Fault::ForgetsCompletions, Event::Completed(_)) => {
                self.unpolled = self.unpolled.saturating_sub(1);
                return (self.unpolled < 100).then_some(event);
            }
            _ => {}
        }
        Some(event)
    }
}

impl<F: Fabric<Error = ErrorKind>> Fabric for Spoilt<F> {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        let mut says = self.inner.capabilities();
        match self.fault {
            Fault::ChangesItsMind => {
                self.questions.set(self.questions.get() + 1);
                says.write_bytes_max -= self.questions.get();
            }
            Fault::PromisesNothing => says.promises = Promises::empty(),
            Fault::TakesFewWrites => says.writes_max = 2,
            Fault::TakesShortGuards => says.guard_bytes_max = 16,
            Fault::ClaimsAddressOrder => says.promises |= Promises::ADDRESS_ORDER,
            Fault::ClaimsWriteOrder => says.promises |= Promises::WRITE_ORDER,
            Fault::ClaimsVisibleCompletions => says.promises |= Promises::COMPLETION_VISIBLE,
            _ => {}
        }
        says
    }

    fn open(&mut self, view: ViewId, memory: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        (self.own, self.row_bytes) = (memory.own, memory.row.bytes());
        self.members = u16::try_from(memory.members.len()).map_err(|_| ErrorKind::Other)?;
        let result = self.inner.open(view, memory);
        if self.fault == Fault::OpensTwice { Ok(()) } else { result }
    }

    fn ready(&self, view: ViewId, peer: Rank) -> bool {
        self.fault == Fault::ReadyTooEarly || self.inner.ready(view, peer)
    }

    fn cut(&mut self, view: ViewId, peer: Rank) {
        match self.fault {
            Fault::IgnoresCuts => return,
            Fault::CutsOneWay | Fault::CutsInTurns if self.inner.ready(view, peer) => {
                if !self.cut.insert(peer) && self.fault == Fault::CutsInTurns {
                    self.cut.remove(&peer);
                }
                return;
            }
            Fault::CutsEveryone => {
                for other in self.others(peer) {
                    self.inner.cut(view, other);
                }
            }
            _ => {}
        }
        self.inner.cut(view, peer);
    }

    fn retire(&mut self, view: ViewId) -> bool {
        match self.fault {
            Fault::EndsTooEarly => true,
            Fault::NeverEnds => {
                self.inner.retire(view);
                false
            }
            _ => self.inner.retire(view),
        }
    }

    fn post(
        &mut self,
        view: ViewId,
        to: Rank,
        writes: &[Write],
        token: Option<Token>,
    ) -> Result<(), ErrorKind> {
        self.posts += 1;
        if let Some(result) = self.refuses(view, to, writes) {
            return result;
        }
        let list = self.spoil_list(writes);
        if self.fault == Fault::HoldsListsBack && token.is_none() {
            return self.hold_back(view, to, &list);
        }
        let early = self.fault == Fault::CompletesEarly;
        match self.inner.post(view, to, &list, token.filter(|_| !early)) {
            Ok(()) => self.full.remove(&to),
            Err(kind) => return self.after_refusal((view, to), &list, token, kind),
        };
        self.unpolled += u64::from(token.is_some());
        match self.fault {
            Fault::CompletesEarly => self.told.extend(token.map(Event::Completed)),
            Fault::RingsAlways => self.inner.wake(view, to),
            Fault::SendsToAll => {
                for other in self.others(to) {
                    let _ = self.inner.post(view, other, &list, None);
                }
            }
            _ => {}
        }
        Ok(())
    }

    fn poll(&mut self) -> Option<Event> {
        if let Some(event) = self.told.pop_front() {
            return Some(event);
        }
        let event = loop {
            match self.inner.poll() {
                Some(event) => match self.retell(event) {
                    Some(event) => break Some(event),
                    None => continue,
                },
                None => break None,
            }
        };
        if event.is_none() && self.fault == Fault::BlocksInPoll {
            std::thread::sleep(A_WHILE);
        }
        self.polls += 1;
        if self.fault == Fault::InventsLosses && self.polls.is_multiple_of(10) {
            return Some(Event::PeerLost {
                view: ViewId(1),
                peer: Rank(2),
                cause: LossCause::Unreachable,
            });
        }
        event
    }

    fn wake(&mut self, view: ViewId, to: Rank) {
        self.wakes += 1;
        match self.fault {
            Fault::IgnoresWakes => return,
            Fault::LosesRings if self.wakes.is_multiple_of(7) => return,
            Fault::WakesEverybody => self.others(to).for_each(|other| self.inner.wake(view, other)),
            _ => {}
        }
        self.inner.wake(view, to);
    }

    fn arm(&mut self) -> bool {
        self.arms += 1;
        match self.fault {
            Fault::ForgetsToArm => true,
            Fault::ForgetsToArmAtTimes if self.arms.is_multiple_of(7) => true,
            Fault::ArmsRegardless => {
                self.inner.arm();
                true
            }
            Fault::NeverArms => false,
            _ => self.inner.arm(),
        }
    }

    fn disarm(&mut self) {
        if self.fault != Fault::NeverDisarms {
            self.inner.disarm();
        }
    }

    fn observe_barrier(&self) {
        self.inner.observe_barrier();
    }
}
