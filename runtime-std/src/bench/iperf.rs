//! `iperf3` beside a probe of TCP: one stream over the loopback, as many know it from their own machines.
//!
//! It is another program, which need not be there: then a note says how to get it.

use std::io::{self, BufRead as _, BufReader, ErrorKind};
use std::net::{Ipv4Addr, TcpListener};
use std::process::{Child, Command, Stdio};

use serde::{Deserialize, Serialize};

/// What it said.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Iperf {
    /// Bytes a second that its receiver took.
    ReceivedBytesPerS(f64),
    /// Why there is no figure, and what to do about it.
    None(String),
}

/// How long it sends.
const SECONDS: &str = "1";

/// The part of its report that is read.
#[derive(Deserialize)]
struct Report {
    end: End,
}

#[derive(Deserialize)]
struct End {
    sum_received: Sum,
}

#[derive(Deserialize)]
struct Sum {
    bits_per_second: f64,
}

/// Runs it once: a server and a client, wherever the operating system places them.
#[must_use]
pub fn run() -> Iperf {
    match measure() {
        Ok(rate) => Iperf::ReceivedBytesPerS(rate),
        Err(error) if error.kind() == ErrorKind::NotFound => Iperf::None(
            "iperf3 is not installed; 'apt-get install iperf3' gives its figure beside the probe's"
                .into(),
        ),
        Err(error) => Iperf::None(format!("iperf3 gave no figure: {error}")),
    }
}

fn measure() -> io::Result<f64> {
    // It takes a number and no socket. Somebody else may take the port in between: then there is no figure.
    let port = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?.local_addr()?.port().to_string();
    let mut server = Server(
        Command::new("iperf3")
            .args(["--server", "--one-off", "--forceflush", "--bind", "127.0.0.1", "--port", &port])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()?,
    );
    // What it says ends when it does, so this does not wait for a server that failed.
    let said = server.0.stdout.take().map(BufReader::new);
    let mut lines = said.into_iter().flat_map(BufReader::lines).map_while(Result::ok);
    if !lines.any(|line| line.contains("listening")) {
        return Err(io::Error::other("its server does not listen"));
    }
    let client = Command::new("iperf3")
        .args(["--client", "127.0.0.1", "--port", &port, "--time", SECONDS, "--json"])
        .stdin(Stdio::null())
        .output()?;
    rate_of(&client.stdout)
}

fn rate_of(json: &[u8]) -> io::Result<f64> {
    let report: Report = serde_json::from_slice(json).map_err(|_| {
        io::Error::other("its report is not what version 3 prints; see 'iperf3 --version'")
    })?;
    Ok(report.end.sum_received.bits_per_second / 8.0)
}

/// Its server, which does not outlive the run.
struct Server(Child);

impl Drop for Server {
    fn drop(&mut self) {
        // Both fail only if it is gone already.
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn its_report_is_read_and_anything_else_is_no_figure() {
        let said = br#"{"start": {}, "end": {"sum_sent": {}, "sum_received": {"bytes": 9, "bits_per_second": 80.0}}}"#;
        assert_eq!(rate_of(said).ok(), Some(10.0));
        for said in [&b""[..], b"{}", br#"{"error": "unable to connect"}"#] {
            assert!(rate_of(said).is_err());
        }
    }
}
