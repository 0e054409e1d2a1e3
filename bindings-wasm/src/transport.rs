//! core's `Transport` over a shell: links are byte queues, the clock is told, names stay names.

use alloc::rc::Rc;
use alloc::string::ToString;
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
            Endpoint::Addr(addr) => {
                let text = Endpoint::Addr(addr).to_string();
                links.connect(&host_of(&text), addr.port(), steering)
            }
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

/// The host of an address that is written with its port.
fn host_of(text: &str) -> &str {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    let bare = host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
    bare.unwrap_or(host)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_host_of_an_address_stands_without_port_and_brackets() {
        for host in ["10.0.0.1", "::1", "2001:db8::5"] {
            let ip = host.parse().unwrap();
            let text = Endpoint::Addr(core::net::SocketAddr::new(ip, 9042)).to_string();
            assert_eq!(host_of(&text), host);
        }
    }
}
