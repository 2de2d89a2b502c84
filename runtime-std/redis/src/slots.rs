//! The connections of a thread, by token.

use crate::connection::ClientConnection;

/// Connections by token. A token is never used twice, so an answer never reaches another client.
#[derive(Default)]
pub(crate) struct Slots {
    slots: Vec<ConnectionSlot>,
    free: Vec<u32>,
}

#[derive(Default)]
struct ConnectionSlot {
    generation: u32,
    connection: Option<Box<ClientConnection>>,
}

impl Slots {
    /// Adds the connection that `connection` creates with its token, and returns the token.
    pub(crate) fn insert(&mut self, connection: impl FnOnce(u64) -> ClientConnection) -> u64 {
        let index = self.free.pop().unwrap_or_else(|| {
            self.slots.push(ConnectionSlot::default());
            u32::try_from(self.slots.len() - 1).unwrap_or(u32::MAX)
        });
        let slot = &mut self.slots[index as usize];
        let token = u64::from(slot.generation) << 32 | u64::from(index);
        slot.connection = Some(Box::new(connection(token)));
        token
    }

    pub(crate) fn get_mut(&mut self, token: u64) -> Option<&mut ClientConnection> {
        let slot = self.slots.get_mut((token & u64::from(u32::MAX)) as usize)?;
        let is_same = u64::from(slot.generation) == token >> 32;
        slot.connection.as_deref_mut().filter(|_| is_same)
    }

    pub(crate) fn remove(&mut self, token: u64) -> Option<Box<ClientConnection>> {
        self.get_mut(token)?;
        let index = (token & u64::from(u32::MAX)) as u32;
        let slot = self.slots.get_mut(index as usize)?;
        slot.generation = slot.generation.wrapping_add(1);
        self.free.push(index);
        slot.connection.take()
    }

    /// Returns the tokens of all connections.
    pub(crate) fn tokens(&self) -> Vec<u64> {
        let slots = (0_u64..).zip(&self.slots).filter(|(_, slot)| slot.connection.is_some());
        slots.map(|(index, slot)| u64::from(slot.generation) << 32 | index).collect()
    }
}
