//! The receiving half of a queue pair: accepting, refusing and answering requests.

use super::hardware::{FakeEvent, Hardware, Region, Spot};
use super::local_memory::{LOCAL_LENGTH, LOCAL_PROTECTION};
use super::messages::{Body, FakeAnswer, FakeMessage, Says};
use super::pair::FakeReceive;
use super::request::{LocalBytes, PACKET_MASK, is_by};
use crate::adapter::{Access, Completion, Target};
use crate::devices::mtu_bytes;

/// `IBV_WC_REM_INV_REQ_ERR`, `IBV_WC_REM_ACCESS_ERR`, `IBV_WC_REM_OP_ERR`.
const REMOTE_INVALID_REQUEST: u32 = 9;
const REMOTE_ACCESS: u32 = 10;
const REMOTE_OPERATION: u32 = 11;

/// The outcome of a request.
enum RequestOutcome {
    /// The request has been executed, and is to be answered at that time.
    Done(u64),
    Read(Vec<u8>),
    Refused(u32),
    NotReady,
}

impl Region {
    /// Returns the offset of a range in the region's pages, if the range is within the region.
    pub(super) fn offset(&self, address: u64, length: u32) -> Option<usize> {
        let offset = address.checked_sub(self.address)?;
        let end = offset.checked_add(u64::from(length))?;
        if end > self.bytes { None } else { usize::try_from(offset).ok()?.checked_add(self.start) }
    }
}

impl Hardware {
    /// Handles the arrival of a request.
    pub(super) fn arrive(&mut self, message: FakeMessage) {
        let Some(id) = self.receiver(&message) else {
            self.counts.nowhere += 1;
            return;
        };
        let Some(responder) = self.pairs.get_mut(&id).and_then(|pair| pair.responder.as_mut())
        else {
            return;
        };
        let expected = responder.expected;
        let mtu = mtu_bytes(responder.route.mtu);
        if message.first_packet != expected {
            return self.out_of_sequence(id, &message);
        }
        responder.is_told = false;
        let outcome = if message.packet_bytes > mtu {
            RequestOutcome::Refused(REMOTE_INVALID_REQUEST)
        } else {
            self.execute(id, &message.body)
        };
        let last = message.first_packet.wrapping_add(message.packets - 1) & PACKET_MASK;
        let now = self.now;
        let (at, says) = match outcome {
            RequestOutcome::NotReady => (now, Says::NotReady(expected)),
            RequestOutcome::Refused(status) => {
                self.answer(id, &message, now, Says::Refused { packet: expected, status });
                self.counts.refused += 1;
                return self.enter_error_told(id);
            }
            RequestOutcome::Done(at) => (at, Says::Done(last)),
            RequestOutcome::Read(content) => (now, Says::Read { first_packet: expected, content }),
        };
        if !matches!(says, Says::NotReady(_))
            && let Some(responder) = self.pairs.get_mut(&id).and_then(|it| it.responder.as_mut())
        {
            responder.expected = last.wrapping_add(1) & PACKET_MASK;
        }
        self.answer(id, &message, at, says);
    }

    /// Returns the queue pair that receives a request: the two must name each other.
    fn receiver(&self, message: &FakeMessage) -> Option<u64> {
        if !self.is_up(message.to) {
            return None;
        }
        let id = *self.numbers.get(&(message.to.device, message.receiver))?;
        let pair = self.pairs.get(&id)?;
        let responder = pair.responder.as_ref()?;
        let is_named = responder.route.remote_number == message.sender
            && pair.port == message.to.port
            && self.far_end(pair.place(), &responder.route) == Some(message.from);
        is_named.then_some(id)
    }

    /// Handles a request out of sequence: a repeated request is answered again, and a request that
    /// is ahead shows that others are missing.
    fn out_of_sequence(&mut self, id: u64, message: &FakeMessage) {
        let now = self.now;
        let Some(responder) = self.pairs.get_mut(&id).and_then(|pair| pair.responder.as_mut())
        else {
            return;
        };
        let expected = responder.expected;
        if is_by(message.first_packet, expected) {
            let says = match message.body {
                Body::Read { target, length } => match self.read_remote(id, target, length) {
                    Ok(content) => Says::Read { first_packet: message.first_packet, content },
                    Err(_) => return,
                },
                _ => Says::Done(expected.wrapping_sub(1) & PACKET_MASK),
            };
            self.counts.seen_twice += 1;
            let at = self.placed_by(id);
            self.answer(id, message, at, says);
        } else if !std::mem::replace(&mut responder.is_told, true) {
            self.answer(id, message, now, Says::Expected(expected));
        }
    }

    /// Sends an answer at the given time. A connection's answers stay in order.
    fn answer(&mut self, id: u64, message: &FakeMessage, at: u64, says: Says) {
        let packet = match &says {
            Says::Read { content, .. } => u32::try_from(content.len()).unwrap_or(u32::MAX),
            _ => 0,
        };
        let packet = packet.min(message.packet_bytes.max(self.mtu_of(id)));
        let Some(journey) = self.journey_ns(message.to, message.from, packet) else { return };
        let Some(responder) = self.pairs.get_mut(&id).and_then(|pair| pair.responder.as_mut())
        else {
            return;
        };
        let arrives = at.saturating_add(journey).max(responder.answers_by);
        responder.answers_by = arrives;
        let (pair, epoch, from) = (message.pair, message.epoch, message.to);
        self.agenda.enter(arrives, FakeEvent::Answer(FakeAnswer { pair, epoch, from, says }));
    }

    fn mtu_of(&self, id: u64) -> u32 {
        let responder = self.pairs.get(&id).and_then(|pair| pair.responder.as_ref());
        responder.map_or(0, |responder| mtu_bytes(responder.route.mtu))
    }

    fn execute(&mut self, id: u64, body: &Body) -> RequestOutcome {
        match body {
            Body::Write { target, content, immediate } => {
                self.execute_write(id, *target, content, *immediate)
            }
            Body::Read { target, length } => {
                // A read pushes all earlier writes into memory.
                self.place_all(|piece| piece.pair == id);
                match self.read_remote(id, *target, *length) {
                    Ok(content) => RequestOutcome::Read(content),
                    Err(status) => RequestOutcome::Refused(status),
                }
            }
            Body::Send { content } => self.execute_send(id, content),
        }
    }

    fn execute_write(
        &mut self,
        id: u64,
        target: Target,
        content: &[u8],
        immediate: Option<u32>,
    ) -> RequestOutcome {
        let length = u32::try_from(content.len()).unwrap_or(u32::MAX);
        let found = match self.remote(id, target, length, Access::REMOTE_WRITE) {
            Ok(found) => found,
            Err(status) => return RequestOutcome::Refused(status),
        };
        let Some(value) = immediate else {
            let Some(spot) = found else { return self.done(id) };
            let placed_by = self.land(id, spot, content.to_vec());
            return self.done_at(id, placed_by);
        };
        let Some(receive) = self.take_receive(id) else { return RequestOutcome::NotReady };
        // Once notified, the receiver may read everything that has arrived.
        self.place_all(|piece| piece.pair == id);
        if let Some(spot) = found {
            self.store(spot.region, spot.offset, content);
        }
        self.received(id, receive, length, Some(value));
        RequestOutcome::Done(self.now)
    }

    fn execute_send(&mut self, id: u64, content: &[u8]) -> RequestOutcome {
        let Some(receive) = self.take_receive(id) else { return RequestOutcome::NotReady };
        self.place_all(|piece| piece.pair == id);
        let written = self.write_local(id, receive.into, content);
        let Err(status) = written else {
            self.received(id, receive, u32::try_from(content.len()).unwrap_or(u32::MAX), None);
            return RequestOutcome::Done(self.now);
        };
        self.complete_receive(
            id,
            Completion { name: receive.name, status, ..Completion::default() },
        );
        let is_own_fault = status == LOCAL_PROTECTION;
        debug_assert!(is_own_fault || status == LOCAL_LENGTH);
        RequestOutcome::Refused(if is_own_fault {
            REMOTE_OPERATION
        } else {
            REMOTE_INVALID_REQUEST
        })
    }

    /// Returns the outcome of a request that needs only an acknowledgement.
    fn done(&self, id: u64) -> RequestOutcome {
        self.done_at(id, self.placed_by(id))
    }

    fn done_at(&self, id: u64, placed_by: u64) -> RequestOutcome {
        let device = self.pairs.get(&id).and_then(|pair| self.devices.get(pair.device));
        let is_early = device.is_some_and(|device| device.profile.completes_before_visible);
        RequestOutcome::Done(if is_early { self.now } else { placed_by })
    }

    fn take_receive(&mut self, id: u64) -> Option<FakeReceive> {
        self.pairs.get_mut(&id)?.receives.pop_front()
    }

    fn received(&mut self, id: u64, receive: FakeReceive, bytes: u32, immediate: Option<u32>) {
        let name = receive.name;
        self.complete_receive(id, Completion { name, bytes, immediate, ..Completion::default() });
    }

    fn complete_receive(&mut self, id: u64, completion: Completion) {
        if let Some(pair) = self.pairs.get(&id) {
            let (queue, epoch) = (pair.queue, pair.epoch);
            self.complete(queue, id, epoch, 0, completion);
        }
    }

    fn read_remote(&mut self, id: u64, target: Target, length: u32) -> Result<Vec<u8>, u32> {
        match self.remote(id, target, length, Access::REMOTE_READ)? {
            None => Ok(Vec::new()),
            Some(spot) => self.read_region(spot.region, spot.offset, length).ok_or(REMOTE_ACCESS),
        }
    }

    /// Checks all rights, and returns the address. Returns `None` for a request without bytes,
    /// whose key is not checked.
    fn remote(
        &mut self,
        id: u64,
        target: Target,
        length: u32,
        access: Access,
    ) -> Result<Option<Spot>, u32> {
        let pair = self.pairs.get(&id).ok_or(REMOTE_ACCESS)?;
        let device = self.devices.get(pair.device).ok_or(REMOTE_ACCESS)?;
        if !pair.access.contains(access) {
            if !device.profile.ignores_access_flags {
                return Err(REMOTE_INVALID_REQUEST);
            }
            self.counts.flags_ignored += 1;
        }
        if length == 0 {
            return Ok(None);
        }
        let found = self.keys.get(&(pair.device, target.key)).ok_or(REMOTE_ACCESS)?;
        let region = self.regions.get(found).ok_or(REMOTE_ACCESS)?;
        let offset = region.offset(target.address, length).ok_or(REMOTE_ACCESS)?;
        if region.domain != pair.domain || !region.access.contains(access) {
            return Err(REMOTE_ACCESS);
        }
        Ok(Some(Spot { region: *found, offset }))
    }

    /// Copies bytes of a region.
    pub(super) fn read_region(&self, region: u64, offset: usize, length: u32) -> Option<Vec<u8>> {
        let region = self.regions.get(&region)?;
        let mut content = vec![0; usize::try_from(length).ok()?];
        region.pages.row().read(offset, &mut content).ok()?;
        Some(content)
    }

    /// Copies bytes of local memory as the processor itself does, without checking rights.
    pub(super) fn read_anywhere(&self, device: usize, range: LocalBytes) -> Option<Vec<u8>> {
        let found = *self.keys.get(&(device, range.key))?;
        let offset = self.regions.get(&found)?.offset(range.address, range.length)?;
        self.read_region(found, offset, range.length)
    }
}
