//! Why a scenario did not come to its end.

use messina_core::error::Error;

/// What the driver said, or what was found wrong with what it gave.
#[derive(Debug)]
pub enum Failure {
    /// An error of the driver.
    Driver(Error),
    /// The scenario's own finding.
    Found(&'static str),
}

impl From<Error> for Failure {
    fn from(error: Error) -> Self {
        Self::Driver(error)
    }
}

impl From<&'static str> for Failure {
    fn from(found: &'static str) -> Self {
        Self::Found(found)
    }
}

impl Failure {
    /// A reason without the driver's text, which costs flash.
    pub const fn brief(&self) -> &'static str {
        match self {
            Self::Driver(_) => "the driver reported an error",
            Self::Found(found) => found,
        }
    }
}
