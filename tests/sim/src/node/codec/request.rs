//! Bodies of QUERY, EXECUTE and BATCH. The lay-out is that of versions 3 and 4.

use super::super::error::CqlError;
use super::{Bound, Consistency, Reader};

/// `<query_parameters>`.
#[derive(Clone, Debug)]
pub(crate) struct Parameters {
    pub(crate) consistency: Consistency,
    pub(crate) values: Vec<Bound>,
    /// Names of the values, in the same order, if the client sent names.
    pub(crate) names: Option<Vec<String>>,
    pub(crate) skip_metadata: bool,
    pub(crate) page_size: Option<i32>,
    pub(crate) paging_state: Option<Vec<u8>>,
    pub(crate) serial_consistency: Option<Consistency>,
    pub(crate) timestamp: Option<i64>,
}

impl Parameters {
    pub(crate) fn parse(reader: &mut Reader<'_>, version: u8) -> Result<Self, CqlError> {
        let consistency = reader.consistency()?;
        let flags = reader.byte()?;
        if flags & 0x80 != 0 {
            let text = "Bit mask contains invalid enumeration indices.";
            return Err(CqlError::Server(text.to_owned()));
        }
        let mut values = Vec::new();
        let mut names = (flags & 0x40 != 0).then(Vec::new);
        if flags & 0x01 != 0 {
            for _ in 0..reader.short()? {
                if let Some(names) = &mut names {
                    names.push(reader.string()?.to_owned());
                }
                values.push(reader.value(version)?);
            }
        }
        let page_size = if flags & 0x04 != 0 {
            Some(reader.int()?)
        } else {
            None
        };
        let paging_state = if flags & 0x08 != 0 {
            reader.bytes()?.map(<[u8]>::to_vec)
        } else {
            None
        };
        let serial_consistency = if flags & 0x10 != 0 {
            Some(reader.consistency()?)
        } else {
            None
        };
        let timestamp = if flags & 0x20 != 0 {
            Some(timestamp(reader)?)
        } else {
            None
        };
        Ok(Self {
            consistency,
            values,
            names,
            skip_metadata: flags & 0x02 != 0,
            page_size,
            paging_state,
            serial_consistency,
            timestamp,
        })
    }
}

/// One statement of a BATCH.
#[derive(Clone, Debug)]
pub(crate) enum BatchEntry {
    Query { text: String, values: Vec<Bound> },
    Prepared { id: Vec<u8>, values: Vec<Bound> },
}

/// A BATCH body. The type byte is not checked, as a node does not.
#[derive(Clone, Debug)]
pub(crate) struct BatchRequest {
    pub(crate) kind: u8,
    pub(crate) entries: Vec<BatchEntry>,
    pub(crate) consistency: Consistency,
    pub(crate) serial_consistency: Option<Consistency>,
    pub(crate) timestamp: Option<i64>,
}

impl BatchRequest {
    pub(crate) fn parse(reader: &mut Reader<'_>, version: u8) -> Result<Self, CqlError> {
        let kind = reader.byte()?;
        let mut entries = Vec::new();
        for _ in 0..reader.short()? {
            let entry = match reader.byte()? {
                0 => {
                    let text = reader.long_string()?.to_owned();
                    BatchEntry::Query {
                        text,
                        values: values(reader, version)?,
                    }
                }
                1 => {
                    let id = reader.short_bytes()?.to_vec();
                    BatchEntry::Prepared {
                        id,
                        values: values(reader, version)?,
                    }
                }
                other => {
                    return Err(CqlError::Protocol(format!(
                        "Invalid query kind in BATCH messages. Must be 0 or 1 but got {other}"
                    )));
                }
            };
            entries.push(entry);
        }
        let consistency = reader.consistency()?;
        let flags = reader.byte()?;
        let serial_consistency = if flags & 0x10 != 0 {
            Some(reader.consistency()?)
        } else {
            None
        };
        let timestamp = if flags & 0x20 != 0 {
            Some(timestamp(reader)?)
        } else {
            None
        };
        Ok(Self {
            kind,
            entries,
            consistency,
            serial_consistency,
            timestamp,
        })
    }
}

fn values(reader: &mut Reader<'_>, version: u8) -> Result<Vec<Bound>, CqlError> {
    let count = reader.short()?;
    (0..count).map(|_| reader.value(version)).collect()
}

fn timestamp(reader: &mut Reader<'_>) -> Result<i64, CqlError> {
    let value = reader.long()?;
    if value == i64::MIN {
        return Err(CqlError::Protocol(format!(
            "Out of bound timestamp, must be in [{}, {}]",
            i64::MIN + 1,
            i64::MAX
        )));
    }
    Ok(value)
}

#[cfg(test)]
mod tests {
    use bytes::Bytes;

    use super::super::super::value::unhex;
    use super::*;

    #[test]
    fn parameters_in_the_order_of_the_specification() {
        let bytes =
            unhex("00067d0001000170000000040000000700001388 00000002cafe0008 00000000000003e8");
        let mut reader = Reader::new(&bytes);
        let parsed = Parameters::parse(&mut reader, 4).unwrap();
        assert_eq!(parsed.consistency, Consistency::LocalQuorum);
        assert_eq!(parsed.names, Some(vec!["p".to_owned()]));
        assert_eq!(
            parsed.values,
            [Bound::Value(Bytes::from_static(&[0, 0, 0, 7]))]
        );
        assert_eq!(parsed.page_size, Some(5000));
        assert_eq!(parsed.paging_state.as_deref(), Some(&[0xca, 0xfe][..]));
        assert_eq!(parsed.serial_consistency, Some(Consistency::Serial));
        assert_eq!(parsed.timestamp, Some(1000));
        assert!(reader.rest().is_empty());
    }

    #[test]
    fn every_cut_of_the_parameters_is_a_typed_refusal() {
        let bytes =
            unhex("00067d0001000170000000040000000700001388 00000002cafe0008 00000000000003e8");
        for len in 0..bytes.len() {
            let error = Parameters::parse(&mut Reader::new(&bytes[..len]), 4).unwrap_err();
            assert!(matches!(error, CqlError::Protocol(text) if text.starts_with("truncated")));
        }
    }

    #[test]
    fn null_unset_and_worse_lengths() {
        let cases = [
            ("ffffffff", 4, Ok(Bound::Null)),
            ("fffffffe", 4, Ok(Bound::Unset)),
            ("fffffffe", 3, Ok(Bound::Null)),
            (
                "fffffffd",
                4,
                Err(CqlError::protocol("invalid value length: -3")),
            ),
            ("fffffffd", 3, Ok(Bound::Null)),
        ];
        for (bytes, version, expected) in cases {
            assert_eq!(
                Reader::new(&unhex(bytes)).value(version),
                expected,
                "{bytes} v{version}"
            );
        }
    }
}
