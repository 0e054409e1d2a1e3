//! In place of `client_routes` in builds without that feature: nodes are reached by their own
//! addresses, and nothing of routes is linked.

use alloc::boxed::Box;
use alloc::string::String;

use uuid::Uuid;

use super::discovery::Scope;
use super::engine::Engine;
use super::pool::Pool;
use crate::config::Config;
use crate::conn::Answer;
use crate::error::Error;
use crate::target::Security;
use crate::time::Instant;
use crate::wire::{Dialect, StringList};

/// Whether a session can follow routes.
pub(super) const CAN_FOLLOW: bool = false;

/// How a node is reached. Other variants come with the feature `client-routes`.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum NodeRoute {
    /// By its own address: no client routes are followed.
    #[default]
    Direct,
}

/// The routes of a session: none.
#[derive(Debug)]
pub(super) struct Routes;

/// A reading of routes: there is none.
#[derive(Debug)]
pub(super) enum RouteTable {}

impl Routes {
    pub(super) const fn new(_: &Config, _: Security) -> Self {
        Self
    }

    pub(super) const fn are_followed(&self) -> bool {
        false
    }

    pub(super) const fn allow_shard_aware_port(_: &Config) -> bool {
        true
    }

    pub(super) const fn begin_reading(&self, _: Scope) -> Option<RouteTable> {
        None
    }

    pub(super) const fn to(&self, _: Uuid) -> NodeRoute {
        NodeRoute::Direct
    }

    pub(super) const fn are_concerned(&self, _: StringList<'_>, _: StringList<'_>) -> bool {
        false
    }
}

impl RouteTable {
    pub(super) const fn rows(&self) -> usize {
        match *self {}
    }

    pub(super) const fn statement(&self) -> String {
        match *self {}
    }

    pub(super) const fn take(
        &mut self,
        _: &Answer,
        _: &Dialect,
    ) -> Result<Option<Box<[u8]>>, Error> {
        match *self {}
    }
}

impl Pool {
    pub(super) const fn is_cut_off(&self) -> bool {
        false
    }
}

impl Engine {
    pub(super) const fn follow_routes(&mut self, _: Option<RouteTable>, _: Instant) {}

    pub(super) const fn routes_refused(&mut self, _: &Error) -> bool {
        false
    }
}
