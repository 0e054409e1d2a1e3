//! `EncodeRow`: a struct as the values of a statement.

use proc_macro2::TokenStream;
use quote::{quote, quote_spanned};
use syn::spanned::Spanned;
use syn::{Member, Result, Type};

use crate::crate_path;
use crate::generics::Header;
use crate::input::{Field, Input};

pub(crate) fn derive(input: &Input) -> Result<TokenStream> {
    let structure = input.structure()?;
    let types = crate_path::types(&input.attributes);
    let mut header = Header::new(&input.generics);
    for field in &structure.fields {
        header.bound(&field.ty, &quote!(#types::EncodeValue));
    }
    for (_, ty) in &structure.flattened {
        header.bound(ty, &quote!(#types::structs::EncodeFields));
    }
    let (fields, flattened) = (&structure.fields, &structure.flattened);
    let encode_fields = encode_fields(&types, fields, flattened);
    let may_be_unused = input.attributes.allow_unused.is_some();
    let encode_row = match structure.by_position {
        true => by_position(&types, may_be_unused),
        false => by_name(&types, may_be_unused),
    };
    let encode_fields = header.implement(
        &quote!(#types::structs::EncodeFields),
        &input.ident,
        &encode_fields,
    );
    let encode_row = header.implement(&quote!(#types::EncodeRow), &input.ident, &encode_row);
    Ok(quote!(#encode_fields #encode_row))
}

/// Fields by their positions, those of flattened structs behind the others.
fn encode_fields(
    types: &TokenStream,
    fields: &[Field],
    flattened: &[(Member, Type)],
) -> TokenStream {
    let own = fields.len();
    let flat: Vec<_> = flattened.iter().map(|(_, ty)| ty).collect();
    let numbers = 0..own;
    let names = names(types, fields);
    let name_arms = numbers.clone().zip(&names);
    let name_arms =
        name_arms.map(|(index, name)| quote!(#index => ::core::option::Option::Some(#name),));
    let value_arms = numbers
        .zip(fields)
        .map(|(index, Field { member, ty, .. })| {
            quote_spanned! {ty.span()=>
                #index => <#ty as #types::EncodeValue>::encode(&self.#member, ty, writer),
            }
        });
    let flat_names = flat.iter().map(|ty| {
        quote! {
            if index < <#ty as #types::structs::EncodeFields>::COUNT {
                return <#ty as #types::structs::EncodeFields>::field_name(index);
            }
            let index = index.wrapping_sub(<#ty as #types::structs::EncodeFields>::COUNT);
        }
    });
    let flat_values = flattened.iter().map(|(member, ty)| {
        quote! {
            if index < <#ty as #types::structs::EncodeFields>::COUNT {
                return #types::structs::EncodeFields::encode_field(&self.#member, index, ty, writer);
            }
            let index = index.wrapping_sub(<#ty as #types::structs::EncodeFields>::COUNT);
        }
    });
    quote! {
        const COUNT: usize = #own #(+ <#flat as #types::structs::EncodeFields>::COUNT)*;

        fn field_name(index: usize) -> ::core::option::Option<#types::FieldName> {
            match index {
                #(#name_arms)*
                _ => {
                    let index = index.wrapping_sub(#own);
                    #(#flat_names)*
                    let _ = index;
                    ::core::option::Option::None
                }
            }
        }

        fn encode_field(
            &self,
            index: usize,
            ty: &#types::ColumnType,
            writer: #types::ValueWriter<'_>,
        ) -> ::core::result::Result<#types::Written, #types::EncodeValueError> {
            match index {
                #(#value_arms)*
                _ => {
                    let index = index.wrapping_sub(#own);
                    #(#flat_values)*
                    let _ = (index, ty, writer);
                    #types::structs::no_field()
                }
            }
        }
    }
}

/// What the fields go by.
pub(crate) fn names(types: &TokenStream, fields: &[Field]) -> Vec<TokenStream> {
    let name = |Field { name, label, .. }: &Field| quote!(#types::FieldName { name: #name, field: #label });
    fields.iter().map(name).collect()
}

fn by_name(types: &TokenStream, may_be_unused: bool) -> TokenStream {
    quote! {
        const NAMES: ::core::option::Option<#types::ValueNames> =
            ::core::option::Option::Some(#types::ValueNames::new(
                <Self as #types::structs::EncodeFields>::field_name,
                #may_be_unused,
            ));

        fn encode_row<MessinaSink: #types::structs::Sink>(
            &self,
            columns: &[#types::ColumnSpec],
            values: &mut #types::structs::ValuesBuilder<MessinaSink>,
        ) -> ::core::result::Result<(), #types::BindError> {
            #types::structs::encode_by_name(self, columns, values)
        }

        fn encode_ordered<MessinaSink: #types::structs::Sink>(
            &self,
            order: &#types::MarkerOrder,
            columns: &[#types::ColumnSpec],
            values: &mut #types::structs::ValuesBuilder<MessinaSink>,
        ) -> ::core::result::Result<(), #types::BindError> {
            #types::structs::encode_ordered(self, order, columns, values)
        }
    }
}

fn by_position(types: &TokenStream, may_be_unused: bool) -> TokenStream {
    quote! {
        fn encode_row<MessinaSink: #types::structs::Sink>(
            &self,
            columns: &[#types::ColumnSpec],
            values: &mut #types::structs::ValuesBuilder<MessinaSink>,
        ) -> ::core::result::Result<(), #types::BindError> {
            #types::structs::encode_by_position(self, #may_be_unused, columns, values)
        }
    }
}
