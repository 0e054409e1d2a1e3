//! What every connection of a session says in its handshake.

use alloc::boxed::Box;
use alloc::vec::Vec;
use core::fmt;

use super::super::auth::Authenticator;
use super::super::extensions::{Offer, TabletsRouting};
use crate::sync::{Local, Shared};
use crate::wire::{Compression, ProtocolVersion};
use crate::words::boxed;

/// What every connection of a session says in its handshake.
#[derive(Clone)]
#[non_exhaustive]
pub struct HandshakeConfig {
    /// The protocol version to speak.
    pub version: ProtocolVersion,
    /// Whether STARTUP opens the conversation in version 5 where the node offers it and is no
    /// ScyllaDB node; `version` is then that of OPTIONS.
    #[cfg(any(test, feature = "protocol-v5"))]
    pub may_rise: bool,
    /// Answers authentication, if the node asks for it.
    pub authenticator: Option<Shared<dyn Authenticator>>,
    /// How frames are to be compressed from STARTUP on.
    pub compression: Option<Compression>,
    /// Further STARTUP options: driver name and version, session id.
    pub startup_options: Vec<(&'static str, Box<str>)>,
    /// How the session is set, told as DRIVER_CONFIG to a node that keeps what clients say.
    pub driver_config: Option<Local<str>>,
    /// Event types to REGISTER for; none skips that step.
    pub events: Vec<&'static str>,
    /// The newest tablets extension to use.
    pub tablets_max: TabletsRouting,
    /// Whether requests may be sent beside AUTH_RESPONSE, or beside STARTUP if there is no
    /// authenticator, without waiting for the answer. Not together with events.
    pub early: bool,
    /// What the node offered before: STARTUP is sent at once, as if it had been offered again.
    pub assumed: Option<Offer>,
}

impl HandshakeConfig {
    /// A plain handshake.
    pub const fn new(version: ProtocolVersion) -> Self {
        Self {
            version,
            #[cfg(any(test, feature = "protocol-v5"))]
            may_rise: false,
            authenticator: None,
            compression: None,
            startup_options: Vec::new(),
            driver_config: None,
            events: Vec::new(),
            tablets_max: TabletsRouting::V2,
            early: false,
            assumed: None,
        }
    }

    /// Adds a STARTUP option.
    #[inline(never)]
    pub fn add_startup_option(&mut self, name: &'static str, value: &str) {
        self.startup_options.push((name, boxed(value)));
    }
}

impl fmt::Debug for HandshakeConfig {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HandshakeConfig")
            .field("version", &self.version)
            .field("authenticates", &self.authenticator.is_some())
            .field("startup_options", &self.startup_options)
            .field("events", &self.events)
            .finish_non_exhaustive()
    }
}
