//! What comes before the first step: each process gets its fabric, meets its peers, and has a view
//! with each.

use tramontane_core::fabric::{ErrorKind, HostFabric, ViewPlan, ViewRows as _};
use tramontane_core::ids::{NodeId, Rank, ViewId};
use tramontane_core::tram::Attachment;
use tramontane_fixtures::baselines::{Client, LentRows, Options, Party, Plan, Replica};

use super::carrying::Carrying;
use crate::BenchError;

/// One process, ready to be driven.
pub(super) struct Seat<'o, F: HostFabric> {
    pub(super) party: Party,
    pub(super) fabric: F,
    pub(super) rows: LentRows<F::Rows>,
    pub(super) machine: Machine<'o>,
}

pub(super) enum Machine<'o> {
    Replica(Box<Replica<'o>>),
    Client(Box<Client<'o>>),
}

/// All processes of a plan, which have met each other.
pub(super) fn meet<'o, C: Carrying>(
    carrying: &C,
    plan: &Plan<'o>,
    options: Options,
) -> Result<Vec<Seat<'o, C::Fabric>>, BenchError> {
    let parties = plan.parties();
    let mut seats = Vec::new();
    for (place, party) in parties.iter().enumerate() {
        let fabric = carrying.fabric(node_of(place))?;
        seats.push(seat(plan, options, fabric, *party)?);
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
                join(carrying, &mut seats, [one, other])?;
                open(plan, &mut seats, [one, other], ViewId(views), row_bytes)?;
            }
        }
    }
    Ok(seats)
}

fn node_of(place: usize) -> NodeId {
    NodeId(place as u32 + 1)
}

fn seat<'o, F: HostFabric>(
    plan: &Plan<'o>,
    options: Options,
    fabric: F,
    party: Party,
) -> Result<Seat<'o, F>, BenchError> {
    let capabilities = fabric.capabilities();
    let machine = match party {
        Party::Replica(id) => {
            let replica = Replica::open(plan, id, options, capabilities);
            let replica = replica.map_err(|error| BenchError::Setup(error.to_string()))?;
            Machine::Replica(Box::new(replica))
        }
        Party::Client(number) => {
            Machine::Client(Box::new(Client::new(plan, number, options, capabilities)))
        }
    };
    let rows = LentRows::new(plan.links(party).len());
    Ok(Seat { party, fabric, rows, machine })
}

/// Two processes meet, of which the first has the lower place.
fn join<C: Carrying>(
    carrying: &C,
    seats: &mut [Seat<'_, C::Fabric>],
    [one, other]: [usize; 2],
) -> Result<(), BenchError> {
    let (before, after) = seats.split_at_mut(other);
    let (Some(first), Some(second)) = (before.get_mut(one), after.first_mut()) else {
        return Ok(());
    };
    let (one, other) = (node_of(one), node_of(other));
    carrying.connect((one, &mut first.fabric), (other, &mut second.fabric))
}

/// Opens their view, at both ends.
fn open<F: HostFabric<Error = ErrorKind>>(
    plan: &Plan<'_>,
    seats: &mut [Seat<'_, F>],
    pair: [usize; 2],
    view: ViewId,
    row_bytes: [usize; 2],
) -> Result<(), BenchError> {
    let members = pair.map(node_of);
    let parties = pair.map(|place| seats[place].party);
    for end in 0..2 {
        let (own, peer) = (Rank(end as u16), Rank(1 - end as u16));
        let seat = &mut seats[pair[end]];
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
