//! `#[parameters]`: one declaration of a parameter, from which everything else about it follows.
//! `derive(JsonSchema)`: schemars' own, compiled where a schema is asked for.

use proc_macro2::TokenStream;
use quote::{format_ident, quote};
use syn::ext::IdentExt;
use syn::{
    Attribute, Data, DeriveInput, Error, Expr, ExprLit, Field, Fields, GenericArgument, Ident, Lit,
    LitStr, Path, PathArguments, Result, Token, Type, Visibility, parse_quote,
};

/// Makes a struct the table of parameters that a scenario states.
///
/// It reads and writes the struct with serde, refuses unknown keys, and implements `Declared` of
/// `aqmlab_declare`; `Default`, too, if no key is required. A field is required unless it is an
/// `Option` or has a default. `#[param(...)]` takes, in any order:
///
/// - `default = VALUE`, or `default` for that of the type;
/// - `above`, `least`, `below`, `most` `= VALUE`: its bounds. Those of numbers stand in the schema;
/// - `words = TEXT`: what its bounds ask for, where their own words do not fit;
/// - `check = FUNCTION`, of the key and the value, for what bounds cannot say;
/// - `table`: it holds parameters of its own, or a list of such tables; they are checked, too;
/// - `unwritten`: it is written only where it differs from its default, which the schema still has;
/// - `changeable`: it can change during a run.
///
/// A value in quotes is read as the scenario would have it: `default = "5 ms"`.
#[proc_macro_attribute]
pub fn parameters(
    arguments: proc_macro::TokenStream,
    item: proc_macro::TokenStream,
) -> proc_macro::TokenStream {
    assert!(arguments.is_empty(), "#[parameters] takes no arguments");
    let input = syn::parse_macro_input!(item as DeriveInput);
    let made = expand(input);
    made.unwrap_or_else(Error::into_compile_error).into()
}

/// Derives `JsonSchema` of schemars: what its own derive makes, with the same attributes.
///
/// The functions of schemars' derive are long, and few runs call them. So they are made for a copy of
/// the type that is generic, and the type's own ones hand over to it: the compiler makes them in the
/// crate that asks for the schema, not in each crate that declares a type, which it optimises for
/// packets.
#[proc_macro_derive(JsonSchema, attributes(serde, schemars))]
pub fn json_schema(item: proc_macro::TokenStream) -> proc_macro::TokenStream {
    let input = syn::parse_macro_input!(item as DeriveInput);
    let made = expand_schema(input);
    made.unwrap_or_else(Error::into_compile_error).into()
}

fn expand_schema(mut copy: DeriveInput) -> Result<TokenStream> {
    let name = copy.ident.clone();
    if !copy.generics.params.is_empty() {
        return Err(Error::new_spanned(
            name,
            "JsonSchema of a generic type: derive schemars' own",
        ));
    }
    let text = name.to_string();
    copy.ident = format_ident!("{name}Schema");
    copy.vis = Visibility::Inherited;
    copy.generics.params.push(parse_quote!(const ASKED: bool));
    fn keep(attributes: &mut Vec<Attribute>) {
        let kept = ["doc", "serde", "schemars"];
        attributes.retain(|it| kept.iter().any(|kept| it.path().is_ident(kept)));
    }
    keep(&mut copy.attrs);
    match &mut copy.data {
        Data::Struct(it) => it.fields.iter_mut().for_each(|it| keep(&mut it.attrs)),
        Data::Enum(it) => {
            for variant in &mut it.variants {
                keep(&mut variant.attrs);
                variant.fields.iter_mut().for_each(|it| keep(&mut it.attrs));
            }
        }
        Data::Union(it) => return Err(Error::new_spanned(it.union_token, "a union has no schema")),
    }
    let ident = &copy.ident;
    Ok(quote! {
        const _: () = {
            #[derive(::schemars::JsonSchema)]
            #[schemars(rename = #text)]
            #[allow(dead_code, unused_qualifications)]
            #copy

            impl ::schemars::JsonSchema for #name {
                #[inline]
                fn schema_name() -> ::std::borrow::Cow<'static, str> {
                    <#ident<true> as ::schemars::JsonSchema>::schema_name()
                }

                #[inline]
                fn schema_id() -> ::std::borrow::Cow<'static, str> {
                    <#ident<true> as ::schemars::JsonSchema>::schema_id()
                }

                #[inline]
                fn json_schema(generator: &mut ::schemars::SchemaGenerator) -> ::schemars::Schema {
                    <#ident<true> as ::schemars::JsonSchema>::json_schema(generator)
                }

                #[inline]
                fn inline_schema() -> bool {
                    <#ident<true> as ::schemars::JsonSchema>::inline_schema()
                }
            }
        };
    })
}

/// What `#[param(...)]` says of a field.
#[derive(Default)]
struct Param {
    /// The default; of its type, if it has no value.
    default: Option<Option<Expr>>,
    /// The name of each bound and its value.
    bounds: Vec<(Ident, Expr)>,
    words: Option<Expr>,
    check: Option<Path>,
    table: bool,
    unwritten: bool,
    changeable: bool,
}

impl Param {
    /// Takes the attribute from the field.
    fn take(field: &mut Field) -> Result<Self> {
        let mut param = Self::default();
        let is_param = |attribute: &Attribute| attribute.path().is_ident("param");
        for attribute in field.attrs.extract_if(.., |it| is_param(it)) {
            attribute.parse_nested_meta(|meta| {
                let name = meta.path.require_ident()?;
                match name.to_string().as_str() {
                    "default" if meta.input.peek(Token![=]) => {
                        param.default = Some(Some(meta.value()?.parse()?));
                    }
                    "default" => param.default = Some(None),
                    "above" | "least" | "below" | "most" => {
                        param.bounds.push((name.clone(), meta.value()?.parse()?));
                    }
                    "words" => param.words = Some(meta.value()?.parse()?),
                    "check" => param.check = Some(meta.value()?.parse()?),
                    "table" => param.table = true,
                    "unwritten" => param.unwritten = true,
                    "changeable" => param.changeable = true,
                    _ => return Err(meta.error("no property of a parameter")),
                }
                Ok(())
            })?;
        }
        Ok(param)
    }

    /// The bounds, as a value of their type.
    fn bounds(&self, of: &Type) -> TokenStream {
        let bounds = self.bounds.iter().map(|(name, bound)| {
            let bound = value(bound, of);
            quote!(#name: ::core::option::Option::Some(#bound),)
        });
        let words = self.words.iter();
        quote!(::aqmlab_declare::Bounds::<#of> {
            #(#bounds)*
            #(words: ::core::option::Option::Some(#words),)*
            ..::aqmlab_declare::Bounds::NONE
        })
    }

    /// The bounds of a number, as attributes for the schema.
    fn in_schema(&self) -> Vec<Attribute> {
        let (mut range, mut attributes) = (Vec::new(), Vec::new());
        for (name, bound) in &self.bounds {
            match name.to_string().as_str() {
                "least" => range.push(quote!(min = #bound)),
                "most" => range.push(quote!(max = #bound)),
                "above" => attributes.push(quote!(extend("exclusiveMinimum" = #bound))),
                _ => attributes.push(quote!(extend("exclusiveMaximum" = #bound))),
            }
        }
        if !range.is_empty() {
            attributes.push(quote!(range(#(#range),*)));
        }
        let attributes = attributes.into_iter();
        attributes
            .map(|it| parse_quote!(#[schemars(#it)]))
            .collect()
    }
}

/// The type in an `Option`.
fn optional(ty: &Type) -> Option<&Type> {
    let Type::Path(path) = ty else { return None };
    let last = path.path.segments.last()?;
    let PathArguments::AngleBracketed(arguments) = &last.arguments else {
        return None;
    };
    match arguments.args.first()? {
        GenericArgument::Type(inner) if last.ident == "Option" => Some(inner),
        _ => None,
    }
}

fn is_number(ty: &Type) -> bool {
    let Type::Path(path) = ty else { return false };
    let numbers = ["f64", "i32", "u8", "u16", "u32", "u64"];
    numbers.iter().any(|number| path.path.is_ident(number))
}

/// A value of this type, which may be written as in a scenario.
fn value(written: &Expr, ty: &Type) -> TokenStream {
    match written {
        Expr::Lit(ExprLit {
            lit: Lit::Str(_), ..
        }) => {
            quote!(#written.parse::<#ty>().expect("a declaration is written as in a scenario"))
        }
        _ => quote!(#written),
    }
}

fn expand(mut input: DeriveInput) -> Result<TokenStream> {
    let name = input.ident.clone();
    let Data::Struct(data) = &mut input.data else {
        return Err(Error::new(name.span(), "parameters are a struct"));
    };
    let Fields::Named(fields) = &mut data.fields else {
        return Err(Error::new(name.span(), "parameters have names"));
    };
    let mut all_have_defaults = true;
    let mut keys = Vec::new();
    let (mut defaults, mut functions) = (Vec::new(), Vec::new());
    let (mut checks, mut bounded, mut changeable) = (Vec::new(), Vec::new(), Vec::new());
    for field in &mut fields.named {
        let param = Param::take(field)?;
        let ident = field.ident.clone().expect("the fields are named");
        let key = LitStr::new(&ident.unraw().to_string(), ident.span());
        let is_cfg = |attribute: &&Attribute| attribute.path().is_ident("cfg");
        let cfg: Vec<Attribute> = field.attrs.iter().filter(is_cfg).cloned().collect();
        keys.push(quote!(#(#cfg)* #key));
        let ty = field.ty.clone();
        let inner = optional(&ty).unwrap_or(&ty);
        if param.changeable {
            changeable.push(key.clone());
        }
        match &param.default {
            Some(Some(default)) => {
                let function = format_ident!("default_{ident}");
                let path = format!("{name}::{function}");
                let default = value(default, &ty);
                field.attrs.push(parse_quote!(#[serde(default = #path)]));
                functions.push(quote!(fn #function() -> #ty { #default }));
                if param.unwritten {
                    let is_default = format_ident!("is_{function}");
                    let path = format!("{name}::{is_default}");
                    field
                        .attrs
                        .push(parse_quote!(#[serde(skip_serializing_if = #path)]));
                    functions.push(quote! {
                        fn #is_default(value: &#ty) -> bool { *value == Self::#function() }
                    });
                    field
                        .attrs
                        .push(parse_quote!(#[schemars(extend("default" = #name::#function()))]));
                }
                defaults.push(quote!(#(#cfg)* #ident: Self::#function(),));
            }
            has_default => {
                match has_default.is_some() || optional(&ty).is_some() {
                    true => field.attrs.push(parse_quote!(#[serde(default)])),
                    false => all_have_defaults = false,
                }
                if param.unwritten {
                    let path = "::aqmlab_declare::is_default";
                    field
                        .attrs
                        .push(parse_quote!(#[serde(skip_serializing_if = #path)]));
                    if optional(&ty).is_none() {
                        field.attrs.push(parse_quote!(
                            #[schemars(extend("default" = <#ty as ::core::default::Default>::default()))]
                        ));
                    }
                }
                defaults.push(quote!(#(#cfg)* #ident: ::core::default::Default::default(),));
            }
        }
        let mut of_the_value = Vec::new();
        if !param.bounds.is_empty() {
            if is_number(inner) {
                field.attrs.extend(param.in_schema());
            }
            let bounds = param.bounds(inner);
            of_the_value.push(quote!(#bounds.check(#key, *value)?;));
            bounded.push(quote!(#bounds.outside(#key, &mut refused);));
        }
        if let Some(check) = &param.check {
            of_the_value.push(quote!(#check(#key, *value)?;));
            bounded.push(quote!(::aqmlab_declare::extremes::<#inner>(#key, #check, &mut refused);));
        }
        if param.table {
            of_the_value.push(quote! {
                ::aqmlab_declare::check::within(
                    #key,
                    ::aqmlab_declare::Declared::check_each(value),
                )?;
            });
        }
        if !of_the_value.is_empty() {
            checks.push(match optional(&ty) {
                Some(_) => quote!(#(#cfg)* if let Some(value) = &self.#ident { #(#of_the_value)* }),
                None => quote!(#(#cfg)* { let value = &self.#ident; #(#of_the_value)* }),
            });
        }
    }
    let default = all_have_defaults.then(|| {
        quote! {
            impl ::core::default::Default for #name {
                fn default() -> Self {
                    Self { #(#defaults)* }
                }
            }
        }
    });
    Ok(quote! {
        #[derive(Clone, Debug, PartialEq)]
        #[derive(::serde::Serialize, ::serde::Deserialize, ::aqmlab_declare::JsonSchema)]
        #[serde(deny_unknown_fields)]
        #input

        impl #name { #(#functions)* }

        #default

        impl ::aqmlab_declare::Declared for #name {
            const KEYS: &'static [&'static str] = &[#(#keys),*];

            const CHANGEABLE: &'static [&'static str] = &[#(#changeable),*];

            fn check_each(&self) -> ::core::result::Result<(), ::aqmlab_declare::Problem> {
                #(#checks)*
                Ok(())
            }

            fn refused() -> Vec<::aqmlab_declare::Refused> {
                let mut refused = Vec::new();
                #(#bounded)*
                refused
            }
        }
    })
}
