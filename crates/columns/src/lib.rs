//! `#[derive(Columns)]`: implements `quell_recording::columns::Columns`, whose documentation has the words of `#[column(…)]`.

mod attribute;

use attribute::{Field, from_field};
use proc_macro::TokenStream;
use quote::quote;
use syn::{Data, DeriveInput, Error, Fields, parse_macro_input};

/// Implements `Columns` for a struct of named fields: each field with `#[column]` is a column, in the order of the fields.
#[proc_macro_derive(Columns, attributes(column))]
pub fn columns(input: TokenStream) -> TokenStream {
    let input = parse_macro_input!(input as DeriveInput);
    implement(&input).unwrap_or_else(Error::into_compile_error).into()
}

fn implement(input: &DeriveInput) -> syn::Result<proc_macro2::TokenStream> {
    let Data::Struct(data) = &input.data else {
        return Err(Error::new_spanned(&input.ident, "a row is a struct"));
    };
    let Fields::Named(fields) = &data.fields else {
        return Err(Error::new_spanned(&input.ident, "the fields of a row have names"));
    };
    let fields = fields.named.iter().map(from_field).collect::<syn::Result<Vec<_>>>()?.concat();
    let name = &input.ident;
    let (generics, types, conditions) = input.generics.split_for_impl();
    let columns = fields.iter().map(Field::columns);
    let values = fields.iter().map(Field::values);
    Ok(quote! {
        impl #generics ::quell_recording::columns::Columns for #name #types #conditions {
            fn columns() -> ::std::vec::Vec<::quell_recording::columns::Column> {
                let mut columns = ::std::vec::Vec::new();
                #(#columns)*
                columns
            }

            fn values(&self) -> ::std::vec::Vec<::quell_recording::columns::Value> {
                let mut values = ::std::vec::Vec::new();
                #(#values)*
                values
            }
        }
    })
}
