//! Errors that look otherwise than one would think.

use messina_conformance::hex::hex;
use messina_core::error::Error;
use messina_core::exec::retry::{Decision, Failure, decide};
use messina_core::wire::response::{ErrorCode, ErrorDetail, ServerError, WriteType};
use messina_core::wire::{Consistency, Dialect, ProtocolVersion, Reader};

fn error(dialect: &Dialect, body: &str) -> ServerError {
    ServerError::parse(dialect, &mut Reader::new(&hex(body))).unwrap()
}

const V4: Dialect = Dialect::plain(ProtocolVersion::V4);

/// Write types are names, one of which only ScyllaDB has, and new ones do no harm.
#[test]
fn write_types_are_those_of_the_databases_or_kept() {
    for (name, expected) in [
        ("53494d504c45", WriteType::Simple),
        ("4241544348", WriteType::Batch),
        ("554e4c4f474745445f4241544348", WriteType::UnloggedBatch),
        ("434f554e544552", WriteType::Counter),
        ("42415443485f4c4f47", WriteType::BatchLog),
        ("434153", WriteType::Cas),
        ("56494557", WriteType::View),
        ("4e4557", WriteType::Other("NEW".into())),
    ] {
        let len = hex(name).len();
        let body = format!("00001100 0001 6d 0006 00000001 00000002 {len:04x} {name}");
        let Ok(ErrorDetail::WriteTimeout {
            write_type,
            contentions,
            ..
        }) = error(&V4, &body).detail()
        else {
            panic!("{body}")
        };
        assert_eq!(write_type, expected);
        // None on version 4, also not for conditional writes.
        assert_eq!(contentions, None);
    }
}

/// Writes of strongly consistent tables time out in the words of a plain write at ONE.
#[test]
fn a_timeout_of_a_strong_table_names_another_level() {
    let body = "00001100 0001 6d 0001 00000000 00000001 0006 53494d504c45";
    let server = error(&V4, body);
    assert_eq!(
        server.detail(),
        Ok(ErrorDetail::WriteTimeout {
            consistency: Consistency::One.into(),
            received: 0,
            required: 1,
            write_type: WriteType::Simple,
            contentions: None,
        })
    );
    let error = Error::from_server(server);
    for (is_idempotent, expected) in [(false, Decision::Fail), (true, Decision::SameTarget)] {
        let failure = Failure {
            error: &error,
            is_idempotent,
            same_target_retries: 0,
        };
        assert_eq!(decide(&failure), expected);
    }
}

/// Whatever its number, a rate limit goes to the caller: a retry would only add to the load.
#[test]
fn a_rate_limit_is_never_tried_again() {
    for code in [0xf000, 0x4321, -1] {
        let dialect = Dialect {
            rate_limit_error: Some(code),
            ..V4
        };
        let agreed = error(&dialect, &format!("{code:08x} 0001 6d 01 00"));
        assert_eq!(agreed.code, ErrorCode::RateLimit);
        // The same text as a fault of the configuration, where nothing was agreed.
        let unknown = error(&V4, "00002300 0001 6d");
        assert_eq!(unknown.code, ErrorCode::Config);
        for server in [agreed, unknown] {
            let error = Error::from_server(server);
            for is_idempotent in [false, true] {
                let failure = Failure {
                    error: &error,
                    is_idempotent,
                    same_target_retries: 0,
                };
                assert_eq!(decide(&failure), Decision::Fail);
            }
        }
    }
}
