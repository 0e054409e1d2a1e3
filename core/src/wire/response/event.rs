//! EVENT: what changed without being asked; and SCHEMA_CHANGE, which is also a result.
//!
//! Names that this crate does not know are kept, not refused: new kinds of events, changes and
//! targets must not cost a connection.

use core::net::SocketAddr;

use crate::wire::{ParseError, Reader, StringList};
use crate::words::place;

/// Events that can be registered for.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum EventKind {
    /// Nodes come and go.
    TopologyChange,
    /// Nodes go up and down.
    StatusChange,
    /// Keyspaces, tables and types change.
    SchemaChange,
    /// Addresses under which nodes are reached change; newer ScyllaDB only.
    ClientRoutesChange,
}

impl EventKind {
    /// All kinds.
    pub const ALL: [Self; 4] = [
        Self::TopologyChange,
        Self::StatusChange,
        Self::SchemaChange,
        Self::ClientRoutesChange,
    ];

    /// The protocol's name.
    #[must_use]
    pub const fn name(self) -> &'static str {
        match self {
            Self::TopologyChange => "TOPOLOGY_CHANGE",
            Self::StatusChange => "STATUS_CHANGE",
            Self::SchemaChange => "SCHEMA_CHANGE",
            Self::ClientRoutesChange => "CLIENT_ROUTES_CHANGE",
        }
    }

    /// Finds a kind by the protocol's name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|kind| kind.name() == name)
    }
}

/// The EVENT response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum Event<'a> {
    /// A node came or went.
    TopologyChange {
        /// What happened.
        change: TopologyChangeKind<'a>,
        /// The node's broadcast address, with the port of the listener this connection uses.
        address: SocketAddr,
    },
    /// A node went up or down.
    StatusChange {
        /// What happened.
        change: StatusChangeKind<'a>,
        /// The node's broadcast address, with the port of the listener this connection uses.
        address: SocketAddr,
    },
    /// The schema changed.
    SchemaChange(SchemaChange<'a>),
    /// Routes of clients changed: pairs, index by index. Deletions look like updates.
    ClientRoutesChange {
        /// What happened: `UPDATE_NODES`.
        change: &'a str,
        /// Connection ids.
        connection_ids: StringList<'a>,
        /// Host ids, as text.
        host_ids: StringList<'a>,
    },
    /// An event of another kind.
    Other {
        /// Its name.
        name: &'a str,
        /// The rest of its body.
        body: &'a [u8],
    },
}

impl<'a> Event<'a> {
    /// Reads the body.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let name = reader.string("event name")?;
        let Some(kind) = EventKind::from_name(name) else {
            return Ok(Self::Other {
                name,
                body: reader.rest(),
            });
        };
        Ok(match kind {
            EventKind::TopologyChange => Self::TopologyChange {
                change: TopologyChangeKind::from_name(reader.string("topology change")?),
                address: reader.inet("address of node")?,
            },
            EventKind::StatusChange => Self::StatusChange {
                change: StatusChangeKind::from_name(reader.string("status change")?),
                address: reader.inet("address of node")?,
            },
            EventKind::SchemaChange => Self::SchemaChange(SchemaChange::parse(reader)?),
            EventKind::ClientRoutesChange => Self::ClientRoutesChange {
                change: reader.string("client routes change")?,
                connection_ids: StringList::parse(reader, "connection ids")?,
                host_ids: StringList::parse(reader, "host ids")?,
            },
        })
    }
}

/// How the topology changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum TopologyChangeKind<'a> {
    /// A node joined.
    New,
    /// A node left.
    Removed,
    /// A node changed its tokens.
    Moved,
    /// Something else, by its name.
    Other(&'a str),
}

impl<'a> TopologyChangeKind<'a> {
    fn from_name(name: &'a str) -> Self {
        match name {
            "NEW_NODE" => Self::New,
            "REMOVED_NODE" => Self::Removed,
            "MOVED_NODE" => Self::Moved,
            other => Self::Other(other),
        }
    }
}

/// How a node's status changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum StatusChangeKind<'a> {
    /// It takes requests.
    Up,
    /// It does not.
    Down,
    /// Something else, by its name.
    Other(&'a str),
}

impl<'a> StatusChangeKind<'a> {
    fn from_name(name: &'a str) -> Self {
        match name {
            "UP" => Self::Up,
            "DOWN" => Self::Down,
            other => Self::Other(other),
        }
    }
}

/// A change of the schema.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SchemaChange<'a> {
    /// What happened.
    pub change: SchemaChangeKind<'a>,
    /// The keyspace it happened in, or to.
    pub keyspace: &'a str,
    /// What it happened to.
    pub target: SchemaTarget<'a>,
}

impl<'a> SchemaChange<'a> {
    /// Reads a schema change, of an event after its name or of a result after its kind.
    pub fn parse(reader: &mut Reader<'a>) -> Result<Self, ParseError> {
        let change = SchemaChangeKind::from_name(reader.string("schema change")?);
        let target = reader.string("schema change target")?;
        let keyspace = reader.string("keyspace")?;
        let kind = place("KEYSPACE TABLE TYPE FUNCTION AGGREGATE", target);
        let (mut name, mut argument_types) = ("", StringList::default());
        if let Some(1..) = kind {
            name = reader.string("name of schema element")?;
        }
        if let Some(3..) = kind {
            argument_types = StringList::parse(reader, "argument types")?;
        }
        let target = match kind {
            Some(0) => SchemaTarget::Keyspace,
            Some(1) => SchemaTarget::Table(name),
            Some(2) => SchemaTarget::Type(name),
            Some(3) => SchemaTarget::Function {
                name,
                argument_types,
            },
            Some(_) => SchemaTarget::Aggregate {
                name,
                argument_types,
            },
            None => SchemaTarget::Other {
                target,
                body: reader.rest(),
            },
        };
        Ok(Self {
            change,
            keyspace,
            target,
        })
    }
}

/// How the schema changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaChangeKind<'a> {
    /// Something new.
    Created,
    /// Something altered.
    Updated,
    /// Something gone.
    Dropped,
    /// Something else, by its name.
    Other(&'a str),
}

impl<'a> SchemaChangeKind<'a> {
    fn from_name(name: &'a str) -> Self {
        match name {
            "CREATED" => Self::Created,
            "UPDATED" => Self::Updated,
            "DROPPED" => Self::Dropped,
            other => Self::Other(other),
        }
    }
}

/// What a schema change happened to.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum SchemaTarget<'a> {
    /// The keyspace itself.
    Keyspace,
    /// A table or materialized view.
    Table(&'a str),
    /// A user-defined type.
    Type(&'a str),
    /// A function.
    Function {
        /// Its name.
        name: &'a str,
        /// CQL types of its arguments.
        argument_types: StringList<'a>,
    },
    /// An aggregate.
    Aggregate {
        /// Its name.
        name: &'a str,
        /// CQL types of its arguments.
        argument_types: StringList<'a>,
    },
    /// Something else.
    Other {
        /// What the server calls it.
        target: &'a str,
        /// What follows the keyspace.
        body: &'a [u8],
    },
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec::Vec;

    fn body(strings: &[&str]) -> Vec<u8> {
        let mut body = Vec::new();
        for string in strings {
            body.extend_from_slice(&u16::try_from(string.len()).unwrap().to_be_bytes());
            body.extend_from_slice(string.as_bytes());
        }
        body
    }

    #[test]
    fn unknown_names_are_kept() {
        let mut unknown = body(&["WEATHER_CHANGE"]);
        unknown.push(7);
        assert_eq!(
            Event::parse(&mut Reader::new(&unknown)),
            Ok(Event::Other {
                name: "WEATHER_CHANGE",
                body: &[7]
            })
        );
        let mut restarted = body(&["STATUS_CHANGE", "RESTARTED"]);
        restarted.extend_from_slice(&[4, 127, 0, 0, 1, 0, 0, 0, 1]);
        let event = Event::parse(&mut Reader::new(&restarted)).unwrap();
        let Event::StatusChange { change, address } = event else {
            panic!("{event:?}")
        };
        assert_eq!(change, StatusChangeKind::Other("RESTARTED"));
        assert_eq!(address, SocketAddr::from(([127, 0, 0, 1], 1)));
        let role = body(&["SCHEMA_CHANGE", "RENAMED", "ROLE", "ks", "r"]);
        let event = Event::parse(&mut Reader::new(&role)).unwrap();
        let Event::SchemaChange(change) = event else {
            panic!("{event:?}")
        };
        assert_eq!(change.change, SchemaChangeKind::Other("RENAMED"));
        assert_eq!(
            change.target,
            SchemaTarget::Other {
                target: "ROLE",
                body: b"\x00\x01r"
            }
        );
    }

    #[test]
    fn functions_bring_their_argument_types() {
        for target in ["FUNCTION", "AGGREGATE"] {
            let mut bytes = body(&["DROPPED", target, "ks", "f"]);
            bytes.extend_from_slice(b"\x00\x02\x00\x03int\x00\x04text");
            let change = SchemaChange::parse(&mut Reader::new(&bytes)).unwrap();
            assert_eq!(
                (change.change, change.keyspace),
                (SchemaChangeKind::Dropped, "ks")
            );
            let (name, types) = match change.target {
                SchemaTarget::Function {
                    name,
                    argument_types,
                } if target == "FUNCTION" => (name, argument_types),
                SchemaTarget::Aggregate {
                    name,
                    argument_types,
                } => (name, argument_types),
                other => panic!("{other:?}"),
            };
            assert_eq!(
                (name, types.iter().collect::<Vec<_>>()),
                ("f", Vec::from(["int", "text"]))
            );
        }
    }
}
