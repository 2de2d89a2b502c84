//! Many sessions at the same shards, each a task that waits for its answers.

use std::pin::Pin;
use std::task::{Context, Poll};

use tramontane::ShardClient;

use crate::shards::{NumberedCommands, TallyShards, both, check_numbers, groups_of};
use crate::support::{PATIENCE, block_on};

const SESSIONS: usize = 1_024;

/// The sessions of one process share its place.
const PLACES: usize = 8;

/// Number of commands of each session.
const COMMANDS: usize = 6;

type TallyAnswers = std::collections::BTreeMap<tramontane::shards::GroupId, (u16, u64, String)>;

/// One session: each command waits for the answers to the one before.
async fn session(client: ShardClient<NumberedCommands>, session: usize) -> Vec<TallyAnswers> {
    let mut answers = Vec::new();
    for number in 0..COMMANDS {
        let command = format!("{session} {number}");
        let of_groups = client.propose(groups_of(session + number), command.clone()).await;
        let of_groups = of_groups.expect("answers");
        assert_eq!(of_groups.len() as u32, groups_of(session + number).count());
        assert!(of_groups.values().all(|(_, _, text)| *text == command), "it is its own answer");
        answers.push(of_groups);
    }
    answers
}

/// Polls all tasks until all have ended.
async fn all<F: Future + Unpin>(tasks: Vec<F>) -> Vec<F::Output> {
    let mut tasks: Vec<_> = tasks.into_iter().map(|task| (task, None)).collect();
    std::future::poll_fn(|context: &mut Context<'_>| {
        let mut is_over = true;
        for (task, output) in tasks.iter_mut().filter(|(_, output)| output.is_none()) {
            match Pin::new(task).poll(context) {
                Poll::Ready(done) => *output = Some(done),
                Poll::Pending => is_over = false,
            }
        }
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
    tasks.into_iter().filter_map(|(_, output)| output).collect()
}

#[test]
fn sessions_by_the_thousand_get_their_own_answers() {
    let shards = TallyShards::start();
    let clients: Vec<_> = (0..PLACES).map(|_| shards.connect()).collect();
    let tasks = (0..SESSIONS).map(|of| Box::pin(session(clients[of % PLACES].clone(), of)));
    let answers: Vec<_> = block_on(all(tasks.collect())).into_iter().flatten().collect();
    assert_eq!(answers.len(), SESSIONS * COMMANDS);
    check_numbers(&answers);
    let of_group = (SESSIONS * COMMANDS * 2 / 3) as u64;
    shards.await_commands(0, of_group);
    shards.await_commands(1, of_group);
    let last = clients[0].propose(both(), "last".to_owned()).wait(PATIENCE).expect("answers");
    assert!(last.values().all(|(_, number, _)| *number == of_group + 1));
    clients.iter().for_each(|client| client.leave(PATIENCE).expect("it leaves"));
}
