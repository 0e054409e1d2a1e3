//! Replays a trace through one connection: its handshake, its requests, the tablets that answers bring.
//!
//! What a driver does on top of that (several links, repeats) is not here: what it would decide is told.

use alloc::boxed::Box;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use bytes::BytesMut;
use messina_core::conn::auth::{Authenticator, PlainAuthenticator};
use messina_core::conn::extensions::{Agreed, TabletsRouting};
use messina_core::conn::framer::{Cut, FrameLimits, Framer, FramerError};
use messina_core::conn::negotiate::{HANDSHAKE_STREAM, HandshakeConfig, Negotiation};
use messina_core::conn::{
    Answer, Body, Connection, ConnectionLimits, Outcome, Received, Refused, RequestHead, SlotKey,
};
use messina_core::error::{Applied, Error, ErrorKind, PeerMisbehaved, TimeoutKind};
use messina_core::routing::Partitioner;
use messina_core::time::Instant;
use messina_core::wire::request::{Execute, Prepare, Query, QueryParameters, RequestBody as _};
use messina_core::wire::response::{Event, Extras, ResultBody};
use messina_core::wire::{EncodeError, FrameHeader, Opcode, ProtocolVersion, Reader};
use messina_core::{Local, Shared};

use crate::answer;
use crate::log::Log;
use crate::machine::link_error;
use crate::routes::{Place, Routes};
use crate::step::{Cell, Options, Step, number, values};

/// One link and what is under way on it.
#[derive(Debug)]
pub struct Player {
    now: Instant,
    handshake: HandshakeConfig,
    limits: ConnectionLimits,
    frame: FrameLimits,
    routes: Routes,
    link: Option<Link>,
    requests: BTreeMap<u32, Request>,
    statements: BTreeMap<u32, Statement>,
    queue: VecDeque<u32>,
    told_deadline: Instant,
}

#[derive(Debug)]
struct Link {
    number: u32,
    deadline: Instant,
    framer: Framer,
    input: BytesMut,
    output: BytesMut,
    header: Option<FrameHeader>,
    negotiation: Option<Negotiation>,
    connection: Option<Connection<u32>>,
    agreed: Option<Agreed>,
}

#[derive(Debug)]
struct Request {
    work: Work,
    options: Options,
    deadline: Instant,
    key: Option<SlotKey>,
}

#[derive(Debug)]
enum Work {
    Prepare(String),
    Query(String),
    Execute(u32, Vec<Cell>),
    Raw(Opcode, Vec<u8>),
}

#[derive(Debug)]
struct Statement {
    id: Vec<u8>,
    /// Shown where the connection agreed on them.
    metadata_id: Vec<u8>,
    key_indexes: Vec<u16>,
    keyspace: String,
    table: String,
    is_lwt: bool,
}

impl Default for Player {
    fn default() -> Self {
        Self::new()
    }
}

impl Player {
    /// Nothing has happened yet.
    #[must_use]
    pub fn new() -> Self {
        Self {
            now: Instant::ZERO,
            handshake: HandshakeConfig::new(ProtocolVersion::V4),
            limits: ConnectionLimits::default(),
            frame: FrameLimits::new(16 << 20, 0),
            routes: Routes::new(),
            link: None,
            requests: BTreeMap::new(),
            statements: BTreeMap::new(),
            queue: VecDeque::new(),
            told_deadline: Instant::FAR_FUTURE,
        }
    }

    /// Takes a step and does all that follows from it.
    pub fn apply(&mut self, step: &Step<'_>, log: &mut Log) {
        match step {
            Step::Setting(name, words) => {
                if self.set(name, words).is_none() {
                    log.line(format_args!("setting {name} cannot be read"));
                }
            }
            Step::At(micros) => {
                self.now = Instant::from_micros(*micros);
                log.line(format_args!("at {micros}"));
                self.expire(log);
            }
            Step::Open(link) => self.open(*link, log),
            Step::Bytes(link, bytes) => self.take_bytes(*link, bytes, log),
            Step::End(link, why) => self.end_link(*link, why, log),
            Step::Prepare(number, text) => {
                let work = Work::Prepare(String::from(*text));
                self.request(*number, work, &Options::new());
            }
            Step::Query(number, options, text) => {
                self.request(*number, Work::Query(String::from(*text)), options);
            }
            Step::Execute(number, statement, options, cells) => {
                let work = Work::Execute(*statement, cells.clone());
                self.request(*number, work, options);
            }
            Step::Raw(number, opcode, body) => match Opcode::try_from(*opcode) {
                Ok(opcode) => {
                    let work = Work::Raw(opcode, body.clone());
                    self.request(*number, work, &Options::new());
                }
                Err(_) => log.line(format_args!("no such opcode")),
            },
            Step::Cancel(number) => self.cancel(*number, log),
            Step::Close(_) => {
                if let Some(connection) = self.connection() {
                    connection.drain();
                }
            }
            Step::Route(statement, options, cells) => self.route(*statement, options, cells, log),
            other => log.line(format_args!("not for this: {other:?}")),
        }
        self.submit(log);
        self.put_output(log);
        self.put_deadline(log);
    }

    fn set(&mut self, name: &str, words: &[&str]) -> Option<()> {
        match (name, words) {
            ("login", [user, password]) => {
                let plain = PlainAuthenticator::new(*user, *password);
                let plain: Box<dyn Authenticator> = Box::new(plain);
                self.handshake.authenticator = Some(Shared::from(plain));
            }
            ("tablets", [newest]) => {
                self.handshake.tablets_max = match *newest {
                    "off" => TabletsRouting::Off,
                    "v1" => TabletsRouting::V1,
                    _ => TabletsRouting::V2,
                };
            }
            ("early", []) => self.handshake.early = true,
            ("events", []) => {
                self.handshake.events =
                    Vec::from(["TOPOLOGY_CHANGE", "STATUS_CHANGE", "SCHEMA_CHANGE"]);
            }
            ("frame-max", [len]) => self.frame = FrameLimits::new(len.parse().ok()?, 0),
            ("in-flight", [count]) => self.limits.in_flight = number(Some(count)).ok()?,
            ("waiting", [count]) => self.limits.waiting = number(Some(count)).ok()?,
            _ => return self.routes.set(name, words),
        }
        Some(())
    }

    fn connection(&mut self) -> Option<&mut Connection<u32>> {
        self.link.as_mut()?.connection.as_mut()
    }

    fn open(&mut self, number: u32, log: &mut Log) {
        let mut output = BytesMut::new();
        let handshake = Local::new(self.handshake.clone());
        match Negotiation::start(handshake, &mut output) {
            Ok(negotiation) => {
                self.link = Some(Link {
                    number,
                    deadline: self.now.saturating_add(HANDSHAKE_MAX),
                    framer: Framer::new(self.frame),
                    input: BytesMut::new(),
                    output,
                    header: None,
                    negotiation: Some(negotiation),
                    connection: None,
                    agreed: None,
                });
            }
            Err(error) => log.line(format_args!(
                "no handshake: {}",
                answer::error(&error, false)
            )),
        }
    }

    fn take_bytes(&mut self, number: u32, bytes: &[u8], log: &mut Log) {
        let Some(mut link) = self.link.take_if(|link| link.number == number) else {
            log.line(format_args!("bytes for a link that is none"));
            return;
        };
        link.input.extend_from_slice(bytes);
        let mut told = Vec::new();
        let ended = self.cut(&mut link, &mut told, log).err();
        for number in told {
            self.finish(number, &mut link, log);
        }
        match ended {
            None => self.link = Some(link),
            Some(error) => self.lost(link, &error, log),
        }
    }

    fn cut(&mut self, link: &mut Link, told: &mut Vec<u32>, log: &mut Log) -> Result<(), Error> {
        loop {
            match link.framer.poll_cut(&mut link.input) {
                Ok(None) => return Ok(()),
                Ok(Some(Cut::Start(header))) => link.header = Some(header),
                Ok(Some(Cut::End(body))) => {
                    if let Some(header) = link.header.take() {
                        self.take_frame(link, &header, body, told, log)?;
                    }
                }
                Ok(Some(_)) => return Err(PeerMisbehaved::MalformedBody.into()),
                Err(FramerError::TooLong(header)) => {
                    if let Some(connection) = &mut link.connection {
                        connection.handle_too_long(&header, |caller| told.push(caller));
                    }
                    return Err(PeerMisbehaved::BadHeader.into());
                }
                Err(_) => return Err(PeerMisbehaved::BadHeader.into()),
            }
        }
    }

    fn take_frame(
        &mut self,
        link: &mut Link,
        header: &FrameHeader,
        body: BytesMut,
        told: &mut Vec<u32>,
        log: &mut Log,
    ) -> Result<(), Error> {
        if let Some(negotiation) = &mut link.negotiation
            && (link.connection.is_none() || header.stream == HANDSHAKE_STREAM)
        {
            let is_done = negotiation.advance(header, &body, &mut link.output)?;
            if link.connection.is_none() && (is_done || negotiation.is_early()) {
                let agreed = *negotiation.agreed();
                let connection = Connection::new(agreed.version, self.limits, self.now);
                link.connection = Some(connection);
                link.agreed = Some(agreed);
                put_agreed(&agreed, log);
            }
            if is_done {
                link.negotiation = None;
                log.line(format_args!("handshake over"));
            }
            return Ok(());
        }
        let Some(connection) = &mut link.connection else {
            return Err(PeerMisbehaved::UnexpectedFrame.into());
        };
        let body = Body::new(body);
        let received =
            connection.handle_frame(self.now, header, body, |caller| told.push(caller))?;
        match received {
            Received::Answer => {}
            Received::Event(body) => match Event::parse(&mut Reader::new(body.as_slice())) {
                Ok(event) => log.line(format_args!("event {event:?}")),
                Err(error) => log.line(format_args!("bad event: {:?}", error.kind)),
            },
            other => log.line(format_args!("{other:?}")),
        }
        Ok(())
    }

    fn end_link(&mut self, number: u32, why: &str, log: &mut Log) {
        let Some(link) = self.link.take_if(|link| link.number == number) else {
            return;
        };
        self.lost(link, &link_error(why).into(), log);
    }

    fn lost(&mut self, mut link: Link, error: &Error, log: &mut Log) {
        log.line(format_args!(
            "link {} lost: {}",
            link.number,
            answer::error(error, false)
        ));
        let mut told = Vec::new();
        if let Some(connection) = &mut link.connection {
            connection.close(error, |caller| told.push(caller));
        }
        for number in told {
            self.finish(number, &mut link, log);
        }
    }

    fn expire(&mut self, log: &mut Log) {
        let Some(mut link) = self.link.take() else {
            return;
        };
        let (mut told, mut ended) = (Vec::new(), None);
        if link.negotiation.is_some() && self.now >= link.deadline {
            ended = Some(Error::new(ErrorKind::Timeout(TimeoutKind::Handshake)));
        } else if let Some(connection) = &mut link.connection {
            let expired = connection.handle_timeout(self.now, |caller| told.push(caller));
            ended = expired.err();
        }
        for number in told {
            self.finish(number, &mut link, log);
        }
        match ended {
            None => self.link = Some(link),
            Some(error) => self.lost(link, &error, log),
        }
    }

    fn request(&mut self, number: u32, work: Work, options: &Options) {
        let request = Request {
            work,
            options: options.clone(),
            deadline: self
                .now
                .saturating_add(Duration::from_micros(options.timeout)),
            key: None,
        };
        self.requests.insert(number, request);
        self.queue.push_back(number);
    }

    fn submit(&mut self, log: &mut Log) {
        while let Some(&number) = self.queue.front() {
            let Some(mut request) = self.requests.remove(&number) else {
                self.queue.pop_front();
                continue;
            };
            let Some(link) = &self.link else {
                self.requests.insert(number, request);
                return;
            };
            let Some(agreed) = link.agreed else {
                self.requests.insert(number, request);
                return;
            };
            let (opcode, body) = match self.body(&request, &agreed) {
                Ok(body) => body,
                Err(error) => {
                    self.queue.pop_front();
                    log.line(format_args!("{number} cannot be written: {error}"));
                    continue;
                }
            };
            let Some(connection) = self.connection() else {
                return;
            };
            let head = RequestHead::new(opcode);
            let write = |sink: &mut BytesMut| {
                sink.extend_from_slice(&body);
                Ok::<(), EncodeError>(())
            };
            match connection.submit(number, request.deadline, head, write) {
                Ok(key) => {
                    self.queue.pop_front();
                    log.line(format_args!("{number} on stream {}", key.stream_id()));
                    request.key = Some(key);
                    self.requests.insert(number, request);
                }
                Err(Refused::Full(_)) => {
                    self.requests.insert(number, request);
                    return;
                }
                Err(Refused::Closed(_, error)) => {
                    self.queue.pop_front();
                    log.line(format_args!(
                        "{number} refused: {}",
                        answer::error(&error, false)
                    ));
                }
                Err(_) => {
                    self.queue.pop_front();
                    log.line(format_args!("{number} is too long"));
                }
            }
        }
    }

    fn body(
        &mut self,
        request: &Request,
        agreed: &Agreed,
    ) -> Result<(Opcode, BytesMut), &'static str> {
        let mut body = BytesMut::new();
        let options = &request.options;
        let cells = match &request.work {
            Work::Execute(_, cells) => &cells[..],
            _ => &[],
        };
        let values = values(cells)?;
        let parameters = QueryParameters {
            values: values.values(),
            page_size: options.page,
            paging_state: options.state.as_deref(),
            serial_consistency: options.serial.and_then(|level| level.as_serial()),
            ..QueryParameters::new(options.consistency)
        };
        let version = agreed.version;
        let (opcode, written) = match &request.work {
            Work::Prepare(text) => {
                let prepare = Prepare {
                    text,
                    keyspace: None,
                };
                (Opcode::Prepare, prepare.put(version, &mut body))
            }
            Work::Query(text) => {
                let query = Query { text, parameters };
                (Opcode::Query, query.put(version, &mut body))
            }
            Work::Raw(opcode, bytes) => {
                body.extend_from_slice(bytes);
                (*opcode, Ok(()))
            }
            Work::Execute(number, cells) => {
                let place = self.place(*number, cells);
                let block = self.routes.block(agreed, place);
                let statement = self.statements.get(number).ok_or("no such statement")?;
                let execute = Execute {
                    id: &statement.id,
                    result_metadata_id: agreed.metadata_id.then_some(&*statement.metadata_id),
                    parameters,
                    tablet_version_block: block,
                };
                (Opcode::Execute, execute.put(version, &mut body))
            }
        };
        written.map_err(|_| "it does not fit")?;
        Ok((opcode, body))
    }

    /// The table of a statement, and the token of the key that is bound.
    fn place(&mut self, statement: u32, cells: &[Cell]) -> Place {
        let Some(statement) = self.statements.get(&statement) else {
            return Place {
                table: None,
                token: None,
            };
        };
        let component = |index: &u16| match cells.get(usize::from(*index)) {
            Some(Cell::Bytes(bytes)) => Some(&bytes[..]),
            _ => None,
        };
        let key: Option<Vec<&[u8]>> = statement.key_indexes.iter().map(component).collect();
        let token = key.and_then(|key| Partitioner::Murmur3.token(key).ok());
        Place {
            table: self.routes.table(&statement.keyspace, &statement.table),
            token,
        }
    }

    fn finish(&mut self, number: u32, link: &mut Link, log: &mut Log) {
        let (Some(request), Some(connection), Some(agreed)) = (
            self.requests.remove(&number),
            &mut link.connection,
            &link.agreed,
        ) else {
            return;
        };
        let Some(key) = request.key else {
            return;
        };
        match connection.poll_answer(key, |_| ()) {
            Outcome::Pending(_) => {
                self.requests.insert(number, request);
            }
            Outcome::Expired => {
                let error = Error::new(ErrorKind::Timeout(TimeoutKind::Request));
                let error = error.with_applied(Applied::Unknown);
                let error = answer::error(&error, request.options.is_idempotent);
                log.line(format_args!("{number} expired: {error}"));
            }
            Outcome::Done(Err(error)) => {
                let error = answer::error(&error, request.options.is_idempotent);
                log.line(format_args!("{number} failed: {error}"));
            }
            Outcome::Done(Ok(answer)) => self.answered(number, &request, &answer, agreed, log),
            _ => {}
        }
    }

    fn answered(
        &mut self,
        number: u32,
        request: &Request,
        answer: &Answer,
        agreed: &Agreed,
        log: &mut Log,
    ) {
        log.line(format_args!("{number}: {}", answer::text(answer, agreed)));
        let mut reader = Reader::new(answer.body.as_slice());
        let Ok(extras) = Extras::parse(answer.flags, &mut reader) else {
            return;
        };
        if answer.opcode == Opcode::Error {
            if let Ok(error) =
                messina_core::wire::response::ServerError::parse(&agreed.dialect(), &mut reader)
            {
                let error = Error::from_server(error);
                let error = answer::error(&error, request.options.is_idempotent);
                log.line(format_args!("{number} failed: {error}"));
            }
            return;
        }
        if let Work::Execute(statement, cells) = &request.work {
            let place = self.place(*statement, cells);
            let learned = self.routes.learn(agreed, place, extras.custom_payload);
            if !learned.is_empty() {
                log.line(format_args!("{number} brought {learned}"));
            }
        }
        if let Ok(ResultBody::Prepared(prepared)) =
            ResultBody::parse(&agreed.dialect(), &mut reader)
        {
            let columns = prepared.result.columns.unwrap_or(prepared.bound.columns);
            let first = prepared.bound.columns.iter().next();
            let first = first.or_else(|| columns.iter().next());
            let (keyspace, table) =
                first.map_or(("", ""), |column| (column.keyspace, column.table));
            let statement = Statement {
                id: Vec::from(prepared.id),
                metadata_id: Vec::from(prepared.result_metadata_id.unwrap_or_default()),
                key_indexes: prepared.bound.key_indexes.iter().collect(),
                keyspace: String::from(keyspace),
                table: String::from(table),
                is_lwt: agreed.is_lwt(prepared.bound.flags),
            };
            self.statements.insert(number, statement);
        }
    }

    fn cancel(&mut self, number: u32, log: &mut Log) {
        let now = self.now;
        if let Some(request) = self.requests.remove(&number)
            && let Some(key) = request.key
            && let Some(connection) = self.connection()
        {
            connection.cancel(key, now, |_| ());
            let orphans = connection.orphans();
            log.line(format_args!("{number} given up, {orphans} orphans"));
        }
    }

    fn route(&mut self, statement: u32, options: &Options, cells: &[Cell], log: &mut Log) {
        let place = self.place(statement, cells);
        let is_lwt = self
            .statements
            .get(&statement)
            .is_some_and(|found| found.is_lwt);
        let plan = self.routes.plan(place, is_lwt, options);
        log.line(format_args!("route of {statement}: {plan}"));
    }

    fn put_output(&mut self, log: &mut Log) {
        let Some(link) = &mut self.link else {
            return;
        };
        let mut output = core::mem::take(&mut link.output);
        if let Some(connection) = &mut link.connection {
            let mut requests = BytesMut::new();
            connection.swap_output(&mut requests, |_| ());
            connection.handle_written(requests.len());
            output.extend_from_slice(&requests);
        }
        if !output.is_empty() {
            log.written(link.number, &output);
        }
    }

    /// When something would happen without another step.
    #[must_use]
    pub fn deadline(&self) -> Instant {
        let Some(link) = &self.link else {
            return Instant::FAR_FUTURE;
        };
        let connection = link.connection.as_ref();
        let connection = connection.map_or(Instant::FAR_FUTURE, Connection::poll_timeout);
        match link.negotiation {
            Some(_) => connection.min(link.deadline),
            None => connection,
        }
    }

    fn put_deadline(&mut self, log: &mut Log) {
        let deadline = self.deadline();
        if deadline != self.told_deadline {
            self.told_deadline = deadline;
            log.next(deadline);
        }
    }
}

fn put_agreed(agreed: &Agreed, log: &mut Log) {
    let Agreed {
        tablets,
        metadata_id,
        is_authenticated,
        offer,
        ..
    } = agreed;
    log.line(format_args!(
        "agreed tablets {tablets:?}, metadata id {metadata_id}, authenticated {is_authenticated}"
    ));
    log.line(format_args!("offered {offer:?}"));
}

/// How long a handshake may take.
const HANDSHAKE_MAX: Duration = Duration::from_secs(5);
