//! The handling of each line of a member: as a record of the history, an answer, or the end of the
//! run.

use std::time::Duration;

use super::error::Ending;
use super::feature::Feature;
use super::ledger::{Fate, only};
use super::lines::{ReceivedItem, What};
use super::member::{Asked, MemberPhase};
use super::names::group_name;
use super::protocol::{HaltReason, MemberLine, ReportedDelivery};
use super::stage::{Introduction, Stage};
use crate::history::{EndReason, Event};

/// The code with which an adapter reports a missing feature.
const UNSUPPORTED: &str = "unsupported";

/// Time limit for a process to exit after its output has ended.
const EXIT_WAIT: Duration = Duration::from_secs(2);

/// Number of characters shown of an invalid line.
const SHOWN_CHARACTERS: usize = 160;

/// The source of a line.
#[derive(Clone, Copy)]
struct LineOrigin {
    node: usize,
    inc: u32,
    t_ns: u64,
    line: u64,
}

impl Stage<'_> {
    /// Handles an item from a member.
    pub(super) fn receive(&mut self, received: ReceivedItem) -> Result<(), Ending> {
        let ReceivedItem { node, inc, t_ns, line, what } = received;
        let member = &self.members[node];
        if inc != member.inc {
            // The item is from an earlier incarnation, which the driver no longer waits for.
            return Ok(());
        }
        // A line that a member wrote before it was killed is recorded before the kill, whenever it
        // is read.
        let t_ns = member.killed_ns.map_or(t_ns, |killed_ns| t_ns.min(killed_ns));
        let origin = LineOrigin { node, inc, t_ns, line };
        if line > self.lines_max {
            return Err(self.broken(origin, "it writes output without end", &[]));
        }
        match what {
            What::Line(text) => match MemberLine::read(&text) {
                Ok(notice) => self.take(origin, &text, notice),
                Err(why) => Err(self.broken(origin, &why, &text)),
            },
            What::TooLong(text) => Err(self.broken(origin, "longer than 1 MiB", &text)),
            What::Cut(_) if member.killed_ns.is_some() => Ok(()),
            What::Cut(text) => Err(self.broken(origin, "cut off by the end of the output", &text)),
            What::End => self.take_end(origin),
        }
    }

    fn take(&mut self, origin: LineOrigin, text: &[u8], notice: MemberLine) -> Result<(), Ending> {
        let LineOrigin { node, inc, t_ns, .. } = origin;
        if self.members[node].phase == MemberPhase::Ended
            && !matches!(notice, MemberLine::Deliver(_))
        {
            self.note(format!(
                "{} wrote more lines after its `halt` line",
                self.members[node].name
            ));
            return Ok(());
        }
        match notice {
            MemberLine::InitOk { name, version, features } => {
                if self.members[node].phase != MemberPhase::Starting {
                    return Err(self.broken(origin, "a second init_ok", text));
                }
                if let Some(feature) = features.iter().find(|name| Feature::named(name).is_none()) {
                    let why = format!("it claims the unknown feature \"{feature}\"");
                    return Err(self.broken(origin, &why, text));
                }
                self.take_introduction(origin, text, Introduction { name, version, features })
            }
            MemberLine::Ok { message: Some(message) } => {
                let Some(place) = self.answer(node, &message) else {
                    return Err(self.broken(origin, "an answer without an open request", text));
                };
                self.ledger.answer(place, Fate::Taken);
                self.history_file.of(node, t_ns, |t_ns, node| Event::Accepted {
                    t_ns,
                    node,
                    inc,
                    msg: message.as_str().into(),
                })?;
                Ok(())
            }
            MemberLine::Ok { message: None } => {
                if self.members[node].take_asked(Asked::Pause) {
                    return Ok(());
                }
                Err(self.broken(origin, "an answer without an open request", text))
            }
            MemberLine::Error { code, definite, message: Some(message), text: why } => {
                let Some(place) = self.answer(node, &message) else {
                    return Err(self.broken(origin, "an answer without an open request", text));
                };
                self.ledger.answer(place, if definite { Fate::Refused } else { Fate::Unsure });
                self.history_file.of(node, t_ns, |t_ns, node| Event::Refused {
                    t_ns,
                    node,
                    inc,
                    msg: message.as_str().into(),
                    definite,
                    code: Some(code.as_str().into()),
                })?;
                self.unless_unsupported(node, &code, why)
            }
            MemberLine::Error { code, message: None, text: why, .. } => {
                self.take_error(origin, text, &code, why)
            }
            MemberLine::Deliver(delivery) => self.take_delivery(origin, &delivery),
            MemberLine::View { group, view, members } => {
                self.take_view(origin, text, &group, view, &members)
            }
            MemberLine::Durable { group, upto } => {
                self.known_group(origin, text, &group)?;
                self.members[node].durable = true;
                self.durable |= only(node);
                self.history_file.of(node, t_ns, |t_ns, node| Event::Durable {
                    t_ns,
                    node,
                    inc,
                    group: group.as_str().into(),
                    upto,
                })?;
                Ok(())
            }
            MemberLine::Leader { group, term } => {
                let place = self.known_group(origin, text, &group)?;
                self.leaders.take(place, (node, inc), term);
                self.history_file.of(node, t_ns, |t_ns, node| Event::Leader {
                    t_ns,
                    node,
                    inc,
                    group: group.as_str().into(),
                    term,
                })?;
                Ok(())
            }
            MemberLine::Stats { posts } => {
                if !self.members[node].take_asked(Asked::Stats) {
                    return Err(self.broken(origin, "an answer without an open request", text));
                }
                self.history_file.of(node, t_ns, |t_ns, node| Event::Stats {
                    t_ns,
                    node,
                    inc,
                    posts,
                })?;
                Ok(())
            }
            MemberLine::Halt { reason, text: why } => self.take_halt(origin, reason, why),
        }
    }

    fn take_introduction(
        &mut self,
        origin: LineOrigin,
        text: &[u8],
        introduction: Introduction,
    ) -> Result<(), Ending> {
        let (node, sent) = (origin.node, self.ledger.len());
        let member = &mut self.members[node];
        member.ready_at = sent;
        member.phase = MemberPhase::Ready;
        match &self.introduction {
            None => self.introduction = Some(introduction),
            Some(first) if first.is_of_another_system(&introduction) => {
                let why = "it reports a different name or other features than the first member";
                return Err(self.broken(origin, why, text));
            }
            // Members of different versions may work together.
            Some(first) if first.version != introduction.version => {
                let name = self.members[node].name.clone();
                self.note(format!("{name} reports a different version than the first member"));
            }
            Some(_) => {}
        }
        Ok(())
    }

    /// Removes a message from a member's unanswered ones.
    fn answer(&mut self, node: usize, message: &str) -> Option<usize> {
        let place = self.ledger.find(message)?;
        let member = &mut self.members[node];
        let known = member.unanswered.remove(&place);
        member.answered += u64::from(known);
        known.then_some(place)
    }

    fn take_error(
        &mut self,
        origin: LineOrigin,
        text: &[u8],
        code: &str,
        why: Option<String>,
    ) -> Result<(), Ending> {
        let node = origin.node;
        if self.members[node].phase == MemberPhase::Starting {
            self.unless_unsupported(node, code, why)?;
            return Err(self.broken(origin, "it cannot start", text));
        }
        if self.members[node].asked.is_empty() {
            return Err(self.broken(origin, "an answer without an open request", text));
        }
        let asked = self.members[node].asked.remove(0);
        self.unless_unsupported(node, code, why.clone())?;
        let name = &self.members[node].name;
        let why = why.unwrap_or_default();
        self.note(format!("{name} was asked to {}, but answered {code}: {why}", asked.word()));
        Ok(())
    }

    fn unless_unsupported(
        &self,
        node: usize,
        code: &str,
        why: Option<String>,
    ) -> Result<(), Ending> {
        if code != UNSUPPORTED {
            return Ok(());
        }
        let why = why.map(|why| format!(": {why}")).unwrap_or_default();
        let member = &self.members[node];
        let what = format!("{} reports the feature as unsupported{why}", member.name);
        // Only at the beginning may a member find that it does not support the groups.
        let begins = member.phase == MemberPhase::Starting && self.ledger.len() == 0;
        Err(if begins { Ending::Unsupported(what) } else { Ending::Denied(what) })
    }

    fn take_delivery(
        &mut self,
        origin: LineOrigin,
        delivery: &ReportedDelivery,
    ) -> Result<(), Ending> {
        let LineOrigin { node, inc, t_ns, .. } = origin;
        let place = match &delivery.message {
            Some(name) => self.ledger.find(name),
            None => self.empty_message(origin, delivery),
        };
        let resolved = place.map(|place| self.ledger.message(place).name.clone());
        let msg = delivery.message.clone().or(resolved);
        self.history_file.of(node, t_ns, |t_ns, node| Event::Deliver {
            t_ns,
            node,
            inc,
            group: delivery.group.as_str().into(),
            view: delivery.view,
            msg: msg.map(Into::into),
            sender: Some(delivery.sender.as_str().into()),
            bytes: delivery.bytes,
            digest: delivery.digest.as_deref().map(Into::into),
            replayed: delivery.replayed,
        })?;
        self.members[node].delivered += 1;
        if let Some(place) = place {
            self.ledger.deliver(place, (node, inc));
        }
        Ok(())
    }

    /// Returns the message of a delivery without a name, if a node sent one.
    fn empty_message(&mut self, origin: LineOrigin, delivery: &ReportedDelivery) -> Option<usize> {
        if delivery.bytes.is_some_and(|bytes| bytes > 0) {
            return None;
        }
        let sender = self.members.iter().position(|member| member.name == delivery.sender)?;
        let group = self.group(&delivery.group)?;
        self.ledger.oldest_empty(sender, group, (origin.node, origin.inc))
    }

    fn take_view(
        &mut self,
        origin: LineOrigin,
        text: &[u8],
        group: &str,
        view: u64,
        members: &[String],
    ) -> Result<(), Ending> {
        let place = self.known_group(origin, text, group)?;
        let LineOrigin { node, inc, t_ns, .. } = origin;
        let position = |name: &String| self.members.iter().position(|member| member.name == *name);
        let set = members.iter().filter_map(position).fold(0, |set, node| set | only(node));
        self.members[node].views[place] = Some((view, set));
        self.members[node].moved_on = true;
        self.seen[place] |= set;
        if self.highest[place].is_none_or(|(highest, _)| highest < view) {
            self.highest[place] = Some((view, set));
        }
        self.history_file.of(node, t_ns, |t_ns, node| Event::View {
            t_ns,
            node,
            inc,
            group: group.into(),
            view,
            members: members.iter().map(|name| name.as_str().into()).collect(),
        })?;
        Ok(())
    }

    fn group(&self, name: &str) -> Option<usize> {
        (0..self.plan.groups.len()).find(|group| group_name(*group) == name)
    }

    fn known_group(&self, origin: LineOrigin, text: &[u8], name: &str) -> Result<usize, Ending> {
        self.group(name).ok_or_else(|| self.broken(origin, "there is no such group", text))
    }

    fn take_halt(
        &mut self,
        origin: LineOrigin,
        reason: HaltReason,
        why: Option<String>,
    ) -> Result<(), Ending> {
        let LineOrigin { node, inc, t_ns, .. } = origin;
        let member = &mut self.members[node];
        if member.killed_ns.is_some() {
            // The member exited just before; the kill that follows is recorded instead.
            return Ok(());
        }
        // A member that stops without being asked has halted, even if it gives another reason.
        let reason = match reason {
            HaltReason::Done if member.stopping => EndReason::Done,
            HaltReason::Left if member.asked.contains(&Asked::Leave) => EndReason::Left,
            _ => EndReason::Halted,
        };
        member.phase = MemberPhase::Ended;
        member.forget_orders();
        if reason == EndReason::Halted {
            let why = why.unwrap_or_else(|| "no reason given".to_owned());
            let name = member.name.clone();
            self.note(format!("{name} gave up: {why}"));
        }
        self.history_file.end(node, inc, t_ns, reason)?;
        Ok(())
    }

    /// Handles the end of the output. Without a kill or a last line before it, the member broke the
    /// protocol.
    fn take_end(&mut self, origin: LineOrigin) -> Result<(), Ending> {
        let member = &mut self.members[origin.node];
        member.silent = true;
        if member.killed_ns.is_some() {
            return Ok(());
        }
        let Some(process) = &mut member.process else { return Ok(()) };
        let ended = process.ends_within(EXIT_WAIT);
        let status = process.kill();
        let how = match status {
            Some(status) if ended => format!("its process ended with {status}"),
            _ => "its output ended, but its process did not".to_owned(),
        };
        if member.phase != MemberPhase::Ended {
            let name = &self.members[origin.node].name;
            return Err(self.broken_by(origin.node, format!("{name}: {how} without a `halt` line")));
        }
        if !ended || !status.is_some_and(|status| status.success()) {
            let name = member.name.clone();
            self.note(format!("after its `halt` line, {name} failed: {how}"));
        }
        Ok(())
    }

    /// Adds a note, unless it is already there.
    pub(super) fn note(&mut self, text: String) {
        if !self.notes.contains(&text) {
            self.notes.push(text);
        }
    }

    fn broken(&self, origin: LineOrigin, why: &str, text: &[u8]) -> Ending {
        let name = &self.members[origin.node].name;
        let mut what = format!("{name}, line {}: {why}", origin.line);
        if !text.is_empty() {
            what += &format!(": {}", shown(text));
        }
        self.broken_by(origin.node, what)
    }

    /// Returns the end of a case that a member broke, with the end of its log.
    pub(super) fn broken_by(&self, node: usize, what: String) -> Ending {
        let name = &self.members[node].name;
        let log = self.log_end(node).map(|end| format!("the log of {name} ends with: {end}"));
        Ending::Broken { what, log }
    }
}

impl Asked {
    /// Names the request, for people.
    fn word(self) -> &'static str {
        match self {
            Self::Pause => "pause",
            Self::Stats => "report its statistics",
            Self::Leave => "leave",
        }
    }
}

/// Shortens a line for display, and escapes control characters.
fn shown(text: &[u8]) -> String {
    let text = String::from_utf8_lossy(text);
    let mut shown: String =
        text.chars().take(SHOWN_CHARACTERS).flat_map(char::escape_debug).collect();
    if text.chars().nth(SHOWN_CHARACTERS).is_some() {
        shown.push_str("...");
    }
    shown
}
