//! Why a scenario did not come to its end.

use messina_core::error::Error;

use crate::boot;
use crate::println;

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
    /// Ends the run with the driver's text.
    pub fn end(self) -> ! {
        if let Self::Driver(error) = &self {
            println!("error {error}");
        }
        self.end_briefly()
    }

    /// The same without that text, which costs flash.
    pub fn end_briefly(self) -> ! {
        boot::fail(self.brief())
    }

    /// A reason without the driver's text.
    const fn brief(&self) -> &'static str {
        match self {
            Self::Driver(_) => "the driver reported an error",
            Self::Found(found) => found,
        }
    }
}
