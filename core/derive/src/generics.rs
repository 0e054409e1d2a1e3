//! Headers of the written implementations: lifetimes, and bounds on what depends on type parameters.
//!
//! A bound is put on the type of a field, not on the parameter, and only where a parameter occurs in
//! it: for all other fields the compiler finds out by itself, and says it at the field.

use proc_macro2::{Span, TokenStream, TokenTree};
use quote::{ToTokens, quote};
use syn::{Generics, Ident, Lifetime, LifetimeParam, Type, WherePredicate, parse_quote};

/// The generics of one implementation.
pub(crate) struct Header {
    generics: Generics,
    parameters: Vec<Ident>,
    /// Generics of the type, without what was added.
    of_type: Generics,
}

impl Header {
    pub(crate) fn new(generics: &Generics) -> Self {
        let parameters = generics
            .type_params()
            .map(|parameter| parameter.ident.clone());
        Self {
            parameters: parameters.collect(),
            generics: generics.clone(),
            of_type: generics.clone(),
        }
    }

    /// Requires a trait of a field's type, if that depends on a type parameter.
    pub(crate) fn bound(&mut self, ty: &Type, bound: &TokenStream) {
        if mentions(ty.to_token_stream(), &self.parameters) {
            self.push(parse_quote!(#ty: #bound));
        }
    }

    /// The lifetime of the row that is read: that of the struct if it borrows, which then all of its
    /// lifetimes are.
    pub(crate) fn row_lifetime(&mut self) -> Lifetime {
        let own: Vec<_> = self
            .of_type
            .lifetimes()
            .map(|own| own.lifetime.clone())
            .collect();
        let Some((first, others)) = own.split_first() else {
            let row = Lifetime::new("'messina_row", Span::call_site());
            let parameter = LifetimeParam::new(row.clone());
            self.generics.params.insert(0, parameter.into());
            return row;
        };
        for other in others {
            self.push(parse_quote!(#first: #other));
            self.push(parse_quote!(#other: #first));
        }
        first.clone()
    }

    fn push(&mut self, predicate: WherePredicate) {
        self.generics.make_where_clause().predicates.push(predicate);
    }

    /// An implementation of a trait for the type.
    pub(crate) fn implement(
        &self,
        of: &TokenStream,
        ident: &Ident,
        body: &TokenStream,
    ) -> TokenStream {
        let (parameters, _, conditions) = self.generics.split_for_impl();
        let (_, arguments, _) = self.of_type.split_for_impl();
        quote! {
            #[automatically_derived]
            impl #parameters #of for #ident #arguments #conditions {
                #body
            }
        }
    }
}

/// Whether one of the names occurs.
fn mentions(tokens: TokenStream, names: &[Ident]) -> bool {
    tokens.into_iter().any(|token| match token {
        TokenTree::Ident(ident) => names.contains(&ident),
        TokenTree::Group(group) => mentions(group.stream(), names),
        _ => false,
    })
}
