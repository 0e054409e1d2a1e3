//! Where the jobs run.

use core::fmt;
use std::io;
use std::path::PathBuf;

use messina_sim::node::{Credentials, Options};
use messina_sim::tcp::{SimServer, TlsOptions, TlsPorts};
use messina_tokio::Builder;

/// A cluster to run on.
pub struct Place {
    /// One of its nodes.
    pub contact: String,
    /// User and password.
    pub login: Option<(String, String)>,
    /// How it is reached by TLS, if it is.
    pub secure: Option<Secure>,
    server: Option<SimServer>,
}

/// A node that encrypts, and the file with the authority of its certificate.
#[derive(Debug)]
pub struct Secure {
    /// The node.
    pub contact: String,
    /// The file, PEM.
    pub authority: PathBuf,
}

impl Place {
    /// A cluster of yours, by one of its nodes: `MESSINA_USER` and `MESSINA_PASSWORD` if it wants a login,
    /// `MESSINA_CA` if it speaks TLS.
    pub fn at(contact: String) -> Self {
        let variable = |name| std::env::var(name).ok();
        let secure = variable("MESSINA_CA").map(|authority| Secure {
            contact: contact.clone(),
            authority: authority.into(),
        });
        Self {
            contact,
            login: variable("MESSINA_USER").zip(variable("MESSINA_PASSWORD")),
            secure,
            server: None,
        }
    }

    /// A simulated cluster in this process: three nodes of two shards on loopback addresses, plain and
    /// encrypted, which end with this value.
    ///
    /// Fails if the addresses cannot be listened on, or the certificate's file cannot be written.
    pub async fn simulated() -> io::Result<Self> {
        let mut options = Options::uniform(3, 2);
        (options.port, options.shard_aware_port) = (0, Some(0));
        let login = (String::from("reader"), String::from("a good secret"));
        options.auth = Some(Credentials::new(&login.0, &login.1));
        let mut tls = TlsOptions::made();
        tls.ports = TlsPorts::Beside {
            port: 0,
            shard_aware_port: Some(0),
        };
        let server = SimServer::start_tls(options, tls).await?;
        let encrypted = server.tls_contacts()[0];
        let file = format!("messina-jobs-{}.pem", encrypted.port());
        let authority = std::env::temp_dir().join(file);
        std::fs::write(&authority, server.ca_pem().unwrap_or_default())?;
        Ok(Self {
            contact: server.contacts()[0].to_string(),
            login: Some(login),
            secure: Some(Secure {
                contact: encrypted.to_string(),
                authority,
            }),
            server: Some(server),
        })
    }

    /// A builder of sessions with this cluster.
    pub fn builder(&self) -> Builder {
        let builder = messina_tokio::builder().contact(&self.contact);
        match &self.login {
            Some((user, password)) => builder.user(user, password),
            None => builder,
        }
    }
}

// Without the password.
impl fmt::Debug for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Place");
        shown.field("contact", &self.contact);
        shown.field("secure", &self.secure).finish_non_exhaustive()
    }
}

impl Drop for Place {
    fn drop(&mut self) {
        if let (Some(_), Some(secure)) = (&self.server, &self.secure) {
            // Somebody else may have tidied up.
            let _ = std::fs::remove_file(&secure.authority);
        }
    }
}
