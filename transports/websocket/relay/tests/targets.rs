//! What the relay must not be talked into: targets inside the operator's network that no rule
//! names, in every spelling, and names whose answers change.

mod support;

use core::net::IpAddr;
use core::sync::atomic::{AtomicUsize, Ordering};
use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use messina_relay::{Resolver, Resolving};
use messina_websocket::tunnel::{Reason, Wish};
use support::{OPTIONS, Running, echo_node};

/// Answers that change: each look-up of a name takes the next, the last one stays.
#[derive(Debug, Default)]
struct Answers {
    names: Mutex<HashMap<&'static str, Vec<Vec<IpAddr>>>>,
    count: AtomicUsize,
}

impl Answers {
    fn new(names: &[(&'static str, &[&[&str]])]) -> Arc<Self> {
        let parse = |answer: &&[&str]| answer.iter().map(|text| text.parse().unwrap()).collect();
        let names = names.iter().map(|(name, answers)| {
            let answers = answers.iter().rev().map(parse).collect();
            (*name, answers)
        });
        Arc::new(Self {
            names: Mutex::new(names.collect()),
            count: AtomicUsize::new(0),
        })
    }
}

impl Resolver for Answers {
    fn resolve<'a>(&'a self, name: &'a str) -> Resolving<'a> {
        self.count.fetch_add(1, Ordering::Relaxed);
        let mut names = self.names.lock().unwrap();
        let answer = match names.get_mut(name) {
            Some(answers) if answers.len() > 1 => answers.pop(),
            Some(answers) => answers.last().cloned(),
            None => None,
        };
        let answer = answer.ok_or_else(|| std::io::ErrorKind::NotFound.into());
        Box::pin(core::future::ready(answer))
    }
}

/// Addresses in their usual spelling that everybody may be told of, and no rule below names.
const INSIDE: [&str; 42] = [
    "127.0.0.1",
    "127.0.0.2",
    "127.255.255.254",
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "172.16.0.1",
    "172.31.255.255",
    "192.168.0.1",
    "192.168.255.255",
    "169.254.169.254",
    "169.254.0.1",
    "169.254.170.2",
    "100.64.0.1",
    "100.100.100.200",
    "168.63.129.16",
    "192.0.0.192",
    "198.18.0.1",
    "224.0.0.1",
    "239.255.255.255",
    "240.0.0.1",
    "255.255.255.255",
    "[::]",
    "[::1]",
    "[::ffff:127.0.0.1]",
    "[::ffff:7f00:1]",
    "[::ffff:10.0.0.1]",
    "[::ffff:169.254.169.254]",
    "[::ffff:0:127.0.0.1]",
    "[::127.0.0.1]",
    "[64:ff9b::127.0.0.1]",
    "[64:ff9b::a9fe:a9fe]",
    "[64:ff9b:1::10.0.0.1]",
    "[2002:7f00:1::]",
    "[2002:a9fe:a9fe::1]",
    "[2001:0:7f00:1::]",
    "[fe80::1]",
    "[fec0::1]",
    "[fc00::1]",
    "[fd00:ec2::254]",
    "[ff02::1]",
];

/// What some resolvers take for such an address.
const ODD: [&str; 34] = [
    "127.1",
    "127.0.1",
    "127.0.0.1.",
    "0x7f.1",
    "0x7f000001",
    "0x7f.0x0.0x0.0x1",
    "0X7F000001",
    "2130706433",
    "017700000001",
    "0177.0.0.1",
    "0177.0.0.01",
    "127.0.0.01",
    "127.000.000.001",
    "0",
    "0.0",
    "0x0",
    "00000.00000.00000.00000",
    "1",
    "3232235521",
    "0xa9fea9fe",
    "2852039166",
    "0251.0376.0251.0376",
    "127.0.0.1%00.public.example",
    "127.0.0.1%2e",
    "%31%32%37.0.0.1",
    "127.0.0.1#.public.example",
    "public.example@127.0.0.1",
    "\u{ff11}\u{ff12}\u{ff17}.0.0.1",
    "127\u{3002}0\u{3002}0\u{3002}1",
    "\u{2460}\u{2461}\u{2466}.0.0.1",
    "[::1%25lo]",
    "[::1%lo]",
    "[0:0:0:0:0:ffff:0x7f00:1]",
    "::1",
];

#[tokio::test]
async fn nothing_inside_is_reached_unless_it_is_named() {
    let node = echo_node().await;
    let port = node.port();
    let rules = [
        format!("0.0.0.0/0:{port}"),
        format!("[::]/0:{port}"),
        format!("public.example:{port}"),
    ];
    let rules: Vec<&str> = rules.iter().map(String::as_str).collect();
    let relay = Running::start(&rules, |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    for host in INSIDE.iter().chain(&ODD) {
        let target = format!("{host}:{port}");
        let id = client.open(&target, Wish::None);
        let (reason, text) = client.opened(id).await.expect_err(&target);
        assert_eq!(reason, Reason::Forbidden, "{target}: {text}");
        if target.is_ascii() {
            let escaped = target.replace('%', "%25").replace('#', "%23");
            let refused = relay.plain(&escaped, "").await;
            assert_eq!(refused.err().unwrap().0, 403, "{target}");
        }
    }
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn nothing_is_allowed_by_default() {
    let node = echo_node().await.to_string();
    let relay = Running::start(&[], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    for target in [
        &*node,
        "8.8.8.8:9042",
        "public.example:9042",
        "localhost:9042",
    ] {
        let id = client.open(target, Wish::None);
        assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
        assert_eq!(relay.plain(target, "").await.err().unwrap().0, 403);
    }
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn a_name_leads_inside_only_where_that_is_named() {
    let node = echo_node().await;
    let port = node.port();
    let inside: Vec<String> = INSIDE
        .iter()
        .map(|host| host.replace(['[', ']'], ""))
        .collect();
    for address in &inside {
        let answers: &[&[&str]] = &[&[address]];
        let resolver = Answers::new(&[("public.example", answers)]);
        let rule = format!("public.example:{port}");
        // A rule for every address names none of these.
        let all = format!("0.0.0.0/0:{port}");
        let relay = Running::start(&[&rule, &all], |config| config.resolver = resolver).await;
        let mut client = relay.mux("").await.unwrap();
        let id = client.open(&rule, Wish::None);
        let (reason, text) = client.opened(id).await.expect_err(address);
        assert_eq!(reason, Reason::Forbidden, "{address}");
        // What a name leads to is nobody's business.
        assert!(!text.contains(address), "{text}");
        drop(client);
        relay.stop().await;
    }
}

#[tokio::test]
async fn what_was_checked_is_what_is_dialled() {
    let node = echo_node().await;
    let port = node.port();
    let resolver = Answers::new(&[(
        "public.example",
        &[
            &["127.0.0.1"],
            &["169.254.169.254"],
            &["127.0.0.1"],
            &["::1"],
        ],
    )]);
    let rule = format!("public.example:{port}");
    let loopback = format!("127.0.0.0/8:{port}");
    let used = Arc::clone(&resolver);
    let relay = Running::start(&[&rule, &loopback], |config| config.resolver = used).await;
    let mut client = relay.mux("").await.unwrap();
    for (turn, is_allowed) in [true, false, true, false].into_iter().enumerate() {
        let id = client.open(&rule, Wish::None);
        let opened = client.opened(id).await;
        assert_eq!(opened.is_ok(), is_allowed, "{opened:?}");
        // One look-up each: a second could have another answer.
        assert_eq!(resolver.count.load(Ordering::Relaxed), turn + 1);
        if is_allowed {
            client.send(id, OPTIONS).await;
            assert_eq!(client.receive(id, OPTIONS.len()).await, OPTIONS);
        }
    }
    drop(client);
    relay.stop().await;
}

#[tokio::test]
async fn one_bad_answer_spoils_the_others() {
    let node = echo_node().await;
    let port = node.port();
    let rule = format!("public.example:{port}");
    let loopback = format!("127.0.0.0/8:{port}");
    for answer in [["127.0.0.1", "10.0.0.1"], ["::ffff:127.0.0.1", "127.0.0.1"]] {
        let resolver = Answers::new(&[("public.example", &[&answer])]);
        let relay = Running::start(&[&rule, &loopback], |config| config.resolver = resolver).await;
        let mut client = relay.mux("").await.unwrap();
        let id = client.open(&rule, Wish::None);
        assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
        assert_eq!(relay.metric("dials_total").await, 0);
        drop(client);
        relay.stop().await;
    }
}

#[tokio::test]
async fn an_alias_hides_the_address() {
    let node = echo_node().await;
    let rule = format!("node1={node}");
    let relay = Running::start(&[&rule], |_| {}).await;
    let mut client = relay.mux("").await.unwrap();
    for target in ["node1".to_owned(), format!("NODE1:{}", node.port())] {
        let id = client.open(&target, Wish::None);
        assert!(client.opened(id).await.is_ok(), "{target}");
    }
    for target in ["node2".to_owned(), "node1:1".to_owned()] {
        let id = client.open(&target, Wish::None);
        assert_eq!(client.opened(id).await.unwrap_err().0, Reason::Forbidden);
    }
    drop(client);
    relay.stop().await;
}
