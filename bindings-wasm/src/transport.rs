//! core's `Transport` over a shell: links are byte queues, the clock is told, names stay names.

use alloc::rc::Rc;
use core::future::{Ready, ready};

use messina_core::drive::{Endpoint, Name, Resolved, Target, Transport};
use messina_core::error::LinkError;

use crate::link::{Connecting, Link, Links};
use crate::time::{ShellClock, Time, Timer};

/// What the shell serves.
#[derive(Clone, Debug)]
pub(crate) struct ShellTransport {
    pub(crate) links: Rc<Links>,
    pub(crate) time: Rc<Time>,
}

impl ShellTransport {
    pub(crate) fn new() -> Self {
        Self {
            links: Links::new(),
            time: Time::new(),
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
        match target.endpoint {
            Endpoint::Addr(addr) => self.links.connect(&addr.ip(), addr.port()),
            Endpoint::Name { host, port } => self.links.connect(&host, port),
            // The shell opens what has a port; it would refuse this.
            Endpoint::Local(name) => self.links.connect(&name, 0),
            _ => self.links.connect(&"", 0),
        }
    }

    fn timer(&self) -> Timer {
        self.time.timer()
    }

    fn clock(&self) -> ShellClock {
        self.time.clock()
    }
}
