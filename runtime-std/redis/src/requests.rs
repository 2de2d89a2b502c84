//! Complete requests: a connection replies to them, keeps them for a transaction, or passes them on
//! to the group.

use std::sync::atomic::Ordering;

use crate::batch::{Requests, RequestsReader, request_overhead};
use crate::local_commands;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::session::{ClientSession, Transaction};
use crate::surroundings::Surroundings;
use crate::table::{CommandEntry, CommandKind, Verb};

/// The handling of a request.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Handled {
    /// The reply has been written.
    Replied,
    /// The request goes to the group. `begins_run` says whether it begins a run.
    Passed { begins_run: bool },
    /// The request, of this number of bytes, goes to the group as a slow one. Only slow reads may
    /// follow before its answer.
    PassedSlow { begins_run: bool, bytes: usize },
    /// WATCH goes to the group, and its reply is the versions of the keys.
    Watching,
    /// The reply has been written, and the connection ends.
    Ending,
}

/// Handles a request with at least one argument, the name.
pub(crate) fn handle(
    session: &mut ClientSession,
    arguments: &[&[u8]],
    around: &mut Surroundings<'_>,
    to: &mut Reply,
) -> Handled {
    let (name, rest) = arguments.split_first().map_or((&[][..], arguments), |(n, r)| (*n, r));
    let command = match checked(session, name, arguments) {
        Ok(command) => command,
        Err(refusal) => {
            // A transaction with a refused request is not executed.
            session.refuse_transaction();
            to.error(&refusal.0);
            return Handled::Replied;
        }
    };
    match (command.verb, &mut session.transaction) {
        (Verb::Exec, _) => exec(session, around, to),
        (Verb::Multi, Some(_)) => refused("ERR MULTI calls can not be nested", to),
        (Verb::Watch, Some(_)) => refused("ERR WATCH inside MULTI is not allowed", to),
        (Verb::Discard, None) => refused("ERR DISCARD without MULTI", to),
        (Verb::Multi, None) => {
            session.transaction = Some(Transaction::default());
            to.ok();
            Handled::Replied
        }
        (Verb::Discard, Some(_)) | (Verb::Unwatch, None) => {
            session.end_transaction();
            to.ok();
            Handled::Replied
        }
        (Verb::Quit, _) => {
            to.ok();
            Handled::Ending
        }
        (Verb::Reset, _) => {
            session.reset();
            to.simple("RESET");
            Handled::Replied
        }
        (verb, Some(queued)) => {
            if command.kind == CommandKind::Local && !may_be_queued(verb) {
                queued.is_refused = true;
                let name = command.name;
                to.error(&format!("ERR {name} is not allowed in transactions"));
            } else if !queued.has_room_for(verb) {
                queued.is_refused = true;
                to.error(&CommandRefusal::too_many_slow(command.name).0);
            } else if queued.push(verb, rest, around.limits.request_max) {
                to.simple("QUEUED");
            } else {
                to.error("ERR the transaction exceeds this server's limit for a request");
            }
            Handled::Replied
        }
        (Verb::Watch, None) => match passed(session, Verb::Watch, rest, false, around, to) {
            Handled::Passed { .. } => {
                around.outgoing.end_run();
                Handled::Watching
            }
            handled => handled,
        },
        (verb, None) if matches!(command.kind, CommandKind::Read | CommandKind::Write) => {
            passed(session, verb, rest, verb.is_slow(), around, to)
        }
        (verb, None) => {
            local_commands::execute(session, verb, rest, around, to);
            Handled::Replied
        }
    }
}

/// Returns whether a transaction may contain a command that the connection executes.
const fn may_be_queued(verb: Verb) -> bool {
    use Verb as V;
    // UNWATCH changes nothing at EXEC, which ends the watch after it has looked at the keys.
    matches!(
        verb,
        V::Client | V::CommandInfo | V::Config | V::Info | V::PubSub | V::Select | V::Unwatch
    )
}

/// Looks a command up, and checks the number of its arguments and whether it is allowed now.
fn checked(
    session: &ClientSession,
    name: &[u8],
    arguments: &[&[u8]],
) -> Result<&'static CommandEntry, CommandRefusal> {
    let command = CommandEntry::named(name).ok_or_else(|| unknown(arguments))?;
    if !command.takes(arguments.len()) {
        return Err(CommandRefusal::arity(name));
    }
    use Verb as V;
    let is_for_subscribers = matches!(
        command.verb,
        V::Subscribe
            | V::Unsubscribe
            | V::PSubscribe
            | V::PUnsubscribe
            | V::Ping
            | V::Quit
            | V::Reset
    );
    if session.subscriptions() > 0 && !is_for_subscribers {
        let name = command.name.to_ascii_lowercase();
        let text = format!(
            "ERR Can't execute '{name}': only (P)SUBSCRIBE / (P)UNSUBSCRIBE / PING / QUIT / RESET \
             are allowed in this context"
        );
        return Err(CommandRefusal(text.into()));
    }
    Ok(command)
}

/// The refusal of a command that does not exist, in Redis' words.
fn unknown(arguments: &[&[u8]]) -> CommandRefusal {
    let short = |bytes: &[u8]| String::from_utf8_lossy(&bytes[..bytes.len().min(128)]).into_owned();
    let mut arguments = arguments.iter().map(|argument| short(argument));
    let name = arguments.next().unwrap_or_default();
    let beginning: Vec<_> = arguments.take(4).map(|text| format!("'{text}' ")).collect();
    let beginning = beginning.concat();
    let text = format!("ERR unknown command '{name}', with args beginning with: {beginning}");
    CommandRefusal(text.into())
}

/// Returns whether a request may follow a slow one of its connection before that is answered.
pub(crate) fn may_follow_slow(
    session: &ClientSession,
    arguments: &[&[u8]],
    around: &Surroundings<'_>,
) -> bool {
    let Some((name, rest)) = arguments.split_first() else { return false };
    let command = CommandEntry::named(name).filter(|command| command.takes(arguments.len()));
    let is_slow_read =
        |command: &CommandEntry| command.kind == CommandKind::Read && command.verb.is_slow();
    command.is_some_and(is_slow_read)
        && around.outgoing.has_room_for_slow(session.subscriber.token, rest)
}

fn refused(text: &str, to: &mut Reply) -> Handled {
    to.error(text);
    Handled::Replied
}

/// Passes a request on to the group, unless it is too large.
fn passed(
    session: &ClientSession,
    verb: Verb,
    arguments: &[&[u8]],
    is_slow: bool,
    around: &mut Surroundings<'_>,
    to: &mut Reply,
) -> Handled {
    let bytes: usize = arguments.iter().map(|argument| argument.len()).sum();
    let bytes = bytes + request_overhead(arguments.len());
    if bytes > around.limits.request_max {
        to.error(&CommandRefusal::request_too_large(bytes, around.limits.request_max).0);
        return Handled::Replied;
    }
    let token = session.subscriber.token;
    if is_slow {
        // It may wait for long. A request that continues a run has little room there anyway.
        let held = around.facts.memory.load(Ordering::Relaxed);
        if held > around.limits.memory_max && !around.outgoing.slow.is_last(token) {
            return refused(&CommandRefusal::MEMORY.0, to);
        }
        let begins_run = around.outgoing.slow.push(token, verb, arguments);
        return Handled::PassedSlow { begins_run, bytes };
    }
    if verb == Verb::Watch {
        around.outgoing.end_run();
    }
    let begins_run = around.outgoing.push(token, verb, arguments);
    Handled::Passed { begins_run }
}

/// Passes a transaction on to the group.
fn exec(session: &mut ClientSession, around: &mut Surroundings<'_>, to: &mut Reply) -> Handled {
    let Some(queued) = session.transaction.take() else {
        return refused("ERR EXEC without MULTI", to);
    };
    let watched = std::mem::take(&mut session.watched);
    if queued.is_refused {
        let text = "EXECABORT Transaction discarded because of previous errors.";
        return refused(text, to);
    }
    let requests = match with_local_replies(session, &queued, around) {
        Ok(requests) => requests,
        Err(refusal) => return refused(&refusal.0, to),
    };
    let arguments = [watched.bytes(), requests.bytes()];
    passed(session, Verb::Exec, &arguments, queued.is_slow, around, to)
}

/// Executes the requests of a transaction that concern the connection. Each is replaced by its
/// reply, so that EXEC can return all replies in order.
fn with_local_replies(
    session: &mut ClientSession,
    queued: &Transaction,
    around: &Surroundings<'_>,
) -> Result<Requests, CommandRefusal> {
    let (mut reader, mut arguments) = (RequestsReader::new(queued.requests.bytes()), Vec::new());
    let mut requests = Requests::default();
    while let Some(number) = reader.next(&mut arguments)? {
        match Verb::of(number).filter(|verb| verb.kind() == CommandKind::Local) {
            Some(verb) => {
                let mut reply = Reply::kept(around.limits.request_max);
                local_commands::execute(session, verb, &arguments, around, &mut reply);
                requests.push(number, [&*reply.into_bytes()].into_iter());
            }
            None => requests.push(number, arguments.iter().copied()),
        }
        if requests.len() > around.limits.request_max {
            break;
        }
    }
    Ok(requests)
}
