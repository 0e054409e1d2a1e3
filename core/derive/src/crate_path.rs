//! Where the code that a macro writes finds the driver: the module `types`, of `messina-core` or of a
//! transport that hands it on, by the name that the user's manifest gives it.

use proc_macro_crate::{FoundCrate, crate_name};
use proc_macro2::{Span, TokenStream};
use quote::quote;
use syn::Ident;

use crate::attributes::ContainerAttributes;

/// Packages that have the module, the first one found is taken.
const PACKAGES: [&str; 2] = ["messina-core", "messina-tokio"];

/// The path of the module `types`.
pub(crate) fn types(attributes: &ContainerAttributes) -> TokenStream {
    if let Some(path) = &attributes.krate {
        let path = &path.value;
        return quote!(#path::types);
    }
    let name = PACKAGES.into_iter().find_map(|package| {
        Some(match crate_name(package).ok()? {
            // Its library, tests and examples can all name it so.
            FoundCrate::Itself => package.replace('-', "_"),
            FoundCrate::Name(name) => name,
        })
    });
    let name = Ident::new(name.as_deref().unwrap_or("messina_core"), Span::call_site());
    quote!(::#name::types)
}
