//! Log lines: through the `tracing` crate where its feature is on, else nothing at all; then the
//! text is not even made.

#[cfg(feature = "tracing")]
macro_rules! warning {
    ($($part:tt)*) => {
        tracing::warn!($($part)*)
    };
}

#[cfg(not(feature = "tracing"))]
macro_rules! warning {
    ($($part:tt)*) => {{
        let _ = format_args!($($part)*);
    }};
}

pub(crate) use warning;
