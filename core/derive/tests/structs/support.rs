//! What the tests of the macros share: columns by hand, and rows through bytes without a server.

use messina_core::types::{
    BindError, ColumnSpec, ColumnType, DecodeRow, EncodeRow, RowError, UdtType,
};
use messina_core::wire::ValuesBuilder;
use messina_core::wire::response::RowsContent;

pub(crate) fn columns(types: &[(&str, ColumnType)]) -> Vec<ColumnSpec> {
    let column = |(name, ty): &(&str, ColumnType)| ColumnSpec {
        keyspace: "ks".into(),
        table: "t".into(),
        name: (*name).into(),
        ty: ty.clone(),
    };
    types.iter().map(column).collect()
}

pub(crate) fn user_type(name: &str, fields: &[(&str, ColumnType)]) -> ColumnType {
    let field = |(name, ty): &(&str, ColumnType)| ((*name).into(), ty.clone());
    ColumnType::Udt(messina_core::Shared::new(UdtType {
        keyspace: "ks".into(),
        name: name.into(),
        fields: fields.iter().map(field).collect(),
    }))
}

/// The values of a row as they are sent.
pub(crate) fn encode(columns: &[ColumnSpec], row: &impl EncodeRow) -> Result<Vec<u8>, BindError> {
    let mut values = ValuesBuilder::new(Vec::new());
    row.encode_row(columns, &mut values)?;
    let encoded = values.finish();
    assert_eq!(usize::from(encoded.values().len()), columns.len());
    Ok(encoded.values().as_bytes().to_vec())
}

/// The first row of these cells, which have the layout of bound values.
pub(crate) fn decode<'a, R: DecodeRow<'a>>(
    columns: &[ColumnSpec],
    cells: &'a [u8],
) -> Result<R, RowError> {
    let layout = R::check_columns(columns)?;
    let count = u32::try_from(columns.len()).unwrap();
    let content = RowsContent::new(count, 1, cells).unwrap();
    let row = content.iter().next().unwrap().unwrap();
    R::decode_row(&layout, columns, row)
}
