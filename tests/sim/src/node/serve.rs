//! Requests of one connection, by opcode: what is read from the body, what is answered.
//!
//! A frame that cannot be decompressed closes the connection; any other error is an ERROR on the
//! request's stream and the connection stays as it was.

mod batch;

use std::sync::Arc;

use md5::{Digest, Md5};

use super::cluster::Cluster;
use super::codec::{Bound, Compression, Header, Parameters, Reader, Writer, flags, opcode};
use super::connection::{Connection, EventKind, Features, Stage};
use super::error::CqlError;
use super::execute::Execution;
use super::plan::{Plan, Prepared, plan};
use super::reply::{Reply, Wish, prepared as prepared_reply, result, supported};
use super::route::Caller;

type Result<T> = core::result::Result<T, CqlError>;

/// Prepared statements that a node keeps; beyond it, it forgets all.
const PREPARED_MAX: usize = 100_000;

impl Cluster {
    pub(super) fn serve(
        &mut self,
        connection: &mut Connection,
        header: Header,
        body: Vec<u8>,
        now: i64,
    ) {
        let Some(node) = self.nodes.get_mut(connection.node) else {
            return;
        };
        node.stats.frames += 1;
        connection.set_clock(now, node.delay_micros);
        let body = match uncompressed(connection, header, body) {
            Ok(body) => body,
            Err(error) => return connection.close_with(&error),
        };
        let is_data = matches!(
            header.opcode,
            opcode::QUERY | opcode::EXECUTE | opcode::BATCH | opcode::PREPARE
        );
        let traced = is_data && header.flags & flags::TRACING != 0;
        let trace = traced.then(|| self.trace_id(now));
        let version = connection.version_or_newest();
        let mut reader = Reader::new(&body);
        let opened = if header.flags & flags::CUSTOM_PAYLOAD != 0 && version >= 4 {
            reader.skip_bytes_map()
        } else {
            Ok(())
        };
        let answer = opened.and_then(|()| self.answer(connection, header.opcode, &mut reader, now));
        for event in core::mem::take(&mut self.own_events) {
            if connection.is_registered(EventKind::Schema) {
                connection.push_schema_event(&event);
            }
        }
        if let Some(wait) = self.gather.take_wait() {
            connection.set_clock(now, wait);
        }
        if core::mem::take(&mut self.silent) {
            return;
        }
        let mut response_len = 0;
        match answer {
            Ok(mut reply) => {
                response_len = reply.body.as_slice().len();
                reply.trace = trace;
                if let Some(payload) = &reply.payload
                    && let Some(node) = self.nodes.get_mut(connection.node)
                {
                    node.stats.payloads += 1;
                    node.stats.payload_bytes += payload.wire_len();
                }
                reply.push(connection, header.stream);
            }
            Err(error) => self.push_error(connection, header.stream, &error, trace),
        }
        if let Some(id) = trace {
            self.keep_trace(id, connection, (header, &body), response_len, now);
        }
    }

    fn push_error(
        &mut self,
        connection: &mut Connection,
        stream: i16,
        error: &CqlError,
        trace: Option<[u8; 16]>,
    ) {
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.errors += 1;
            node.stats.unprepared += u64::from(matches!(error, CqlError::Unprepared(_)));
        }
        let mut body = Writer::default();
        error.put(
            &mut body,
            connection.version_or_newest(),
            connection.features.rate_limit,
        );
        let reply = Reply {
            trace,
            ..Reply::new(opcode::ERROR, body)
        };
        reply.push(connection, stream);
    }

    /// The gate of the handshake, then the handlers.
    fn answer(
        &mut self,
        connection: &mut Connection,
        code: u8,
        reader: &mut Reader<'_>,
        now: i64,
    ) -> Result<Reply> {
        let allowed = match connection.stage {
            Stage::Initial => matches!(code, opcode::STARTUP | opcode::OPTIONS),
            Stage::Authenticating => matches!(code, opcode::AUTH_RESPONSE | opcode::CREDENTIALS),
            Stage::Ready => code != opcode::STARTUP,
        };
        if !allowed {
            return Err(CqlError::Protocol(match connection.stage {
                Stage::Initial => {
                    format!("Unexpected message {code}, expecting STARTUP or OPTIONS")
                }
                Stage::Authenticating => {
                    format!("Unexpected message {code}, expecting SASL_RESPONSE")
                }
                Stage::Ready => {
                    "Unexpected message STARTUP, the connection is already initialized".to_owned()
                }
            }));
        }
        match code {
            opcode::OPTIONS => self.options_request(connection),
            opcode::STARTUP => self.startup(connection, reader),
            opcode::AUTH_RESPONSE => self.auth_response(connection, reader),
            opcode::REGISTER => self.register(connection, reader),
            opcode::PREPARE => self.prepare(connection, reader),
            opcode::QUERY => self.query(connection, reader, now),
            opcode::EXECUTE => self.execute_request(connection, reader, now),
            opcode::BATCH => self.batch_request(connection, reader, now),
            _ => Err(CqlError::Protocol(format!("Unknown opcode {code}"))),
        }
    }

    fn options_request(&self, connection: &Connection) -> Result<Reply> {
        let settings = self.options.nodes.get(connection.node);
        let state = self.nodes.get(connection.node);
        let (Some(settings), Some(state)) = (settings, state) else {
            return Err(CqlError::Server("no such node".to_owned()));
        };
        Ok(supported(
            &self.options,
            settings,
            &state.host_id,
            connection.shard,
        ))
    }

    fn startup(&mut self, connection: &mut Connection, reader: &mut Reader<'_>) -> Result<Reply> {
        let options = reader.string_map()?;
        let has = |key: &str| options.iter().any(|(given, _)| *given == key);
        if let Some((_, name)) = options.iter().find(|(key, _)| *key == "COMPRESSION") {
            let algorithm = Compression::named(name).ok_or_else(|| {
                let name = name.to_ascii_lowercase();
                CqlError::Protocol(format!("Unknown compression algorithm: {name}"))
            })?;
            connection.compression = Some(algorithm);
        }
        if let Some(node) = self
            .options
            .nodes
            .get(connection.node)
            .filter(|node| !node.plain)
        {
            connection.features = Features {
                lwt_mark: has("SCYLLA_LWT_ADD_METADATA_MARK"),
                rate_limit: has("SCYLLA_RATE_LIMIT_ERROR"),
                metadata_id: has("SCYLLA_USE_METADATA_ID"),
                tablets_v1: node.tablets.v1() && has("TABLETS_ROUTING_V1"),
                tablets_v2: node.tablets.v2() && has("TABLETS_ROUTING_V2_EXPERIMENTAL"),
            };
        }
        connection.client_options = options
            .iter()
            .map(|(key, value)| ((*key).to_owned(), (*value).to_owned()))
            .collect();
        if self.options.auth.is_none() {
            connection.stage = Stage::Ready;
            return Ok(Reply::empty(opcode::READY));
        }
        connection.stage = Stage::Authenticating;
        let mut body = Writer::default();
        body.string("org.apache.cassandra.auth.PasswordAuthenticator");
        Ok(Reply::new(opcode::AUTHENTICATE, body))
    }

    /// SASL PLAIN: the token is read backwards, so a length before it does not matter.
    fn auth_response(
        &mut self,
        connection: &mut Connection,
        reader: &mut Reader<'_>,
    ) -> Result<Reply> {
        let (Some(wanted), Stage::Authenticating) = (&self.options.auth, connection.stage) else {
            return Err(CqlError::Server(
                "authentication is not required".to_owned(),
            ));
        };
        let mut parts = reader.rest().rsplitn(3, |byte| *byte == 0);
        let mut next = || parts.next().filter(|part| !part.is_empty());
        let (password, user) = (next(), next());
        let Some(user) = user else {
            return Err(CqlError::BadCredentials(
                "Authentication ID must not be null".to_owned(),
            ));
        };
        if user != wanted.user.as_bytes() || password != Some(wanted.password.as_bytes()) {
            return Err(CqlError::BadCredentials(
                "Username and/or password are incorrect".to_owned(),
            ));
        }
        connection.username = Some(wanted.user.clone());
        connection.stage = Stage::Ready;
        let mut body = Writer::default();
        body.bytes(&[]);
        Ok(Reply::new(opcode::AUTH_SUCCESS, body))
    }

    fn plan_for(&self, connection: &Connection, text: &str) -> Result<Prepared> {
        let plain = self.is_plain(connection.node);
        plan(&self.catalogue, connection.keyspace.as_deref(), plain, text)
    }

    fn prepare(&mut self, connection: &Connection, reader: &mut Reader<'_>) -> Result<Reply> {
        let text = reader.long_string()?;
        let prepared = Arc::new(self.plan_for(connection, text)?);
        let id = prepared_id(connection.keyspace.as_deref(), text);
        let version = connection.version_or_newest();
        let reply = prepared_reply(&id, &prepared, version, connection.features);
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.prepares += 1;
            if node.prepared.len() >= PREPARED_MAX {
                node.prepared.clear();
            }
            node.prepared.insert(id, prepared);
        }
        Ok(reply)
    }

    fn known(&self, connection: &Connection, id: &[u8]) -> Result<Arc<Prepared>> {
        let found = <[u8; 16]>::try_from(id)
            .ok()
            .and_then(|id| self.nodes.get(connection.node)?.prepared.get(&id).cloned());
        found.ok_or_else(|| CqlError::Unprepared(id.to_vec()))
    }

    fn query(
        &mut self,
        connection: &mut Connection,
        reader: &mut Reader<'_>,
        now: i64,
    ) -> Result<Reply> {
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.queries += 1;
        }
        let text = reader.long_string()?;
        let parameters = Parameters::parse(reader, connection.version_or_newest())?;
        let wish = if parameters.skip_metadata {
            Wish::Skip
        } else {
            Wish::Full
        };
        let prepared = self.plan_for(connection, text)?;
        let caller = caller(connection, now, false, None);
        self.run(connection, &prepared, parameters, caller, wish)
    }

    fn execute_request(
        &mut self,
        connection: &mut Connection,
        reader: &mut Reader<'_>,
        now: i64,
    ) -> Result<Reply> {
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.executes += 1;
        }
        let id = reader.short_bytes()?;
        // Before anything else of the body is looked at.
        let prepared = self.known(connection, id)?;
        let metadata_id = if connection.features.metadata_id {
            Some(reader.short_bytes()?)
        } else {
            None
        };
        let parameters = Parameters::parse(reader, connection.version_or_newest())?;
        let block = if connection.features.tablets_v2 {
            Some(reader.byte()?)
        } else {
            None
        };
        if let Some(node) = self.nodes.get_mut(connection.node) {
            node.stats.overlong += u64::from(!reader.rest().is_empty());
        }
        let skip = parameters.skip_metadata;
        let wish = match metadata_id {
            Some(id) => Wish::Known { id, skip },
            None if skip => Wish::Skip,
            None => Wish::Full,
        };
        let caller = caller(connection, now, true, block);
        self.run(connection, &prepared, parameters, caller, wish)
    }

    fn run(
        &mut self,
        connection: &mut Connection,
        prepared: &Prepared,
        parameters: Parameters,
        caller: Caller,
        wish: Wish<'_>,
    ) -> Result<Reply> {
        let is_data = matches!(
            &prepared.plan,
            Plan::Select(_) | Plan::Modify(_) | Plan::Batch(_)
        ) && !prepared.is_virtual();
        if is_data {
            self.injected(connection)?;
        }
        // Columns that change from answer to answer, and those of batches, always come in full.
        let wish = match &prepared.plan {
            Plan::Modify(plan) if plan.condition.is_some() && self.is_plain(connection.node) => {
                Wish::Full
            }
            Plan::Batch(_) => Wish::Full,
            _ => wish,
        };
        let values = match parameters.names {
            Some(names) => by_name(prepared, &names, parameters.values)?,
            None => parameters.values,
        };
        let execution = Execution {
            caller,
            values,
            consistency: parameters.consistency,
            serial_consistency: parameters.serial_consistency,
            page_size: parameters.page_size,
            paging_state: parameters.paging_state,
            timestamp: parameters.timestamp,
        };
        if prepared.is_virtual() {
            self.serving = Some(super::system::Client::of(connection));
        }
        let lean = self.execute_lean(prepared, &execution);
        let executed = lean.unwrap_or_else(|| self.execute(prepared, execution));
        self.serving = None;
        let executed = executed?;
        if let super::execute::Outcome::SetKeyspace(name) = &executed.outcome {
            connection.keyspace = Some(name.clone());
        }
        let mut reply = result(&executed.outcome, wish);
        reply.warnings = executed.warnings;
        if is_data {
            self.warn(connection, &mut reply);
        }
        reply.payload = executed.payload;
        Ok(reply)
    }

    /// The next injected fault of the node, if there is one.
    fn injected(&mut self, connection: &Connection) -> Result<()> {
        let Some(node) = self.nodes.get_mut(connection.node) else {
            return Ok(());
        };
        if node.drop_next > 0 {
            node.drop_next -= 1;
            self.silent = true;
            return Err(CqlError::Server("dropped".to_owned()));
        }
        node.fail_next.pop_front().map_or(Ok(()), Err)
    }

    /// Adds the next injected warning of the node, if there is one and the client can see it.
    fn warn(&mut self, connection: &Connection, reply: &mut Reply) {
        if connection.version_or_newest() < 4 {
            return;
        }
        let node = self.nodes.get_mut(connection.node);
        reply
            .warnings
            .extend(node.and_then(|node| node.warn_next.pop_front()));
    }

    /// Names before one that is refused stay registered.
    fn register(&self, connection: &mut Connection, reader: &mut Reader<'_>) -> Result<Reply> {
        let settings = self.options.nodes.get(connection.node);
        let plain = settings.is_some_and(|node| node.plain);
        for name in reader.string_list()? {
            let kind =
                EventKind::named(name).filter(|kind| !(plain && *kind == EventKind::ClientRoutes));
            let kind = kind.ok_or_else(|| {
                CqlError::Protocol(format!("Invalid value '{name}' for Event.Type"))
            })?;
            connection.register(kind);
        }
        Ok(Reply::empty(opcode::READY))
    }
}

fn caller(connection: &Connection, now: i64, by_execute: bool, block: Option<u8>) -> Caller {
    Caller {
        node: connection.node,
        shard: connection.shard,
        v1: connection.features.tablets_v1,
        v2: connection.features.tablets_v2,
        now,
        by_execute,
        block,
    }
}

fn uncompressed(connection: &Connection, header: Header, body: Vec<u8>) -> Result<Vec<u8>> {
    if header.flags & flags::COMPRESSED == 0 {
        return Ok(body);
    }
    match connection.compression {
        Some(algorithm) => algorithm.decompress(&body),
        None => Err(CqlError::protocol("Unknown compression algorithm")),
    }
}

/// MD5 of the connection's keyspace and the text.
fn prepared_id(keyspace: Option<&str>, text: &str) -> [u8; 16] {
    let mut hash = Md5::new();
    hash.update(keyspace.unwrap_or(""));
    hash.update(text);
    hash.finalize().into()
}

/// Values in the order of the variables.
fn by_name(prepared: &Prepared, names: &[String], values: Vec<Bound>) -> Result<Vec<Bound>> {
    prepared
        .variables
        .iter()
        .map(|variable| {
            let at = names.iter().position(|name| *name == variable.name);
            at.and_then(|at| values.get(at).cloned()).ok_or_else(|| {
                CqlError::Invalid(format!(
                    "Invalid amount of bind variables: no value for {}",
                    variable.name
                ))
            })
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::super::value::hex;
    use super::*;

    #[test]
    fn prepared_ids_are_those_of_a_real_node() {
        let text = "INSERT INTO ks.t (pk, v) VALUES (?, ?) IF NOT EXISTS";
        assert_eq!(
            hex(&prepared_id(None, text)),
            "eff44b5165677c4b041b81b264f63e87"
        );
        assert_eq!(
            hex(&prepared_id(Some("ks"), text)),
            "37a44a9c97937465ce4163731181fff0"
        );
    }
}
