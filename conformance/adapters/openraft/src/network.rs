//! Messages between servers and senders: requests and answers over TCP, each a length of four bytes
//! and JSON. A connection carries one request at a time.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use openraft::BasicNode;
use openraft::error::{InstallSnapshotError, RPCError, RaftError, RemoteError, Unreachable};
use openraft::network::{RPCOption, RaftNetwork, RaftNetworkFactory};
use openraft::raft::{
    AppendEntriesRequest, AppendEntriesResponse, InstallSnapshotRequest, InstallSnapshotResponse,
    VoteRequest, VoteResponse,
};
use serde::de::DeserializeOwned;
use serde::{Deserialize, Serialize};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};

use crate::requests;
use crate::types::{Raft, Record, Types};

/// Length limit of a request or an answer in bytes.
const BYTES_MAX: u32 = 64 << 20;

/// Time limit for establishing a connection.
const CONNECT_TIME: Duration = Duration::from_millis(500);

/// A request to a server.
#[derive(Debug, Serialize, Deserialize)]
pub enum Request {
    /// Entries from another server's raft.
    Append(AppendEntriesRequest<Types>),
    /// By a candidate.
    Vote(VoteRequest<u64>),
    /// A snapshot from a leader; never sent.
    Snapshot(InstallSnapshotRequest<Types>),
    /// A message to append to the log.
    Write(Record),
    /// A server to make a voter, with its address.
    Join { id: u64, address: String },
    /// A server to remove.
    Leave { id: u64 },
}

/// A server's answer.
#[derive(Debug, Serialize, Deserialize)]
pub enum Answer {
    /// To `Append`.
    Append(Result<AppendEntriesResponse<u64>, RaftError<u64>>),
    /// To `Vote`.
    Vote(Result<VoteResponse<u64>, RaftError<u64>>),
    /// To `Snapshot`.
    Snapshot(Result<InstallSnapshotResponse<u64>, RaftError<u64, InstallSnapshotError>>),
    /// The request is done and committed.
    Done,
    /// Another server leads: its number, if known.
    NotLeader(Option<u64>),
    /// The request was not done, or its result is unknown.
    Failed(String),
}

async fn write(stream: &mut TcpStream, value: &impl Serialize) -> io::Result<()> {
    let text = serde_json::to_vec(value)?;
    let length = u32::try_from(text.len()).map_err(io::Error::other)?;
    stream.write_all(&[&length.to_be_bytes(), &text[..]].concat()).await
}

async fn read<T: DeserializeOwned>(stream: &mut TcpStream) -> io::Result<T> {
    let length = stream.read_u32().await?;
    if length > BYTES_MAX {
        return Err(io::Error::other("longer than anything that is sent"));
    }
    let mut text = vec![0; length as usize];
    stream.read_exact(&mut text).await?;
    Ok(serde_json::from_slice(&text)?)
}

/// Answers requests to this address.
pub async fn serve(listener: TcpListener, raft: Raft) {
    loop {
        let Ok((mut stream, _)) = listener.accept().await else { continue };
        let raft = raft.clone();
        tokio::spawn(async move {
            let _ = stream.set_nodelay(true);
            while let Ok(request) = read(&mut stream).await {
                let answer = requests::answer(&raft, request).await;
                if write(&mut stream, &answer).await.is_err() {
                    break;
                }
            }
        });
    }
}

/// A connection to a server, established on demand.
pub struct Peer {
    id: u64,
    address: String,
    stream: Option<TcpStream>,
}

impl Peer {
    /// Creates a connection to the server at this address.
    pub fn new(id: u64, address: String) -> Self {
        Self { id, address, stream: None }
    }

    /// Sends a request and waits for the answer. A connection with an outstanding answer is never
    /// reused, even if the caller gives up.
    pub async fn ask(&mut self, request: &Request) -> io::Result<Answer> {
        let mut stream = match self.stream.take() {
            Some(stream) => stream,
            None => self.connect().await?,
        };
        write(&mut stream, request).await?;
        let answer = read(&mut stream).await?;
        self.stream = Some(stream);
        Ok(answer)
    }

    async fn connect(&self) -> io::Result<TcpStream> {
        let address: SocketAddr = self.address.parse().map_err(io::Error::other)?;
        let stream = tokio::time::timeout(CONNECT_TIME, TcpStream::connect(address)).await??;
        stream.set_nodelay(true)?;
        Ok(stream)
    }
}

/// Makes peers.
pub struct Peers;

impl RaftNetworkFactory<Types> for Peers {
    type Network = Peer;

    async fn new_client(&mut self, target: u64, node: &BasicNode) -> Peer {
        Peer::new(target, node.addr.clone())
    }
}

type RpcError<E> = RPCError<u64, BasicNode, RaftError<u64, E>>;

impl Peer {
    /// Converts an answer for openraft.
    fn resolve<T, E: std::error::Error>(
        &self,
        answer: io::Result<Answer>,
        pick: impl FnOnce(Answer) -> Option<Result<T, RaftError<u64, E>>>,
    ) -> Result<T, RpcError<E>> {
        let answer = answer.map_err(|error| Unreachable::new(&error))?;
        let other = || Unreachable::new(&io::Error::other("an answer to something else"));
        let result = pick(answer).ok_or_else(other)?;
        result.map_err(|error| RemoteError::new(self.id, error).into())
    }
}

impl RaftNetwork<Types> for Peer {
    async fn append_entries(
        &mut self,
        request: AppendEntriesRequest<Types>,
        _option: RPCOption,
    ) -> Result<AppendEntriesResponse<u64>, RpcError<openraft::error::Infallible>> {
        let answer = self.ask(&Request::Append(request)).await;
        self.resolve(answer, |answer| match answer {
            Answer::Append(result) => Some(result),
            _ => None,
        })
    }

    async fn install_snapshot(
        &mut self,
        request: InstallSnapshotRequest<Types>,
        _option: RPCOption,
    ) -> Result<InstallSnapshotResponse<u64>, RpcError<InstallSnapshotError>> {
        let answer = self.ask(&Request::Snapshot(request)).await;
        self.resolve(answer, |answer| match answer {
            Answer::Snapshot(result) => Some(result),
            _ => None,
        })
    }

    async fn vote(
        &mut self,
        request: VoteRequest<u64>,
        _option: RPCOption,
    ) -> Result<VoteResponse<u64>, RpcError<openraft::error::Infallible>> {
        let answer = self.ask(&Request::Vote(request)).await;
        self.resolve(answer, |answer| match answer {
            Answer::Vote(result) => Some(result),
            _ => None,
        })
    }
}
