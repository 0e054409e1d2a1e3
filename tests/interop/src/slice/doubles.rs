//! Doubles that show a careless path between text and bits.
//!
//! A value travels as decimal text to the command, as eight bytes to the server and back as text.
//! Every finite double has a shortest text that gives it back, so any difference is a fault: a JSON
//! reader that is fast instead of right alters about one in five of these.

use serde_json::{Value, json};

/// How many doubles [`sample`] gives.
pub(super) const COUNT: usize = 500;

/// The statements around them.
pub(super) const CREATE: &str = "CREATE TABLE interop.doubles (id int PRIMARY KEY, value double)";
pub(super) const INSERT: &str = "INSERT INTO interop.doubles (id, value) VALUES (?, ?)";
pub(super) const SELECT: &str = "SELECT id, value FROM interop.doubles";

/// Rows of id and value as the command takes them: first the odd ones, then random bits.
pub(super) fn sample() -> Vec<Vec<Value>> {
    let mut values = vec![json!("NaN"), json!("Infinity"), json!("-Infinity")];
    let edges = [
        0.0,
        -0.0,
        f64::MIN_POSITIVE,
        5e-324,
        f64::MAX,
        f64::MIN,
        0.1,
        f64::EPSILON,
    ];
    values.extend(edges.map(|edge| json!(edge)));
    let mut state = 1;
    while values.len() < COUNT {
        state = mix(state);
        // Half of them of everyday size, where most digits of the text matter.
        let value = if state & 1 == 0 {
            f64::from_bits(state)
        } else {
            state as f64 / u64::MAX as f64 * 180.0 - 90.0
        };
        if value.is_finite() {
            values.push(json!(value));
        }
    }
    values
        .into_iter()
        .enumerate()
        .map(|(id, value)| vec![json!(id), value])
        .collect()
}

/// The rows that are not as written, by their text: so that -0.0 is not 0.0.
pub(super) fn differences(wrote: &[Vec<Value>], read: &[Vec<Value>]) -> Vec<String> {
    let mut differences = Vec::new();
    for row in wrote {
        let text = json!(row).to_string();
        let found = read.iter().find(|other| other.first() == row.first());
        let found = found.map_or_else(|| "nothing".to_owned(), |other| json!(other).to_string());
        if found != text {
            differences.push(format!("wrote {text} and read {found}"));
        }
    }
    differences
}

/// A step of the SplitMix64 generator.
pub(crate) fn mix(state: u64) -> u64 {
    let mut mixed = state.wrapping_add(0x9e37_79b9_7f4a_7c15);
    mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
    mixed ^ (mixed >> 31)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_sample_is_full_and_survives_our_own_json() {
        let rows = sample();
        assert_eq!(rows.len(), COUNT);
        let read: Vec<Vec<Value>> = rows
            .iter()
            .map(|row| serde_json::from_str(&json!(row).to_string()).unwrap())
            .collect();
        assert_eq!(differences(&rows, &read), [""; 0]);
    }

    #[test]
    fn a_last_bit_a_sign_of_zero_and_a_missing_row_are_differences() {
        let row = |id: i32, value: f64| vec![json!(id), json!(value)];
        let wrote = [row(1, 0.1), row(2, 0.0), row(3, 1.0)];
        let read = [row(1, 0.1_f64.next_up()), row(2, -0.0)];
        assert_eq!(differences(&wrote, &read).len(), 3);
    }
}
