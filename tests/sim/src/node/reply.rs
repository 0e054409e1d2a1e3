//! Bodies of replies: SUPPORTED, PREPARED, ROWS and the other results, and the wrapping of frames.

use std::collections::BTreeMap;

use super::codec::{Writer, flags, opcode};
use super::connection::{Connection, Features};
use super::execute::{Outcome, Rows, SchemaChange};
use super::options::{NodeOptions, Options};
use super::plan::{Prepared, metadata_id};
use super::tablets::Payload;

/// A reply before it is framed.
#[derive(Debug)]
pub(crate) struct Reply {
    pub(crate) opcode: u8,
    pub(crate) body: Writer,
    pub(crate) trace: Option<[u8; 16]>,
    pub(crate) warnings: Vec<String>,
    pub(crate) payload: Option<Payload>,
}

impl Reply {
    pub(crate) fn new(opcode: u8, body: Writer) -> Self {
        Self {
            opcode,
            body,
            trace: None,
            warnings: Vec::new(),
            payload: None,
        }
    }

    pub(crate) fn empty(opcode: u8) -> Self {
        Self::new(opcode, Writer::default())
    }

    /// Frames it: trace id, warnings, payload, message; compressed if that was agreed.
    pub(crate) fn push(self, connection: &mut Connection, stream: i16) {
        let version = connection.version_or_newest();
        let mut bits = 0;
        let mut body = Writer::default();
        if let Some(trace) = self.trace {
            bits |= flags::TRACING;
            body.raw(&trace);
        }
        if version >= 4 && !self.warnings.is_empty() {
            bits |= flags::WARNING;
            body.string_list(self.warnings.iter().map(String::as_str));
        }
        if let Some(payload) = &self.payload {
            bits |= flags::CUSTOM_PAYLOAD;
            body.short(1);
            body.string(payload.key);
            body.bytes(&payload.value);
        }
        let body = if bits == 0 {
            self.body
        } else {
            body.raw(self.body.as_slice());
            body
        };
        match connection.compression {
            Some(algorithm) => {
                let compressed = algorithm.compress(body.as_slice());
                let bits = bits | flags::COMPRESSED;
                connection.push_frame(bits, stream, self.opcode, &compressed);
            }
            None => connection.push_frame(bits, stream, self.opcode, body.as_slice()),
        }
    }
}

/// The SUPPORTED multimap of a connection, sorted by key.
pub(crate) fn supported(
    options: &Options,
    node: &NodeOptions,
    host_id: &[u8; 16],
    shard: u32,
) -> Reply {
    let mut map: BTreeMap<String, Vec<String>> = BTreeMap::new();
    let mut put = |key: &str, values: &[&str]| {
        map.insert(
            key.to_owned(),
            values.iter().map(|value| (*value).to_owned()).collect(),
        );
    };
    put("COMPRESSION", &["lz4", "snappy"]);
    put("CQL_VERSION", &["3.3.1"]);
    if !node.plain {
        put("CLIENT_OPTIONS", &[""]);
        put("SCYLLA_HOST_ID", &[&dashed(host_id)]);
        put(
            "SCYLLA_LWT_ADD_METADATA_MARK",
            &["LWT_OPTIMIZATION_META_BIT_MASK=2147483648"],
        );
        put("SCYLLA_NR_SHARDS", &[&node.shards.max(1).to_string()]);
        put("SCYLLA_PARTITIONER", &[super::system::PARTITIONER]);
        put("SCYLLA_RATE_LIMIT_ERROR", &["ERROR_CODE=61440"]);
        put("SCYLLA_SHARD", &[&shard.to_string()]);
        put("SCYLLA_SHARDING_ALGORITHM", &["biased-token-round-robin"]);
        put(
            "SCYLLA_SHARDING_IGNORE_MSB",
            &[&node.ignore_msb.to_string()],
        );
        for (key, port) in [
            ("SCYLLA_SHARD_AWARE_PORT", options.shard_aware_port),
            ("SCYLLA_SHARD_AWARE_PORT_SSL", options.shard_aware_tls_port),
        ] {
            if let Some(port) = port.filter(|_| node.advertise_shard_aware_port) {
                put(key, &[&port.to_string()]);
            }
        }
        put("SCYLLA_USE_METADATA_ID", &[""]);
        if node.tablets.v1() {
            put("TABLETS_ROUTING_V1", &[""]);
        }
        if node.tablets.v2() {
            put("TABLETS_ROUTING_V2_EXPERIMENTAL", &[""]);
        }
    }
    for key in &node.supported_missing {
        map.remove(key);
    }
    map.extend(node.supported_extra.iter().cloned());
    let mut body = Writer::default();
    body.short_count(map.len());
    for (key, values) in &map {
        body.string(key);
        body.string_list(values.iter().map(String::as_str));
    }
    Reply::new(opcode::SUPPORTED, body)
}

/// A uuid in its usual form.
pub(crate) fn dashed(id: &[u8; 16]) -> String {
    let digits = super::value::hex(id);
    [
        &digits[..8],
        &digits[8..12],
        &digits[12..16],
        &digits[16..20],
        &digits[20..],
    ]
    .join("-")
}

/// RESULT of kind PREPARED.
pub(crate) fn prepared(
    id: &[u8; 16],
    prepared: &Prepared,
    version: u8,
    features: Features,
) -> Reply {
    const LWT: u32 = 0x8000_0000;
    const NO_METADATA: u32 = 4;
    let mut body = Writer::default();
    body.int(4);
    body.short_bytes(id);
    let metadata = prepared.metadata();
    if features.metadata_id {
        let id = metadata.map_or_else(|| metadata_id(&[]), |metadata| metadata.id);
        body.short_bytes(&id);
    }
    let variables = &prepared.variables;
    let one_table = variables.first().filter(|first| {
        variables
            .iter()
            .all(|v| v.keyspace == first.keyspace && v.table == first.table)
    });
    let lwt = if features.lwt_mark && prepared.is_conditional() {
        LWT
    } else {
        0
    };
    body.uint(lwt | u32::from(one_table.is_some()));
    body.count(variables.len());
    if version >= 4 {
        body.count(prepared.key_markers.len());
        prepared.key_markers.iter().for_each(|at| body.short(*at));
    }
    if let Some(first) = one_table {
        body.string(&first.keyspace);
        body.string(&first.table);
    }
    for variable in variables {
        if one_table.is_none() {
            body.string(&variable.keyspace);
            body.string(&variable.table);
        }
        body.string(&variable.name);
        variable.ty.put_option(&mut body);
    }
    match metadata {
        Some(metadata) => {
            body.uint(1);
            body.count(metadata.columns.len());
            metadata.put(&mut body);
        }
        None => {
            body.uint(NO_METADATA);
            body.int(0);
        }
    }
    Reply::new(opcode::RESULT, body)
}

/// How the client wants to have the metadata of rows.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Wish<'a> {
    /// Always whole (QUERY and conditional batches without the skip flag).
    Full,
    /// Left out.
    Skip,
    /// Left out if `skip`, unless the id that the client knows is another.
    Known { id: &'a [u8], skip: bool },
}

/// RESULT of any kind but PREPARED.
pub(crate) fn result(outcome: &Outcome, wish: Wish<'_>) -> Reply {
    let mut body = Writer::default();
    match outcome {
        Outcome::Void => body.int(1),
        Outcome::Rows(rows) => put_rows(&mut body, rows, wish),
        Outcome::SetKeyspace(name) => {
            body.int(3);
            body.string(name);
        }
        Outcome::SchemaChange(change) => {
            body.int(5);
            put_schema_change(&mut body, change);
        }
    }
    Reply::new(opcode::RESULT, body)
}

fn put_rows(body: &mut Writer, rows: &Rows, wish: Wish<'_>) {
    const GLOBAL: u32 = 1;
    const MORE: u32 = 2;
    const NO_METADATA: u32 = 4;
    const CHANGED: u32 = 8;
    let metadata = &rows.metadata;
    let (bits, full) = match wish {
        Wish::Full => (0, true),
        Wish::Skip => (NO_METADATA, false),
        // Shorter ids are padded, longer ones cut: only a whole one can be equal.
        Wish::Known { id, .. } if id.get(..16) != Some(&metadata.id[..]) => (CHANGED, true),
        Wish::Known { skip: true, .. } => (NO_METADATA, false),
        Wish::Known { skip: false, .. } => (0, true),
    };
    let more = if rows.paging_state.is_some() { MORE } else { 0 };
    body.int(2);
    body.uint(GLOBAL | bits | more);
    body.count(metadata.columns.len());
    if let Some(state) = &rows.paging_state {
        body.bytes(state);
    }
    if bits == CHANGED {
        body.short_bytes(&metadata.id);
    }
    if full {
        metadata.put(body);
    }
    body.count(rows.count);
    body.raw(rows.cells.as_slice());
}

pub(crate) fn put_schema_change(body: &mut Writer, change: &SchemaChange) {
    for word in change.words() {
        body.string(word);
    }
}

#[cfg(test)]
mod tests {
    use super::super::options::TabletsMode;
    use super::super::value::{hex, unhex};
    use super::*;

    #[test]
    fn supported_is_that_of_a_real_node() {
        let host_id = unhex("0102030405060708090a0b0c0d0e0f10")
            .try_into()
            .unwrap();
        let mut node = NodeOptions {
            shards: 12,
            tablets: TabletsMode::V1,
            ..NodeOptions::default()
        };
        let body = |node: &NodeOptions| {
            supported(&Options::default(), node, &host_id, 3)
                .body
                .into_bytes()
        };
        let v1 = "000e000e434c49454e545f4f5054494f4e5300010000000b434f4d5052455353494f4e000200036c7a340006\
            736e6170707900\
            0b43514c5f56455253494f4e00010005332e332e31000e5343594c4c415f484f53545f49440001002430313032\
            303330342d30\
            3530362d303730382d303930612d306230633064306530663130001c5343594c4c415f4c57545f4144445f4d45\
            544144415441\
            5f4d41524b000100294c57545f4f5054494d495a4154494f4e5f4d4554415f4249545f4d41534b3d3231343734\
            383336343800\
            105343594c4c415f4e525f53484152445300010002313200125343594c4c415f504152544954494f4e45520001\
            002b6f72672e\
            6170616368652e63617373616e6472612e6468742e4d75726d757233506172746974696f6e657200175343594c\
            4c415f524154\
            455f4c494d49545f4552524f52000100104552524f525f434f44453d3631343430000c5343594c4c415f534841\
            524400010001\
            3300195343594c4c415f5348415244494e475f414c474f524954484d000100186269617365642d746f6b656e2d\
            726f756e642d\
            726f62696e001a5343594c4c415f5348415244494e475f49474e4f52455f4d5342000100023132\
            00175343594c4c415f53484152445f41574152455f504f525400010005313930343200165343594c4c415f5553\
            455f4d455441\
            444154415f49440001000000125441424c4554535f524f5554494e475f563100010000";
        assert_eq!(hex(&body(&node)), hex(&unhex(v1)));
        assert_eq!(body(&node).len(), 533);
        node.tablets = TabletsMode::Both;
        let both = body(&node);
        assert_eq!(both.len(), 570);
        assert_eq!(both[..2], [0, 15]);
        assert!(hex(&both).ends_with(
            "001f5441424c4554535f524f5554494e475f56325f4558504552494d454e54414c00010000"
        ));
    }

    #[test]
    fn both_shard_aware_ports_are_named() {
        let options = Options {
            shard_aware_tls_port: Some(19142),
            ..Options::default()
        };
        let body = supported(&options, &NodeOptions::default(), &[0; 16], 0)
            .body
            .into_bytes();
        let rows = "00175343594c4c415f53484152445f41574152455f504f525400010005\
            3139303432001b5343594c4c415f53484152445f41574152455f504f52545f53534c000100053139313432";
        assert!(hex(&body).contains(rows));
        assert_eq!(body[..2], [0, 15]);
    }

    #[test]
    fn odd_nodes_show_what_they_are_told_to() {
        let mut node = NodeOptions {
            plain: true,
            ..NodeOptions::default()
        };
        node.supported_extra
            .push(("UNKNOWN".to_owned(), Vec::new()));
        node.supported_missing.push("COMPRESSION".to_owned());
        let body = supported(&Options::default(), &node, &[0; 16], 0)
            .body
            .into_bytes();
        assert_eq!(
            hex(&body),
            hex(&unhex(
                "0002 000b43514c5f56455253494f4e 0001 0005332e332e31 0007554e4b4e4f574e 0000"
            ))
        );
    }

    #[test]
    fn extras_stand_in_their_order() {
        let peer = "127.0.0.1:5000".parse().unwrap();
        let id = super::super::connection::ConnectionId(1);
        let mut connection = Connection::new(id, 0, 0, 9042, peer, 0);
        let mut reply = result(&Outcome::Void, Wish::Full);
        reply.trace = Some(
            unhex("227aff604f2111e68835000000000000")
                .try_into()
                .unwrap(),
        );
        reply.warnings = vec!["w1".to_owned()];
        reply.payload = Some(Payload {
            key: "tablets-routing-v1",
            value: vec![1],
        });
        reply.push(&mut connection, 1);
        assert_eq!(
            hex(&connection.take_output(0)),
            hex(&unhex(
                "84 0e 0001 08 00000035 227aff604f2111e68835000000000000 0001 0002 7731
                 0001 0012 7461626c6574732d726f7574696e672d7631 00000001 01 00000001"
            ))
        );
    }
}
