//! A node: a member of the group, and the threads that serve its clients.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};
use std::path::PathBuf;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use rustix::net::{AddressFamily, SocketFlags, SocketType, sockopt};
use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
use tramontane::shared_memory::Root;
use tramontane::typed::{NotStarted, ReplicatedOptions};
use tramontane::{
    Carrier, Description, Forming, Replicated, StartOptions, Stopped, SubgroupDescription, Waiting,
};
use tramontane_local::exit::{Failure, Status};
use tramontane_local::group_file;
use tramontane_local::interrupt::Interrupts;
use tramontane_local::output::print_notice;
use tramontane_local::waiting_notice::WaitingNotice;

use crate::batch::OVERHEAD;
use crate::facts::{GroupFacts, ServerFacts};
use crate::inbox::ThreadInbox;
use crate::limits::ServerLimits;
use crate::machine::Database;
use crate::options::{DurableOption, EXAMPLE, RedisCommand};
use crate::process;
use crate::service::{ClientService, ServerShared};
use crate::table;
use crate::wakeup::Wakeup;

/// The time between checks whether this node has to end.
const TICK: Duration = Duration::from_millis(20);

/// The time limit for leaving the group.
const LEAVE: Duration = Duration::from_secs(10);

/// The number of connections that wait to be accepted.
const BACKLOG: i32 = 1024;

/// The number of descriptors that are not for clients.
const OTHER_DESCRIPTORS: u64 = 200;

/// The version of the state that commands lead to. Members with another one are refused.
const STATE_VERSION: u64 = 3;

/// Runs a node to its end.
pub(crate) fn run(options: &RedisCommand) -> Result<(), Failure> {
    let (Some(config), Some(node), false) = (&options.config, options.id, options.example_config)
    else {
        return io::stdout().write_all(EXAMPLE.as_bytes()).map_err(|error| Failure::output(&error));
    };
    let description = group_file::read(config)?;
    group_file::check_node(&description, node)?;
    check(options, &description)?;
    let limits = limits(options, &description)?;
    process::set_reply_max(limits.unsent_max);
    let interrupts = Interrupts::watch()?;
    let bound = bind(options.listen)
        .map_err(|error| Failure::system(format_args!("cannot use {}", options.listen), &error))?;
    let replicated = become_member(options, description.clone(), node, &limits, &interrupts)?;
    let listener = listen(bound)
        .map_err(|error| Failure::system(format_args!("cannot use {}", options.listen), &error))?;
    let address = listener.local_addr().unwrap_or(options.listen);
    let is_logged = subgroup(&description).is_some_and(|subgroup| subgroup.logged);
    let durability = options.durable.unwrap_or(match is_logged {
        true => DurableOption::Majority,
        false => DurableOption::None,
    });
    let of_group = replicated.clone();
    let facts = ServerFacts {
        node,
        group: description.name.clone(),
        port: address.port(),
        is_logged,
        clients_max: limits.clients_max,
        started: Instant::now(),
        clients: AtomicUsize::new(0),
        connections: AtomicU64::new(0),
        refused_connections: AtomicU64::new(0),
        requests: AtomicU64::new(0),
        batches: AtomicU64::new(0),
        memory: AtomicUsize::new(0),
        group_facts: Box::new(move || group_facts(&of_group)),
    };
    let shared = Arc::new(ServerShared {
        replicated: replicated.clone(),
        durability: durability.durability(),
        limits,
        facts,
        is_ending: AtomicBool::new(false),
    });
    let threads = start_threads(&shared, listener, options.threads)
        .map_err(|error| Failure::system("cannot start the threads for clients", &error))?;
    print_notice(&format!("node {node} serves Redis clients at {address}"));
    let outcome = wait_for_end(&replicated, &interrupts);
    shared.is_ending.store(true, Ordering::SeqCst);
    for (thread, wakeup) in threads {
        wakeup.notify();
        // A thread that panicked has printed why.
        let _ = thread.join();
    }
    outcome
}

fn subgroup(description: &Description) -> Option<&SubgroupDescription> {
    description.subgroups.first()
}

/// Refuses options that do not fit the group file.
fn check(options: &RedisCommand, description: &Description) -> Result<(), Failure> {
    if let (true, Some(option)) = (description.fabric != Carrier::Verbs, options.device.given()) {
        let what = format_args!("{option} applies only to RDMA devices");
        let advice = "omit it, or set fabric = \"verbs\" in the group file of all nodes";
        return Err(Failure::usage(what, advice));
    }
    if !options.listen.ip().is_loopback() && !options.listen_exposed {
        let what = format_args!("other hosts can reach {}", options.listen);
        let advice = "give --listen-exposed if you trust the network: clients are neither \
                      authenticated nor encrypted";
        return Err(Failure::usage(what, advice));
    }
    let is_logged = subgroup(description).is_some_and(|subgroup| subgroup.logged);
    let needs_log = options.durable.is_some_and(|durable| durable.durability().is_some());
    let given = [
        ("--data", options.data.is_some()),
        ("--data-keep-mb", options.data_keep_mb.is_some()),
        ("--durable", needs_log),
    ];
    match given.iter().find(|(_, is_given)| *is_given && !is_logged) {
        Some((option, _)) => {
            let what = format_args!("{option} is given, but the group has no durable logs");
            let advice = "omit it, or set logged = true in the group file of all nodes";
            Err(Failure::usage(what, advice))
        }
        None => Ok(()),
    }
}

/// Returns the limits, and raises the limit of descriptors as far as they need.
fn limits(options: &RedisCommand, description: &Description) -> Result<ServerLimits, Failure> {
    let (message_max, large_max) = subgroup(description)
        .map_or((0, 0), |subgroup| (u64::from(subgroup.message_max), subgroup.large_max));
    let bytes = |bytes: u64| usize::try_from(bytes).unwrap_or(usize::MAX);
    let without_overhead = |max: u64| bytes(max).saturating_sub(OVERHEAD);
    let batch_max = without_overhead(message_max);
    if batch_max < OVERHEAD {
        let what = format_args!("message_max = {message_max} leaves no room for requests");
        return Err(Failure::usage(what, "raise it in the group file of all nodes: 65536"));
    }
    Ok(ServerLimits {
        clients_max: descriptors_for(options.clients_max),
        unsent_max: bytes(u64::from(options.unsent_max_mb) << 20),
        memory_max: bytes(u64::from(options.memory_mb) << 20),
        request_max: without_overhead(message_max.max(large_max)),
        batch_max,
    })
}

/// Makes room for the descriptors of clients. Returns the number of clients that have room.
fn descriptors_for(clients_max: u32) -> usize {
    let limit = getrlimit(Resource::Nofile);
    let wanted = u64::from(clients_max) + OTHER_DESCRIPTORS;
    let mut current = limit.current.unwrap_or(u64::MAX);
    if current < wanted {
        let raised = limit.maximum.map_or(wanted, |maximum| maximum.min(wanted));
        let raised = Rlimit { current: Some(raised), maximum: limit.maximum };
        if setrlimit(Resource::Nofile, raised).is_ok() {
            current = raised.current.unwrap_or(current);
        }
    }
    if current < wanted {
        let room = current.saturating_sub(OTHER_DESCRIPTORS).max(1);
        print_notice(&format!(
            "at most {room} clients are served, because this process may open {current} files \
             (ulimit -n)"
        ));
        return usize::try_from(room).unwrap_or(usize::MAX);
    }
    clients_max as usize
}

/// Takes an address. Clients are refused until [`listen`], so that they try another node while this
/// one is not a member yet.
fn bind(address: SocketAddr) -> io::Result<std::os::fd::OwnedFd> {
    let family = if address.is_ipv4() { AddressFamily::INET } else { AddressFamily::INET6 };
    let flags = SocketFlags::CLOEXEC;
    let socket = rustix::net::socket_with(family, SocketType::STREAM, flags, None)?;
    sockopt::set_socket_reuseaddr(&socket, true)?;
    rustix::net::bind(&socket, &address)?;
    Ok(socket)
}

fn listen(socket: std::os::fd::OwnedFd) -> io::Result<TcpListener> {
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(socket.into())
}

fn become_member(
    options: &RedisCommand,
    description: Description,
    node: u32,
    limits: &ServerLimits,
    interrupts: &Interrupts,
) -> Result<Replicated<Database>, Failure> {
    let data = data_folder(options, &description, node);
    let listed = description.nodes.iter().find(|listed| listed.id == node);
    let state = options.state.clone().or_else(|| listed?.state.clone());
    let print = |waiting: &Waiting| print_notice(&waiting.to_string());
    let start = StartOptions {
        root: Root::from_env(),
        device: options.device.options(),
        time_limit: options.time_limit,
        cancel: interrupts.flag(),
        forming: Forming {
            state,
            new_group: options.new_group,
            with_less: options.restart_with_less,
            told: Some(print),
            ..Forming::default()
        },
        data,
        data_keep_bytes: options.data_keep_mb.map(|megabytes| megabytes << 20),
        // Nodes whose commands lead to another state must not be in one group.
        terms: table::digest() ^ STATE_VERSION,
        ..StartOptions::new(node)
    };
    let is_shared = description.fabric == Carrier::SharedMemory;
    let notice = is_shared.then(|| WaitingNotice::begin(&start.root)).flatten();
    let mut waiting = ReplicatedOptions::default();
    // Each client has one read of requests in flight.
    waiting.waiting_max = waiting.waiting_max.max(limits.clients_max);
    waiting.waiting_bytes_max = limits.memory_max;
    let started = Replicated::start_with(description, start, waiting, Database::default());
    drop(notice);
    if started.is_err() {
        // A node that is asked to end while it waits does not report the missing nodes.
        interrupts.check()?;
    }
    started.map_err(|error| match error {
        NotStarted::Start(error) => error.into(),
        NotStarted::Io(error) => Failure::system("cannot start", &error),
        error => Failure::with_text(Status::Usage, error),
    })
}

/// Returns the folder of the node's durable log, if the group is logged.
fn data_folder(options: &RedisCommand, description: &Description, node: u32) -> Option<PathBuf> {
    subgroup(description).filter(|subgroup| subgroup.logged)?;
    let beside = || Some(options.config.as_deref()?.with_extension(format!("data-{node}")));
    options.data.clone().or_else(beside)
}

fn group_facts(replicated: &Replicated<Database>) -> GroupFacts {
    let status = replicated.status();
    let counts = |database: &Database| (database.keyspace.len(), database.keyspace.expiring());
    let (keys, expiring) = replicated.query_local(counts).unwrap_or_default();
    let mut members = status.members;
    members.sort_unstable();
    GroupFacts { view: status.view, members, keys, expiring }
}

type Threads = Vec<(std::thread::JoinHandle<()>, Arc<Wakeup>)>;

/// Starts the threads that serve clients. The first one accepts them.
fn start_threads(
    shared: &Arc<ServerShared>,
    listener: TcpListener,
    count: u8,
) -> io::Result<Threads> {
    let mut inboxes = Vec::new();
    for _ in 0..count {
        let wakeup = Wakeup::new()?;
        inboxes.push((ThreadInbox::new(Arc::clone(&wakeup)), wakeup));
    }
    let all: Vec<_> = inboxes.iter().map(|(inbox, _)| Arc::clone(inbox)).collect();
    let mut listener = Some(listener);
    let mut threads = Vec::new();
    for (inbox, wakeup) in inboxes {
        let (shared, all) = (Arc::clone(shared), all.clone());
        let service = ClientService::new(shared, inbox, Arc::clone(&wakeup), all, listener.take())?;
        let thread = std::thread::Builder::new().name("redis-clients".into());
        threads.push((thread.spawn(move || service.run())?, wakeup));
    }
    Ok(threads)
}

/// Waits until this node has to end, and makes it leave if it was asked to.
fn wait_for_end(replicated: &Replicated<Database>, interrupts: &Interrupts) -> Result<(), Failure> {
    loop {
        if let Some(stopped) = replicated.stopped() {
            return judge(stopped);
        }
        if interrupts.is_asked() {
            return replicated.leave(LEAVE).map_err(Failure::from);
        }
        std::thread::sleep(TICK);
    }
}

fn judge(stopped: Stopped) -> Result<(), Failure> {
    match stopped {
        Stopped::Left => Ok(()),
        stopped => Err(stopped.into()),
    }
}
