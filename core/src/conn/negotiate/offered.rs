//! What follows from what a node offers.

use alloc::vec::Vec;

use super::super::extensions::{Agreed, Offer, TabletsRouting, key};
use super::HandshakeConfig;
use crate::wire::response::Supported;
use crate::wire::{Compression, ProtocolVersion};

pub(super) fn offers(supported: &Supported<'_>, wanted: Compression) -> bool {
    let offered = supported.get(key::COMPRESSION);
    offered.is_some_and(|names| names.iter().any(|name| name == wanted.name()))
}

/// What follows from an offer.
#[inline(never)]
pub(super) fn agree(config: &HandshakeConfig, agreed: &mut Agreed, offer: &Offer) {
    agreed.version = version(config, offer);
    agreed.tablets = tablets(config, offer);
    agreed.metadata_id = offer.metadata_id || agreed.version.has_metadata_id();
    agreed.offer = *offer;
}

#[cfg(any(test, feature = "protocol-v5"))]
fn version(config: &HandshakeConfig, offer: &Offer) -> ProtocolVersion {
    let can_compress = config.compression.is_none_or(Compression::is_in_version_5);
    match config.may_rise && can_compress && offer.protocol_v5 && !offer.is_scylla {
        true => ProtocolVersion::V5,
        false => config.version,
    }
}

#[cfg(not(any(test, feature = "protocol-v5")))]
const fn version(config: &HandshakeConfig, _: &Offer) -> ProtocolVersion {
    config.version
}

fn tablets(config: &HandshakeConfig, offer: &Offer) -> TabletsRouting {
    match (config.tablets_max, offer.tablets()) {
        (TabletsRouting::Off, _) => TabletsRouting::Off,
        (TabletsRouting::V1, TabletsRouting::V2) if offer.tablets_v1 => TabletsRouting::V1,
        (TabletsRouting::V1, TabletsRouting::V2) => TabletsRouting::Off,
        (_, offered) => offered,
    }
}

/// STARTUP's options: an extension is switched on by the presence of its key, so only what is
/// offered and wanted is named.
pub(super) fn startup_options<'a>(
    config: &'a HandshakeConfig,
    agreed: &Agreed,
) -> Vec<(&'a str, &'a str)> {
    let mut options = Vec::new();
    put_option(&mut options, key::CQL_VERSION, "3.0.0");
    for (name, value) in &config.startup_options {
        put_option(&mut options, name, value);
    }
    let (offer, tablets) = (&agreed.offer, agreed.tablets);
    if let Some(text) = &config.driver_config
        && HAS_DRIVER_CONFIG
        && offer.client_options
    {
        put_option(&mut options, key::DRIVER_CONFIG, text);
    }
    if let Some(wanted) = config.compression {
        put_option(&mut options, key::COMPRESSION, wanted.name());
    }
    let are_on = [
        offer.lwt_mask.is_some(),
        offer.rate_limit_error.is_some(),
        offer.metadata_id,
        tablets == TabletsRouting::V1,
        tablets == TabletsRouting::V2,
    ];
    for (name, is_on) in EXTENSIONS.iter().zip(are_on) {
        if is_on {
            put_option(&mut options, name, "");
        }
    }
    options
}

#[inline(never)]
fn put_option<'a>(options: &mut Vec<(&'a str, &'a str)>, name: &'a str, value: &'a str) {
    options.push((name, value));
}

/// Whether sessions of this build tell how they are set.
const HAS_DRIVER_CONFIG: bool = cfg!(any(test, feature = "driver-config"));

/// The keys of extensions that have no value.
static EXTENSIONS: [&str; 5] = [
    key::LWT_MARK,
    key::RATE_LIMIT_ERROR,
    key::METADATA_ID,
    key::TABLETS_V1,
    key::TABLETS_V2,
];
