//! core's `Transport` over a shell: links are byte queues, the clock is told, names stay names.

use alloc::rc::Rc;
use core::future::{Ready, ready};

use messina_core::drive::{Endpoint, Name, Resolved, Security, SteeringKind, Target, Transport};
use messina_core::error::LinkError;

use crate::link::{Connecting, Link, Links};
use crate::time::{ShellClock, Time, Timer};

/// What the shell serves.
#[derive(Clone, Debug)]
pub(crate) struct ShellTransport {
    pub(crate) links: Rc<Links>,
    pub(crate) time: Rc<Time>,
    /// How well the shell reaches wished shards.
    pub(crate) steering: SteeringKind,
    /// Whether its links are encrypted.
    pub(crate) security: Security,
}

impl ShellTransport {
    pub(crate) fn new() -> Self {
        Self {
            links: Links::new(),
            time: Time::new(),
            steering: SteeringKind::None,
            security: Security::Plain,
        }
    }
}

impl Transport for ShellTransport {
    type Link = Link;
    type Timer = Timer;
    type Clock = ShellClock;
    type Connecting = Connecting;
    type Resolving = Ready<Result<Resolved, LinkError>>;

    fn resolve(&self, _name: &Name) -> Self::Resolving {
        ready(Ok(Resolved::KeepName))
    }

    fn connect(&self, target: Target) -> Connecting {
        let (links, steering) = (&self.links, target.steering);
        match target.endpoint {
            Endpoint::Addr(addr) => links.connect(&addr.ip(), addr.port(), steering),
            Endpoint::Name { host, port } => links.connect(&host, port, steering),
            // The shell opens what has a port; it would refuse this.
            Endpoint::Local(name) => links.connect(&name, 0, steering),
            _ => links.connect(&"", 0, steering),
        }
    }

    fn steering(&self) -> SteeringKind {
        self.steering
    }

    fn security(&self) -> Security {
        self.security
    }

    fn timer(&self) -> Timer {
        self.time.timer()
    }

    fn clock(&self) -> ShellClock {
        self.time.clock()
    }
}
