//! Response frames as the specification gives them and as servers send them.

use messina_core::wire::{Dialect, Flags, Opcode, ProtocolVersion};

use crate::hex::hex;

/// One response frame without its header.
#[derive(Clone, Copy, Debug)]
pub struct Golden {
    /// What it is.
    pub name: &'static str,
    /// What the connection agreed to.
    pub dialect: Dialect,
    /// Frame flags.
    pub flags: Flags,
    /// Frame opcode.
    pub opcode: Opcode,
    /// The body in hexadecimal.
    pub body: &'static str,
    /// Length of the body.
    pub len: usize,
}

impl Golden {
    /// The body as bytes.
    #[must_use]
    pub fn bytes(&self) -> Vec<u8> {
        hex(self.body)
    }
}

const V3: Dialect = Dialect::plain(ProtocolVersion::V3);
const V4: Dialect = Dialect::plain(ProtocolVersion::V4);
const V5: Dialect = Dialect::plain(ProtocolVersion::V5);
/// Version 4 with the metadata id and rate limit extensions of ScyllaDB.
const SCYLLA: Dialect = Dialect {
    version: ProtocolVersion::V4,
    result_metadata_id: true,
    rate_limit_error: Some(0xf000),
};

const fn golden(
    name: &'static str,
    dialect: Dialect,
    opcode: Opcode,
    len: usize,
    body: &'static str,
) -> Golden {
    Golden {
        name,
        dialect,
        flags: Flags::NONE,
        opcode,
        body,
        len,
    }
}

const fn result(name: &'static str, len: usize, body: &'static str) -> Golden {
    golden(name, SCYLLA, Opcode::Result, len, body)
}

const fn error(name: &'static str, len: usize, body: &'static str) -> Golden {
    golden(name, SCYLLA, Opcode::Error, len, body)
}

const fn event(name: &'static str, len: usize, body: &'static str) -> Golden {
    golden(name, V4, Opcode::Event, len, body)
}

/// Finds a frame by its name.
///
/// # Panics
///
/// If there is none.
#[must_use]
pub fn by_name(name: &str) -> &'static Golden {
    let found = RESPONSES.iter().find(|golden| golden.name == name);
    found.unwrap_or_else(|| panic!("no golden frame {name}"))
}

/// All response frames.
pub const RESPONSES: &[Golden] = &[
    golden(
        "supported, 12 shards, on shard 3",
        V4,
        Opcode::Supported,
        533,
        SUPPORTED,
    ),
    golden(
        "supported, shard 4 of 4",
        V4,
        Opcode::Supported,
        0xc8,
        "0005000c5343594c4c415f5348415244000100013400105343594c4c415f4e525f5348415244530001000134
         00125343594c4c415f504152544954494f4e45520001002b6f72672e6170616368652e63617373616e647261
         2e6468742e4d75726d757233506172746974696f6e657200195343594c4c415f5348415244494e475f414c47
         4f524954484d000100186269617365642d746f6b656e2d726f756e642d726f62696e001a5343594c4c415f53
         48415244494e475f49474e4f52455f4d5342000100023132",
    ),
    golden(
        "authenticate",
        V4,
        Opcode::Authenticate,
        0x31,
        "002f 6f72672e6170616368652e63617373616e6472612e617574682e50617373776f726441757468656e74696361746f72",
    ),
    golden(
        "auth success, empty",
        V4,
        Opcode::AuthSuccess,
        4,
        "00000000",
    ),
    golden("auth success, null", V4, Opcode::AuthSuccess, 4, "ffffffff"),
    golden(
        "auth challenge, null",
        V4,
        Opcode::AuthChallenge,
        4,
        "ffffffff",
    ),
    golden(
        "auth challenge, abc",
        V4,
        Opcode::AuthChallenge,
        7,
        "00000003616263",
    ),
    // Results.
    result("void", 4, "00000001"),
    Golden {
        name: "void with trace id, warning and payload",
        dialect: V4,
        flags: Flags(0x0e),
        opcode: Opcode::Result,
        body: "227aff604f2111e68835000000000000 0001 0002 7731
               0001 0012 7461626c6574732d726f7574696e672d7631 00000001 01 00000001",
        len: 0x35,
    },
    Golden {
        name: "void with warning and payload",
        dialect: V4,
        flags: Flags(0x0c),
        opcode: Opcode::Result,
        body: "000100027731000100016b00000002010200000001",
        len: 0x15,
    },
    Golden {
        name: "void with tablet routing, version 2",
        dialect: V4,
        flags: Flags(0x04),
        opcode: Opcode::Result,
        body: "0001 0012 7461626c6574732d726f7574696e672d7632 0000008c
               00000008 bfffffffffffffff 00000008 ffffffffffffffff 00000064 00000003
               0000001c 00000010 00000000000040008000000000000001 00000004 0000000b
               0000001c 00000010 0102030405060708090a0b0c0d0e0f10 00000004 00000003
               0000001c 00000010 a1b2c3d4e5f647898abcdef012345678 00000004 00000000
               00000008 a3a6be5f3d498142 00000001",
        len: 0xaa,
    },
    result("set keyspace", 8, "00000003 0002 6b73"),
    result(
        "schema change, table created",
        27,
        "00000005 0007 43524541544544 0005 5441424c45 0002 6b73 0001 74",
    ),
    result(
        "rows, flags 5",
        29,
        "00000002 00000005 00000002 00000001 00000004 00000001 00000001 61",
    ),
    result(
        "rows, flags 7",
        22,
        "00000002 00000007 00000002 00000002 cafe 00000000",
    ),
    result(
        "rows, flags 9",
        74,
        "00000002 00000009 00000003 0010 50f36f50f1143fcde847b99928cb8f62 0002 6b73 0001 74
         0002 706b 0009 0001 76 000d 0001 77 0002
         00000001 00000004 00000001 00000001 61 ffffffff",
    ),
    result(
        "rows, flags b",
        63,
        "00000002 0000000b 00000003 00000002 cafe 0010 50f36f50f1143fcde847b99928cb8f62
         0002 6b73 0001 74 0002 706b 0009 0001 76 000d 0001 77 0002 00000000",
    ),
    result(
        "rows of client routes",
        152,
        "00000002 00000001 00000005 0006 73797374656d 000d 636c69656e745f726f75746573
         000d 636f6e6e656374696f6e5f6964 000d 0007 686f73745f6964 000c 0007 61646472657373 000d
         0004 706f7274 0009 0008 746c735f706f7274 0009 00000001
         00000006 636f6e6e2d61 00000010 0102030405060708090a0b0c0d0e0f10
         00000008 31302e302e302e39 00000004 000023b6 ffffffff",
    ),
    result(
        "rows, one int",
        0x23,
        "00000002000000010000000100016b0001740001760009000000010000000400000001",
    ),
    // Prepared statements.
    result(
        "prepared, conditional insert with metadata id",
        111,
        "00000004 0010 eff44b5165677c4b041b81b264f63e87 0010 0bad9ccf245e8f8d31c347b63462c520
         80000001 00000002 00000001 0000 0002 6b73 0001 74 0002 706b 0009 0001 76 000d
         00000001 00000003 0002 6b73 0001 74
         0009 5b6170706c6965645d 0004 0002 706b 0009 0001 76 000d",
    ),
    golden(
        "prepared, conditional insert without extensions",
        V4,
        Opcode::Result,
        93,
        "00000004 0010 eff44b5165677c4b041b81b264f63e87
         00000001 00000002 00000001 0000 0002 6b73 0001 74 0002 706b 0009 0001 76 000d
         00000001 00000003 0002 6b73 0001 74
         0009 5b6170706c6965645d 0004 0002 706b 0009 0001 76 000d",
    ),
    golden(
        "prepared, conditional insert on version 3",
        V3,
        Opcode::Result,
        87,
        "00000004 0010 eff44b5165677c4b041b81b264f63e87
         00000001 00000002 0002 6b73 0001 74 0002 706b 0009 0001 76 000d
         00000001 00000003 0002 6b73 0001 74
         0009 5b6170706c6965645d 0004 0002 706b 0009 0001 76 000d",
    ),
    result(
        "prepared, composite key out of order",
        88,
        "00000004 0010 bca7fe24e29b7ae50aac71296a690710 0010 e3b0c44298fc1c149afbf4c8996fb924
         00000001 00000003 00000002 0002 0001 0002 6b73 0001 63
         0001 76 000d 0002 7032 0009 0002 7031 000d 00000004 00000000",
    ),
    result(
        "prepared, no markers",
        73,
        "00000004 0010 941ff4a8349957e34773ddbe0acd886e 0010 08b59352eda568ee13d1319cc3418bcf
         00000000 00000000 00000000
         00000001 00000001 0002 6b73 0001 74 0002 706b 0009",
    ),
    result(
        "prepared, no result metadata",
        0x1e,
        "000000040001bb0001050000000000000000000000000000000400000000",
    ),
    // Errors.
    golden(
        "refused version",
        V4,
        Opcode::Error,
        0x30,
        "0000000a 002a 496e76616c6964206f7220756e737570706f727465642070726f746f636f6c2076657273696f6e3a2035",
    ),
    error(
        "bad credentials",
        0x2c,
        "00000100 0026 557365726e616d6520616e642f6f722070617373776f72642061726520696e636f7272656374",
    ),
    error(
        "overloaded",
        46,
        "00001001 0028 7265717565737420736865642064756520746f20636f6f7264696e61746f72206f7665726c6f6164",
    ),
    error(
        "unavailable",
        83,
        "00001000 0043 43616e6e6f74206163686965766520636f6e73697374656e6379206c6576656c20666f7220
         636c2051554f52554d2e20526571756972657320322c20616c6976652031 0004 00000002 00000001",
    ),
    error(
        "write timeout",
        25,
        "00001100 0001 6d 0006 00000001 00000002 0006 53494d504c45",
    ),
    error(
        "read timeout",
        18,
        "00001200 0001 6d 0006 00000001 00000002 00",
    ),
    error(
        "read failure",
        22,
        "00001300 0001 6d 0006 00000001 00000002 00000001 00",
    ),
    error(
        "write failure",
        32,
        "00001500 0001 6d 0006 00000001 00000002 00000001 0009 42415443485f4c4f47",
    ),
    golden(
        "read failure on version 5",
        V5,
        Opcode::Error,
        29,
        "00001300 0001 6d 0006 00000001 00000002 00000001 04 7f000001 0003 00",
    ),
    error(
        "function failure",
        21,
        "00001400 0001 6d 0002 6b73 0001 66 0001 0003 696e74",
    ),
    error("table exists", 14, "00002400 0001 6d 0002 6b73 0001 74"),
    error("keyspace exists", 13, "00002400 0001 6d 0002 6b73 0000"),
    error(
        "unprepared",
        0x5d,
        "00002500 0045 4e6f2070726570617265642073746174656d656e742077697468204944206363316230386361
         6163646531326563663333663161336461636639653231
         3820666f756e642e 0010 cc1b08caacde12ecf33f1a3dacf9e218",
    ),
    error(
        "rate limit",
        0x56,
        "0000f000 004e 5065722d706172746974696f6e2072617465206c696d6974207265616368656420666f7220
         777269746520696e207461626c65206b732e742c2072656a6563746564206279207265706c69636173 01 00",
    ),
    golden(
        "rate limit, not agreed",
        V4,
        Opcode::Error,
        0x54,
        "00002300 004e 5065722d706172746974696f6e2072617465206c696d6974207265616368656420666f7220
         777269746520696e207461626c65206b732e742c2072656a6563746564206279207265706c69636173",
    ),
    // Events.
    event(
        "new node",
        0x24,
        "000f 544f504f4c4f47595f4348414e4745 0008 4e45575f4e4f4445 04 7f000002 00002352",
    ),
    event(
        "node down",
        0x2a,
        "000d 5354415455535f4348414e4745 0004 444f574e
         10 20010db8000000000000000000000001 00004a62",
    ),
    event(
        "table updated",
        0x26,
        "000d 534348454d415f4348414e4745 0007 55504441544544 0005 5441424c45 0002 6b73 0001 74",
    ),
    event(
        "keyspace created",
        0x26,
        "000d 534348454d415f4348414e4745 0007 43524541544544 0008 4b45595350414345 0002 6b73",
    ),
    event(
        "client routes",
        0x84,
        "0014 434c49454e545f524f555445535f4348414e4745 000c 5550444154455f4e4f444553
         0002 0006 636f6e6e2d61 0006 636f6e6e2d62
         0002 0024 30313032303330342d303530362d303730382d303930612d306230633064306530663130
              0024 61316232633364342d653566362d343738392d386162632d646566303132333435363738",
    ),
];

const SUPPORTED: &str = "
    000e000e434c49454e545f4f5054494f4e5300010000000b434f4d5052455353494f4e000200036c7a340006736e6170707900
    0b43514c5f56455253494f4e00010005332e332e31000e5343594c4c415f484f53545f49440001002430313032303330342d30
    3530362d303730382d303930612d306230633064306530663130001c5343594c4c415f4c57545f4144445f4d45544144415441
    5f4d41524b000100294c57545f4f5054494d495a4154494f4e5f4d4554415f4249545f4d41534b3d3231343734383336343800
    105343594c4c415f4e525f53484152445300010002313200125343594c4c415f504152544954494f4e45520001002b6f72672e
    6170616368652e63617373616e6472612e6468742e4d75726d757233506172746974696f6e657200175343594c4c415f524154
    455f4c494d49545f4552524f52000100104552524f525f434f44453d3631343430000c5343594c4c415f534841524400010001
    3300195343594c4c415f5348415244494e475f414c474f524954484d000100186269617365642d746f6b656e2d726f756e642d
    726f62696e001a5343594c4c415f5348415244494e475f49474e4f52455f4d5342000100023132
    00175343594c4c415f53484152445f41574152455f504f525400010005313930343200165343594c4c415f5553455f4d455441
    444154415f49440001000000125441424c4554535f524f5554494e475f563100010000";
