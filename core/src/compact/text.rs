//! Whether a text reads or writes rows of a user's tables, as far as its words tell. What
//! [`cluster::kind`](crate::cluster::kind) knows of texts, in a fraction of its size.

/// Whether a text reads or writes rows, but not only those of a system table.
pub(super) fn is_users_data(text: &str) -> bool {
    let mut rest = text.as_bytes();
    let first = next_word(&mut rest);
    if !first.eq_ignore_ascii_case(b"select") {
        let writes: &[&[u8]] = &[b"insert", b"update", b"delete", b"begin"];
        return writes.iter().any(|word| first.eq_ignore_ascii_case(word));
    }
    loop {
        let word = next_word(&mut rest);
        if word.is_empty() {
            return true;
        }
        if word.eq_ignore_ascii_case(b"from") {
            return !next_word(&mut rest).eq_ignore_ascii_case(b"system");
        }
    }
}

/// The next run of letters; comments and whatever else stands before it are skipped.
fn next_word<'a>(text: &mut &'a [u8]) -> &'a [u8] {
    loop {
        let end: &[u8] = match text {
            [b'-', b'-', ..] | [b'/', b'/', ..] => b"\n",
            [b'/', b'*', ..] => b"*/",
            [first, ..] if first.is_ascii_alphabetic() => break,
            [_, rest @ ..] => {
                *text = rest;
                continue;
            }
            [] => return &[],
        };
        while !text.is_empty() && !text.starts_with(end) {
            *text = text.get(1..).unwrap_or_default();
        }
    }
    let is_letter = |byte: &u8| byte.is_ascii_alphabetic();
    let len = text.iter().position(|byte| !is_letter(byte));
    let (word, rest) = text
        .split_at_checked(len.unwrap_or(text.len()))
        .unwrap_or_default();
    *text = rest;
    word
}

#[cfg(test)]
mod tests {
    use super::is_users_data;

    #[test]
    fn texts_of_users_rows() {
        for text in [
            "SELECT * FROM ks.t",
            " select a, b from t where k = 1",
            "-- a comment\n// another\n/* SELECT */ Insert INTO t (k) VALUES (1)",
            "/* not ended * / */update t set v = 1",
            "DELETE FROM t WHERE k = 1",
            "BEGIN BATCH INSERT INTO t (k) VALUES (1) APPLY BATCH",
            "SELECT",
        ] {
            assert!(is_users_data(text), "{text}");
        }
    }

    #[test]
    fn texts_of_anything_else() {
        for text in [
            "",
            "--",
            "/* SELECT * FROM t",
            "-- SELECT * FROM t",
            "CREATE TABLE t (k int PRIMARY KEY)",
            "selected",
            "USE ks",
            "SELECT key FROM system.local",
            "SELECT key FROM /* where */ \"system_schema\".tables",
        ] {
            assert!(!is_users_data(text), "{text}");
        }
    }
}
