//! Names in another case, as `rename_all` says.

use core::iter;

/// A way to write names of several words.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Case {
    Lower,
    Upper,
    Pascal,
    Camel,
    Snake,
    ScreamingSnake,
    Kebab,
    ScreamingKebab,
}

const CASES: [(&str, Case); 8] = [
    ("lowercase", Case::Lower),
    ("UPPERCASE", Case::Upper),
    ("PascalCase", Case::Pascal),
    ("camelCase", Case::Camel),
    ("snake_case", Case::Snake),
    ("SCREAMING_SNAKE_CASE", Case::ScreamingSnake),
    ("kebab-case", Case::Kebab),
    ("SCREAMING-KEBAB-CASE", Case::ScreamingKebab),
];

impl Case {
    /// The case that is written so.
    pub(crate) fn named(name: &str) -> Option<Self> {
        let mut cases = CASES.into_iter();
        cases.find_map(|(known, case)| (known == name).then_some(case))
    }

    /// What to say about a name that is none.
    pub(crate) fn expected() -> String {
        let names: Vec<_> = CASES.iter().map(|(name, _)| format!("{name:?}")).collect();
        format!("not a case; these are: {}", names.join(", "))
    }

    /// The name of a field or variant in this case.
    pub(crate) fn apply(self, name: &str) -> String {
        let words = words(name);
        let joined = |case: fn(&str) -> String, separator: &str| {
            let words: Vec<_> = words.iter().map(|word| case(word)).collect();
            words.join(separator)
        };
        match self {
            Self::Lower => joined(lower, ""),
            Self::Upper => joined(upper, ""),
            Self::Snake => joined(lower, "_"),
            Self::ScreamingSnake => joined(upper, "_"),
            Self::Kebab => joined(lower, "-"),
            Self::ScreamingKebab => joined(upper, "-"),
            Self::Pascal => joined(capitalized, ""),
            Self::Camel => {
                let mut words = words.iter();
                let first = words.next().map_or_else(String::new, |word| lower(word));
                iter::once(first)
                    .chain(words.map(|word| capitalized(word)))
                    .collect()
            }
        }
    }
}

/// The words of `snake_case` and `PascalCase` alike.
fn words(name: &str) -> Vec<String> {
    let mut words = Vec::new();
    for part in name.split('_').filter(|part| !part.is_empty()) {
        let mut word = String::new();
        for character in part.chars() {
            if character.is_uppercase() && word.chars().any(char::is_lowercase) {
                words.push(core::mem::take(&mut word));
            }
            word.push(character);
        }
        words.push(word);
    }
    words
}

fn lower(word: &str) -> String {
    word.to_lowercase()
}

fn upper(word: &str) -> String {
    word.to_uppercase()
}

fn capitalized(word: &str) -> String {
    let mut characters = word.chars();
    let first = characters.next().map(char::to_uppercase);
    let rest = characters.as_str().to_lowercase();
    first.into_iter().flatten().chain(rest.chars()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_case_of_fields_and_variants() {
        let table = [
            ("lowercase", "firstname", "insome"),
            ("UPPERCASE", "FIRSTNAME", "INSOME"),
            ("PascalCase", "FirstName", "InSome"),
            ("camelCase", "firstName", "inSome"),
            ("snake_case", "first_name", "in_some"),
            ("SCREAMING_SNAKE_CASE", "FIRST_NAME", "IN_SOME"),
            ("kebab-case", "first-name", "in-some"),
            ("SCREAMING-KEBAB-CASE", "FIRST-NAME", "IN-SOME"),
        ];
        for (case, field, variant) in table {
            let case = Case::named(case).expect("it is one");
            assert_eq!(case.apply("first_name"), field);
            assert_eq!(case.apply("InSome"), variant);
        }
        assert_eq!(Case::named("Title Case"), None);
        for (name, expected) in [
            ("_id", "id"),
            ("x2_y", "x2_y"),
            ("Übung", "übung"),
            ("", ""),
        ] {
            assert_eq!(Case::Snake.apply(name), expected);
        }
    }
}
