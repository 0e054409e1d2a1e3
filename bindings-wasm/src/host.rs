//! What the machine wants done, written down for the shell.

use alloc::vec::Vec;

use messina_core::compact::{Done, Host, Machine};
use messina_core::error::Error;
use messina_core::target::{Endpoint, Security, Steering, SteeringKind, Target};

use crate::answer::Told;
#[cfg(feature = "full")]
use crate::cluster::Tally;
use crate::message::Effect;
use crate::outbox::{NONE, Outbox};
#[cfg(feature = "full")]
use crate::tunnel::{Carriers, Order};

/// The shell's side of an instance.
#[derive(Debug)]
pub(crate) struct Shell {
    pub(crate) outbox: Outbox,
    /// What was told of the columns of each statement.
    pub(crate) told: Vec<Option<Told>>,
    sockets: Vec<Socket>,
    pub(crate) steering: SteeringKind,
    pub(crate) security: Security,
    /// All links go through these.
    #[cfg(feature = "full")]
    pub(crate) carriers: Option<Carriers>,
    #[cfg(feature = "full")]
    pub(crate) tally: Tally,
    /// Links that could not be begun.
    #[cfg(feature = "full")]
    pub(crate) refused: Vec<u32>,
}

/// A link, and what of its bytes has not left.
#[derive(Debug)]
struct Socket {
    link: u32,
    /// Bytes that the shell has and the network has not taken yet.
    unsent: usize,
    waits_for_room: bool,
}

impl Shell {
    pub(crate) fn new() -> Self {
        Self {
            outbox: Outbox::new(),
            told: Vec::new(),
            sockets: Vec::new(),
            steering: SteeringKind::None,
            security: Security::Plain,
            #[cfg(feature = "full")]
            carriers: None,
            #[cfg(feature = "full")]
            tally: Tally::default(),
            #[cfg(feature = "full")]
            refused: Vec::new(),
        }
    }

    fn socket(&mut self, link: u32) -> Option<&mut Socket> {
        self.sockets.iter_mut().find(|socket| socket.link == link)
    }

    /// The shell is to open a socket.
    fn open(&mut self, socket: u32, (host, port): (&str, u16), wish: (u32, u16, u16)) {
        self.sockets.push(Socket {
            link: socket,
            unsent: 0,
            waits_for_room: false,
        });
        self.outbox.put(Effect::Connect, socket);
        self.outbox.put_text(host);
        let (shard, of, source) = wish;
        for word in [u32::from(port), shard, u32::from(of), u32::from(source)] {
            self.outbox.put_word(word);
        }
    }

    /// It is over.
    fn end(&mut self, link: u32, how: Effect) {
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut self.carriers {
            return carriers.release(link);
        }
        self.sockets.retain(|socket| socket.link != link);
        self.outbox.put(how, link);
    }

    /// Hands over what the machine has for its links.
    pub(crate) fn write(&mut self, machine: &mut Machine) {
        #[cfg(feature = "full")]
        if self.carriers.is_some() {
            return self.write_through(machine);
        }
        machine.write(&mut |link, bytes| self.send(link, bytes));
    }

    #[cfg(feature = "full")]
    fn write_through(&mut self, machine: &mut Machine) {
        let Some(mut carriers) = self.carriers.take() else {
            return;
        };
        loop {
            let mut written = 0_usize;
            machine.write(&mut |link, bytes| {
                let len = carriers.write(link, bytes);
                written = written.saturating_add(len);
                len
            });
            for (socket, tunnel) in carriers.open() {
                while let room @ 1.. = self.room(socket)
                    && let Some(bytes) = tunnel.poll_output(room)
                {
                    self.send(socket, &bytes);
                }
            }
            // A tunnel takes a frame at a time, and more once it has handed some on.
            if written == 0 {
                break;
            }
        }
        while let Some(socket) = carriers.take_idle() {
            self.sockets.retain(|open| open.link != socket);
            self.outbox.put(Effect::Close, socket);
        }
        self.carriers = Some(carriers);
    }

    /// How many bytes a socket takes now.
    #[cfg(feature = "full")]
    fn room(&mut self, link: u32) -> usize {
        self.socket(link).map_or(0, |socket| {
            let room = UNSENT_MAX.saturating_sub(socket.unsent);
            socket.waits_for_room = room == 0;
            room
        })
    }

    /// The network has taken bytes; whether others waited for that.
    pub(crate) fn handle_sent(&mut self, link: u32, len: usize) -> bool {
        self.socket(link).is_some_and(|socket| {
            socket.unsent = socket.unsent.saturating_sub(len);
            core::mem::replace(&mut socket.waits_for_room, false)
        })
    }

    /// Takes bytes for a link, as many as may be under way.
    pub(crate) fn send(&mut self, link: u32, bytes: &[u8]) -> usize {
        let Some(socket) = self.socket(link) else {
            return 0;
        };
        let len = UNSENT_MAX.saturating_sub(socket.unsent).min(bytes.len());
        socket.waits_for_room = len < bytes.len();
        socket.unsent = socket.unsent.saturating_add(len);
        if len > 0 {
            self.outbox.put(Effect::Send, link);
            self.outbox.put_bytes(bytes.get(..len).unwrap_or_default());
        }
        len
    }
}

impl Host for Shell {
    fn connect(&mut self, link: u32, target: Target) {
        #[cfg(feature = "full")]
        if let Some(carriers) = &mut self.carriers {
            return match carriers.connect(link, &target) {
                Order::Nothing => {}
                Order::Open(socket) => self.open(socket, ("", 0), (NONE, 0, 0)),
                Order::Refuse => self.refused.push(link),
            };
        }
        let wish = match target.steering {
            Steering::Port(port) => (NONE, 0, port.get()),
            Steering::Shard { shard, of } => (u32::from(shard), of.get(), 0),
            _ => (NONE, 0, 0),
        };
        match &target.endpoint {
            Endpoint::Name { host, port } => self.open(link, (host, *port), wish),
            #[cfg(feature = "full")]
            Endpoint::Addr(addr) => {
                let text = target.endpoint.text();
                self.open(link, (host_of(&text), addr.port()), wish);
            }
            _ => self.open(link, ("", 0), wish),
        }
    }

    fn abort(&mut self, link: u32) {
        self.end(link, Effect::Abort);
    }

    fn close(&mut self, link: u32) {
        self.end(link, Effect::Close);
    }

    fn steering(&self) -> SteeringKind {
        self.steering
    }

    fn security(&self) -> Security {
        self.security
    }

    fn node(&mut self, node: u16, place: &dyn Fn() -> Endpoint) {
        self.outbox.put(Effect::Node, u32::from(node));
        self.outbox.put_text(&place().text());
    }

    fn done(&mut self, request: u32, outcome: Result<Done<'_>, Error>) {
        let written = match outcome {
            Ok(Done::Session) => {
                self.outbox.put(Effect::Done, request);
                Ok(())
            }
            Ok(Done::Prepared(number, statement)) => {
                self.put_prepared(request, number, statement);
                Ok(())
            }
            Ok(Done::Answer(answered)) => {
                #[cfg(feature = "full")]
                {
                    let shard = answered.agreed.shard().map(|shard| shard.value());
                    self.tally.count(answered.node, shard);
                }
                self.put_answered(request, &answered)
            }
            Err(error) => Err(error),
        };
        if let Err(error) = written {
            self.outbox.put_failure(request, &error);
        }
    }
}

/// The host of an address that is written with its port.
#[cfg(feature = "full")]
fn host_of(text: &str) -> &str {
    let host = text.rsplit_once(':').map_or(text, |(host, _)| host);
    let bare = host.strip_prefix('[').and_then(|v6| v6.strip_suffix(']'));
    bare.unwrap_or(host)
}

/// Bytes of one link that wait for the network.
const UNSENT_MAX: usize = 256 << 10;
