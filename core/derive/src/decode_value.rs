//! `DecodeValue`: the counterpart of `EncodeValue`.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Lifetime, Result};

use crate::crate_path;
use crate::decode_row::{bounds, checked_fields, taken};
use crate::encode_row::names;
use crate::encode_value::{matching, not_flattened};
use crate::generics::Header;
use crate::input::{Body, Choice, Field, Input, Struct, refuse};

pub(crate) fn derive(input: &Input) -> Result<TokenStream> {
    let types = crate_path::types(&input.attributes);
    let mut header = Header::new(&input.generics);
    let row = header.row_lifetime();
    let (check, decode) = match &input.body {
        Body::Enumeration(choices) => enumeration(input, choices, &types),
        Body::Struct(structure) => {
            not_flattened(structure)?;
            bounds(&mut header, structure, &types, &row);
            match structure.fields.first() {
                Some(field) if structure.is_transparent => {
                    transparent(structure, field, &types, &row)?
                }
                _ => fields(input, structure, &types, &row),
            }
        }
    };
    let body = quote! {
        fn type_check(
            ty: &#types::ColumnType,
        ) -> ::core::result::Result<(), #types::TypeMismatch> {
            #check
        }

        fn decode(
            ty: &#types::ColumnType,
            cell: ::core::option::Option<&#row [u8]>,
        ) -> ::core::result::Result<Self, #types::DecodeValueError> {
            #decode
        }
    };
    Ok(header.implement(&quote!(#types::DecodeValue<#row>), &input.ident, &body))
}

/// How a type is checked, and how a value is read.
type Both = (TokenStream, TokenStream);

fn transparent(
    structure: &Struct,
    field: &Field,
    types: &TokenStream,
    row: &Lifetime,
) -> Result<Both> {
    let Field { member, ty, .. } = field;
    refuse(
        &field.default_when_missing,
        "what stands for its field is never without it",
    )?;
    let check = quote_spanned!(ty.span()=> <#ty as #types::DecodeValue<#row>>::type_check(ty));
    let skipped = structure.skipped.iter().map(|(member, ty)| {
        quote_spanned!(ty.span()=> #member: <#ty as ::core::default::Default>::default(),)
    });
    let mut value =
        quote_spanned!(ty.span()=> <#ty as #types::DecodeValue<#row>>::decode(ty, cell)?);
    if field.default_when_null {
        value = quote_spanned! {ty.span()=>
            if cell.is_none() { <#ty as ::core::default::Default>::default() } else { #value }
        };
    }
    let decode = quote!(::core::result::Result::Ok(Self { #member: #value, #(#skipped)* }));
    Ok((check, decode))
}

fn fields(input: &Input, structure: &Struct, types: &TokenStream, row: &Lifetime) -> Both {
    let checked = checked_fields(structure, types, row, &quote!(ValueField));
    let names = names(types, &structure.fields);
    let (matching, deny_unknown) = (
        matching(structure, types),
        input.attributes.deny_unknown.is_some(),
    );
    let check = quote! {
        #types::structs::check_fields(
            ::core::any::type_name::<Self>(),
            ty,
            &[#(#checked),*],
            #matching,
            #deny_unknown,
        )
    };
    let taken = taken(structure, types, row);
    let cells = match structure.fields.is_empty() {
        true => quote!(_),
        false => quote!(cells),
    };
    let decode = quote! {
        let #cells = #types::structs::Fields::parse(
            ::core::any::type_name::<Self>(),
            ty,
            cell,
            &[#(#names),*],
            #matching,
        )?;
        ::core::result::Result::Ok(Self { #taken })
    };
    (check, decode)
}

fn enumeration(input: &Input, choices: &[Choice], types: &TokenStream) -> Both {
    let variants = choices.iter().map(|choice| &choice.ident);
    if input.attributes.by_number.is_some() {
        let check = quote!(#types::structs::check_number::<Self>(ty));
        let decode = quote! {
            let number = #types::structs::decode_number::<Self>(ty, cell)?;
            #(if number == Self::#variants as i64 {
                return ::core::result::Result::Ok(Self::#variants);
            })*
            ::core::result::Result::Err(#types::structs::no_variant::<Self>())
        };
        return (check, decode);
    }
    let names = choices.iter().map(|choice| &choice.name);
    let check = quote!(#types::structs::check_variant::<Self>(ty));
    let decode = quote! {
        match #types::structs::decode_variant::<Self>(ty, cell)? {
            #(#names => ::core::result::Result::Ok(Self::#variants),)*
            _ => ::core::result::Result::Err(#types::structs::no_variant::<Self>()),
        }
    };
    (check, decode)
}
