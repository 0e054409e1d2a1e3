//! Addresses out of texts, in less code than the library's parser: to be linked into small images.

use core::net::IpAddr;

use crate::digits::{hex_digit, number};

/// An address of version 4 or 6, if the text is one.
pub(crate) fn ip(text: &str) -> Option<IpAddr> {
    v4(text.as_bytes())
        .map(IpAddr::from)
        .or_else(|| v6(text.as_bytes()).map(IpAddr::from))
}

fn v4(text: &[u8]) -> Option<[u8; 4]> {
    let mut parts = text.split(|byte| *byte == b'.');
    let mut octets = [0; 4];
    for octet in &mut octets {
        let part = parts.next()?;
        // No sign, and no zero in front, which some take for octal.
        if !part.first()?.is_ascii_digit() || (part.len() > 1 && part.first() == Some(&b'0')) {
            return None;
        }
        *octet = number(core::str::from_utf8(part).ok()?)?;
    }
    parts.next().is_none().then_some(octets)
}

fn v6(text: &[u8]) -> Option<[u16; 8]> {
    let gap = text.windows(2).position(|pair| pair == b"::");
    let (front, back) = text.split_at_checked(gap.unwrap_or(text.len()))?;
    let mut groups = [0; 8];
    let front_len = read_groups(front, &mut groups, gap.is_none())?;
    if gap.is_none() {
        return (front_len == groups.len()).then_some(groups);
    }
    let mut last = [0; 8];
    let back_len = read_groups(back.get(2..)?, &mut last, true)?;
    // The gap stands for one group at least.
    let start = groups.len().checked_sub(back_len)?;
    if start <= front_len {
        return None;
    }
    for (group, value) in groups.iter_mut().skip(start).zip(last) {
        *group = value;
    }
    Some(groups)
}

/// Reads groups between colons and tells how many; the last two may be an address of version 4.
#[inline(never)]
fn read_groups(text: &[u8], groups: &mut [u16], is_end: bool) -> Option<usize> {
    if text.is_empty() {
        return Some(0);
    }
    let len = groups.len();
    let mut places = groups.iter_mut();
    let mut parts = text.split(|byte| *byte == b':').peekable();
    while let Some(part) = parts.next() {
        if is_end
            && parts.peek().is_none()
            && let Some([a, b, c, d]) = v4(part)
        {
            *places.next()? = u16::from_be_bytes([a, b]);
            *places.next()? = u16::from_be_bytes([c, d]);
            break;
        }
        if !matches!(part.len(), 1..=4) {
            return None;
        }
        let mut group = 0;
        for byte in part {
            group = group << 4 | u16::from(hex_digit(*byte)?);
        }
        *places.next()? = group;
    }
    len.checked_sub(places.len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::String;
    use alloc::vec::Vec;

    /// All texts of a few parts, with anything between them: as the library reads them.
    #[test]
    fn addresses_are_as_the_library_reads_them() {
        let parts = [
            ":", "::", ".", "0", "1", "00", "255", "256", "1.2.3.4", "ffff", "fFf0", "12345", "g",
            "+1",
        ];
        let mut texts = Vec::from([String::new()]);
        for _ in 0..4 {
            for text in core::mem::take(&mut texts) {
                assert_eq!(ip(&text), text.parse().ok(), "{text}");
                texts.push(text.clone());
                texts.extend(parts.map(|part| text.clone() + part));
            }
        }
        for text in texts {
            assert_eq!(ip(&text), text.parse().ok(), "{text}");
        }
        // Around eight groups.
        for front in 0..=9 {
            for back in 0..=9 {
                for gap in ["", ":", "::", ":::"] {
                    for end in ["", ":", "1.2.3.4", ":1.2.3.4"] {
                        let groups = |count| Vec::from_iter((0..count).map(|_| "a")).join(":");
                        let text = [&groups(front), gap, &groups(back), end].concat();
                        assert_eq!(ip(&text), text.parse().ok(), "{text}");
                    }
                }
            }
        }
    }
}
