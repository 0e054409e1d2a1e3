//! `DecodeRow`: rows of a result as a struct.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Ident, Index, Lifetime, Member, Result, Type};

use crate::crate_path;
use crate::encode_row::names;
use crate::generics::Header;
use crate::input::{Field, Input, Struct};

pub(crate) fn derive(input: &Input) -> Result<TokenStream> {
    let structure = input.structure()?;
    let types = crate_path::types(&input.attributes);
    let mut header = Header::new(&input.generics);
    let row = header.row_lifetime();
    bounds(&mut header, structure, &types, &row);
    for (_, ty) in &structure.flattened {
        header.bound(ty, &quote!(#types::structs::DecodeFields<#row>));
    }
    let decode_row = decode_row(
        structure,
        &types,
        &row,
        input.attributes.allow_unknown.is_some(),
    );
    let decode_row = header.implement(&quote!(#types::DecodeRow<#row>), &input.ident, &decode_row);
    if structure.by_position {
        return Ok(decode_row);
    }
    let decode_fields = decode_fields(structure, &types, &row);
    let of = quote!(#types::structs::DecodeFields<#row>);
    let decode_fields = header.implement(&of, &input.ident, &decode_fields);
    Ok(quote!(#decode_row #decode_fields))
}

/// What the types of fields must be to be read.
pub(crate) fn bounds(header: &mut Header, structure: &Struct, types: &TokenStream, row: &Lifetime) {
    for field in &structure.fields {
        header.bound(&field.ty, &quote!(#types::DecodeValue<#row>));
        if field.default_when_null || field.default_when_missing.is_some() {
            header.bound(&field.ty, &quote!(::core::default::Default));
        }
    }
    for (_, ty) in &structure.skipped {
        header.bound(ty, &quote!(::core::default::Default));
    }
}

/// The fields of a `Self { .. }` that are read from `cells`.
pub(crate) fn taken(structure: &Struct, types: &TokenStream, row: &Lifetime) -> TokenStream {
    let fields = structure.fields.iter().enumerate().map(|(index, field)| {
        let Field { member, ty, label, .. } = field;
        let take = match field.default_when_null {
            true => Ident::new("take_or_default", ty.span()),
            false => Ident::new("take", ty.span()),
        };
        let mut value = quote_spanned!(ty.span()=> cells.#take::<#ty>(#index, #label)?);
        if field.default_when_missing.is_some() {
            value = quote_spanned! {ty.span()=>
                if cells.has(#index) { #value } else { <#ty as ::core::default::Default>::default() }
            };
        }
        quote!(#member: #value,)
    });
    let skipped = structure.skipped.iter().map(|(member, ty)| {
        quote_spanned!(ty.span()=> #member: <#ty as ::core::default::Default>::default(),)
    });
    let flattened = structure.flattened.iter().zip(1..).map(|((member, ty), index)| {
        let index = Index::from(index);
        quote_spanned! {ty.span()=>
            #member: <#ty as #types::DecodeRow<#row>>::decode_row(&layout.#index, columns, row)?,
        }
    });
    quote!(#(#fields)* #(#skipped)* #(#flattened)*)
}

fn decode_row(
    structure: &Struct,
    types: &TokenStream,
    row: &Lifetime,
    allow_unknown: bool,
) -> TokenStream {
    let count = structure.fields.len();
    let flat: Vec<_> = structure.flattened.iter().map(|(_, ty)| ty).collect();
    let own = quote!(#types::structs::FieldLayout<#count>);
    let (layout, own_layout) = match flat.is_empty() {
        true => (quote!(#own), quote!(layout)),
        false => (
            quote!((#own, #(<#flat as #types::DecodeRow<#row>>::Layout,)*)),
            quote!(&layout.0),
        ),
    };
    let found = match structure.by_position {
        true => {
            let fields = row_fields(structure, types, row);
            quote!(#types::structs::FieldLayout::by_position(columns, &[#(#fields),*])?)
        }
        false => quote!(<Self as #types::structs::DecodeFields<#row>>::layout(columns)?),
    };
    let has_column = quote!(<Self as #types::structs::DecodeFields<#row>>::has_column);
    let strict = match (allow_unknown, structure.by_position, flat.is_empty()) {
        (true, _, _) => quote!(),
        (false, true, _) => quote!(#types::structs::no_more_columns(#count, columns)?;),
        (false, false, true) => {
            quote!(#types::structs::all_columns_found(layout.found(), columns, #has_column)?;)
        }
        (false, false, false) => quote!(#types::structs::no_other_columns(columns, #has_column)?;),
    };
    let taken = taken(structure, types, row);
    let decode = match structure.fields.is_empty() {
        true => quote! {
            let _ = (layout, columns, row);
            ::core::result::Result::Ok(Self { #taken })
        },
        // Twice the code, so that the usual order of columns costs what a tuple does.
        false => quote! {
            let own = #own_layout;
            if own.is_dense() {
                let mut cells = #types::structs::DenseCells::new(columns, row);
                return ::core::result::Result::Ok(Self { #taken });
            }
            let mut cells = #types::structs::FieldCells::new(own, columns, row);
            ::core::result::Result::Ok(Self { #taken })
        },
    };
    quote! {
        type Layout = #layout;

        fn check_columns(
            columns: &[#types::ColumnSpec],
        ) -> ::core::result::Result<Self::Layout, #types::RowError> {
            let layout = #found;
            #strict
            ::core::result::Result::Ok(layout)
        }

        fn decode_row(
            layout: &Self::Layout,
            columns: &[#types::ColumnSpec],
            row: #types::structs::RawRow<#row>,
        ) -> ::core::result::Result<Self, #types::RowError> {
            #decode
        }
    }
}

/// What is asked of the columns of the fields.
fn row_fields(structure: &Struct, types: &TokenStream, row: &Lifetime) -> Vec<TokenStream> {
    checked_fields(structure, types, row, &quote!(RowField))
}

/// What is asked of the counterparts of the fields.
pub(crate) fn checked_fields(
    structure: &Struct,
    types: &TokenStream,
    row: &Lifetime,
    kind: &TokenStream,
) -> Vec<TokenStream> {
    let names = names(types, &structure.fields);
    let field = |(field, name): (&Field, TokenStream)| {
        let ty = &field.ty;
        let may_be_missing = field.default_when_missing.is_some();
        quote_spanned! {ty.span()=>
            #types::structs::#kind {
                name: #name,
                check: <#ty as #types::DecodeValue<#row>>::type_check,
                may_be_missing: #may_be_missing,
            }
        }
    };
    structure.fields.iter().zip(names).map(field).collect()
}

fn decode_fields(structure: &Struct, types: &TokenStream, row: &Lifetime) -> TokenStream {
    let flat: Vec<&Type> = structure
        .flattened
        .iter()
        .map(|(_, ty): &(Member, Type)| ty)
        .collect();
    let names = structure.fields.iter().map(|field| &field.name);
    let fields = row_fields(structure, types, row);
    let own = quote!(#types::structs::FieldLayout::by_name(columns, &[#(#fields),*]));
    let layout = match flat.is_empty() {
        true => own,
        false => quote! {
            ::core::result::Result::Ok((
                #own?,
                #(<#flat as #types::structs::DecodeFields<#row>>::layout(columns)?,)*
            ))
        },
    };
    quote! {
        fn has_column(name: &str) -> bool {
            match name {
                #(#names => true,)*
                _ => false #(|| <#flat as #types::structs::DecodeFields<#row>>::has_column(name))*,
            }
        }

        fn layout(
            columns: &[#types::ColumnSpec],
        ) -> ::core::result::Result<Self::Layout, #types::RowError> {
            #layout
        }
    }
}
