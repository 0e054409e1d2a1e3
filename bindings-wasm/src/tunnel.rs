//! All links through one: channels of a tunnel to a relay, over sockets of the shell.
//!
//! A carrier is a socket to the relay with a tunnel in it. It is opened at the first wish for a link,
//! again after it broke, and when the relay is about to stop: then old channels stay where they are.
//! It is closed when its last channel has gone. A relay that does not answer is found out by the
//! deadlines of the links that wait for it.

use alloc::vec::Vec;

use bytes::BytesMut;
use messina_core::compact::Machine;
use messina_core::error::{LinkError, LinkErrorKind};
use messina_core::target::{Steering, Target};
use messina_websocket::tunnel::{ChannelId, Limits, Progress, Reason, Tunnel, Wish};

use crate::message::FORBIDDEN;

/// The sockets to the relay, and which link is which channel.
#[derive(Debug)]
pub(crate) struct Carriers {
    carriers: Vec<Carrier>,
    next_socket: u32,
}

#[derive(Debug)]
struct Carrier {
    /// Its number to the shell.
    socket: u32,
    tunnel: Tunnel,
    is_open: bool,
    channels: Vec<Channel>,
}

#[derive(Debug)]
struct Channel {
    link: u32,
    id: ChannelId,
    is_opened: bool,
    has_ended: bool,
}

/// What the shell is to do with a socket to the relay.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Order {
    Nothing,
    Open(u32),
    /// No link could be begun there.
    Refuse,
}

impl Carriers {
    pub(crate) const fn new() -> Self {
        Self {
            carriers: Vec::new(),
            next_socket: FIRST_SOCKET,
        }
    }

    fn carrier(&mut self, socket: u32) -> Option<&mut Carrier> {
        self.carriers
            .iter_mut()
            .find(|carrier| carrier.socket == socket)
    }

    /// Begins a link; what the shell has to do for it.
    pub(crate) fn connect(&mut self, link: u32, target: &Target) -> Order {
        let text = target.endpoint.text();
        let wish = match target.steering {
            Steering::Shard { shard, of } => Wish::Shard { shard, of },
            _ => Wish::None,
        };
        let usable = self
            .carriers
            .iter_mut()
            .find(|carrier| !carrier.tunnel.is_draining());
        let (carrier, order) = match usable {
            Some(carrier) => (carrier, Order::Nothing),
            None => {
                let socket = self.next_socket;
                self.next_socket = socket.wrapping_add(1).max(FIRST_SOCKET);
                let at = self.carriers.len();
                self.carriers.push(Carrier {
                    socket,
                    tunnel: Tunnel::client(Limits::client()),
                    is_open: false,
                    channels: Vec::new(),
                });
                match self.carriers.get_mut(at) {
                    Some(carrier) => (carrier, Order::Open(socket)),
                    None => return Order::Refuse,
                }
            }
        };
        match carrier.tunnel.open(&text, wish) {
            Some(id) => {
                carrier.channels.push(Channel {
                    link,
                    id,
                    is_opened: false,
                    has_ended: false,
                });
                order
            }
            None => Order::Refuse,
        }
    }

    /// A link is over. What was written to it leaves before the relay is told.
    pub(crate) fn release(&mut self, link: u32) {
        for carrier in &mut self.carriers {
            let mut channels = carrier.channels.iter();
            if let Some(at) = channels.position(|channel| channel.link == link) {
                let channel = carrier.channels.swap_remove(at);
                carrier.tunnel.release(channel.id);
            }
        }
    }

    pub(crate) fn handle_opened(&mut self, socket: u32) {
        if let Some(carrier) = self.carrier(socket) {
            carrier.is_open = true;
        }
    }

    /// The socket has ended, and all of its links with it.
    pub(crate) fn handle_ended(&mut self, socket: u32, error: LinkError, machine: &mut Machine) {
        if let Some(at) = self
            .carriers
            .iter()
            .position(|carrier| carrier.socket == socket)
        {
            let carrier = self.carriers.swap_remove(at);
            for channel in carrier.channels {
                machine.handle_ended(channel.link, error);
            }
        }
    }

    /// Bytes came from the relay. A violation ends everything that leads through it.
    pub(crate) fn handle_bytes(&mut self, socket: u32, bytes: &[u8]) {
        if let Some(carrier) = self.carrier(socket) {
            // Its channels are closed then, and told below.
            let _violation = carrier.tunnel.handle_input(bytes);
        }
    }

    /// Tells the machine what is new of its links, and hands it their bytes.
    pub(crate) fn read(&mut self, machine: &mut Machine) {
        for carrier in &mut self.carriers {
            while carrier.tunnel.poll_changed().is_some() {}
            for channel in &mut carrier.channels {
                advance(&mut carrier.tunnel, channel, machine);
            }
        }
    }

    /// Takes bytes for a link; how many.
    pub(crate) fn write(&mut self, link: u32, bytes: &[u8]) -> usize {
        for carrier in &mut self.carriers {
            let channel = carrier.channels.iter().find(|channel| channel.link == link);
            if let Some(channel) = channel {
                let written = carrier.tunnel.write(channel.id, bytes);
                return written.ok().flatten().unwrap_or(0);
            }
        }
        0
    }

    /// The open sockets, and the tunnels that have bytes for them.
    pub(crate) fn open(&mut self) -> impl Iterator<Item = (u32, &mut Tunnel)> {
        let open = self.carriers.iter_mut().filter(|carrier| carrier.is_open);
        open.map(|carrier| (carrier.socket, &mut carrier.tunnel))
    }

    /// A socket that carries nothing any more, taken out; also one whose relay broke the rules.
    pub(crate) fn take_idle(&mut self) -> Option<u32> {
        let is_idle =
            |carrier: &Carrier| carrier.channels.is_empty() && carrier.tunnel.output_len() == 0;
        let at = self.carriers.iter().position(is_idle)?;
        Some(self.carriers.swap_remove(at).socket)
    }
}

/// Tells the machine what a tunnel has for a link.
fn advance(tunnel: &mut Tunnel, channel: &mut Channel, machine: &mut Machine) {
    if channel.has_ended {
        return;
    }
    if !channel.is_opened && matches!(tunnel.progress(channel.id), Progress::Open(_)) {
        channel.is_opened = true;
        machine.handle_opened(channel.link);
    }
    loop {
        let mut bytes = BytesMut::new();
        match tunnel.read(channel.id, &mut bytes) {
            Ok(None) => return,
            Ok(Some(0)) => {
                channel.has_ended = true;
                return machine.handle_ended(channel.link, LinkError::CLOSED_BY_PEER);
            }
            Ok(Some(_)) => {
                if let Some(input) = machine.input(channel.link) {
                    match input.is_empty() {
                        true => *input = bytes,
                        false => input.extend_from_slice(&bytes),
                    }
                }
            }
            Err(reason) => {
                channel.has_ended = true;
                let error = messina_websocket::mux::reason_error(reason);
                return machine.handle_ended(channel.link, error);
            }
        }
    }
}

const _: () = assert!(FORBIDDEN == Reason::Forbidden.close_code());

/// The error of a link that could not be begun.
pub(crate) const TOO_MANY: LinkError = LinkError::new(LinkErrorKind::Other);

/// Numbers of sockets begin here, out of the way of those of links.
const FIRST_SOCKET: u32 = 1 << 30;
