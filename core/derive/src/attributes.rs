//! `#[messina(..)]` on structs, enumerations, fields and variants, as it was written.
//!
//! All four macros take the same attributes, so that one struct can derive several of them; what is
//! of no meaning to a macro is passed over by it. What cannot mean anything to any is an error at its
//! place.

use proc_macro2::{Span, TokenStream};
use syn::ext::IdentExt;
use syn::meta::ParseNestedMeta;
use syn::spanned::Spanned;
use syn::{Attribute, Error, LitStr, Path, Result};

use crate::names::Case;

/// An attribute's value with the place it was written at.
pub(crate) struct At<T> {
    pub(crate) value: T,
    pub(crate) span: Span,
}

/// An attribute that is there or not.
pub(crate) type Mark = Option<At<()>>;

/// Attributes of a struct or an enumeration.
#[derive(Default)]
pub(crate) struct ContainerAttributes {
    pub(crate) by_position: Mark,
    pub(crate) by_number: Mark,
    pub(crate) transparent: Mark,
    pub(crate) allow_unknown: Mark,
    pub(crate) allow_unused: Mark,
    pub(crate) deny_unknown: Mark,
    pub(crate) rename_all: Option<At<Case>>,
    pub(crate) krate: Option<At<Path>>,
}

impl ContainerAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self::default();
        each(attributes, |name, meta| {
            match name {
            "by_position" => mark(&mut parsed.by_position, meta),
            "by_number" => mark(&mut parsed.by_number, meta),
            "transparent" => mark(&mut parsed.transparent, meta),
            "allow_unknown" => mark(&mut parsed.allow_unknown, meta),
            "allow_unused" => mark(&mut parsed.allow_unused, meta),
            "deny_unknown" => mark(&mut parsed.deny_unknown, meta),
            "rename_all" => {
                let text = text(meta)?;
                let case = Case::named(&text.value())
                    .ok_or_else(|| Error::new(text.span(), Case::expected()))?;
                put(&mut parsed.rename_all, case, meta)
            }
            "crate" => {
                let path = text(meta)?.parse()?;
                put(&mut parsed.krate, path, meta)
            }
            _ => Err(meta.error(
                "not an attribute of structs or enumerations; these are: by_position, rename_all, allow_unknown, \
                 allow_unused, deny_unknown, transparent, by_number, crate",
            )),
        }
        })?;
        Ok(parsed)
    }
}

/// Attributes of a field.
#[derive(Default)]
pub(crate) struct FieldAttributes {
    pub(crate) rename: Option<At<String>>,
    pub(crate) skip: Mark,
    pub(crate) flatten: Mark,
    pub(crate) default_when_null: Mark,
    pub(crate) default_when_missing: Mark,
}

impl FieldAttributes {
    pub(crate) fn parse(attributes: &[Attribute]) -> Result<Self> {
        let mut parsed = Self::default();
        each(attributes, |name, meta| match name {
            "rename" => rename(&mut parsed.rename, meta),
            "skip" => mark(&mut parsed.skip, meta),
            "flatten" => mark(&mut parsed.flatten, meta),
            "default_when_null" => mark(&mut parsed.default_when_null, meta),
            "default_when_missing" => mark(&mut parsed.default_when_missing, meta),
            _ => Err(meta.error(
                "not an attribute of fields; these are: rename, skip, flatten, default_when_null, \
                 default_when_missing",
            )),
        })?;
        parsed.check()?;
        Ok(parsed)
    }

    /// What is skipped or flattened has no column of its own.
    fn check(&self) -> Result<()> {
        let rename = self.rename.as_ref().map(|rename| rename.span);
        let of_a_column = [
            rename,
            span(&self.default_when_null),
            span(&self.default_when_missing),
        ];
        let why = match (&self.skip, &self.flatten) {
            (None, None) => return Ok(()),
            (Some(_), Some(flatten)) => {
                return Err(Error::new(flatten.span, "a skipped field is not flattened"));
            }
            (Some(_), None) => "a skipped field has no column",
            (None, Some(_)) => "a flattened field has no column of its own",
        };
        let first = of_a_column.into_iter().flatten().next();
        first.map_or(Ok(()), |span| Err(Error::new(span, why)))
    }
}

/// Attributes of a variant: its name.
pub(crate) fn variant_name(attributes: &[Attribute]) -> Result<Option<At<String>>> {
    let mut name = None;
    each(attributes, |attribute, meta| match attribute {
        "rename" => rename(&mut name, meta),
        _ => Err(meta.error("not an attribute of variants; there is: rename")),
    })?;
    Ok(name)
}

/// Where a mark stands, if it does.
pub(crate) fn span(mark: &Mark) -> Option<Span> {
    mark.as_ref().map(|mark| mark.span)
}

/// Hands each item of each `#[messina(..)]` to `take`; all errors are told together.
fn each(
    attributes: &[Attribute],
    mut take: impl FnMut(&str, &ParseNestedMeta<'_>) -> Result<()>,
) -> Result<()> {
    let ours = |attribute: &&Attribute| attribute.path().is_ident("messina");
    let mut failed: Option<Error> = None;
    for attribute in attributes.iter().filter(ours) {
        let parsed = attribute.parse_nested_meta(|meta| {
            let name = match meta.path.get_ident() {
                Some(name) => name.unraw().to_string(),
                None => String::new(),
            };
            take(&name, &meta)
        });
        if let Err(error) = parsed {
            match &mut failed {
                Some(failed) => failed.combine(error),
                None => failed = Some(error),
            }
        }
    }
    failed.map_or(Ok(()), Err)
}

fn put<T>(place: &mut Option<At<T>>, value: T, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if place.is_some() {
        return Err(meta.error("given twice"));
    }
    let span = meta.path.span();
    *place = Some(At { value, span });
    Ok(())
}

fn mark(place: &mut Mark, meta: &ParseNestedMeta<'_>) -> Result<()> {
    if !meta.input.is_empty() && !meta.input.peek(syn::Token![,]) {
        let rest: TokenStream = meta.input.fork().parse()?;
        return Err(Error::new(rest.span(), "this attribute takes no value"));
    }
    put(place, (), meta)
}

fn rename(place: &mut Option<At<String>>, meta: &ParseNestedMeta<'_>) -> Result<()> {
    let name = text(meta)?;
    if name.value().is_empty() {
        return Err(Error::new(name.span(), "an empty name"));
    }
    put(place, name.value(), meta)
}

fn text(meta: &ParseNestedMeta<'_>) -> Result<LitStr> {
    meta.value()?.parse()
}
