//! A replica under test.

use std::time::{Duration, Instant};

use super::meeting::ShardsRun;
use super::state::DeliveryReporter;
use crate::adapter::node::{Commands, NodeUnderTest, TICK, answer, answer_unknown, greet, next};
use crate::adapter::protocol::{Command, Line};
use crate::adapter::refusal::StartRefusal;
use tramontane_local::exit::Failure;
use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::shards::{
    ReplicaId, ReplicaState, Running, StartError, StartOptions, start,
};

/// Interval between checks whether the replica has a vote.
const VOTE_PAUSE: Duration = Duration::from_millis(10);

/// A running replica.
pub(super) struct ReplicaUnderTest {
    running: Running,
    features: Vec<&'static str>,
}

impl ReplicaUnderTest {
    /// Starts a replica. A restarted replica is ready once it counts in quorums again.
    pub(super) fn start(
        run: &ShardsRun,
        replica: ReplicaId,
        features: Vec<&'static str>,
        interrupts: &Interrupts,
    ) -> Result<Self, StartRefusal> {
        let mut options = StartOptions::default();
        options.time_limit = run.time_limit;
        options.cancel = interrupts.flag();
        options.data.clone_from(&run.data);
        let group = run.places.group_name(replica.group).to_owned();
        let application = DeliveryReporter::new(group, run.data.is_none());
        let started = Instant::now();
        let running = start(&run.description, replica, options, application);
        interrupts.check()?;
        let running = running.map_err(Failure::from)?;
        // No status is published before the replica's first step.
        while !running.status().state.counts() && running.status().state != ReplicaState::Halted {
            interrupts.check()?;
            if let Some(stopped) = running.stopped() {
                return Err(Failure::from(stopped).into());
            }
            if started.elapsed() > run.time_limit {
                let missing = vec![run.places.name(replica)];
                return Err(Failure::from(StartError::NotMet { missing }).into());
            }
            std::thread::sleep(VOTE_PAUSE);
        }
        Ok(Self { running, features })
    }
}

impl NodeUnderTest for ReplicaUnderTest {
    fn serve(self: Box<Self>, commands: &Commands, interrupts: &Interrupts) -> Result<(), Failure> {
        greet(&self.features)?;
        loop {
            match next(commands, interrupts, TICK)? {
                Some(Ok(Command::Stop)) => {
                    // This replica would lead now if the leader has ended, but nothing may follow
                    // the last line.
                    self.running.close();
                    return answer(&Line::Halt { reason: "done", text: "" });
                }
                Some(Ok(Command::Multicast { message, .. })) => {
                    let text = "a replica does not send";
                    answer(&Line::Error {
                        code: "not-a-sender",
                        definite: true,
                        message: Some(&message),
                        text,
                    })?;
                }
                Some(Ok(_)) => answer_unknown()?,
                Some(Err(failure)) => return Err(failure),
                None => {}
            }
            if let Some(stopped) = self.running.stopped() {
                answer(&Line::Halt { reason: "halted", text: &stopped.to_string() })?;
                return Err(stopped.into());
            }
        }
    }
}
