//! What a macro is applied to: a struct with its fields, or an enumeration with its variants, with
//! their names worked out and all rules of the attributes checked.

use proc_macro2::Span;
use syn::ext::IdentExt;
use syn::spanned::Spanned;
use syn::{
    Data, DeriveInput, Error, Fields, Generics, Ident, Index, Member, Result, Type, Variant,
};

use crate::attributes::{ContainerAttributes, FieldAttributes, Mark, span, variant_name};

/// A struct or enumeration.
pub(crate) struct Input {
    pub(crate) ident: Ident,
    pub(crate) generics: Generics,
    pub(crate) attributes: ContainerAttributes,
    pub(crate) body: Body,
}

pub(crate) enum Body {
    Struct(Struct),
    Enumeration(Vec<Choice>),
}

/// A struct's fields.
pub(crate) struct Struct {
    /// Fields that have columns of their own, in order.
    pub(crate) fields: Vec<Field>,
    /// Fields whose own fields are columns.
    pub(crate) flattened: Vec<(Member, Type)>,
    /// Fields that are left out.
    pub(crate) skipped: Vec<(Member, Type)>,
    /// Fields go by their order.
    pub(crate) by_position: bool,
    /// It stands for its only field.
    pub(crate) is_transparent: bool,
}

/// A field with a column of its own.
pub(crate) struct Field {
    pub(crate) member: Member,
    pub(crate) ty: Type,
    /// The name of its column.
    pub(crate) name: String,
    /// How errors call it: `Struct.field`.
    pub(crate) label: String,
    pub(crate) default_when_null: bool,
    pub(crate) default_when_missing: Mark,
}

/// A variant.
pub(crate) struct Choice {
    pub(crate) ident: Ident,
    pub(crate) name: String,
}

impl Input {
    pub(crate) fn parse(input: DeriveInput) -> Result<Self> {
        let attributes = ContainerAttributes::parse(&input.attrs)?;
        let body = match input.data {
            Data::Struct(data) => {
                Body::Struct(Struct::parse(&input.ident, &attributes, data.fields)?)
            }
            Data::Enum(data) => {
                Body::Enumeration(choices(&input.ident, &attributes, data.variants)?)
            }
            Data::Union(data) => {
                return Err(Error::new(
                    data.union_token.span(),
                    "unions have no columns",
                ));
            }
        };
        Ok(Self {
            ident: input.ident,
            generics: input.generics,
            attributes,
            body,
        })
    }

    /// The struct, for macros that take no enumeration.
    pub(crate) fn structure(&self) -> Result<&Struct> {
        match &self.body {
            Body::Struct(structure) => Ok(structure),
            Body::Enumeration(_) => Err(Error::new(self.ident.span(), "a row is a struct")),
        }
    }
}

impl Struct {
    fn parse(ident: &Ident, attributes: &ContainerAttributes, fields: Fields) -> Result<Self> {
        let is_named = matches!(fields, Fields::Named(_));
        let is_tuple = matches!(fields, Fields::Unnamed(_));
        let by_position = attributes.by_position.is_some() || is_tuple;
        refuse(&attributes.by_number, "only an enumeration goes by number")?;
        if let (true, Some(rename_all)) = (by_position, &attributes.rename_all) {
            return Err(Error::new(rename_all.span, NO_NAMES));
        }
        let mut parsed = Self {
            fields: Vec::new(),
            flattened: Vec::new(),
            skipped: Vec::new(),
            by_position,
            is_transparent: false,
        };
        let mut errors = Errors::default();
        for (index, field) in fields.into_iter().enumerate() {
            errors.keep(parsed.add(ident, attributes, index, field));
        }
        errors.finish()?;
        let is_single = parsed.fields.len() == 1 && parsed.flattened.is_empty();
        if let Some(transparent) = &attributes.transparent {
            if !is_single {
                let why = "a transparent struct has one field that is not skipped";
                return Err(Error::new(transparent.span, why));
            }
            refuse(
                &attributes.by_position,
                "a transparent struct stands for its field",
            )?;
        }
        parsed.is_transparent = is_single
            && (attributes.transparent.is_some()
                || (!is_named && attributes.by_position.is_none()));
        Ok(parsed)
    }

    fn add(
        &mut self,
        ident: &Ident,
        attributes: &ContainerAttributes,
        index: usize,
        field: syn::Field,
    ) -> Result<()> {
        let own = FieldAttributes::parse(&field.attrs)?;
        let (member, plain) = match field.ident {
            Some(name) => {
                let plain = name.unraw().to_string();
                (Member::Named(name), plain)
            }
            None => {
                let index = Index {
                    index: u32::try_from(index).unwrap_or(u32::MAX),
                    span: field.ty.span(),
                };
                (Member::Unnamed(index.clone()), index.index.to_string())
            }
        };
        if own.skip.is_some() {
            self.skipped.push((member, field.ty));
            return Ok(());
        }
        if self.by_position {
            refuse(&own.flatten, NO_NAMES)?;
            if let Some(rename) = &own.rename {
                return Err(Error::new(rename.span, NO_NAMES));
            }
        }
        if own.flatten.is_some() {
            self.flattened.push((member, field.ty));
            return Ok(());
        }
        let label = format!("{}.{plain}", ident.unraw());
        let place = own
            .rename
            .as_ref()
            .map_or_else(|| member.span(), |rename| rename.span);
        let name = match (own.rename, &attributes.rename_all) {
            (Some(rename), _) => rename.value,
            (None, Some(case)) => case.value.apply(&plain),
            (None, None) => plain,
        };
        if self.fields.iter().any(|before| before.name == name) {
            return Err(Error::new(place, format!("two fields are named {name}")));
        }
        self.fields.push(Field {
            member,
            ty: field.ty,
            name,
            label,
            default_when_null: own.default_when_null.is_some(),
            default_when_missing: own.default_when_missing,
        });
        Ok(())
    }
}

const NO_NAMES: &str = "fields that go by position have no names";

fn choices(
    ident: &Ident,
    attributes: &ContainerAttributes,
    variants: impl IntoIterator<Item = Variant>,
) -> Result<Vec<Choice>> {
    for mark in [
        &attributes.by_position,
        &attributes.transparent,
        &attributes.allow_unknown,
        &attributes.allow_unused,
        &attributes.deny_unknown,
    ] {
        refuse(mark, "an attribute of structs")?;
    }
    if let (Some(_), Some(rename_all)) = (&attributes.by_number, &attributes.rename_all) {
        return Err(Error::new(
            rename_all.span,
            "variants that go by number have no names",
        ));
    }
    let mut choices: Vec<Choice> = Vec::new();
    let mut errors = Errors::default();
    for variant in variants {
        errors.keep(choice(attributes, &choices, variant).map(|choice| choices.push(choice)));
    }
    errors.finish()?;
    if choices.is_empty() {
        return Err(Error::new(
            ident.span(),
            "an enumeration without variants has no value",
        ));
    }
    Ok(choices)
}

fn choice(attributes: &ContainerAttributes, before: &[Choice], variant: Variant) -> Result<Choice> {
    let rename = variant_name(&variant.attrs)?;
    if !matches!(variant.fields, Fields::Unit) {
        let why = "a variant with fields is no single value: only enumerations without fields are";
        return Err(Error::new(variant.fields.span(), why));
    }
    let span = rename
        .as_ref()
        .map_or_else(|| variant.ident.span(), |rename| rename.span);
    let plain = variant.ident.unraw().to_string();
    let name = match (rename, &attributes.rename_all) {
        (Some(_), _) if attributes.by_number.is_some() => {
            return Err(Error::new(span, "variants that go by number have no names"));
        }
        (Some(rename), _) => rename.value,
        (None, Some(case)) => case.value.apply(&plain),
        (None, None) => plain,
    };
    if before.iter().any(|before| before.name == name) {
        return Err(Error::new(span, format!("two variants are named {name}")));
    }
    let ident = variant.ident;
    Ok(Choice { ident, name })
}

/// An error at a mark that must not be there.
pub(crate) fn refuse(mark: &Mark, why: &str) -> Result<()> {
    span(mark).map_or(Ok(()), |span: Span| Err(Error::new(span, why)))
}

/// Errors of several fields, told together.
#[derive(Default)]
struct Errors(Option<Error>);

impl Errors {
    fn keep(&mut self, result: Result<()>) {
        match (result, &mut self.0) {
            (Ok(()), _) => {}
            (Err(error), Some(first)) => first.combine(error),
            (Err(error), none) => *none = Some(error),
        }
    }

    fn finish(self) -> Result<()> {
        self.0.map_or(Ok(()), Err)
    }
}
