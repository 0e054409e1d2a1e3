//! Bytes by hexadecimal text.

/// Bytes from hexadecimal digits; anything else between them is for the reader of the text.
///
/// # Panics
///
/// If half a byte is left over.
#[must_use]
pub fn hex(text: &str) -> Vec<u8> {
    let digits: Vec<u8> = text
        .chars()
        .filter_map(|digit| digit.to_digit(16))
        .map(|digit| u8::try_from(digit).unwrap_or_default())
        .collect();
    let (pairs, rest) = digits.as_chunks::<2>();
    assert!(rest.is_empty(), "half a byte in {text}");
    pairs.iter().map(|[high, low]| high << 4 | low).collect()
}
