//! TRAM under load: its replicas are separate processes, and its client is this process.

use std::path::Path;

use tramontane_local::interrupt::Interrupts;
use tramontane_runtime::carrier::Carrier;
use tramontane_runtime::shards::{
    Client, Description, Destinations, GroupId, Places, StartOptions,
};
use tramontane_runtime::shared_memory::GroupName;

use super::command::TramSystem;
use super::crew::Replicas;
use super::load::{ClientFigures, Load, broken};
use crate::error::BenchError;

/// Number of replicas of each group.
pub(super) const REPLICAS: u16 = 3;

/// The configuration of a run.
#[derive(Clone, Copy, Debug)]
pub(super) struct Setting {
    pub(super) carrier: Carrier,
    /// Number of groups, each of which is a destination of every message.
    pub(super) groups: u16,
    pub(super) window: u32,
    pub(super) messages: u32,
    pub(super) bytes: u32,
    pub(super) system: TramSystem,
}

impl Setting {
    /// Returns the overlay. The first group is the parent of the others.
    pub(super) fn overlay(&self) -> Result<Description, BenchError> {
        let name = GroupName::unique("bench-shards")?;
        let parents: Vec<Option<usize>> =
            (0..self.groups).map(|group| (group > 0).then_some(0)).collect();
        let mut overlay = Description::local(name.as_str(), &parents, REPLICAS);
        overlay.client_window = self.window;
        overlay.log_entries = overlay.log_entries.max(4 * self.window);
        overlay.parent_window = overlay.parent_window.max(self.window);
        overlay.message_max = overlay.message_max.max(self.bytes);
        overlay.references_from = (self.system == TramSystem::TramReferences).then_some(1);
        overlay.durable = self.system == TramSystem::TramDurable;
        match self.carrier {
            Carrier::SharedMemory => Ok(overlay),
            Carrier::Tcp => Ok(overlay.over_loopback()?),
            Carrier::Verbs => Err(BenchError::Arguments(
                "shards are measured only over shm and tcp; use --fabric shm,tcp".into(),
            )),
        }
    }

    /// Returns all groups as destinations.
    pub(super) fn to(&self) -> Destinations {
        (0..self.groups).map(GroupId).fold(Destinations::default(), Destinations::with)
    }

    /// Returns the two loads: one message at a time, and then the maximum number.
    pub(super) fn loads(&self) -> [Load; 2] {
        let load = |messages: u32, under_way: u32| Load {
            to: self.to(),
            payload: vec![7; self.bytes as usize],
            messages: messages.into(),
            under_way: under_way.into(),
        };
        [load(self.messages / 10, 1), load(self.messages, self.window)]
    }
}

/// Runs both loads, in turn.
pub(super) fn run(
    setting: &Setting,
    disk: &Path,
    interrupts: &Interrupts,
) -> Result<[ClientFigures; 2], BenchError> {
    let overlay = setting.overlay()?;
    let places = Places::new(&overlay, overlay.overlay().map_err(|error| broken(&error))?);
    let _replicas = Replicas::start(&overlay, &places, disk, interrupts)?;
    let [single, full] = setting.loads();
    let mut client = connect(setting, &overlay)?;
    Ok([single.run(&mut client)?, full.run(&mut client)?])
}

/// Connects a client to the replicas.
pub(super) fn connect(setting: &Setting, overlay: &Description) -> Result<Client, BenchError> {
    let connected = Client::connect(overlay, setting.to(), StartOptions::default());
    connected.map_err(|error| broken(&error))
}
