//! Types as the shell parses them (`js/values/types.ts`): as CQL writes them, but user-defined
//! types with their fields, which their values cannot be read without.
//!
//! `{"keyspace"."name" "field" type "field" type}`; a quotation mark in a name is doubled.

use alloc::string::String;
use core::fmt::Write as _;

use messina_core::types::ColumnType;

/// The text of a type. Its depth is bounded where core parsed it.
pub(crate) fn type_text(ty: &ColumnType) -> String {
    let mut text = String::new();
    put(&mut text, ty);
    text
}

fn put(text: &mut String, ty: &ColumnType) {
    match ty {
        ColumnType::List(element) => put_generic(text, "list", [&**element]),
        ColumnType::Set(element) => put_generic(text, "set", [&**element]),
        ColumnType::Map(map) => put_generic(text, "map", [&map.0, &map.1]),
        ColumnType::Tuple(fields) => put_generic(text, "tuple", &**fields),
        ColumnType::Vector(vector) => {
            put_generic(text, "vector", [&vector.element]);
            text.pop();
            // A string takes everything, here and below.
            let _ = write!(text, ",{}>", vector.dimension);
        }
        ColumnType::Udt(udt) => {
            text.push('{');
            put_name(text, &udt.keyspace);
            text.push('.');
            put_name(text, &udt.name);
            for (name, field) in &udt.fields {
                text.push(' ');
                put_name(text, name);
                text.push(' ');
                put(text, field);
            }
            text.push('}');
        }
        simple => {
            let _ = write!(text, "{simple}");
        }
    }
}

fn put_generic<'a>(text: &mut String, name: &str, parts: impl IntoIterator<Item = &'a ColumnType>) {
    text.push_str(name);
    let mut separator = '<';
    for part in parts {
        text.push(separator);
        separator = ',';
        put(text, part);
    }
    text.push('>');
}

fn put_name(text: &mut String, name: &str) {
    text.push('"');
    text.push_str(&name.replace('"', "\"\""));
    text.push('"');
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::boxed::Box;
    use messina_core::Shared;
    use messina_core::types::{UdtType, VectorType};

    #[test]
    fn every_level_of_a_type_is_told() {
        let udt = ColumnType::Udt(Shared::new(UdtType {
            keyspace: "shop".into(),
            name: "a\"b".into(),
            fields: Box::from([
                ("x".into(), ColumnType::Int),
                (
                    "y z".into(),
                    ColumnType::List(Shared::new(ColumnType::Text)),
                ),
            ]),
        }));
        let vector = ColumnType::Vector(Shared::new(VectorType {
            element: ColumnType::Float,
            dimension: 3,
        }));
        let tuple = ColumnType::Tuple(Shared::from([udt, vector].as_slice()));
        let map = ColumnType::Map(Shared::new((ColumnType::Uuid, tuple)));
        assert_eq!(
            type_text(&map),
            r#"map<uuid,tuple<{"shop"."a""b" "x" int "y z" list<text>},vector<float,3>>>"#
        );
        let custom = ColumnType::Custom("org.Type".into());
        assert_eq!(
            type_text(&ColumnType::Set(Shared::new(custom))),
            "set<'org.Type'>"
        );
        assert_eq!(type_text(&ColumnType::Unknown(255)), "type 0x00ff");
    }
}
