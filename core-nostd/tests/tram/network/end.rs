//! The fabric of a process in the network.

use std::cell::RefCell;
use std::collections::VecDeque;
use std::rc::Rc;

use tramontane_core::fabric::{
    Area, Capabilities, ErrorKind, Event, Fabric, Kind, LossCause, PermissionEvent, Permissions,
    Promises, Region, Token, ViewMemory, Write,
};
use tramontane_core::ids::{Rank, ViewId};
use tramontane_core::memory::Row;

use super::{Flight, FlightBytes, TestNetwork};

/// One process's fabric.
pub struct NetworkEnd {
    pub network: Rc<RefCell<TestNetwork>>,
    pub process: usize,
}

impl NetworkEnd {
    fn end(network: &TestNetwork, view: ViewId, process: usize) -> Result<usize, ErrorKind> {
        let view =
            network.views.get(view.0 as usize).and_then(Option::as_ref).ok_or(ErrorKind::Other)?;
        let end = usize::from(view.ends[1].process == process);
        if network.processes[view.ends[1 - end].process].is_alive {
            Ok(end)
        } else {
            Err(ErrorKind::PeerLost)
        }
    }
}

/// Returns the promises of the test fabric. With only four writes per list, overflowing lists are
/// tested too.
pub fn capabilities() -> Capabilities {
    Capabilities {
        promises: Promises::WRITE_ORDER.union(Promises::COMPLETION_VISIBLE),
        writes_max: 4,
        write_bytes_max: 32_768,
        guard_bytes_max: 24,
        write_overhead_bytes: 24,
    }
}

impl Fabric for NetworkEnd {
    type Error = ErrorKind;

    fn capabilities(&self) -> Capabilities {
        let network = self.network.borrow();
        let mut promises = capabilities().promises;
        promises.set(Promises::COMPLETION_VISIBLE, network.places_percent == 0);
        let (writes_max, write_bytes_max) = (network.writes_max, network.write_bytes_max);
        Capabilities { promises, writes_max, write_bytes_max, ..capabilities() }
    }

    fn open(&mut self, _: ViewId, _: &ViewMemory<'_>) -> Result<(), ErrorKind> {
        Ok(())
    }

    fn ready(&self, view: ViewId, _: Rank) -> bool {
        let network = &mut *self.network.borrow_mut();
        let is_open = network.views.len() > view.0 as usize && !network.is_slow_to_open;
        let is_ready = is_open && network.refuse().is_ok();
        if let Some(open) = network.view_mut(view).filter(|_| is_ready) {
            open.knows_ready[usize::from(open.ends[1].process == self.process)] = true;
        }
        is_ready
    }

    fn cut(&mut self, view: ViewId, _: Rank) {
        let network = &mut *self.network.borrow_mut();
        let process = self.process;
        let Some(open) = network.view_mut(view) else { return };
        open.flights = [VecDeque::new(), VecDeque::new()];
        let end = usize::from(open.ends[1].process == process);
        let peer = open.ends[1 - end].process;
        let (rank, cause) = (Rank(end as u16), LossCause::Unreachable);
        network.processes[peer].events.push_back(Event::PeerLost { view, peer: rank, cause });
        network.views[view.0 as usize] = None;
    }

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
        let network = &mut *self.network.borrow_mut();
        let end = Self::end(network, view, self.process)?;
        network.refuse()?;
        assert!(writes.len() <= network.writes_max);
        let to_log = writes.iter().filter(|write| write.target.region != Region::ROW);
        let bytes: usize = to_log.map(|write| write.length).sum();
        assert!(bytes <= network.write_bytes_max, "a list of {bytes} bytes to a log");
        let longest = writes.iter().map(|write| write.length).max().unwrap_or(0);
        assert!(longest <= network.write_bytes_max, "a write of {longest} bytes");
        let log = Rc::clone(&network.processes[self.process].log);
        let is_late = network.random.below(2) == 0 || network.reads_late;
        let open = network.view_mut(view).ok_or(ErrorKind::Other)?;
        assert!(open.knows_ready[end], "a post to a peer that is not known to be ready");
        let had = usize::from(!open.is_idle(end));
        if writes.iter().any(|write| write.target.region != Region::ROW) && open.denied[end] {
            open.denied[end] = false;
            return Err(ErrorKind::Revoked);
        }
        if open.flights[end].len() > 200 {
            return Err(ErrorKind::QueueFull);
        }
        for write in writes {
            let Area { region, offset } = write.source;
            let bytes = if write.kind == Kind::Content && is_late {
                FlightBytes::Late { region, offset, length: write.length }
            } else {
                let mut bytes = vec![0; write.length];
                let source = if region == Region::ROW {
                    Row::from_lines(&open.ends[end].rows.own)
                } else {
                    Row::from_lines(&log)
                };
                source.read(offset, &mut bytes).map_err(|_| ErrorKind::OutOfRange)?;
                FlightBytes::Taken(bytes)
            };
            let (region, offset) = (write.target.region, write.target.offset);
            open.flights[end].push_back(Flight::Write { region, offset, bytes, landed: 0 });
        }
        open.flights[end].extend(token.map(Flight::Done));
        network.is_busy(view, end, had);
        *network.lists.entry(self.process).or_default() += 1;
        Ok(())
    }

    fn poll(&mut self) -> Option<Event> {
        let network = &mut *self.network.borrow_mut();
        network.idle_event().or_else(|| network.processes[self.process].events.pop_front())
    }

    fn wake(&mut self, _: ViewId, _: Rank) {}

    fn arm(&mut self) -> bool {
        false
    }

    fn disarm(&mut self) {}

    fn observe_barrier(&self) {}
}

impl Permissions for NetworkEnd {
    fn grant(&mut self, view: ViewId, _: Rank, _: Region) -> Result<(), ErrorKind> {
        let network = &mut *self.network.borrow_mut();
        network.refuse()?;
        network.processes[self.process].rights.insert(view);
        Ok(())
    }

    fn revoke(&mut self, view: ViewId, _: Rank, _: Region) -> Result<(), ErrorKind> {
        let network = &mut *self.network.borrow_mut();
        network.refuse()?;
        network.processes[self.process].rights.remove(&view);
        network.discard(view.0 as usize, self.process);
        Ok(())
    }

    fn may_write(&self, view: ViewId, _: Rank, _: Region) -> bool {
        self.network.borrow().processes[self.process].rights.contains(&view)
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
        let network = &mut *self.network.borrow_mut();
        let end = Self::end(network, view, self.process)?;
        // A fabric may refuse a read of no bytes, or never report its completion.
        assert!((1..=network.write_bytes_max).contains(&length), "a read of {length} bytes");
        if let Err(kind) = network.refuse() {
            return Err(if network.whims.chance(30) { ErrorKind::Revoked } else { kind });
        }
        let open = network.view_mut(view).ok_or(ErrorKind::Other)?;
        let had = usize::from(!open.is_idle(end));
        let (source, into) = (source.offset, into.offset);
        open.flights[end].push_back(Flight::Read { source, into, length, done: 0, token });
        network.is_busy(view, end, had);
        Ok(())
    }

    fn poll_permission(&mut self) -> Option<PermissionEvent> {
        let network = &mut *self.network.borrow_mut();
        if network.refuse().is_err() {
            let (view, peer, region) = (ViewId(u64::MAX), Rank(0), Region(1));
            return Some(match network.whims.below(2) {
                0 => PermissionEvent::Restored { view, peer, region },
                _ => PermissionEvent::Denied { view, peer, region },
            });
        }
        network.processes[self.process].permissions.pop_front()
    }
}
