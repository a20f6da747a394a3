//! What `#[column(…)]` says of a field.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::meta::ParseNestedMeta;
use syn::{Attribute, Expr, ExprLit, Ident, Lit, LitInt, LitStr, Meta, Path, Type};

/// A field as a column, or as several.
#[derive(Clone)]
pub struct Field {
    name: Ident,
    /// Its name in JSON.
    written: String,
    kind: Type,
    meaning: String,
    column: ColumnAttribute,
}

/// The words of the attribute.
#[derive(Clone, Default)]
struct ColumnAttribute {
    title: Option<String>,
    unit: Option<Ident>,
    precision: Option<LitInt>,
    suffix: Option<LitStr>,
    plus: bool,
    importance: Option<Ident>,
    sweep: Option<Option<LitStr>>,
    absent: Option<LitStr>,
    yes_no: Option<(LitStr, LitStr)>,
    zero: bool,
    filled: bool,
    with: Option<Path>,
    flatten: bool,
    nested: bool,
}

/// Reads a field: a column for each attribute, so none where there is none.
pub fn from_field(field: &syn::Field) -> syn::Result<Vec<Field>> {
    let Some(name) = &field.ident else { return Ok(Vec::new()) };
    let meaning = field.attrs.iter().filter_map(documentation).collect::<Vec<_>>().join(" ");
    let written = field.attrs.iter().find_map(renamed).unwrap_or_else(|| name.to_string());
    let read = |attribute: &Attribute| {
        let mut column = ColumnAttribute::default();
        if !matches!(attribute.meta, Meta::Path(_)) {
            attribute.parse_nested_meta(|meta| column.read(&meta))?;
        }
        let (written, meaning) = (written.clone(), meaning.clone());
        Ok(Field { name: name.clone(), written, kind: field.ty.clone(), meaning, column })
    };
    field.attrs.iter().filter(|one| one.path().is_ident("column")).map(read).collect()
}

/// A line of a doc comment.
fn documentation(attribute: &Attribute) -> Option<String> {
    match &attribute.meta {
        Meta::NameValue(pair) if pair.path.is_ident("doc") => match &pair.value {
            Expr::Lit(ExprLit { lit: Lit::Str(text), .. }) => Some(text.value().trim().to_owned()),
            _ => None,
        },
        _ => None,
    }
}

/// The name that serde writes instead of the field's.
fn renamed(attribute: &Attribute) -> Option<String> {
    let mut name = None;
    if attribute.path().is_ident("serde") {
        // serde checks its other attributes; only its parts up to the name are read.
        let _ = attribute.parse_nested_meta(|meta| {
            if meta.path.is_ident("rename") {
                name = Some(meta.value()?.parse::<LitStr>()?.value());
            }
            Ok(())
        });
    }
    name
}

impl ColumnAttribute {
    fn read(&mut self, meta: &ParseNestedMeta<'_>) -> syn::Result<()> {
        let Some(word) = meta.path.get_ident() else { return Err(meta.error("one word is wanted")) };
        let text = || meta.value()?.parse::<LitStr>();
        match word.to_string().as_str() {
            "title" => self.title = Some(text()?.value()),
            "time" | "count" | "id" | "percent" | "points" | "number" | "words" | "name" => {
                self.unit = Some(word.clone());
            }
            "precision" => self.precision = Some(meta.value()?.parse()?),
            "suffix" => self.suffix = Some(text()?),
            "plus" => self.plus = true,
            "key" | "minor" | "page" | "data" => self.importance = Some(word.clone()),
            "sweep" => self.sweep = Some(if meta.input.peek(syn::Token![=]) { Some(text()?) } else { None }),
            "absent" => self.absent = Some(text()?),
            "yes" => {
                self.yes_no = Some((text()?, self.yes_no.take().map_or_else(|| empty(word), |(_, no)| no)));
            }
            "no" => {
                self.yes_no = Some((self.yes_no.take().map_or_else(|| empty(word), |(yes, _)| yes), text()?));
            }
            "with" => self.with = Some(meta.value()?.parse()?),
            "zero" => self.zero = true,
            "filled" => self.filled = true,
            "flatten" => self.flatten = true,
            "nested" => self.nested = true,
            _ => {
                return Err(meta.error(
                    "known are title, time, count, id, percent, points, number, words, name, precision, suffix, plus, key, minor, page, \
                     data, sweep, absent, yes, no, zero, filled, with, flatten and nested",
                ));
            }
        }
        Ok(())
    }
}

fn empty(at: &Ident) -> LitStr {
    LitStr::new("", at.span())
}

impl Field {
    /// Pushes the descriptions of its columns onto `columns`.
    pub fn columns(&self) -> TokenStream {
        let Self { kind, column, .. } = self;
        let name = &self.written;
        if column.flatten {
            return quote! { columns.extend(<#kind as ::quell_recording::columns::Flat>::columns()); };
        }
        if column.nested {
            let title = column.title.clone().unwrap_or_default();
            return quote! {
                let inner = <#kind as ::quell_recording::columns::Flat>::columns();
                columns.extend(inner.into_iter().map(|column| column.within(#name, #title)));
            };
        }
        let unit = column.unit.as_ref().map_or_else(|| usual_unit(name, kind), ToString::to_string);
        let unit = format_ident!("{}", capital(&unit));
        let title = column.title.clone().unwrap_or_else(|| usual_title(name));
        let importance = column.importance.as_ref().map_or_else(|| "usual".to_owned(), ToString::to_string);
        let importance = format_ident!("{}", capital(&importance));
        let precision = column.precision.as_ref().map_or_else(|| quote! { 2 }, |digits| quote! { #digits });
        let sweep = match &column.sweep {
            None => quote! { None },
            Some(None) => quote! { Some(#name) },
            Some(Some(column)) => quote! { Some(#column) },
        };
        let absent = column.absent.as_ref().map_or_else(|| quote! { "-" }, |text| quote! { #text });
        let yes_no = match &column.yes_no {
            None => quote! { ["yes", "no"] },
            Some((yes, no)) => quote! { [#yes, #no] },
        };
        let kind = match &column.with {
            None => quote! { <#kind as ::quell_recording::columns::AsValue>::KIND },
            Some(with) => quote! { ::quell_recording::columns::kind_of(|value: &#kind| #with(value)) },
        };
        let suffix = column.suffix.as_ref().map_or_else(|| quote! { "" }, |text| quote! { #text });
        let (meaning, zero, plus, filled) = (&self.meaning, column.zero, column.plus, column.filled);
        let computed = column.with.is_some();
        quote! {
            columns.push(::quell_recording::columns::Column {
                field: #name.to_owned(),
                title: #title.to_owned(),
                kind: #kind,
                unit: ::quell_recording::columns::Unit::#unit,
                precision: #precision,
                suffix: #suffix,
                plus: #plus,
                importance: ::quell_recording::columns::Importance::#importance,
                sweep: #sweep,
                absent: #absent,
                zero: #zero,
                filled: #filled,
                computed: #computed,
                yes_no: #yes_no,
                meaning: #meaning,
            });
        }
    }

    /// Pushes its values onto `values`.
    pub fn values(&self) -> TokenStream {
        let Self { name, kind, column, .. } = self;
        match &column.with {
            _ if column.flatten || column.nested => {
                quote! { values.extend(<#kind as ::quell_recording::columns::Flat>::values(&self.#name)); }
            }
            Some(with) => {
                quote! { values.push(::quell_recording::columns::AsValue::value(&#with(&self.#name))); }
            }
            None => quote! { values.push(::quell_recording::columns::AsValue::value(&self.#name)); },
        }
    }
}

/// What a field's name and type say of its unit: `_ns` is a time, `_percent` a percentage, a float a number, text is words, and other
/// numbers count.
fn usual_unit(name: &str, kind: &Type) -> String {
    let kind = quote! { #kind }.to_string();
    let unit = match () {
        () if name.ends_with("_ns") => "time",
        () if name.ends_with("_percent") => "percent",
        () if kind.contains("f64") => "number",
        () if kind.contains("bool") => "flag",
        () if kind.contains("String") || kind.contains("str") => "words",
        () => "count",
    };
    unit.to_owned()
}

/// `mean_phase_ns` is `mean phase`, `slowdown_percent` is `slowdown %`.
fn usual_title(name: &str) -> String {
    let name = name.strip_suffix("_ns").unwrap_or(name);
    let name = name.strip_suffix("_percent").map_or_else(|| name.to_owned(), |name| format!("{name} %"));
    name.replace('_', " ")
}

/// A word as a variant is written.
fn capital(word: &str) -> String {
    let mut letters = word.chars();
    letters.next().map_or_else(String::new, |first| first.to_uppercase().chain(letters).collect())
}
