//! The kinds of tables that the command makes.

/// How a table is divided and who coordinates its requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Kind {
    // Tablets, eventually consistent.
    Eventual,
    // Tablets, strongly consistent.
    Strong,
    // The vnode ring.
    Vnode,
}

impl Kind {
    pub(crate) const ALL: [Self; 3] = [Self::Eventual, Self::Strong, Self::Vnode];

    /// The name in the contract.
    pub(crate) const fn name(self) -> &'static str {
        match self {
            Self::Eventual => "eventual",
            Self::Strong => "strong",
            Self::Vnode => "vnode",
        }
    }

    pub(crate) const fn adjective(self) -> &'static str {
        match self {
            Self::Eventual => "eventually consistent tablet",
            Self::Strong => "strongly consistent",
            Self::Vnode => "vnode",
        }
    }

    pub(crate) const fn has_tablets(self) -> bool {
        !matches!(self, Self::Vnode)
    }

    /// The options of its keyspace, in the order to try them: a server without tablets does not
    /// know how to be told to leave them out.
    pub(crate) const fn keyspace_options(self) -> &'static [&'static str] {
        match self {
            Self::Eventual => &[" AND tablets = {'enabled': true}"],
            Self::Strong => &[" AND tablets = {'enabled': true} AND consistency = 'global'"],
            Self::Vnode => &[" AND tablets = {'enabled': false}", ""],
        }
    }
}
