//! Transitions of queue pairs, failures and flushes.

use std::collections::VecDeque;
use std::io;

use rustix::io::Errno;

use super::hardware::Hardware;
use super::locked;
use super::pair::{FakeReceive, Pair, Requester, Responder};
use super::profile::ResetMeans;
use super::request::PostedRequest;
use crate::adapter::{
    Access, AsyncEvent, Completion, QueuePairLimits, QueuePairState, Route, SendTimes,
};
use crate::devices::{DataInOrder, mtu_bytes};

/// `IBV_WC_WR_FLUSH_ERR`.
pub(super) const FLUSHED: u32 = 5;

impl Hardware {
    /// Returns a queue pair that a live process may call.
    fn called(&mut self, id: u64) -> io::Result<&mut Pair> {
        let context = self.pairs.get(&id).ok_or(Errno::IO)?.context;
        self.check(context)?;
        Ok(self.pairs.get_mut(&id).ok_or(Errno::IO)?)
    }

    /// Creates a queue pair in RESET, and returns its id, its number and its inline bytes.
    pub(super) fn create_pair(
        &mut self,
        (context, domain, queue): (u64, u64, u64),
        limits: QueuePairLimits,
    ) -> io::Result<(u64, u32, u32)> {
        let most = self.check(context)?.profile.limits;
        let device = self.contexts.get(&context).ok_or(Errno::BADF)?.device;
        let of_device = self.numbers.range((device, 0)..=(device, u32::MAX)).count();
        if of_device >= usize::try_from(most.queue_pairs_max).unwrap_or(usize::MAX) {
            return Err(Errno::NOMEM.into());
        }
        let depth = limits.sends_max.max(limits.receives_max);
        if depth > most.work_requests_max || !self.queues.contains_key(&queue) {
            return Err(Errno::INVAL.into());
        }
        let described = self.devices.get_mut(device).ok_or(Errno::NODEV)?;
        let inline = described.profile.inline_grant(limits.inline_bytes_max);
        let inline_bytes_max = inline.ok_or(Errno::INVAL)?;
        let granted = QueuePairLimits { inline_bytes_max, ..limits };
        self.check_locked(context, locked::ring_bytes(granted))?;
        let described = self.devices.get_mut(device).ok_or(Errno::NODEV)?;
        described.next_number = (described.next_number + 1) & 0x00ff_ffff;
        let number = described.next_number;
        let id = self.new_id();
        self.numbers.insert((device, number), id);
        let pair = Pair {
            context,
            device,
            domain,
            queue,
            number,
            limits: granted,
            state: QueuePairState::Reset,
            epoch: 0,
            port: 0,
            partition_index: 0,
            access: Access::empty(),
            responder: None,
            requester: Requester::default(),
            receives: VecDeque::new(),
        };
        self.pairs.insert(id, pair);
        Ok((id, number, inline_bytes_max))
    }

    /// Destroys a queue pair. Acknowledged writes have landed, and no other write lands after this.
    pub(super) fn destroy_pair(&mut self, id: u64) {
        self.place_all(|piece| piece.pair == id);
        let Some(pair) = self.pairs.remove(&id) else { return };
        self.numbers.remove(&(pair.device, pair.number));
        if let Some(timer) = pair.requester.timer {
            self.agenda.cancel(timer);
        }
        self.remove_completions(&pair, id);
    }

    fn remove_completions(&mut self, pair: &Pair, id: u64) {
        let keeps = self.devices.get(pair.device).is_some_and(|it| it.profile.keeps_completions);
        if let Some(queue) = self.queues.get_mut(&pair.queue).filter(|_| !keeps) {
            queue.entries.retain(|entry| entry.pair != id);
        }
    }

    /// Moves a queue pair to RESET, from any state.
    pub(super) fn reset_pair(&mut self, id: u64) -> io::Result<()> {
        let pair = self.called(id)?;
        let (device, state) = (pair.device, pair.state);
        let means = self.devices.get(device).map_or(ResetMeans::Reset, |it| it.profile.reset);
        if means == ResetMeans::Error
            && !matches!(state, QueuePairState::Reset | QueuePairState::Error)
        {
            self.counts.resets_to_error += 1;
            self.enter_error(id);
            return Ok(());
        }
        self.place_all(|piece| piece.pair == id);
        let Some(mut pair) = self.pairs.remove(&id) else { return Ok(()) };
        self.stop_timer(&mut pair);
        self.remove_completions(&pair, id);
        pair.state = QueuePairState::Reset;
        pair.epoch += 1;
        pair.requester = Requester::default();
        pair.receives.clear();
        if means != ResetMeans::NothingRevoked {
            pair.responder = None;
        }
        self.pairs.insert(id, pair);
        Ok(())
    }

    /// Moves a queue pair from RESET to INIT, or from INIT to INIT.
    pub(super) fn initialise_pair(
        &mut self,
        id: u64,
        (port, partition_index): (u8, u16),
        access: Access,
    ) -> io::Result<()> {
        let pair = self.called(id)?;
        if !matches!(pair.state, QueuePairState::Reset | QueuePairState::Initialised) {
            return Err(Errno::INVAL.into());
        }
        let device = pair.device;
        let port_of = self.devices.get(device).and_then(|device| device.port(port));
        if port_of.is_none_or(|port| usize::from(partition_index) >= port.partitions.len()) {
            return Err(Errno::INVAL.into());
        }
        let pair = self.called(id)?;
        (pair.state, pair.port, pair.access) = (QueuePairState::Initialised, port, access);
        pair.partition_index = partition_index;
        Ok(())
    }

    /// Moves a queue pair from INIT to RTR.
    pub(super) fn connect_pair(&mut self, id: u64, route: &Route) -> io::Result<()> {
        let pair = self.called(id)?;
        let (state, place) = (pair.state, pair.place());
        let device = self.devices.get(place.device).ok_or(Errno::NODEV)?;
        let port = device.port(place.port).ok_or(Errno::INVAL)?;
        let mtu = mtu_bytes(route.mtu);
        let is_within = mtu > 0 && mtu <= port.mtu_bytes;
        let reads_max = device.profile.limits.reads_max;
        let has_gid = !route.is_global || usize::from(route.gid_index) < port.gids.len();
        let has_way = route.is_global || !port.needs_global_route;
        let is_good = is_within && has_gid && has_way && u32::from(route.reads_max) <= reads_max;
        if state != QueuePairState::Initialised || route.port != place.port || !is_good {
            return Err(Errno::INVAL.into());
        }
        let pair = self.called(id)?;
        pair.state = QueuePairState::ReadyToReceive;
        pair.responder = Some(Responder::new(*route));
        Ok(())
    }

    /// Moves a queue pair from RTR to RTS.
    pub(super) fn start_pair(&mut self, id: u64, times: &SendTimes) -> io::Result<()> {
        let pair = self.called(id)?;
        let device = pair.device;
        let state = pair.state;
        let profile = &self.devices.get(device).ok_or(Errno::NODEV)?.profile;
        let (reads_max, retries_max) = (profile.limits.reads_max, profile.retries_max);
        let is_good = times.retries <= 7
            && times.timeout_exponent <= 31
            && u32::from(times.reads_max) <= reads_max;
        let pair = self.called(id)?;
        let Some(responder) = pair.responder.as_ref().filter(|_| is_good) else {
            return Err(Errno::INVAL.into());
        };
        if state != QueuePairState::ReadyToReceive {
            return Err(Errno::INVAL.into());
        }
        let times = SendTimes { retries: times.retries.min(retries_max), ..*times };
        pair.requester = Requester::new(responder.route, times);
        pair.state = QueuePairState::ReadyToSend;
        Ok(())
    }
    /// Returns the state that the device reports.
    pub(super) fn pair_state(&mut self, id: u64) -> QueuePairState {
        self.called(id).map_or(QueuePairState::Unknown, |pair| pair.state)
    }

    /// Returns whether the bytes of each write are placed in order, according to the device. No
    /// driver confirms this for a queue pair that is not ready to send.
    pub(super) fn data_in_order(&mut self, id: u64) -> DataInOrder {
        let asked = self.called(id).map(|pair| (pair.state, pair.device));
        let Ok((state, device)) = asked else { return DataInOrder::No };
        match self.devices.get(device).map(|device| device.profile.data_in_order) {
            Some(DataInOrder::Yes) if state != QueuePairState::ReadyToSend => DataInOrder::No,
            answer => answer.unwrap_or(DataInOrder::No),
        }
    }

    /// Posts a receive.
    pub(super) fn post_receive(&mut self, id: u64, receive: FakeReceive) -> io::Result<()> {
        let pair = self.called(id)?;
        match pair.state {
            QueuePairState::Reset | QueuePairState::Unknown => Err(Errno::INVAL.into()),
            QueuePairState::Error => {
                let (queue, epoch) = (pair.queue, pair.epoch);
                let completion =
                    Completion { name: receive.name, status: FLUSHED, ..Completion::default() };
                self.complete(queue, id, epoch, 0, completion);
                Ok(())
            }
            _ if pair.receives.len() >= usize::try_from(pair.limits.receives_max).unwrap_or(0) => {
                Err(Errno::NOMEM.into())
            }
            _ => {
                pair.receives.push_back(receive);
                Ok(())
            }
        }
    }

    /// Posts requests. If one of them is refused, the requests before it are in flight.
    pub(super) fn post(&mut self, id: u64, requests: &[PostedRequest]) -> io::Result<()> {
        for request in requests {
            self.post_one(id, request.clone())?;
        }
        self.pump(id);
        Ok(())
    }

    fn post_one(&mut self, id: u64, mut request: PostedRequest) -> io::Result<()> {
        let pair = self.called(id)?;
        if !matches!(pair.state, QueuePairState::ReadyToSend | QueuePairState::Error) {
            return Err(Errno::INVAL.into());
        }
        let length = request.range.map_or(0, |range| range.length);
        if request.is_inline && length > pair.limits.inline_bytes_max {
            return Err(Errno::INVAL.into());
        }
        if request.is_inline && request.is_read() {
            return Err(Errno::INVAL.into());
        }
        if !pair.requester.has_place(pair.limits.sends_max) {
            return Err(Errno::NOMEM.into());
        }
        let (device, queue, epoch, state) = (pair.device, pair.queue, pair.epoch, pair.state);
        pair.requester.posted += 1;
        let frees = pair.requester.posted;
        if state == QueuePairState::Error {
            let completion =
                Completion { name: request.name, status: FLUSHED, ..Completion::default() };
            self.complete(queue, id, epoch, frees, completion);
            return Ok(());
        }
        let late_read_ns = self.devices.get(device).map_or(0, |it| it.profile.late_read_ns);
        if request.is_inline {
            // The processor itself copies inline bytes, regardless of the key.
            request.content = request.range.and_then(|range| self.read_anywhere(device, range));
        } else if late_read_ns == 0 && !request.is_read() {
            request.content = self.read_local(id, request.range).ok();
        }
        let late = if late_read_ns > 0 { self.random.below(late_read_ns + 1) } else { 0 };
        request.not_before = self.now.saturating_add(late);
        if let Some(pair) = self.pairs.get_mut(&id) {
            pair.requester.add(request);
        }
        Ok(())
    }

    /// Ends the oldest request with a status, flushes the rest, and moves the queue pair to ERROR.
    pub(super) fn fail(&mut self, id: u64, status: u32) {
        let Some(pair) = self.pairs.get(&id) else { return };
        if self.devices.get(pair.device).is_some_and(|it| it.profile.flushes_receives_first) {
            self.flush_receives(id);
        }
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        if let Some(request) = pair.requester.requests.pop_front() {
            let (queue, epoch, frees) = (pair.queue, pair.epoch, request.number + 1);
            let completion = Completion { name: request.name, status, ..Completion::default() };
            self.complete(queue, id, epoch, frees, completion);
        }
        self.enter_error(id);
    }

    /// Moves a queue pair to ERROR: all outstanding requests complete as flushed, in order, and
    /// nothing more is accepted.
    pub(super) fn enter_error(&mut self, id: u64) {
        self.place_all(|piece| piece.pair == id);
        let Some(mut pair) = self.pairs.remove(&id) else { return };
        self.stop_timer(&mut pair);
        pair.state = QueuePairState::Error;
        pair.responder = None;
        let requests = std::mem::take(&mut pair.requester.requests);
        let (queue, epoch) = (pair.queue, pair.epoch);
        // Messages in flight no longer have any effect on the queue pair.
        pair.requester.stop();
        self.pairs.insert(id, pair);
        for request in requests {
            self.flush(queue, id, epoch, (request.name, request.number + 1));
        }
        self.flush_receives(id);
    }

    fn flush_receives(&mut self, id: u64) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let (queue, epoch) = (pair.queue, pair.epoch);
        for receive in std::mem::take(&mut pair.receives) {
            self.flush(queue, id, epoch, (receive.name, 0));
        }
    }

    fn flush(&mut self, queue: u64, id: u64, epoch: u64, (name, frees): (u64, u64)) {
        self.counts.flushed += 1;
        let completion = Completion { name, status: FLUSHED, ..Completion::default() };
        self.complete(queue, id, epoch, frees, completion);
    }

    /// Moves a queue pair to ERROR for a local cause that no completion reports.
    pub(super) fn enter_error_told(&mut self, id: u64) {
        let Some(pair) = self.pairs.get(&id) else { return };
        let (context, number) = (pair.context, pair.number);
        self.enter_error(id);
        self.tell(context, AsyncEvent::QueuePairError(number));
    }

    pub(super) fn stop_timer(&mut self, pair: &mut Pair) {
        if let Some(timer) = pair.requester.timer.take() {
            self.agenda.cancel(timer);
        }
    }
}
