//! Total restart: former members of a logged group continue it after all its members have stopped
//! (DUR-6).
//!
//! | file | subject |
//! |---|---|
//! | `messages` | the messages between restarting nodes |
//! | `node` | a node's side: it answers others, and follows the leader |
//! | `calls` | calls to others |
//! | `attempt` | the leader's side of an attempt |
//! | `meeting` | the members of the decided view meet |
//! | `nobody` | views without members, which earlier versions left behind |
//! | `returned` | subgroups that lost all their members, and have members again |
//!
//! The core decides the order of the steps, and explains why it is safe:
//! [`tramontane_core::restart`]. This module handles files, logs and sessions. Each node repeatedly
//! asks all others what they have, and looks for a running member. Once enough nodes answer, the
//! lowest of the nodes that count leads an attempt. The decided view then begins like a group's
//! first view: its members meet.

mod attempt;
mod calls;
mod error;
mod meeting;
mod messages;
mod nobody;
mod node;
mod returned;

use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use tramontane_control::{Client, ControlServer, MeshError, Purpose};
use tramontane_core::ids::NodeId;
use tramontane_core::restart::{Answer, LogState, Restart, Verdict, Want};

use self::attempt::Attempt;
use self::calls::Calls;
use self::error::RestartError;
use self::messages::{LogAnswer, NodeAnswer, Plain, RestartReply, RestartRequest};
use self::nobody::{TooFew, with_members};
use self::node::{OnDisk, RestartingNode, lock};
use self::returned::{has_closed_log, newest, with_returned};
use super::status::operator;
use crate::group::description::subgroups::logged_subgroups;
use crate::group::description::terms::Description;
use crate::group::description::view::{View, WireView};
use crate::group::enter::forming::{List, RestartWaiting, Waiting};
use crate::group::enter::meeting::{OTHER_CONFIGURATION, Telling};
use crate::group::enter::place::{Found, StartingMember};
use crate::group::enter::start_options::StartError;

/// The interval between rounds of questions.
pub(crate) const LOOK_PAUSE: Duration = Duration::from_millis(200);

/// The time for which a majority waits for members that may still appear.
const GRACE: Duration = Duration::from_secs(3);

/// The time for which a majority waits for all nodes of a logged subgroup that lost all its
/// members. Without these nodes, the subgroup stays closed.
const RETURN_GRACE: Duration = Duration::from_secs(10);

/// Time limit for the members of a decided view to meet.
const MEETING: Duration = Duration::from_secs(10);

/// The result that restarting nodes agree on.
enum Agreed {
    /// The group continues in this view.
    View(View),
    /// A member is running.
    Running,
    /// No node that answers was in a view, so the group has yet to be formed.
    NoGroup,
}

/// The conclusion drawn from the answers.
enum Look {
    Wait {
        waits: RestartWaiting,
        /// The nodes here that may continue with less.
        able: Vec<u32>,
    },
    NoGroup,
    /// This node has led an attempt.
    Led,
    /// Another node leads, or some nodes may still appear.
    Pause,
}

impl StartingMember {
    /// Returns whether this node may restart a logged group instead of forming it: either it was a
    /// member, or it noted that the group was being formed, or it has a log but no membership
    /// record.
    pub(crate) fn may_restart(&self, description: &Description) -> bool {
        let is_logged = logged_subgroups(description).next().is_some();
        let remembers = self.state.as_ref().is_some_and(|state| state.last_membership().is_some());
        is_logged && (remembers || self.data.records() > 0) && !self.forming.new_group
    }

    /// Returns whether some restarting node was a member. A node that answers other nodes while it
    /// asks them would look like a running member to new nodes. Therefore, a node that may have to
    /// form the group asks first.
    pub(crate) fn somebody_restarts(&self) -> bool {
        self.calls().answers().iter().any(|answer| answer.decided.is_some())
    }

    fn calls(&self) -> Calls {
        Calls {
            identity: self.identity,
            addresses: self.addresses.clone(),
            key: self.key.clone(),
            since: Instant::now(),
        }
    }

    /// Restarts the group with the other nodes, unless a running member is found. Returns `None` if
    /// no node that answers was a member; this can happen only to a node that has merely noted that
    /// the group was being formed.
    pub(crate) fn restart(
        &mut self,
        description: &Description,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Option<Found>, StartError> {
        let telling = Telling::new(self.forming.told);
        loop {
            let view = match self.agree(description, &telling, until, cancel)? {
                Agreed::View(view) => view,
                Agreed::Running => return Ok(Some(Found::Running)),
                Agreed::NoGroup => return Ok(None),
            };
            let meeting_until = until.min(Instant::now() + MEETING);
            match self.meet_in(description, &view, &telling, meeting_until, cancel) {
                Ok(sessions) => return Ok(Some(Found::Again(view, sessions))),
                Err(MeshError::Cancelled) => return Err(StartError::Cancelled),
                // A member failed, so the remaining ones decide on another view.
                Err(error) => tracing::info!(%error, "the members of a view did not meet"),
            }
        }
    }

    /// Agrees with the other nodes on the view in which the group continues.
    fn agree(
        &mut self,
        description: &Description,
        telling: &Telling,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Agreed, StartError> {
        let Some(state) = self.state.take() else { return Ok(Agreed::Running) };
        let calls = self.calls();
        let disk = OnDisk { state, data: std::mem::take(&mut self.data) };
        let node = RestartingNode::new(self.own, description, calls, disk);
        let waiting = Mutex::new(Waiting::Restart(RestartWaiting::default()));
        let agreed = std::thread::scope(|scope| {
            let (served, stop) = std::sync::mpsc::channel::<Client>();
            let nodes = description.nodes.iter().map(|node| NodeId(node.id));
            let server = ControlServer::open(
                self.listener.try_clone()?,
                self.identity,
                nodes,
                self.key.clone(),
                move |client| drop(served.send(client)),
            )?;
            let (node, waiting) = (&node, &waiting);
            scope.spawn(move || {
                for Client { purpose, mut session, .. } in stop {
                    scope.spawn(move || match purpose {
                        Purpose::Restart => node.serve(session),
                        Purpose::Ask => {
                            let waiting = lock(waiting).clone();
                            drop(operator::answer_forming(&mut session, &waiting));
                        }
                        _ => {}
                    });
                }
            });
            let agreed = self.look_around(node, telling, waiting, until, cancel);
            // Nodes that still ask are refused, and disconnect.
            let disk = node.take_disk();
            drop(server);
            Ok::<_, StartError>((agreed, disk))
        });
        let (agreed, disk) = agreed?;
        if let Some(OnDisk { state, data }) = disk {
            (self.state, self.data) = (Some(state), data);
        }
        agreed
    }

    fn look_around(
        &self,
        node: &RestartingNode<'_>,
        telling: &Telling,
        waiting: &Mutex<Waiting>,
        until: Instant,
        cancel: &AtomicBool,
    ) -> Result<Agreed, StartError> {
        let (mut enough_since, mut alone_since) = (None, None);
        loop {
            let probed = self.probe_within(node.calls.limit());
            if probed.is_running {
                return Ok(Agreed::Running);
            }
            // If some nodes have this configuration, a node with a different configuration does not
            // stop this one.
            match self.other_configuration(&probed).filter(|_| !probed.has_company) {
                None => alone_since = None,
                Some(error) => {
                    let since = alone_since.get_or_insert_with(Instant::now);
                    if since.elapsed() >= OTHER_CONFIGURATION {
                        return Err(error);
                    }
                }
            }
            if cancel.load(Ordering::Relaxed) {
                return Err(StartError::Cancelled);
            }
            let looked = self.look(node, &mut enough_since);
            // A disk may also fail while this node serves another node's request.
            match node.disk_failure().map_or(looked, Err) {
                Ok(Look::Wait { mut waits, able }) => {
                    if !self.forming.with_less {
                        let mut here = probed.forming.clone();
                        here.push(self.own.get());
                        waits.why.push_str(&way_out(&waits.missing, &here, &able));
                    }
                    let waits = probed.stranger().unwrap_or(Waiting::Restart(waits));
                    *lock(waiting) = waits.clone();
                    telling.tell(|| waits);
                }
                Ok(Look::NoGroup) => return Ok(Agreed::NoGroup),
                Ok(Look::Led | Look::Pause) => {}
                // This node ends like a member whose disk has failed. The others continue, or wait
                // for it.
                Err(error) if error.is_of_disk() => {
                    return Err(StartError::DiskFailed(error.to_string()));
                }
                Err(error) => {
                    tracing::info!(%error, "an attempt to restart failed");
                    let why = format!("the last attempt failed: {error}");
                    let waits = RestartWaiting { why, ..RestartWaiting::default() };
                    let waits = Waiting::Restart(waits);
                    *lock(waiting) = waits.clone();
                    telling.tell(|| waits);
                }
            }
            if let Some(view) = node.begins() {
                return Ok(Agreed::View(view));
            }
            if Instant::now() >= until {
                return Err(match (probed.refused, lock(waiting).clone()) {
                    (Some((node, why)), _) => StartError::Refused { node: node.get(), why },
                    (None, Waiting::Restart(waits)) => StartError::NotRestarted(waits),
                    (None, _) => StartError::NotRestarted(RestartWaiting::default()),
                });
            }
            std::thread::sleep(LOOK_PAUSE);
        }
    }

    /// Asks the others what they have, and leads an attempt if it is this node's turn.
    fn look(
        &self,
        node: &RestartingNode<'_>,
        enough_since: &mut Option<Instant>,
    ) -> Result<Look, RestartError> {
        let mut answers = node.calls.answers();
        let RestartReply::Answer(own) = node.reply(RestartRequest::Answer) else {
            return Err(RestartError::Unanswered);
        };
        answers.push(*own);
        let with_less = self.forming.with_less;
        if with_less && answers.last().is_some_and(|own| own.forgotten > 0) {
            let known = answers.iter().filter_map(|answer| answer.decided.as_ref());
            node.remember_logs(known.map(WireView::id).max().unwrap_or(0))?;
            return Ok(Look::Pause);
        }
        let subgroups: Vec<Vec<NodeId>> = logged_subgroups(node.description)
            .filter_map(|subgroup| node.description.subgroups.get(subgroup.index()))
            .map(|subgroup| subgroup.members().iter().copied().map(NodeId).collect())
            .collect();
        let subgroups: Vec<&[NodeId]> = subgroups.iter().map(Vec::as_slice).collect();
        let known = match with_members(&answers, &subgroups, with_less) {
            Ok(known) => known,
            Err(TooFew { view, want, missing }) => {
                let why = why(node.description, want);
                let waits = RestartWaiting { view, missing, why };
                return Ok(Look::Wait { waits, able: Vec::new() });
            }
        };
        let known = with_returned(known, node.description, with_less);
        let is_closed = newest(&known).is_some_and(|view| has_closed_log(&view, node.description));
        let plain: Vec<Plain> = known.iter().map(Plain::from).collect();
        let logs: Vec<Vec<Option<LogState<'_>>>> = plain.iter().map(Plain::logs).collect();
        let lent: Vec<Answer<'_>> =
            plain.iter().zip(&logs).map(|(plain, logs)| plain.answer(logs)).collect();
        let restart = Restart::new(&lent, &subgroups);
        let restart = if with_less { restart.with_less() } else { restart };
        let plan = match restart.verdict() {
            Verdict::Go(plan) => plan,
            Verdict::Wait(wait) => {
                *enough_since = None;
                let missing = restart.missing(wait).map(NodeId::get).collect();
                let mut why = why(node.description, wait.want);
                for uncounted in restart.uncounted(wait) {
                    let answer = answers.iter().find(|answer| answer.node == uncounted.get());
                    why.push_str(&answer.map_or_else(String::new, |of| of.loss(node.description)));
                }
                for NodeAnswer { node, forgotten, .. } in &answers {
                    if *forgotten > 0 {
                        why.push_str(&format!(
                            "; node {node} has a log of {forgotten} records, but has lost its \
                             record of its membership"
                        ));
                    }
                }
                let has_log = |answer: &&NodeAnswer| {
                    answer.forgotten == 0 && wait.view.members.contains(&NodeId(answer.node))
                };
                let able = answers.iter().filter(has_log).map(|answer| answer.node).collect();
                let members = wait.view.members;
                if with_less && !members.contains(&self.own) {
                    why.push_str("; ");
                    why.push_str(&self.no_effect(members));
                }
                let waits = RestartWaiting { view: wait.view.id.0, missing, why };
                return Ok(Look::Wait { waits, able });
            }
            Verdict::NoGroup => return Ok(Look::NoGroup),
        };
        let participants: Vec<NodeId> = restart.participants(&plan).collect();
        if with_less && !participants.contains(&self.own) {
            let why = self.no_effect(&participants);
            let waits = RestartWaiting { why, ..RestartWaiting::default() };
            return Ok(Look::Wait { waits, able: Vec::new() });
        }
        let is_lowest = participants.iter().min() == Some(&self.own);
        let may_lead = participants.contains(&self.own) && (with_less || is_lowest);
        let all_here = plan.base.members.iter().all(|member| participants.contains(member));
        let grace = if is_closed { RETURN_GRACE } else { GRACE };
        let is_over = enough_since.get_or_insert_with(Instant::now).elapsed() >= grace;
        if !may_lead || !(all_here && !is_closed || is_over || with_less) {
            return Ok(Look::Pause);
        }
        Attempt { node, answers: &answers, known: &known, restart, plan, with_less }.make()?;
        Ok(Look::Led)
    }

    /// Returns what to do if this node was told to continue with less, but the group can only
    /// continue from the data of others.
    fn no_effect(&self, able: &[NodeId]) -> String {
        let able: Vec<u32> = able.iter().map(|node| node.get()).collect();
        format!(
            "the option restart-with-less has no effect at node {}, because the group does not \
             continue from its data; give it to {} instead",
            self.own,
            one_of(&able)
        )
    }
}

/// Returns the name of a logged subgroup.
fn name_of(description: &Description, at: usize) -> &str {
    let subgroup = logged_subgroups(description).nth(at);
    let found = subgroup.and_then(|id| description.subgroups.get(id.index()));
    found.map_or("?", |subgroup| subgroup.name.as_str())
}

impl NodeAnswer {
    /// Returns the reason why the node counts in no majority, as the end of a sentence.
    fn loss(&self, description: &Description) -> String {
        let of = |(at, log): (usize, &Option<LogAnswer>)| {
            let LogAnswer { end, noted: [had, ..], is_of_another, .. } = log.as_ref()?;
            let name = name_of(description, at);
            match is_of_another {
                true => Some(format!("its log of \"{name}\" is a different log, or an older copy")),
                false if end < had => Some(format!(
                    "its log of \"{name}\" ends at {end}, but had {had} durable records"
                )),
                false => None,
            }
        };
        let lost = self.logs.iter().enumerate().find_map(of);
        let lost = lost.unwrap_or_else(|| {
            "its log is shorter than others have seen, as if an older copy had replaced it".into()
        });
        format!("; node {} is not counted towards the majority, because {lost}", self.node)
    }
}

/// Returns the advice about missing nodes, some of which may be running without their data.
fn way_out(missing: &[u32], here: &[u32], able: &[u32]) -> String {
    let lost: Vec<u32> = missing.iter().copied().filter(|node| here.contains(node)).collect();
    let running = match lost.as_slice() {
        [] => String::new(),
        [node] => format!(" (node {node} is running, but has no data of the group)"),
        _ => format!(" (nodes {} are running, but have no data of the group)", List(&lost)),
    };
    let first = if lost.len() == missing.len() { "restore the missing data" } else { "start them" };
    format!(
        "{running}; {first}, or, if the data is lost for good, start {} again with the option \
         restart-with-less to continue with the data found here",
        one_of(able)
    )
}

fn one_of(nodes: &[u32]) -> String {
    match nodes {
        [] => "one node".to_owned(),
        [node] => format!("node {node}"),
        _ => format!("one of the nodes {}", List(nodes)),
    }
}

/// Returns the reason why nodes are awaited, in words.
fn why(description: &Description, want: Want) -> String {
    let name = |at| name_of(description, at);
    match want {
        Want::Majority => "a majority of its members is needed".to_owned(),
        Want::SubgroupMajority(at) => {
            format!("a majority of its members in subgroup \"{}\" is needed", name(at))
        }
        Want::WholeLog(at) => {
            format!("none of the running nodes has the whole log of subgroup \"{}\"", name(at))
        }
        Want::Record(at, sequence) => format!(
            "record {sequence} of subgroup \"{}\" is damaged at every node that has it",
            name(at)
        ),
        Want::Durable(at, count) => format!(
            "{count} messages of subgroup \"{}\" were durable at a majority, but no log found here \
             has all of them",
            name(at)
        ),
        Want::Support(node) => format!(
            "only node {node} knows of this view, and most members of the previous view never left \
             that view; stop node {node} to restart without its data, or stop the others to \
             restart node {node} with less"
        ),
    }
}
