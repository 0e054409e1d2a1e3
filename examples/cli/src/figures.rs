//! Numbers as people read them.

/// Never rounded up to 100 %.
pub(crate) fn percent(share: f64) -> String {
    let tenths = (share * 1000.0).floor();
    if share >= 1.0 {
        "100 %".to_owned()
    } else {
        format!("{:.1} %", tenths / 10.0)
    }
}

/// Microseconds, milliseconds from one on, seconds from ten on.
pub(crate) fn micros(us: u64) -> String {
    match us {
        0..1000 => format!("{us} µs"),
        1000..10_000_000 => format!("{}.{} ms", us / 1000, us % 1000 / 100),
        _ => format!("{}.{} s", us / 1_000_000, us % 1_000_000 / 100_000),
    }
}

/// With a comma at each thousand.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

/// One thing or several.
pub(crate) fn counted(count: u64, what: &str) -> String {
    let plural = if count == 1 { "" } else { "s" };
    format!("{} {what}{plural}", grouped(count))
}

/// Bytes, in the unit that leaves the fewest digits.
#[expect(clippy::cast_precision_loss, reason = "three digits are shown")]
pub(crate) fn bytes(count: u64) -> String {
    let units = ["KB", "MB", "GB", "TB"];
    let (mut shown, mut unit) = (count as f64, "bytes");
    for larger in units {
        if shown < 999.5 {
            break;
        }
        (shown, unit) = (shown / 1000.0, larger);
    }
    let digits = usize::from(shown < 99.95 && unit != "bytes");
    format!("{shown:.digits$} {unit}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_for_people() {
        for (number, text) in [
            (0, "0"),
            (999, "999"),
            (1000, "1,000"),
            (1_234_567, "1,234,567"),
        ] {
            assert_eq!(grouped(number), text);
        }
        for (share, text) in [
            (0.0, "0.0 %"),
            (0.25, "25.0 %"),
            (0.9999, "99.9 %"),
            (1.0, "100 %"),
        ] {
            assert_eq!(percent(share), text);
        }
        for (count, text) in [
            (0, "0 bytes"),
            (999, "999 bytes"),
            (1000, "1.0 KB"),
            (99_950, "100 KB"),
            (999_499, "999 KB"),
            (999_500, "1.0 MB"),
            (23_400_000, "23.4 MB"),
        ] {
            assert_eq!(bytes(count), text);
        }
        assert_eq!(
            (counted(1, "row"), counted(2000, "row")),
            ("1 row".to_owned(), "2,000 rows".to_owned())
        );
        for (us, text) in [
            (999, "999 µs"),
            (1000, "1.0 ms"),
            (9_999_999, "9999.9 ms"),
            (12_345_678, "12.3 s"),
        ] {
            assert_eq!(micros(us), text);
        }
    }
}
