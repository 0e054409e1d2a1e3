//! The node's CQL: text to syntax tree. Names and types are judged later, against the schema.

mod ast;
mod data;
mod ddl;
mod lexer;
mod objects;
mod parser;
mod relation;
mod selector;
mod term;

pub(crate) use ast::*;
pub(crate) use parser::{Parsed, parse};
