//! The sending half of a queue pair. Requests are sent and answered in order, and are retransmitted
//! if no answer arrives.

use super::hardware::{FakeEvent, Hardware};
use super::local_memory::LOCAL_LENGTH;
use super::messages::{Body, FakeAnswer, FakeMessage, Says};
use super::profile::SevenRetries;
use super::request::{PACKET_MASK, is_by};
use crate::adapter::{Completion, Operation, QueuePairState};
use crate::devices::mtu_bytes;

/// `IBV_WC_RETRY_EXC_ERR` and `IBV_WC_RNR_RETRY_EXC_ERR`.
const RETRIES_EXCEEDED: u32 = 12;
const RECEIVER_NOT_READY: u32 = 13;

/// The time between retries for a peer without a receive, as this project's queue pairs are
/// configured.
const NOT_READY_NS: u64 = 640_000;

impl Hardware {
    /// Sends the requests that may be sent.
    pub(super) fn pump(&mut self, id: u64) {
        while let Some(pair) = self.pairs.get_mut(&id) {
            let epoch = pair.epoch;
            let requester = &mut pair.requester;
            let Some((_, times)) = requester.way.filter(|_| !requester.waits_for_receive) else {
                return;
            };
            let Some(request) = requester.requests.get(requester.sent) else { return };
            if let Some(status) = request.failure {
                if requester.sent == 0 {
                    self.fail(id, status);
                }
                return;
            }
            if request.is_read() && requester.reads >= usize::from(times.reads_max.max(1)) {
                return;
            }
            let at = request.not_before.max(requester.busy_until);
            if at > self.now {
                if !std::mem::replace(&mut requester.departs, true) {
                    self.agenda.enter(at, FakeEvent::Depart { pair: id, epoch });
                }
                return;
            }
            self.depart(id);
        }
    }

    /// Sends the next request, which is now due.
    pub(super) fn depart_due(&mut self, id: u64, epoch: u64) {
        if let Some(pair) = self.pairs.get_mut(&id).filter(|pair| pair.epoch == epoch) {
            pair.requester.departs = false;
            self.pump(id);
        }
    }

    /// Executes the next request.
    fn depart(&mut self, id: u64) {
        let Some(pair) = self.pairs.get(&id) else { return };
        let Some(request) = pair.requester.requests.get(pair.requester.sent).cloned() else {
            return;
        };
        let Some((route, _)) = pair.requester.way else { return };
        let (from, epoch, number) = (pair.place(), pair.epoch, pair.number);
        let device = self.devices.get(from.device);
        if !self.is_up(from) && device.is_some_and(|it| it.profile.fails_without_link) {
            return self.enter_error(id);
        }
        let content = match (&request.content, request.is_read()) {
            (_, true) => self.writable(id, request.range).map(|()| Vec::new()),
            (Some(content), false) => Ok(content.clone()),
            (None, false) => {
                self.counts.read_late += u64::from(request.length() > 0);
                self.read_local(id, request.range)
            }
        };
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let requester = &mut pair.requester;
        let most = self.devices.get(from.device).and_then(|device| device.port(from.port));
        let most = most.map_or(0, |port| port.message_bytes_max);
        let content = if request.length() > most { Err(LOCAL_LENGTH) } else { content };
        let content = match content {
            Ok(content) => content,
            Err(status) => {
                if let Some(request) = requester.requests.get_mut(requester.sent) {
                    request.failure = Some(status);
                }
                return;
            }
        };
        requester.sent += 1;
        requester.reads += usize::from(request.is_read());
        let speed = self.devices.get(from.device).map_or(0, |it| it.profile.bytes_per_us);
        let bytes = u64::try_from(content.len()).unwrap_or(0);
        requester.busy_until =
            self.now + (bytes.saturating_mul(1000)).checked_div(speed).unwrap_or(0);
        self.arm_timer(id);
        let mtu = mtu_bytes(route.mtu);
        let packet = u32::try_from(content.len()).unwrap_or(u32::MAX).min(mtu);
        let Some(to) = self.far_end(from, &route) else {
            self.counts.nowhere += 1;
            return;
        };
        let Some(journey) = self.journey_ns(from, to, packet) else { return };
        let body = match request.operation {
            Operation::Write(target) => Body::Write { target, content, immediate: None },
            Operation::WriteWithImmediate(target, value) => {
                Body::Write { target, content, immediate: Some(value) }
            }
            Operation::Read(target) => Body::Read { target, length: request.length() },
            Operation::Send => Body::Send { content },
        };
        let Some(requester) = self.pairs.get_mut(&id).map(|pair| &mut pair.requester) else {
            return;
        };
        let at = requester.busy_until.saturating_add(journey).max(requester.arrives_by);
        requester.arrives_by = at;
        let message = FakeMessage {
            pair: id,
            epoch,
            from,
            to,
            sender: number,
            receiver: route.remote_number,
            first_packet: request.first_packet,
            packets: request.packets,
            packet_bytes: packet,
            body,
        };
        self.agenda.enter(at, FakeEvent::Arrive(message));
    }

    fn arm_timer(&mut self, id: u64) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let epoch = pair.epoch;
        let Some((_, times)) = pair.requester.way else { return };
        if pair.requester.timer.is_some() || times.timeout_exponent == 0 {
            return;
        }
        let Some(profile) = self.devices.get(pair.device).map(|it| &it.profile) else { return };
        let exponent = times.timeout_exponent.max(profile.timeout_exponent_min).min(31);
        let stretch = u64::from(profile.timeout_stretch_max.max(1));
        let factor = if stretch > 1 { 1 + self.random.below(stretch) } else { 1 };
        let entry =
            self.after((4096_u64 << exponent) * factor, FakeEvent::TimedOut { pair: id, epoch });
        if let Some(pair) = self.pairs.get_mut(&id) {
            pair.requester.timer = Some(entry);
        }
    }

    /// Handles a timeout without an answer.
    pub(super) fn timed_out(&mut self, id: u64, epoch: u64) {
        let Some(pair) = self.pairs.get_mut(&id).filter(|pair| pair.epoch == epoch) else { return };
        pair.requester.timer = None;
        if !pair.requester.waits_for_receive && pair.requester.sent > 0 {
            self.send_again(id);
        }
    }

    /// Resends all unanswered requests, or gives up.
    fn send_again(&mut self, id: u64) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let Some((_, times)) = pair.requester.way else { return };
        let profile = self.devices.get(pair.device).map(|device| &device.profile);
        let seven = profile.map_or(SevenRetries::Seven, |profile| profile.seven_retries);
        let is_for_ever = times.retries == 7 && seven == SevenRetries::ForEver;
        if pair.requester.retries == 0 && !is_for_ever {
            return self.fail(id, RETRIES_EXCEEDED);
        }
        pair.requester.retries = pair.requester.retries.saturating_sub(1);
        self.counts.sent_again += 1;
        pair.requester.rewind();
        self.pump(id);
    }

    /// Retries after the peer lacked a receive.
    pub(super) fn try_again(&mut self, id: u64, epoch: u64) {
        if let Some(pair) = self.pairs.get_mut(&id).filter(|pair| pair.epoch == epoch) {
            pair.requester.waits_for_receive = false;
            pair.requester.rewind();
            self.pump(id);
        }
    }

    /// Handles an answer.
    pub(super) fn answered(&mut self, answer: FakeAnswer) {
        let FakeAnswer { pair: id, epoch, from, says } = answer;
        let Some(pair) = self.pairs.get(&id).filter(|pair| pair.epoch == epoch) else { return };
        if pair.state != QueuePairState::ReadyToSend
            || !self.is_up(pair.place())
            || !self.is_up(from)
        {
            return;
        }
        match says {
            Says::Done(packet) => self.done_by(id, packet),
            Says::Read { first_packet, content } => self.read_done(id, first_packet, content),
            Says::Refused { packet, status } => {
                if self.is_oldest(id, packet) {
                    self.fail(id, status);
                }
            }
            Says::NotReady(packet) => {
                if self.is_oldest(id, packet) {
                    self.not_ready(id, epoch);
                }
            }
            Says::Expected(packet) => {
                if self.is_oldest(id, packet) {
                    self.send_again(id);
                }
            }
        }
        self.pump(id);
    }

    fn not_ready(&mut self, id: u64, epoch: u64) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        if pair.requester.waits_for_receive {
            return;
        }
        let Some(left) = pair.requester.not_ready_retries.checked_sub(1) else {
            return self.fail(id, RECEIVER_NOT_READY);
        };
        pair.requester.not_ready_retries = left;
        pair.requester.waits_for_receive = true;
        self.counts.not_ready += 1;
        self.after(NOT_READY_NS, FakeEvent::TryAgain { pair: id, epoch });
    }

    /// Completes everything before a packet. Returns whether the oldest remaining request begins
    /// with it.
    fn is_oldest(&mut self, id: u64, packet: u32) -> bool {
        self.done_by(id, packet.wrapping_sub(1) & PACKET_MASK);
        let pair = self.pairs.get(&id).filter(|pair| pair.state == QueuePairState::ReadyToSend);
        let oldest = pair.and_then(|pair| pair.requester.requests.front());
        pair.is_some_and(|pair| pair.requester.sent > 0)
            && oldest.is_some_and(|oldest| oldest.first_packet == packet)
    }

    /// Completes all requests up to a packet, except reads whose content is missing.
    fn done_by(&mut self, id: u64, packet: u32) {
        if !self.pairs.get(&id).is_some_and(|pair| pair.requester.knows(packet)) {
            return;
        }
        while let Some(pair) = self.pairs.get(&id) {
            let requester = &pair.requester;
            let Some(oldest) = requester.requests.front().filter(|_| requester.sent > 0) else {
                break;
            };
            if !is_by(oldest.last_packet(), packet) {
                break;
            }
            if oldest.is_read() {
                return self.send_again(id);
            }
            self.oldest_done(id, 0);
        }
    }

    fn read_done(&mut self, id: u64, first_packet: u32, content: Vec<u8>) {
        if !self.is_oldest(id, first_packet) {
            return;
        }
        let oldest = self.pairs.get(&id).and_then(|pair| pair.requester.requests.front());
        let Some(range) = oldest.filter(|oldest| oldest.is_read()).map(|oldest| oldest.range)
        else {
            return;
        };
        match self.write_local(id, range, &content) {
            Ok(()) => self.oldest_done(id, u32::try_from(content.len()).unwrap_or(0)),
            Err(status) => self.fail(id, status),
        }
    }

    /// Completes the oldest request.
    fn oldest_done(&mut self, id: u64, bytes: u32) {
        let Some(pair) = self.pairs.get_mut(&id) else { return };
        let Some(request) = pair.requester.requests.pop_front() else { return };
        pair.requester.sent -= 1;
        pair.requester.reads -= usize::from(request.is_read());
        pair.requester.progress();
        let timer = pair.requester.timer.take();
        let is_idle = pair.requester.sent == 0;
        let (queue, epoch, frees) = (pair.queue, pair.epoch, request.number + 1);
        if let Some(timer) = timer {
            self.agenda.cancel(timer);
        }
        if !is_idle {
            self.arm_timer(id);
        }
        if request.is_signalled {
            let completion = Completion { name: request.name, bytes, ..Completion::default() };
            self.complete(queue, id, epoch, frees, completion);
        }
    }
}
