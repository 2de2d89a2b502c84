//! A client's connection to a member: its requests, the replies, and the reason for a
//! disconnection.

use std::time::Instant;

use rustix::event::PollFlags;
use tramontane_control::client_messages::{
    ALIVE_PAUSE, COMPARED_MAX, ClientLife, ClientRefusal, ClientReply, ClientRequest, Level,
    NAME_MAX, REQUEST_AROUND, Target, decode, encode,
};
use tramontane_control::{QueuedSession, SessionError};
use tramontane_core::ids::SubgroupId;

use super::cut::Cut;
use super::follower::Follower;
use super::member::ServedMember;
use super::publisher::Publisher;
use super::subscriber::Subscriber;
use crate::group::clients::order::feed::ClientOutcome;
use crate::group::clients::order::history::compare;
use crate::group::clients::order::retained::CHUNK_BYTES;
use crate::group::status::group_status::ClientStatus;

/// The number of requests handled for one client before it is the next client's turn.
const REQUESTS_MAX: u32 = 16;

/// The maximum length of a request: enough for lines of this total length, or for one line of the
/// maximum length.
const LINES_BYTES: usize = 64 << 10;

/// The role of a connected client.
#[derive(Debug)]
enum ClientKind {
    /// The client has not stated its role yet.
    New,
    Publisher(SubgroupId, Publisher),
    Subscriber(Subscriber),
    Follower(Follower),
    /// The client has received everything that it asked for, or a refusal.
    Over,
}

/// One client.
#[derive(Debug)]
pub(crate) struct ClientConnection {
    session: QueuedSession,
    name: String,
    part: ClientKind,
    /// For a reserved subgroup: the subgroup, and the era in which the client arrived.
    era: Option<(SubgroupId, u64)>,
    arrived: Instant,
    last_put: Instant,
    /// Whether there may be unread data.
    is_readable: bool,
}

impl ClientConnection {
    pub(crate) fn new(session: QueuedSession, now: Instant) -> Self {
        let (name, part) = (String::new(), ClientKind::New);
        Self { session, name, part, era: None, arrived: now, last_put: now, is_readable: true }
    }

    /// Notes that data from the client has arrived.
    pub(crate) const fn can_be_read(&mut self) {
        self.is_readable = true;
    }

    pub(crate) const fn session(&self) -> &QueuedSession {
        &self.session
    }

    /// Returns the name displayed to operators: the client's own name, or its id.
    pub(crate) fn name(&self) -> String {
        match (&self.part, self.name.as_str()) {
            (ClientKind::Publisher(_, publisher), "") => publisher.life().id.to_string(),
            (_, "") => "without a name".to_owned(),
            (_, name) => name.to_owned(),
        }
    }

    /// Returns the subgroup and the incarnation of the client if it publishes.
    pub(crate) const fn life(&self) -> Option<(SubgroupId, ClientLife)> {
        match &self.part {
            ClientKind::Publisher(subgroup, publisher) => Some((*subgroup, publisher.life())),
            _ => None,
        }
    }

    /// Returns the events to wait for.
    pub(crate) fn interest(&self) -> PollFlags {
        self.session.interest(self.reads())
    }

    fn reads(&self) -> bool {
        match &self.part {
            ClientKind::Publisher(_, publisher) => publisher.has_room(),
            ClientKind::New | ClientKind::Subscriber(_) | ClientKind::Follower(_) => true,
            ClientKind::Over => false,
        }
    }

    /// Returns whether the client is waiting for slots.
    pub(crate) fn waits_for_slots(&self) -> bool {
        matches!(&self.part, ClientKind::Publisher(_, publisher) if !publisher.has_room())
    }

    /// Handles the outcome of one of the client's requests at the group.
    pub(crate) fn hear(
        &mut self,
        outcome: &ClientOutcome,
        member: &ServedMember,
    ) -> Result<(), Cut> {
        let ClientKind::Publisher(subgroup, publisher) = &mut self.part else { return Ok(()) };
        let ClientOutcome::Attached { attached, .. } = outcome else {
            publisher.hear(outcome);
            return Ok(());
        };
        let attachment = attached.map_err(Cut::Refused)?;
        publisher.attach(attachment);
        let reply = ClientReply::Attached {
            next: attachment.next,
            line_max: member.line_max(*subgroup),
            lease_ms: member.lease_ms(*subgroup),
        };
        self.put(&encode(&reply))
    }

    /// Handles the client's requests, and sends what is due. Returns true if there is more to do
    /// right away.
    pub(crate) fn work(&mut self, member: &mut ServedMember, now: Instant) -> Result<bool, Cut> {
        self.check_era(member)?;
        if let ClientKind::Publisher(subgroup, publisher) = &mut self.part
            && let Some(outlet) = member.outlet(*subgroup)
        {
            publisher.go_on(outlet);
            if publisher.waits_for_log() {
                publisher.see_durable(&member.durable(*subgroup));
            }
        }
        let mut taken = 0;
        while taken < REQUESTS_MAX && self.reads() {
            let Some(request) = self.take_request(member)? else { break };
            self.carry_out(&request, member)?;
            taken += 1;
        }
        if matches!(self.part, ClientKind::New)
            && now.duration_since(self.arrived) > member.first_word()
        {
            return Err(Cut::Gone(SessionError::TimeUp));
        }
        let has_more = self.send(member, now)?;
        Ok(has_more || taken == REQUESTS_MAX)
    }

    /// Disconnects the client if its subgroup has been reopened since it arrived. Also disconnects
    /// it if the subgroup is closed and the client either publishes or has received everything.
    fn check_era(&mut self, member: &ServedMember) -> Result<(), Cut> {
        let Some((subgroup, era)) = self.era else { return Ok(()) };
        let standing = member.feed.standing(subgroup);
        let is_told = match &self.part {
            ClientKind::Publisher(..) => true,
            ClientKind::Subscriber(of) => of.next() >= member.end(subgroup),
            ClientKind::Follower(_) | ClientKind::New | ClientKind::Over => false,
        };
        if standing.era == era && (standing.is_open || !is_told) {
            return Ok(());
        }
        if matches!(self.part, ClientKind::Follower(_)) {
            // The client is disconnected at once, because the state that it was waiting for now
            // belongs to another era.
            self.part = ClientKind::Over;
        }
        Err(Cut::Refused(ClientRefusal::NotHere))
    }

    fn take_request(&mut self, member: &ServedMember) -> Result<Option<Vec<u8>>, Cut> {
        let line_max = self.life().map_or(0, |(subgroup, _)| member.line_max(subgroup));
        let line_max = usize::try_from(line_max).unwrap_or(usize::MAX);
        let bytes_max = LINES_BYTES.max(line_max).saturating_add(REQUEST_AROUND);
        if let Some(request) = self.session.take(bytes_max)? {
            return Ok(Some(request));
        }
        if !std::mem::take(&mut self.is_readable) {
            return Ok(None);
        }
        self.session.read()?;
        Ok(self.session.take(bytes_max)?)
    }

    fn carry_out(&mut self, request: &[u8], member: &mut ServedMember) -> Result<(), Cut> {
        let request = decode(request).ok_or(Cut::Malformed)?;
        match (&mut self.part, request) {
            (ClientKind::New, ClientRequest::Attach { target, life, is_new, level }) => {
                let subgroup = self.place(&target, level, false, member)?;
                member.attach(subgroup, (life, self.session.source()), is_new)?;
                self.part = ClientKind::Publisher(subgroup, Publisher::new(life, level));
                Ok(())
            }
            (ClientKind::New, ClientRequest::Subscribe { target, from, level }) => {
                let asked = level.unwrap_or_default();
                let subgroup = self.place(&target, asked, false, member)?;
                let level = level.unwrap_or_else(|| member.safe_level(subgroup));
                let subscriber = Subscriber::new(subgroup, from, level, &member.feed);
                self.part = ClientKind::Subscriber(subscriber);
                Ok(())
            }
            (ClientKind::New, ClientRequest::Follow { target, from }) => {
                let goes_on = from.is_some();
                let subgroup = self.place(&target, Level::Delivered, goes_on, member)?;
                self.part = ClientKind::Follower(Follower::new(subgroup, from, &member.feed));
                Ok(())
            }
            (ClientKind::New, ClientRequest::Compare { target, places })
                if places.len() <= COMPARED_MAX =>
            {
                let subgroup = self.place(&target, Level::Delivered, true, member)?;
                let compared = compare(&member.feed, subgroup, &places);
                self.put(&encode(&ClientReply::Compared(compared)))
            }
            (ClientKind::New, ClientRequest::Query { target }) => {
                let subgroup = self.place(&target, Level::Delivered, false, member)?;
                self.part = ClientKind::Over;
                self.put(&encode(&ClientReply::Answer(member.answer(subgroup)?)))
            }
            (
                ClientKind::Publisher(subgroup, publisher),
                ClientRequest::Publish { first, lines },
            ) => {
                let outlet =
                    member.outlet(*subgroup).ok_or(Cut::Refused(ClientRefusal::NotHere))?;
                publisher.publish(first, &lines, outlet)
            }
            (ClientKind::Publisher(subgroup, publisher), ClientRequest::End) => {
                if let Some(outlet) = member.outlet(*subgroup) {
                    publisher.end(outlet);
                }
                Err(Cut::Ended)
            }
            (ClientKind::Subscriber(_) | ClientKind::Follower(_), ClientRequest::End) => {
                Err(Cut::Ended)
            }
            _ => Err(Cut::Malformed),
        }
    }

    /// Returns the subgroup that a client asks for, if this member serves that subgroup to the
    /// client.
    fn place(
        &mut self,
        target: &Target<'_>,
        level: Level,
        goes_on: bool,
        member: &ServedMember,
    ) -> Result<SubgroupId, Cut> {
        if target.name.len() > NAME_MAX || target.name.contains(char::is_control) {
            return Err(Cut::Malformed);
        }
        target.name.clone_into(&mut self.name);
        let subgroup = member.place(target, level, goes_on).map_err(Cut::Refused)?;
        if member.is_reserved(subgroup) {
            self.era = Some((subgroup, member.feed.standing(subgroup).era));
        }
        Ok(subgroup)
    }

    /// Sends what is due, as far as the system accepts it. Returns true if there may be more to
    /// send.
    fn send(&mut self, member: &ServedMember, now: Instant) -> Result<bool, Cut> {
        let mut has_more = false;
        while self.session.unsent_bytes() < CHUNK_BYTES {
            let next = match &mut self.part {
                ClientKind::Publisher(_, publisher) if self.session.unsent_bytes() == 0 => {
                    publisher.take_reached().map(|reached| encode(&ClientReply::Reached(reached)))
                }
                ClientKind::Subscriber(subscriber) => subscriber.take(&member.feed)?,
                ClientKind::Follower(follower) => follower.take(|| member.ring())?,
                _ => None,
            };
            has_more = next.is_some();
            match next {
                Some(message) => self.put(&message)?,
                None if now.duration_since(self.last_put) >= ALIVE_PAUSE
                    && self.session.unsent_bytes() == 0 =>
                {
                    self.put(&encode(&ClientReply::Alive))?;
                }
                None => {}
            }
            let is_all_sent = self.session.flush()?;
            if !has_more || !is_all_sent {
                has_more &= is_all_sent;
                break;
            }
        }
        if self.session.unsent_bytes() > 0 {
            self.session.flush()?;
        }
        match &mut self.part {
            ClientKind::Subscriber(subscriber) => {
                subscriber.stall().watch(self.session.unsent_bytes(), now)?;
            }
            ClientKind::Follower(follower) => {
                follower.stall().watch(self.session.unsent_bytes(), now)?;
            }
            ClientKind::Over if self.session.unsent_bytes() == 0 => return Err(Cut::Ended),
            _ => {}
        }
        Ok(has_more)
    }

    fn put(&mut self, message: &[u8]) -> Result<(), Cut> {
        self.last_put = Instant::now();
        Ok(self.session.put(message)?)
    }

    /// Tells the client why it is being disconnected, if it can still receive.
    pub(crate) fn refuse(&mut self, why: ClientRefusal) {
        self.part = ClientKind::Over;
        // The connection ends in any case.
        let _ = self.session.put(&encode(&ClientReply::Refused(why)));
        let _ = self.session.flush();
    }

    /// Returns the client's status.
    pub(crate) fn status(&self, member: &ServedMember, now: Instant) -> Option<ClientStatus> {
        let milliseconds =
            |time: std::time::Duration| u64::try_from(time.as_millis()).unwrap_or(u64::MAX);
        let unsent_bytes = u64::try_from(self.session.unsent_bytes()).unwrap_or(u64::MAX);
        let (kind, subgroup, next, stalled_ms) = match &self.part {
            ClientKind::New | ClientKind::Over => return None,
            ClientKind::Publisher(subgroup, publisher) => {
                ("publisher", *subgroup, publisher.delivered(), 0)
            }
            ClientKind::Subscriber(of) => {
                ("subscriber", of.subgroup(), of.next(), milliseconds(of.stalled_for(now)))
            }
            ClientKind::Follower(of) => {
                ("follower", of.subgroup(), of.next(), milliseconds(of.stalled_for(now)))
            }
        };
        let behind =
            if kind == "publisher" { 0 } else { member.end(subgroup).saturating_sub(next) };
        Some(ClientStatus {
            name: self.name(),
            kind: kind.to_owned(),
            subgroup: member.name(subgroup),
            next,
            behind,
            unsent_bytes,
            stalled_ms,
        })
    }
}
