//! `EncodeValue`: a struct as a value of a user-defined type, of a tuple or of its only field's type; an
//! enumeration as text or number.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Error, Result};

use crate::crate_path;
use crate::encode_row::names;
use crate::generics::Header;
use crate::input::{Body, Choice, Field, Input, Struct};

pub(crate) fn derive(input: &Input) -> Result<TokenStream> {
    let types = crate_path::types(&input.attributes);
    let mut header = Header::new(&input.generics);
    let body = match &input.body {
        Body::Enumeration(choices) => enumeration(input, choices, &types),
        Body::Struct(structure) => {
            not_flattened(structure)?;
            for field in &structure.fields {
                header.bound(&field.ty, &quote!(#types::EncodeValue));
            }
            match structure.fields.first() {
                Some(field) if structure.is_transparent => transparent(field, &types),
                _ => fields(input, structure, &types),
            }
        }
    };
    let body = quote! {
        fn encode(
            &self,
            ty: &#types::ColumnType,
            writer: #types::ValueWriter<'_>,
        ) -> ::core::result::Result<#types::Written, #types::EncodeValueError> {
            #body
        }
    };
    Ok(header.implement(&quote!(#types::EncodeValue), &input.ident, &body))
}

/// Only columns of rows can be taken together in a field.
pub(crate) fn not_flattened(structure: &Struct) -> Result<()> {
    let first = structure.flattened.first();
    first.map_or(Ok(()), |(member, _)| {
        Err(Error::new(member.span(), "only rows have flattened fields"))
    })
}

/// How fields find their counterparts.
pub(crate) fn matching(structure: &Struct, types: &TokenStream) -> TokenStream {
    match structure.by_position {
        true => quote!(#types::structs::Matching::ByPosition),
        false => quote!(#types::structs::Matching::ByName),
    }
}

fn transparent(Field { member, ty, .. }: &Field, types: &TokenStream) -> TokenStream {
    quote_spanned!(ty.span()=> <#ty as #types::EncodeValue>::encode(&self.#member, ty, writer))
}

fn fields(input: &Input, structure: &Struct, types: &TokenStream) -> TokenStream {
    let names = names(types, &structure.fields);
    let (matching, deny_unknown) = (
        matching(structure, types),
        input.attributes.deny_unknown.is_some(),
    );
    let arms = structure.fields.iter().enumerate().map(|(index, field)| {
        let value = transparent(field, types);
        quote!(#index => #value,)
    });
    quote! {
        #types::structs::encode_fields(
            ::core::any::type_name::<Self>(),
            ty,
            writer,
            &[#(#names),*],
            #matching,
            #deny_unknown,
            |index, ty, writer| match index {
                #(#arms)*
                _ => {
                    let _ = (ty, writer);
                    #types::structs::no_field()
                }
            },
        )
    }
}

fn enumeration(input: &Input, choices: &[Choice], types: &TokenStream) -> TokenStream {
    let variants = choices.iter().map(|choice| &choice.ident);
    if input.attributes.by_number.is_some() {
        return quote! {
            let number = match self { #(Self::#variants => Self::#variants as i64,)* };
            #types::structs::encode_number::<Self>(number, ty, writer)
        };
    }
    let names = choices.iter().map(|choice| &choice.name);
    quote! {
        let name = match self { #(Self::#variants => #names,)* };
        #types::structs::encode_variant::<Self>(name, ty, writer)
    }
}
