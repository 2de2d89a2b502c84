//! Commands that a connection answers by itself: they concern the connection or the server.

use std::sync::atomic::{AtomicU64, Ordering};

use crate::facts::{GroupFacts, ServerFacts};
use crate::numbers;
use crate::pattern;
use crate::protocol::Reply;
use crate::refusal::CommandRefusal;
use crate::session::ClientSession;
use crate::subscriptions;
use crate::surroundings::Surroundings;
use crate::table::{COMMANDS, CommandEntry, CommandKind, Verb};
use crate::text::Text;

/// The version of Redis whose commands these are. Some clients choose commands by it.
const REDIS_VERSION: &str = "7.0.0";

/// Executes a command, and adds its reply.
pub(crate) fn execute(
    session: &mut ClientSession,
    verb: Verb,
    arguments: &[&[u8]],
    around: &Surroundings<'_>,
    to: &mut Reply,
) {
    let facts = around.facts;
    let outcome = match verb {
        Verb::Ping => ping(session, arguments, to),
        Verb::Echo => {
            arguments.iter().for_each(|text| to.bulk(text));
            Ok(())
        }
        Verb::Select => select(arguments, to),
        Verb::Hello => hello(session, arguments, to),
        Verb::Auth => Err(CommandRefusal::of(
            "ERR AUTH <password> called without any password configured for the default user. Are \
             you sure your configuration is correct?",
        )),
        Verb::Client => client(session, arguments, to),
        Verb::Config => config(arguments, facts, to),
        Verb::CommandInfo => command(arguments, to),
        Verb::Info => {
            to.bulk(info(facts).as_bytes());
            Ok(())
        }
        Verb::Subscribe => subscribe(session, arguments, false, to),
        Verb::PSubscribe => subscribe(session, arguments, true, to),
        Verb::Unsubscribe => unsubscribe(session, arguments, false, to),
        Verb::PUnsubscribe => unsubscribe(session, arguments, true, to),
        Verb::PubSub => pub_sub(arguments, to),
        Verb::Unwatch => {
            to.ok();
            Ok(())
        }
        _ => Err(CommandRefusal::MALFORMED),
    };
    if let Err(refusal) = outcome {
        to.error(&refusal.0);
    }
}

fn ping(
    session: &ClientSession,
    arguments: &[&[u8]],
    to: &mut Reply,
) -> Result<(), CommandRefusal> {
    match arguments {
        [] | [_] if session.subscriptions() > 0 => {
            let text = arguments.first().copied().unwrap_or_default();
            to.bulks([b"pong", text].into_iter());
        }
        [] => to.simple("PONG"),
        [text] => to.bulk(text),
        _ => return Err(CommandRefusal::arity(b"ping")),
    }
    Ok(())
}

fn select(arguments: &[&[u8]], to: &mut Reply) -> Result<(), CommandRefusal> {
    match numbers::integer(arguments.first().copied().unwrap_or_default())? {
        0 => to.ok(),
        _ => {
            return Err(CommandRefusal::of(
                "ERR DB index is out of range: this server has only DB 0",
            ));
        }
    }
    Ok(())
}

fn hello(
    session: &mut ClientSession,
    arguments: &[&[u8]],
    to: &mut Reply,
) -> Result<(), CommandRefusal> {
    let mut options = arguments;
    if let [version, rest @ ..] = options {
        if *version != b"2" {
            return Err(CommandRefusal::of(
                "NOPROTO unsupported protocol version: this server speaks 2",
            ));
        }
        options = rest;
    }
    match options {
        [] => {}
        [option, name] if option.eq_ignore_ascii_case(b"SETNAME") => {
            session.name = Text::from(*name);
        }
        _ => return Err(CommandRefusal::of("ERR HELLO takes no AUTH here, and one SETNAME")),
    }
    to.array(14);
    for (name, value) in [("server", "redis"), ("version", REDIS_VERSION)] {
        to.bulk(name.as_bytes());
        to.bulk(value.as_bytes());
    }
    to.bulk(b"proto");
    to.integer(2);
    to.bulk(b"id");
    to.integer(i64::try_from(session.id).unwrap_or(i64::MAX));
    for (name, value) in [("mode", "standalone"), ("role", "master")] {
        to.bulk(name.as_bytes());
        to.bulk(value.as_bytes());
    }
    to.bulk(b"modules");
    to.array(0);
    Ok(())
}

fn client(
    session: &mut ClientSession,
    arguments: &[&[u8]],
    to: &mut Reply,
) -> Result<(), CommandRefusal> {
    let name = arguments.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), arguments.get(1..).unwrap_or_default()) {
        (b"ID", []) => to.integer(i64::try_from(session.id).unwrap_or(i64::MAX)),
        (b"GETNAME", []) if session.name.is_empty() => to.nil(),
        (b"GETNAME", []) => to.bulk(&session.name),
        (b"SETNAME", [name]) => {
            if name.iter().any(|byte| !byte.is_ascii_graphic()) {
                return Err(CommandRefusal::of(
                    "ERR Client names cannot contain spaces, newlines or special characters.",
                ));
            }
            session.name = Text::from(*name);
            to.ok();
        }
        (b"SETINFO", [_, _]) | (b"NO-EVICT" | b"NO-TOUCH", [_]) => to.ok(),
        (b"INFO" | b"LIST", []) => {
            let name = String::from_utf8_lossy(&session.name).into_owned();
            let subscriptions = session.subscriptions();
            let text = format!("id={} name={name} db=0 sub={subscriptions}\n", session.id);
            to.bulk(text.as_bytes());
        }
        (name, _) => return Err(subcommand("CLIENT", name)),
    }
    Ok(())
}

fn subcommand(command: &str, name: &[u8]) -> CommandRefusal {
    let name = String::from_utf8_lossy(name).into_owned();
    CommandRefusal(
        format!("ERR unknown subcommand or wrong arguments for '{command} {name}'").into(),
    )
}

fn config(arguments: &[&[u8]], facts: &ServerFacts, to: &mut Reply) -> Result<(), CommandRefusal> {
    let name = arguments.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), arguments.get(1..).unwrap_or_default()) {
        (b"GET", sought @ [_, ..]) => {
            let append_only = if facts.is_logged { "yes" } else { "no" };
            let (clients_max, port) = (facts.clients_max.to_string(), facts.port.to_string());
            let all = [
                ("appendonly", append_only),
                ("databases", "1"),
                ("maxclients", clients_max.as_str()),
                ("maxmemory", "0"),
                ("maxmemory-policy", "noeviction"),
                ("port", port.as_str()),
                ("save", ""),
                ("timeout", "0"),
            ];
            let is_sought = |name: &str| {
                let mut sought = sought.iter().map(|sought| sought.to_ascii_lowercase());
                sought.any(|sought| pattern::matches(&sought, name.as_bytes()))
            };
            let found: Vec<_> = all.iter().filter(|(name, _)| is_sought(name)).collect();
            to.array(found.len() * 2);
            for (name, value) in found {
                to.bulk(name.as_bytes());
                to.bulk(value.as_bytes());
            }
        }
        (b"RESETSTAT", []) => to.ok(),
        (b"SET", _) => {
            return Err(CommandRefusal::of(
                "ERR CONFIG SET is not supported; give the server's options at its start",
            ));
        }
        (name, _) => return Err(subcommand("CONFIG", name)),
    }
    Ok(())
}

fn command(arguments: &[&[u8]], to: &mut Reply) -> Result<(), CommandRefusal> {
    let name = arguments.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), arguments.get(1..).unwrap_or_default()) {
        (b"", _) => {
            to.array(COMMANDS.len());
            COMMANDS.iter().for_each(|command| describe(command, to));
        }
        (b"COUNT", []) => to.count(COMMANDS.len()),
        (b"LIST", []) => to.bulks(COMMANDS.iter().map(|command| command.name.as_bytes())),
        (b"INFO", names) => {
            to.array(names.len());
            for name in names {
                match CommandEntry::named(name) {
                    Some(command) => describe(command, to),
                    None => to.nil_array(),
                }
            }
        }
        // redis-cli asks for it, and does without.
        (b"DOCS", _) => to.array(0),
        (name, _) => return Err(subcommand("COMMAND", name)),
    }
    Ok(())
}

/// Replies a command's name, arity, flags and keys.
fn describe(command: &CommandEntry, to: &mut Reply) {
    to.array(6);
    to.bulk(command.name.to_ascii_lowercase().as_bytes());
    to.integer(command.arity.into());
    to.array(1);
    to.simple(if command.kind == CommandKind::Write { "write" } else { "readonly" });
    let (first, last, step) = command.keys;
    [first, last, step].into_iter().for_each(|place| to.integer(place.into()));
}

/// Returns the text of INFO.
fn info(facts: &ServerFacts) -> String {
    let GroupFacts { view, members, keys, expiring } = (facts.group_facts)();
    let others = members.len().saturating_sub(1);
    let members = members.iter().map(u32::to_string).collect::<Vec<_>>().join(" ");
    let count = |counter: &AtomicU64| counter.load(Ordering::Relaxed);
    let lines = [
        "# Server".to_owned(),
        format!("redis_version:{REDIS_VERSION}"),
        format!("tramontane_version:{}", env!("CARGO_PKG_VERSION")),
        "redis_mode:standalone".to_owned(),
        format!("process_id:{}", std::process::id()),
        format!("tcp_port:{}", facts.port),
        format!("uptime_in_seconds:{}", facts.started.elapsed().as_secs()),
        String::new(),
        "# Clients".to_owned(),
        format!("connected_clients:{}", facts.clients.load(Ordering::Relaxed)),
        format!("maxclients:{}", facts.clients_max),
        String::new(),
        "# Memory".to_owned(),
        format!("client_buffer_bytes:{}", facts.memory.load(Ordering::Relaxed)),
        String::new(),
        "# Persistence".to_owned(),
        "loading:0".to_owned(),
        format!("aof_enabled:{}", u8::from(facts.is_logged)),
        String::new(),
        "# Stats".to_owned(),
        format!("total_connections_received:{}", count(&facts.connections)),
        format!("rejected_connections:{}", count(&facts.refused_connections)),
        format!("total_commands_processed:{}", count(&facts.requests)),
        format!("total_batches_sent:{}", count(&facts.batches)),
        format!("pubsub_channels:{}", subscriptions::of_process().channels(None).len()),
        format!("pubsub_patterns:{}", subscriptions::of_process().patterns()),
        String::new(),
        "# Replication".to_owned(),
        "role:master".to_owned(),
        format!("connected_slaves:{others}"),
        format!("group:{}", facts.group),
        format!("node:{}", facts.node),
        format!("view:{view}"),
        format!("members:{members}"),
        String::new(),
        "# Keyspace".to_owned(),
    ];
    let mut text = lines.join("\r\n") + "\r\n";
    if keys > 0 {
        text.push_str(&format!("db0:keys={keys},expires={expiring}\r\n"));
    }
    text
}

fn subscribe(
    session: &mut ClientSession,
    names: &[&[u8]],
    is_pattern: bool,
    to: &mut Reply,
) -> Result<(), CommandRefusal> {
    let kind: &[u8] = if is_pattern { b"psubscribe" } else { b"subscribe" };
    for name in names {
        session.subscribe(name, is_pattern);
        to.array(3);
        to.bulk(kind);
        to.bulk(name);
        to.count(session.subscriptions());
    }
    Ok(())
}

fn unsubscribe(
    session: &mut ClientSession,
    names: &[&[u8]],
    is_pattern: bool,
    to: &mut Reply,
) -> Result<(), CommandRefusal> {
    let kind: &[u8] = if is_pattern { b"punsubscribe" } else { b"unsubscribe" };
    let all = if names.is_empty() { session.subscribed(is_pattern) } else { Vec::new() };
    if names.is_empty() && all.is_empty() {
        to.array(3);
        to.bulk(kind);
        to.nil();
        to.count(session.subscriptions());
    }
    let names = names.iter().copied().chain(all.iter().map(|name| &**name));
    for name in names {
        session.unsubscribe(name, is_pattern);
        to.array(3);
        to.bulk(kind);
        to.bulk(name);
        to.count(session.subscriptions());
    }
    Ok(())
}

fn pub_sub(arguments: &[&[u8]], to: &mut Reply) -> Result<(), CommandRefusal> {
    let subscriptions = subscriptions::of_process();
    let name = arguments.first().map(|name| name.to_ascii_uppercase()).unwrap_or_default();
    match (name.as_slice(), arguments.get(1..).unwrap_or_default()) {
        (b"CHANNELS", sought @ ([] | [_])) => {
            let channels = subscriptions.channels(sought.first().copied());
            to.bulks(channels.iter().map(|(name, _)| &**name));
        }
        (b"NUMSUB", names) => {
            let channels = subscriptions.channels(None);
            to.array(names.len() * 2);
            for name in names {
                let found = channels.iter().find(|(channel, _)| **channel == **name);
                to.bulk(name);
                to.count(found.map_or(0, |(_, count)| *count));
            }
        }
        (b"NUMPAT", []) => to.count(subscriptions.patterns()),
        (name, _) => return Err(subcommand("PUBSUB", name)),
    }
    Ok(())
}
