//! Applies the commands of a simulated run to a copy of the state machine at each member.
//!
//! The simulation decides who proposes when, and what is delivered where; it knows neither commands
//! nor states. Because nothing in it depends on them, they are computed afterwards, from its
//! history, in the order of its events.

use std::collections::{BTreeSet, HashMap, VecDeque};
use std::fmt::Debug;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use tramontane::StateMachine;
use tramontane_fixtures::random::Random;
use tramontane_fixtures::world::{History, Plan, Record, Recorded};

use crate::events::Events;
use crate::proposer::Proposer;
use crate::restart::Snapshots;
use crate::trials::{ModelAnswers, Ran, Trials};
use crate::violation::Violation;

/// The process that proposed a command, and the number of its earlier proposals.
pub(crate) type Proposal = (usize, u64);

/// The state machine at one process.
pub(crate) struct Replica<S: StateMachine> {
    pub(crate) state: S,
    /// The commands that it has applied, in order.
    pub(crate) applied: Vec<Proposal>,
    /// Number of the group, because a group that lost all its members may be formed anew.
    group: usize,
    answers: Vec<Rc<S::Answer>>,
    /// The positions and answers of its own commands that are not durable yet, if that is required.
    waiting: VecDeque<(usize, Rc<S::Answer>)>,
}

/// A command that was proposed.
pub(crate) struct Proposed {
    encoded: Vec<u8>,
    pub(crate) text: String,
    /// The group, and the number of its commands that some proposer had an answer to.
    after: (usize, usize),
}

/// The order of a group's commands, as the members that applied each first have it.
pub(crate) struct GroupOrder<S: StateMachine> {
    pub(crate) applied: Vec<(Proposal, Rc<S::Answer>)>,
    /// Number of commands up to the last one that has been answered.
    pub(crate) answered: usize,
    pub(crate) model: Option<ModelAnswers<S>>,
}

/// A run's history, and the copies of the state machine.
pub(crate) struct Replay<'t, S: StateMachine> {
    pub(crate) trials: &'t Trials<S>,
    pub(crate) history: &'t History,
    random: Random,
    pub(crate) proposed: HashMap<Proposal, Proposed>,
    pub(crate) replicas: Vec<Option<Replica<S>>>,
    pub(crate) orders: Vec<GroupOrder<S>>,
    pub(crate) snapshots: Snapshots,
    /// Processes that begin with the logs of their nodes.
    pub(crate) restarting: BTreeSet<usize>,
    /// The log of the first of them.
    pub(crate) restarted_with: Option<Vec<Proposal>>,
    is_logged: bool,
    pub(crate) events: Events,
    pub(crate) ran: Ran,
}

impl<'t, S> Replay<'t, S>
where
    S: StateMachine + Debug + PartialEq,
    S::Command: Debug,
    S::Answer: Debug + PartialEq,
{
    pub(crate) fn new(trials: &'t Trials<S>, history: &'t History, plan: &Plan) -> Self {
        let mut replay = Self {
            trials,
            history,
            random: Random::stream(plan.seed, "commands"),
            proposed: HashMap::new(),
            replicas: history.processes.iter().map(|_| None).collect(),
            orders: Vec::new(),
            snapshots: Snapshots::new(plan.seed),
            restarting: BTreeSet::new(),
            restarted_with: None,
            is_logged: plan.is_logged(),
            events: Events::default(),
            ran: Ran { groups: 1, ..Ran::default() },
        };
        replay.form();
        replay
    }

    /// Applies the whole history, and compares the copies at its end.
    pub(crate) fn run(&mut self) -> Result<(), Violation> {
        let history = self.history;
        for recorded in &history.records {
            self.events.note(history, recorded);
            self.take(recorded)?;
        }
        self.compare_all()?;
        self.restart()
    }

    fn take(&mut self, Recorded { record, .. }: &Recorded) -> Result<(), Violation> {
        match record {
            Record::Formed { processes } => {
                self.form();
                processes.iter().for_each(|process| self.begin(*process));
            }
            Record::Restarted { processes } => self.kill_all(processes)?,
            Record::DiskChanged { node, .. } => self.change_disk(*node),
            Record::Durable { process, count } => self.durable(*process, *count as usize)?,
            Record::State { process, messages, .. } if self.restarting.remove(process) => {
                self.restart_from_log(*process, messages)?;
            }
            Record::State { process, messages, .. } => self.enter(*process, messages)?,
            Record::Multicast { process, index, .. } => self.propose(*process, *index)?,
            Record::Deliver { process, author, index, .. } => {
                self.deliver(*process, (*author, *index))?;
            }
            Record::Crash { .. } => self.ran.crashes += 1,
            Record::Partition { .. } => self.ran.partitions += 1,
            Record::View { .. } => self.ran.views += 1,
            _ => {}
        }
        Ok(())
    }

    /// Begins the order of a new group.
    fn form(&mut self) {
        let model = self.trials.model.as_ref().map(|model| model());
        self.orders.push(GroupOrder { applied: Vec::new(), answered: 0, model });
    }

    /// A process begins with the initial state, in the latest group.
    pub(crate) fn begin(&mut self, process: usize) {
        let (state, group) = ((self.trials.initial)(), self.orders.len() - 1);
        let (applied, answers, waiting) = (Vec::new(), Vec::new(), VecDeque::new());
        let replica = Replica { state, applied, group, answers, waiting };
        self.replicas[process] = Some(replica);
    }

    pub(crate) fn replica(&mut self, process: usize) -> &mut Replica<S> {
        if self.replicas[process].is_none() {
            self.begin(process);
        }
        self.replicas[process].as_mut().expect("it has just begun")
    }

    /// A process enters a view. A process that joins takes over the state of a member that has
    /// applied the same commands.
    fn enter(&mut self, process: usize, applied: &[Proposal]) -> Result<(), Violation> {
        if self.replica(process).applied == applied {
            return Ok(());
        }
        self.ran.joins += 1;
        let is_donor = |replica: &&Replica<S>| replica.applied == applied;
        let donor = self.replicas.iter().flatten().filter(is_donor).max_by_key(|of| of.group);
        let (state, group) = match donor {
            Some(donor) => (self.transferred(&donor.state)?, donor.group),
            // The members have delivered more since they sent the state.
            None => {
                let begins = |order: &&GroupOrder<S>| {
                    order
                        .applied
                        .iter()
                        .map(|(proposal, _)| proposal)
                        .take(applied.len())
                        .eq(applied)
                };
                let Some(group) = self.orders.iter().rposition(|order| begins(&order)) else {
                    let what = "a member joins with commands that no group applied in this order";
                    return Err(Violation::Order { what: what.into() });
                };
                let state = self.applied_anew(applied)?;
                (self.transferred(&state)?, group)
            }
        };
        let replica = self.replica(process);
        (replica.state, replica.group) = (state, group);
        replica.applied = applied.to_vec();
        Ok(())
    }

    /// Returns a state as a joining member decodes it.
    fn transferred(&self, state: &S) -> Result<S, Violation> {
        let changed = |after| Violation::StateChangedInTransfer { before: text(state), after };
        let encoded = postcard::to_stdvec(state).map_err(|error| changed(error.to_string()))?;
        let decoded: S =
            postcard::from_bytes(&encoded).map_err(|error| changed(error.to_string()))?;
        if decoded == *state { Ok(decoded) } else { Err(changed(text(&decoded))) }
    }

    /// Chooses the command of a proposal.
    fn propose(&mut self, process: usize, index: u64) -> Result<(), Violation> {
        let node = self.history.processes[process].node.get();
        self.replica(process);
        let Some(replica) = &self.replicas[process] else { return Ok(()) };
        let (state, answers) = (&replica.state, &replica.answers[..]);
        let random = &mut self.random;
        let mut proposer = Proposer { node, number: index, state, answers, random };
        let command = (self.trials.propose)(&mut proposer);
        let changed = |after| Violation::CommandChangedInTransfer { before: text(&command), after };
        let encoded = postcard::to_stdvec(&command).map_err(|error| changed(error.to_string()))?;
        let decoded: S::Command =
            postcard::from_bytes(&encoded).map_err(|error| changed(error.to_string()))?;
        if postcard::to_stdvec(&decoded).ok().as_ref() != Some(&encoded) {
            return Err(changed(text(&decoded)));
        }
        let (text, group) = (text(&command), replica.group);
        self.events.proposed(&text);
        let after = (group, self.orders[group].answered);
        self.proposed.insert((process, index), Proposed { encoded, text, after });
        self.ran.proposed += 1;
        Ok(())
    }

    /// Applies a command that is delivered at a process.
    fn deliver(&mut self, process: usize, proposal: Proposal) -> Result<(), Violation> {
        let (place, answer) = self.apply_next(process, proposal, false)?;
        if proposal.0 == process {
            self.replica(process).waiting.push_back((place, answer));
        }
        if !self.is_logged {
            self.answer(process, usize::MAX);
        }
        Ok(())
    }

    /// Answers those commands of a process that are among the first `durable` of the group.
    pub(crate) fn answer(&mut self, process: usize, durable: usize) {
        let Some(replica) = &mut self.replicas[process] else { return };
        while replica.waiting.front().is_some_and(|next| next.0 < durable)
            && let Some((place, answer)) = replica.waiting.pop_front()
        {
            let order = &mut self.orders[replica.group];
            order.answered = order.answered.max(place + 1);
            replica.answers.push(answer);
            self.ran.answered += 1;
        }
    }

    /// Applies a command at a process, which is new or comes from its log, and checks its effects.
    /// Returns its position and its answer.
    pub(crate) fn apply_next(
        &mut self,
        process: usize,
        proposal: Proposal,
        is_from_log: bool,
    ) -> Result<(usize, Rc<S::Answer>), Violation> {
        self.replica(process);
        let (Some(replica), Some(proposed)) =
            (&mut self.replicas[process], self.proposed.get(&proposal))
        else {
            let what = "a command is delivered that nobody proposed".into();
            return Err(Violation::Order { what });
        };
        let answer = apply(&mut replica.state, proposed)?;
        let place = replica.applied.len();
        replica.applied.push(proposal);
        if !is_from_log {
            self.events.applied(&proposed.text, &text(&answer));
        }
        if let Some(Err(what)) = self.trials.invariant.as_ref().map(|holds| holds(&replica.state)) {
            return Err(Violation::Invariant { command: proposed.text.clone(), what });
        }
        let order = &mut self.orders[replica.group];
        order.check(place, proposal, proposed, replica.group)?;
        match order.applied.get(place) {
            Some((_, first)) if **first != answer => {
                let (first, other) = (text(&**first), text(&answer));
                let command = proposed.text.clone();
                return Err(Violation::AnswersDiffer { command, first, other });
            }
            Some(_) => {}
            None => order.model_answers(proposed, &answer)?,
        }
        let answer = Rc::new(answer);
        if order.applied.len() == place {
            order.applied.push((proposal, Rc::clone(&answer)));
        }
        Ok((place, answer))
    }

    /// Copies that applied the same commands have equal states.
    pub(crate) fn compare_all(&self) -> Result<(), Violation> {
        let mut first: HashMap<(usize, usize), &S> = HashMap::new();
        for replica in self.replicas.iter().flatten() {
            let same = first.entry((replica.group, replica.applied.len()));
            let first = same.or_insert(&replica.state);
            if **first != replica.state {
                let (first, other) = (text(*first), text(&replica.state));
                return Err(Violation::StatesDiffer { first, other });
            }
        }
        Ok(())
    }

    /// A node that restarts from its log has the state of a member that did not.
    fn restart(&self) -> Result<(), Violation> {
        let longest = self.replicas.iter().flatten().max_by_key(|of| of.applied.len());
        let Some(replica) = longest else { return Ok(()) };
        let state = self.applied_anew(&replica.applied)?;
        if state != replica.state {
            let (before, after) = (text(&replica.state), text(&state));
            return Err(Violation::RestartDiffers { before, after });
        }
        Ok(())
    }

    /// Applies commands to the initial state.
    fn applied_anew(&self, applied: &[Proposal]) -> Result<S, Violation> {
        let mut state = (self.trials.initial)();
        for proposed in applied.iter().filter_map(|proposal| self.proposed.get(proposal)) {
            apply(&mut state, proposed)?;
        }
        Ok(state)
    }
}

impl<S: StateMachine> GroupOrder<S>
where
    S::Answer: Debug + PartialEq,
{
    /// Checks what the group promises: one order at all members, in which a command comes after
    /// those that had been answered when it was proposed.
    fn check(
        &self,
        place: usize,
        proposal: Proposal,
        proposed: &Proposed,
        group: usize,
    ) -> Result<(), Violation> {
        let other = self.applied.get(place).is_some_and(|(first, _)| *first != proposal);
        if other || place > self.applied.len() {
            let what = format!("two members apply different commands in place {place}");
            return Err(Violation::Order { what });
        }
        if proposed.after.0 == group && place < proposed.after.1 {
            let what = format!("{} comes before a command answered earlier", proposed.text);
            return Err(Violation::Order { what });
        }
        Ok(())
    }

    /// Compares an answer with the model's.
    pub(crate) fn model_answers(
        &mut self,
        proposed: &Proposed,
        answer: &S::Answer,
    ) -> Result<(), Violation> {
        let Some(model) = &mut self.model else { return Ok(()) };
        let expected = model(decoded::<S>(proposed)?);
        if expected == *answer {
            return Ok(());
        }
        let (answer, model) = (text(answer), text(&expected));
        Err(Violation::ModelDiffers { command: proposed.text.clone(), answer, model })
    }
}

fn decoded<S: StateMachine>(proposed: &Proposed) -> Result<S::Command, Violation> {
    postcard::from_bytes(&proposed.encoded).map_err(|error| Violation::CommandChangedInTransfer {
        before: proposed.text.clone(),
        after: error.to_string(),
    })
}

/// Applies a command.
pub(crate) fn apply<S: StateMachine>(
    state: &mut S,
    proposed: &Proposed,
) -> Result<S::Answer, Violation> {
    let command = decoded::<S>(proposed)?;
    catch_unwind(AssertUnwindSafe(|| state.apply(command))).map_err(|panic| {
        let words = panic.downcast_ref::<String>().map(String::as_str);
        let message = words.or(panic.downcast_ref::<&str>().copied()).unwrap_or("no message");
        Violation::Panicked { command: proposed.text.clone(), message: message.into() }
    })
}

pub(crate) fn text(value: &impl Debug) -> String {
    format!("{value:?}")
}
