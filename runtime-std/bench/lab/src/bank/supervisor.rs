//! The parent of the demo: it starts replicas and clients, kills leaders, and finally asks all of
//! them for their state.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::time::{Duration, Instant};

use tramontane_conformance::history::{EndReason, Event, FaultKind};
use tramontane_conformance::random::Random;
use tramontane_runtime::shards::{GroupId, Places};

use super::accounts::Totals;
use super::messages::{BankOrder, BankPart, BankReport, BankTask, ClientTransfer, ShardsMember};
use super::plan::BankPlan;
use tramontane_local::clock::now_ns;
use tramontane_local::crew::{Crew, Launch, WorkerEvent as CrewEvent, WorkerId};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::interrupt::Interrupts;

/// Interval between checks for signals.
const TICK: Duration = Duration::from_millis(5);

/// Time limit for all replicas to reach the same state in the end.
const SETTLE: Duration = Duration::from_secs(30);

/// Interval between requests for the replicas' state.
const ASK_PAUSE: Duration = Duration::from_millis(50);

/// A killed leader.
#[derive(Clone, Copy, Debug)]
pub(super) struct Kill {
    pub(super) group: GroupId,
    pub(super) at_ns: u64,
}

/// The results of a run.
#[derive(Debug, Default)]
pub(super) struct BankRun {
    pub(super) kills: Vec<Kill>,
    /// The state of each replica in the end, group by group.
    pub(super) held: Vec<Vec<Totals>>,
    pub(super) sent: Vec<ClientTransfer>,
    /// The parent's records, and the files with the records of the other processes.
    pub(super) events: Vec<Event<'static>>,
    pub(super) files: Vec<PathBuf>,
    pub(super) seconds: f64,
}

/// A process of the demo.
#[derive(Debug)]
struct BankProcess {
    name: String,
    /// `None` for a client.
    group: Option<GroupId>,
    inc: u32,
    has_joined: bool,
    votes: bool,
    term: u64,
    held: Option<Totals>,
    is_done: bool,
}

/// All processes, as the parent sees them.
pub(super) struct Supervisor<'p> {
    plan: &'p BankPlan,
    places: Places,
    crew: Crew<ShardsMember>,
    members: BTreeMap<WorkerId, BankProcess>,
    run: BankRun,
    random: Random,
}

impl<'p> Supervisor<'p> {
    /// Runs the demo to its end. No process remains, however the run ends.
    pub(super) fn run(plan: &'p BankPlan, interrupts: &Interrupts) -> Result<BankRun, Failure> {
        let places = Places::new(&plan.overlay, plan.overlay.overlay()?);
        let random = Random::stream(plan.seed, "kills");
        let (crew, members, run) = (Crew::default(), BTreeMap::new(), BankRun::default());
        let mut supervisor = Self { plan, places, crew, members, run, random };
        supervisor.start_all(interrupts)?;
        supervisor.kill_leaders(interrupts)?;
        supervisor.end(interrupts)?;
        Ok(supervisor.run)
    }

    fn start_all(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let replicas: Vec<(String, GroupId)> =
            self.places.replicas().map(|of| (self.places.name(of), of.group)).collect();
        for (name, group) in replicas {
            self.start_replica(name, group, 1)?;
        }
        self.wait_until(self.plan.join_timeout, interrupts, "the replicas", |all| {
            all.values().all(|member| member.votes)
        })?;
        for client in 0..self.plan.clients {
            let rate = self.plan.rate / f64::from(self.plan.clients);
            let seed = self.plan.seed ^ (u64::from(client) << 32);
            let member = BankProcess::new(format!("client {client}"), None, 1);
            self.start(member, BankPart::Client { seed, rate })?;
        }
        self.wait_until(self.plan.join_timeout, interrupts, "the clients", |all| {
            all.values().all(|member| member.has_joined)
        })?;
        self.order_clients(BankOrder::Go);
        Ok(())
    }

    fn start_replica(&mut self, name: String, group: GroupId, inc: u32) -> Result<(), Failure> {
        let start = Event::Start { t_ns: now_ns(), node: name.clone().into(), inc };
        self.run.events.push(start);
        let part = BankPart::Replica { name: name.clone(), inc };
        self.start(BankProcess::new(name, Some(group), inc), part)
    }

    fn start(&mut self, member: BankProcess, part: BankPart) -> Result<(), Failure> {
        let number = self.run.files.len();
        let history = self.plan.folder.join(format!("history-{number}.jsonl"));
        let task = BankTask {
            overlay: self.plan.overlay.clone(),
            history: history.clone(),
            part,
            join_timeout: self.plan.join_timeout,
        };
        let worker = self.crew.start(&task, &Launch::default())?;
        self.run.files.push(history);
        self.members.insert(worker, member);
        Ok(())
    }

    /// Kills a leader at each interval and restarts it. Only a group in which all replicas count in
    /// quorums is chosen.
    fn kill_leaders(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        let begun = Instant::now();
        let mut next_kill = self.plan.kill_interval;
        while begun.elapsed() < self.plan.duration {
            interrupts.check()?;
            self.take_event(TICK)?;
            if begun.elapsed() >= next_kill
                && let Some((worker, group)) = self.choose_leader()
            {
                self.kill(worker, group)?;
                next_kill = begun.elapsed() + self.plan.kill_interval;
            }
        }
        self.run.seconds = begun.elapsed().as_secs_f64();
        Ok(())
    }

    /// Returns the leader of a group in which all replicas are running and count in quorums.
    fn choose_leader(&mut self) -> Option<(WorkerId, GroupId)> {
        let is_whole = |group: GroupId| {
            let of_group = self.members.values().filter(|member| member.group == Some(group));
            let replicas = usize::from(self.places.overlay().replicas(group));
            of_group.filter(|member| member.votes).count() == replicas
        };
        let whole: Vec<GroupId> =
            self.places.overlay().all().iter().filter(|group| is_whole(*group)).collect();
        let group = *self.random.pick(&whole)?;
        let of_group = self.members.iter().filter(|(_, member)| member.group == Some(group));
        let leader = of_group.filter(|(_, member)| member.term > 0);
        leader.max_by_key(|(_, member)| member.term).map(|(worker, _)| (*worker, group))
    }

    fn kill(&mut self, worker: WorkerId, group: GroupId) -> Result<(), Failure> {
        let Some(BankProcess { name, inc, .. }) = self.members.remove(&worker) else {
            return Ok(());
        };
        let at_ns = now_ns();
        // Waits until the leader's process has exited.
        self.crew.remove(worker);
        let (kind, nodes) = (FaultKind::Kill, vec![name.clone().into()]);
        self.run.events.push(Event::Fault { t_ns: now_ns(), kind, nodes, how: None });
        self.run.kills.push(Kill { group, at_ns });
        self.start_replica(name, group, inc + 1)
    }

    /// Stops the clients, waits until all replicas count in quorums again and have the same state,
    /// and releases them.
    fn end(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        self.order_clients(BankOrder::Stop);
        self.wait_until(SETTLE, interrupts, "the clients' last answers", |all| {
            all.values().all(|member| member.is_done || member.group.is_some())
        })?;
        self.wait_until(SETTLE, interrupts, "the restarted replicas", |all| {
            all.values().all(|member| member.votes || member.group.is_none())
        })?;
        let until = Instant::now() + SETTLE;
        loop {
            self.ask_holdings(interrupts)?;
            self.run.held = self.held();
            let is_equal = |group: &Vec<Totals>| {
                let same = |held: &Totals| (held.messages, held.digest, held.money);
                group.windows(2).all(|pair| same(&pair[0]) == same(&pair[1]))
            };
            if self.run.held.iter().all(is_equal) || Instant::now() >= until {
                break;
            }
            std::thread::sleep(ASK_PAUSE);
        }
        for member in self.members.values().filter(|member| member.group.is_some()) {
            let (node, inc) = (member.name.clone().into(), member.inc);
            let end = Event::End { t_ns: now_ns(), node, inc, reason: EndReason::Done };
            self.run.events.push(end);
        }
        Ok(())
    }

    fn ask_holdings(&mut self, interrupts: &Interrupts) -> Result<(), Failure> {
        for (worker, member) in &mut self.members {
            if member.group.is_some() {
                member.held = None;
                self.crew.order(*worker, &BankOrder::Tell)?;
            }
        }
        self.wait_until(SETTLE, interrupts, "equal states of all replicas", |all| {
            all.values().all(|member| member.held.is_some() || member.group.is_none())
        })
    }

    fn held(&self) -> Vec<Vec<Totals>> {
        let of = |group: GroupId| {
            let members = self.members.values().filter(|member| member.group == Some(group));
            members.filter_map(|member| member.held).collect()
        };
        self.places.overlay().all().iter().map(of).collect()
    }

    fn order_clients(&mut self, order: BankOrder) {
        for (worker, _) in self.members.iter().filter(|(_, member)| member.group.is_none()) {
            // A process that cannot be reached has ended, and the next event reports that.
            let _ = self.crew.order(*worker, &order);
        }
    }

    fn wait_until(
        &mut self,
        limit: Duration,
        interrupts: &Interrupts,
        what: &str,
        is_so: impl Fn(&BTreeMap<WorkerId, BankProcess>) -> bool,
    ) -> Result<(), Failure> {
        let until = Instant::now() + limit;
        while !is_so(&self.members) {
            interrupts.check()?;
            if Instant::now() >= until {
                let what = format_args!("{what} did not arrive within {limit:?}");
                return Err(Failure::peer_lost(
                    what,
                    "reduce the load of this machine, and start again",
                ));
            }
            self.take_event(TICK)?;
        }
        Ok(())
    }

    /// Takes one report, if one arrives in time.
    fn take_event(&mut self, timeout: Duration) -> Result<(), Failure> {
        let Some((worker, event)) = self.crew.next(timeout) else { return Ok(()) };
        // Reports of a killed process are ignored.
        let Some(member) = self.members.get_mut(&worker) else { return Ok(()) };
        match event {
            CrewEvent::Report(BankReport::Joined) => member.has_joined = true,
            CrewEvent::Report(BankReport::Votes) => member.votes = true,
            CrewEvent::Report(BankReport::Leads { term }) => member.term = term,
            CrewEvent::Report(BankReport::Holds(held)) => member.held = Some(held),
            CrewEvent::Report(BankReport::Done { name, inc, sent }) => {
                member.is_done = true;
                self.run.sent.extend(sent);
                let (node, reason) = (name.into(), EndReason::Done);
                self.run.events.push(Event::End { t_ns: now_ns(), node, inc, reason });
            }
            CrewEvent::Report(BankReport::Failed { status, text }) => {
                let text = format!("{}: {text}", member.name);
                return Err(Failure::with_text(Status::of(status), text));
            }
            CrewEvent::Ended(end) => {
                let what = format_args!("{} {end} during the run", member.name);
                return Err(Failure::peer_lost(
                    what,
                    "check its output and the system log, and start again",
                ));
            }
        }
        Ok(())
    }
}

impl BankProcess {
    fn new(name: String, group: Option<GroupId>, inc: u32) -> Self {
        Self {
            name,
            group,
            inc,
            has_joined: false,
            votes: false,
            term: 0,
            held: None,
            is_done: false,
        }
    }
}
