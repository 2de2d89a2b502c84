//! 5.1: the machines.

use super::super::case::Machine;
use super::super::claim::{Claim, Source, Stated};

use Machine::{Apt, Fractus, Stampede};

const DESCRIBED: &str = "describes the machines; no figure depends on it";

pub(super) const CLAIMS: &[Claim] = &[
    Claim::input(
        "rdmc-fractus-nodes",
        "5.1",
        "Fractus is a cluster of 16 RDMA-enabled nodes",
        16.0,
        "nodes",
        Source::Configuration,
    ),
    Claim::input(
        "rdmc-fractus-network",
        "5.1",
        "connected to both a 100 Gb/s Mellanox IB switch and a 100 Gb/s ... RoCE switch",
        100.0,
        "Gbit/s",
        Source::Parameter(Fractus, |profile| profile.port_bytes_per_us as f64 * 8e-3),
    )
    .note("4x QDR, which the same sentence says of its cards, would be 32 Gbit/s of content"),
    Claim::not_modelled(
        "rdmc-sierra-nodes",
        "5.1",
        "1,944 nodes of which 1,856 are designated as batch compute nodes",
        Stated::Number(1944.0),
        "nodes",
        DESCRIBED,
    ),
    Claim::input(
        "rdmc-sierra-network",
        "5.1",
        "4x QDR QLogic adapters each operating at a 40 Gb/s line rate",
        40.0,
        "Gbit/s",
        Source::Parameter(Machine::Sierra, |profile| profile.port_bytes_per_us as f64 * 8e-3),
    )
    .note("40 Gbit/s of signals carry 32 Gbit/s of bytes (8b/10b)"),
    Claim::not_modelled(
        "rdmc-stampede-nodes",
        "5.1",
        "6400 C8220 compute nodes with 56 Gb/s FDR Mellanox NICs",
        Stated::Number(6400.0),
        "nodes",
        DESCRIBED,
    ),
    Claim::input(
        "rdmc-stampede-network",
        "5.1",
        "We measured unicast speeds of up to 40 Gb/s",
        40.0,
        "Gbit/s",
        Source::Parameter(Stampede, |profile| profile.port_bytes_per_us as f64 * 8e-3),
    ),
    Claim::not_modelled(
        "rdmc-apt-nodes",
        "5.1",
        "192 nodes divided into two classes",
        Stated::Number(192.0),
        "nodes",
        DESCRIBED,
    ),
    Claim::input(
        "rdmc-apt-network",
        "5.1",
        "one FDR Mellanox CX3 NIC which is capable of 56 Gb/s",
        56.0,
        "Gbit/s",
        Source::Parameter(Apt, |profile| profile.port_bytes_per_us as f64 * 8e-3),
    ),
    Claim::input(
        "rdmc-apt-racks",
        "5.1",
        "oversubscribed TOR network that degrades to about 16 Gb/s per link",
        16.0,
        "Gbit/s",
        Source::Parameter(Apt, |profile| profile.rack_bytes_per_us as f64 * 8e-3),
    ),
];
