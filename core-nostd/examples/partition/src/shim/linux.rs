//! A system with ARINC 653 ports in which each partition is one process. Each port is a datagram
//! socket in a folder that both processes share.
//!
//! The kernel keeps such datagrams whole and in order, loses none as long as the receiver is alive,
//! and reports when the receiver has too many. This makes it a queue. A sampling port is read up to
//! its newest message. A message written while no receiver is alive is not accepted.

use std::boxed::Box;
use std::io::ErrorKind;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::string::String;
use std::sync::{Mutex, OnceLock, PoisonError};
use std::vec::Vec;
use std::{eprintln, format, fs, vec};

use a653rs::bindings::{
    ApexByte, ApexErrorP4, ApexQueuingPortP4, ApexSamplingPortP4, ApexSystemTime, ErrorCode,
    ErrorReturnCode, MessageRange, MessageSize, PortDirection, QueueOverflow, QueuingDiscipline,
    QueuingPortId, QueuingPortName, QueuingPortStatus, SamplingPortId, SamplingPortName, Validity,
};

/// The system for one partition: this process.
#[derive(Clone, Copy, Debug)]
pub struct Linux;

/// One port.
struct Port {
    socket: UnixDatagram,
    /// Destination of a source port.
    to: Option<PathBuf>,
    size: usize,
    latest: Option<Box<[u8]>>,
}

static FOLDER: OnceLock<PathBuf> = OnceLock::new();
static PORTS: Mutex<Vec<Port>> = Mutex::new(Vec::new());

impl Linux {
    /// Sets the folder of the ports before the first port is created. Returns false if the folder
    /// has already been set.
    pub fn use_folder(folder: PathBuf) -> bool {
        FOLDER.set(folder).is_ok()
    }

    fn create(
        name: [u8; 32],
        size: MessageSize,
        direction: PortDirection,
    ) -> Result<i64, ErrorReturnCode> {
        let folder = FOLDER.get().ok_or(ErrorReturnCode::InvalidMode)?;
        let end = name.iter().position(|byte| *byte == 0).unwrap_or(name.len());
        let name = String::from_utf8_lossy(name.get(..end).unwrap_or_default());
        let path = folder.join(format!("{name}.port"));
        let (socket, to) = match direction {
            PortDirection::Source => (UnixDatagram::unbound(), Some(path)),
            PortDirection::Destination => {
                // The socket may be left over from the previous incarnation.
                let _ = fs::remove_file(&path);
                (UnixDatagram::bind(path), None)
            }
        };
        let socket = socket.map_err(|_| ErrorReturnCode::InvalidConfig)?;
        socket.set_nonblocking(true).map_err(|_| ErrorReturnCode::InvalidConfig)?;
        let size = usize::try_from(size).map_err(|_| ErrorReturnCode::InvalidParam)?;
        with_ports(|ports| {
            ports.push(Port { socket, to, size, latest: None });
            i64::try_from(ports.len()).map_err(|_| ErrorReturnCode::InvalidConfig)
        })
    }
}

fn with_ports<R>(work: impl FnOnce(&mut Vec<Port>) -> R) -> R {
    work(&mut PORTS.lock().unwrap_or_else(PoisonError::into_inner))
}

fn with_port<R>(
    id: i64,
    work: impl FnOnce(&mut Port) -> Result<R, ErrorReturnCode>,
) -> Result<R, ErrorReturnCode> {
    let index = usize::try_from(id).ok().and_then(|id| id.checked_sub(1));
    with_ports(|ports| {
        work(index.and_then(|index| ports.get_mut(index)).ok_or(ErrorReturnCode::InvalidParam)?)
    })
}

impl Port {
    fn send(&self, message: &[u8]) -> Result<(), ErrorReturnCode> {
        let to = self.to.as_ref().ok_or(ErrorReturnCode::InvalidMode)?;
        if message.len() > self.size || message.is_empty() {
            return Err(ErrorReturnCode::InvalidParam);
        }
        match self.socket.send_to(message, to).map_err(|error| error.kind()) {
            Ok(_) => Ok(()),
            // The queue is full, or no receiver is alive.
            Err(
                ErrorKind::WouldBlock
                | ErrorKind::ConnectionRefused
                | ErrorKind::NotFound
                | ErrorKind::ConnectionReset,
            ) => Err(ErrorReturnCode::NotAvailable),
            Err(_) => Err(ErrorReturnCode::InvalidConfig),
        }
    }

    fn receive(&self, into: &mut [u8]) -> Result<usize, ErrorReturnCode> {
        self.socket.recv(into).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock => ErrorReturnCode::NotAvailable,
            _ => ErrorReturnCode::InvalidConfig,
        })
    }
}

impl ApexQueuingPortP4 for Linux {
    fn create_queuing_port(
        name: QueuingPortName,
        size: MessageSize,
        _: MessageRange,
        direction: PortDirection,
        _: QueuingDiscipline,
    ) -> Result<QueuingPortId, ErrorReturnCode> {
        Self::create(name, size, direction)
    }

    fn send_queuing_message(
        id: QueuingPortId,
        message: &[ApexByte],
        _: ApexSystemTime,
    ) -> Result<(), ErrorReturnCode> {
        with_port(id, |port| port.send(message))
    }

    unsafe fn receive_queuing_message(
        id: QueuingPortId,
        _: ApexSystemTime,
        message: &mut [ApexByte],
    ) -> Result<(MessageSize, QueueOverflow), ErrorReturnCode> {
        with_port(id, |port| {
            let length = port.receive(message)?;
            Ok((u32::try_from(length).map_err(|_| ErrorReturnCode::InvalidConfig)?, false))
        })
    }

    fn get_queuing_port_status(_: QueuingPortId) -> Result<QueuingPortStatus, ErrorReturnCode> {
        // The kernel does not report how many datagrams a socket holds.
        Err(ErrorReturnCode::NotAvailable)
    }

    fn clear_queuing_port(id: QueuingPortId) -> Result<(), ErrorReturnCode> {
        with_port(id, |port| {
            let mut message = vec![0; port.size];
            while port.receive(&mut message).is_ok() {}
            Ok(())
        })
    }
}

impl ApexSamplingPortP4 for Linux {
    fn create_sampling_port(
        name: SamplingPortName,
        size: MessageSize,
        direction: PortDirection,
        _: ApexSystemTime,
    ) -> Result<SamplingPortId, ErrorReturnCode> {
        Self::create(name, size, direction)
    }

    fn write_sampling_message(
        id: SamplingPortId,
        message: &[ApexByte],
    ) -> Result<(), ErrorReturnCode> {
        // A reader that lags sees the next message instead.
        match with_port(id, |port| port.send(message)) {
            Err(ErrorReturnCode::NotAvailable) => Ok(()),
            other => other,
        }
    }

    unsafe fn read_sampling_message(
        id: SamplingPortId,
        message: &mut [ApexByte],
    ) -> Result<(Validity, MessageSize), ErrorReturnCode> {
        with_port(id, |port| {
            let mut newer = vec![0; port.size];
            while let Ok(length) = port.receive(&mut newer) {
                port.latest = newer.get(..length).map(Box::from);
            }
            let latest = port.latest.as_ref().ok_or(ErrorReturnCode::NoAction)?;
            let place = message.get_mut(..latest.len()).ok_or(ErrorReturnCode::InvalidParam)?;
            place.copy_from_slice(latest);
            let length = u32::try_from(latest.len()).map_err(|_| ErrorReturnCode::InvalidConfig)?;
            Ok((Validity::Valid, length))
        })
    }
}

impl ApexErrorP4 for Linux {
    fn report_application_message(message: &[ApexByte]) -> Result<(), ErrorReturnCode> {
        eprintln!("health monitor: message {message:?}");
        Ok(())
    }

    fn raise_application_error(
        code: ErrorCode,
        message: &[ApexByte],
    ) -> Result<(), ErrorReturnCode> {
        eprintln!("health monitor: {code:?} {message:?}");
        Ok(())
    }
}
