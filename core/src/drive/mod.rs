//! The only async code: it pumps the state machines of the layers below over a [`Transport`].

pub mod transport;

pub use transport::{
    Clock, Endpoint, Link, Name, Resolved, Security, Steering, SteeringKind, Target, Timer,
    Transport,
};
