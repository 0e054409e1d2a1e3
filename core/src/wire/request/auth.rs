//! AUTH_RESPONSE: a token for the server's authenticator.

use core::fmt;

use super::RequestBody;
use crate::wire::{EncodeError, Opcode, ProtocolVersion, Sink};

/// The AUTH_RESPONSE request. The token is a secret and does not show in `Debug`.
#[derive(Clone, Copy)]
pub struct AuthResponse<'a> {
    /// The token; `None` is a null token.
    pub token: Option<&'a [u8]>,
}

impl RequestBody for AuthResponse<'_> {
    const OPCODE: Opcode = Opcode::AuthResponse;

    fn put<S: Sink + ?Sized>(&self, _: ProtocolVersion, sink: &mut S) -> Result<(), EncodeError> {
        if let Some(token) = self.token {
            return sink.put_bytes("token", token);
        }
        sink.put_int(-1);
        Ok(())
    }
}

impl fmt::Debug for AuthResponse<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("AuthResponse(..)")
    }
}
