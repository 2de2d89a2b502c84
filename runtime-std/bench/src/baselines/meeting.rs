//! What comes before the first step: each process gets its fabric, a connection to each peer, and a
//! view with it.

use std::net::{TcpListener, TcpStream};

use tramontane_control::Connection;
use tramontane_core::fabric::{Fabric, HostFabric, ViewPlan, ViewRows};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::tram::Attachment;
use tramontane_fixtures::baselines::{Client, LentRows, Options, Party, Plan, Replica};
use tramontane_tcp::{Rows, Settings, Tcp};

use crate::BenchError;

/// One process, ready to be driven.
pub(super) struct Seat<'o> {
    pub(super) party: Party,
    pub(super) fabric: Tcp,
    pub(super) rows: LentRows<Rows>,
    pub(super) machine: Machine<'o>,
}

pub(super) enum Machine<'o> {
    Replica(Box<Replica<'o>>),
    Client(Client<'o>),
}

/// All processes of a plan, connected with each other.
pub(super) fn meet<'o>(plan: &Plan<'o>, options: Options) -> Result<Vec<Seat<'o>>, BenchError> {
    let parties = plan.parties();
    let mut seats = Vec::new();
    for (place, party) in parties.iter().enumerate() {
        seats.push(seat(plan, options, node_of(place), *party)?);
    }
    let mut views = 0;
    for one in 0..parties.len() {
        for link in plan.links(parties[one]) {
            let Some(other) = parties.iter().position(|party| *party == link.peer) else {
                continue;
            };
            if one < other {
                views += 1;
                let row_bytes = [link.own.bytes(), link.theirs.bytes()];
                connect(plan, &mut seats, [one, other], ViewId(views), row_bytes)?;
            }
        }
    }
    Ok(seats)
}

fn node_of(place: usize) -> NodeId {
    NodeId(place as u32 + 1)
}

fn seat<'o>(
    plan: &Plan<'o>,
    options: Options,
    node: NodeId,
    party: Party,
) -> Result<Seat<'o>, BenchError> {
    let fabric = Tcp::new(node, Settings::default())?;
    let capabilities = fabric.capabilities();
    let machine = match party {
        Party::Replica(id) => {
            let replica = Replica::open(plan, id, options, capabilities);
            let replica = replica.map_err(|error| BenchError::Setup(error.to_string()))?;
            Machine::Replica(Box::new(replica))
        }
        Party::Client(number) => Machine::Client(Client::new(plan, number, options, capabilities)),
    };
    let rows = LentRows::new(plan.links(party).len());
    Ok(Seat { party, fabric, rows, machine })
}

/// Two ends of a connection over the loopback.
fn sockets() -> std::io::Result<[Connection; 2]> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let one = TcpStream::connect(listener.local_addr()?)?;
    let (other, _) = listener.accept()?;
    Ok([one, other].map(|stream| Connection { stream, cipher: None }))
}

fn connect(
    plan: &Plan<'_>,
    seats: &mut [Seat<'_>],
    pair: [usize; 2],
    view: ViewId,
    row_bytes: [usize; 2],
) -> Result<(), BenchError> {
    let members = pair.map(node_of);
    let parties = pair.map(|place| seats[place].party);
    for (end, connection) in sockets()?.into_iter().enumerate() {
        let (own, peer) = (Rank(end as u16), Rank(1 - end as u16));
        let seat = &mut seats[pair[end]];
        seat.fabric.add_peer(members[1 - end], connection)?;
        let rows = seat
            .fabric
            .rows(&ViewPlan::with_sizes(view, own, &members, &row_bytes, view.0))
            .map_err(|error| BenchError::Setup(error.to_string()))?;
        seat.fabric
            .open(view, &rows.memory())
            .map_err(|error| BenchError::Setup(format!("a view does not open: {error:?}")))?;
        let Some(link) = plan.find(parties[end], parties[1 - end]) else { continue };
        seat.rows.lend(link, rows);
        let attachment = Attachment { view, peer, incarnation: 1 };
        match &mut seat.machine {
            Machine::Replica(replica) => replica.attach(link, attachment),
            Machine::Client(client) => client.attach(link, attachment),
        }
    }
    Ok(())
}
