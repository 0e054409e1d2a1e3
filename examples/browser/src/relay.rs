//! The relay between the page and the nodes. It knows the password, and lets in who holds a token that this program
//! signed a moment ago.

use core::error::Error;
use core::net::SocketAddr;
use std::time::{SystemTime, UNIX_EPOCH};

use messina_relay::{Access, Claims, Credentials, Relay, RelayConfig, Rule, SigningKey};
use messina_sim::tcp::SimServer;

/// How long a token is good for to begin with, in seconds; a WebSocket that is open stays open.
const TOKEN_LIFE: u64 = 60;

/// WebSockets that all pages together may have open.
const CONNECTIONS_MAX: u32 = 128;

/// Signs tokens for pages.
pub(crate) struct Signer {
    key: SigningKey,
    targets: Vec<String>,
}

impl core::fmt::Debug for Signer {
    fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
        f.debug_struct("Signer").finish_non_exhaustive()
    }
}

impl Signer {
    /// A token for the nodes of this cluster, and for nothing else.
    pub(crate) fn token(&self) -> String {
        let now = SystemTime::now()
            .duration_since(UNIX_EPOCH)
            .unwrap_or_default();
        let mut claims = Claims::new(now.as_secs() + TOKEN_LIFE);
        claims.subject = Some("page".to_owned());
        claims.targets.clone_from(&self.targets);
        claims.connections = Some(CONNECTIONS_MAX);
        self.key.sign(&claims)
    }
}

/// A relay to the cluster's nodes for pages that come from `page`.
pub(crate) async fn bind(
    cluster: &SimServer,
    page: SocketAddr,
    login: Credentials,
) -> Result<(Relay, Signer), Box<dyn Error>> {
    let mut secret = [0; 32];
    getrandom::fill(&mut secret)?;
    let key = SigningKey::new(&secret).ok_or("the key is too short")?;
    let aware = cluster
        .handle()
        .with(|cluster| cluster.options().shard_aware_port);
    let targets: Vec<String> = cluster
        .contacts()
        .iter()
        .flat_map(|contact| {
            let aware = aware.map(|port| SocketAddr::new(contact.ip(), port));
            [Some(*contact), aware]
        })
        .flatten()
        .map(|target| target.to_string())
        .collect();
    let mut config = RelayConfig::new(SocketAddr::new(page.ip(), 0));
    config.allow = targets
        .iter()
        .map(|target| Rule::parse(target))
        .collect::<Result<_, _>>()?;
    config.access = Access::new()
        .signing_key(key.clone())
        .origin(&format!("http://{page}"))
        .origin(&format!("http://localhost:{}", page.port()));
    config.login = Some(login);
    Ok((Relay::bind(config).await?, Signer { key, targets }))
}
