//! What one client, one token, one address and all together may use, and the counting of it.

use core::net::{IpAddr, Ipv6Addr};
use core::time::Duration;
use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use crate::access::{Grant, Holder};

/// The relay's bounds. All of them are on unless set otherwise.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Limits {
    /// Most WebSockets at once, handshakes included.
    pub connections_max: usize,
    /// Most WebSockets at once for one token (or one subject of signed tokens).
    pub connections_per_token_max: usize,
    /// Most WebSockets at once from one address (IPv6: one /64), handshakes included.
    pub connections_per_address_max: usize,
    /// Most channels of one WebSocket at once.
    pub channels_max: usize,
    /// Longest time from the first byte of TCP to the WebSocket.
    pub handshake_timeout: Duration,
    /// Longest time to resolve a name and connect to the node.
    pub dial_timeout: Duration,
    /// Longest time from an open channel to bytes that are CQL, login included.
    pub first_bytes_timeout: Duration,
    /// Longest time without a byte on a channel, or without any channel.
    pub idle_timeout: Duration,
    /// Largest message of a WebSocket; both forms of the tunnel can cut theirs as they like.
    pub message_len_max: usize,
    /// Bytes a second, both directions together, for one token. `None`: as many as there are.
    pub bytes_per_second_per_token: Option<u32>,
    /// The same for one address.
    pub bytes_per_second_per_address: Option<u32>,
    /// Most bytes of one channel that wait for its node.
    pub window: u32,
    /// Most bytes of one WebSocket that wait for its client, and half of it again.
    pub output_max: usize,
    /// Longest time that connections have to come to an end when the relay stops.
    pub drain_timeout: Duration,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            connections_max: 10_000,
            connections_per_token_max: 10_000,
            connections_per_address_max: 2_000,
            channels_max: 256,
            handshake_timeout: Duration::from_secs(10),
            dial_timeout: Duration::from_secs(5),
            first_bytes_timeout: Duration::from_secs(10),
            idle_timeout: Duration::from_secs(300),
            message_len_max: 1 << 20,
            bytes_per_second_per_token: None,
            bytes_per_second_per_address: None,
            window: 64 << 10,
            output_max: 64 << 10,
            drain_timeout: Duration::from_secs(10),
        }
    }
}

/// Counts who is there.
#[derive(Debug)]
pub(crate) struct Register {
    limits: Limits,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    count: usize,
    addresses: HashMap<IpAddr, Place>,
    holders: HashMap<Holder, Place>,
}

/// One address or one holder; forgotten when its last connection ends.
#[derive(Debug)]
struct Place {
    count: usize,
    rate: Option<Arc<Rate>>,
}

/// Which limit is reached.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Full {
    Relay,
    Address,
    Token,
}

impl Full {
    pub(crate) const fn as_str(self) -> &'static str {
        match self {
            Self::Relay => "the relay is full",
            Self::Address => "too many connections from this address",
            Self::Token => "too many connections with this token",
        }
    }
}

/// One connection's place; given back when dropped.
#[derive(Debug)]
pub(crate) struct Admission {
    register: Arc<Register>,
    address: IpAddr,
    holder: Option<Holder>,
    rates: Vec<Arc<Rate>>,
}

impl Register {
    pub(crate) fn new(limits: Limits) -> Self {
        let state = Mutex::default();
        Self { limits, state }
    }

    /// Takes a place for a connection that has not said anything yet.
    pub(crate) fn admit(self: &Arc<Self>, address: IpAddr) -> Result<Admission, Full> {
        let address = network(address);
        let limits = &self.limits;
        let rate = limits.bytes_per_second_per_address;
        let rate = self.with(|state| {
            if state.count >= limits.connections_max {
                return Err(Full::Relay);
            }
            let most = limits.connections_per_address_max;
            let rate = take(&mut state.addresses, address, most, rate).ok_or(Full::Address)?;
            state.count += 1;
            Ok(rate)
        })?;
        Ok(Admission {
            register: Arc::clone(self),
            address,
            holder: None,
            rates: rate.into_iter().collect(),
        })
    }

    #[cfg(test)]
    fn count(&self) -> usize {
        self.with(|state| state.count)
    }

    fn with<R>(&self, change: impl FnOnce(&mut State) -> R) -> R {
        change(&mut self.state.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

impl Admission {
    /// The connection has shown its token.
    pub(crate) fn hold(&mut self, grant: &Grant) -> Result<(), Full> {
        let limits = &self.register.limits;
        let own = grant
            .connections_max
            .map(|most| usize::try_from(most).unwrap_or(usize::MAX));
        let most = own.map_or(limits.connections_per_token_max, |own| {
            own.min(limits.connections_per_token_max)
        });
        let rate = limits.bytes_per_second_per_token;
        let taken = self
            .register
            .with(|state| take(&mut state.holders, grant.holder, most, rate));
        let rate = taken.ok_or(Full::Token)?;
        self.holder = Some(grant.holder);
        self.rates.extend(rate);
        Ok(())
    }

    /// Counts bytes that passed; how long to wait before more may.
    pub(crate) fn spend(&self, bytes: usize) -> Option<Duration> {
        if self.rates.is_empty() || bytes == 0 {
            return None;
        }
        let now = Instant::now();
        let waits = self.rates.iter().filter_map(|rate| rate.spend(bytes, now));
        waits.max()
    }
}

impl Drop for Admission {
    fn drop(&mut self) {
        self.register.with(|state| {
            state.count -= 1;
            give_back(&mut state.addresses, &self.address);
            if let Some(holder) = &self.holder {
                give_back(&mut state.holders, holder);
            }
        });
    }
}

/// Takes a place; none if there are as many as may be. Inside: its rate, if that is limited.
fn take<K: core::hash::Hash + Eq>(
    places: &mut HashMap<K, Place>,
    key: K,
    most: usize,
    rate: Option<u32>,
) -> Option<Option<Arc<Rate>>> {
    if most == 0 {
        return None;
    }
    let place = places.entry(key).or_insert_with(|| Place {
        count: 0,
        rate: rate.map(|rate| Arc::new(Rate::new(rate, Instant::now()))),
    });
    if place.count >= most {
        return None;
    }
    place.count += 1;
    Some(place.rate.clone())
}

fn give_back<K: core::hash::Hash + Eq>(places: &mut HashMap<K, Place>, key: &K) {
    if let Some(place) = places.get_mut(key) {
        place.count -= 1;
        if place.count == 0 {
            places.remove(key);
        }
    }
}

/// What counts as one address: who has one of IPv6 has a whole /64.
fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V6(address) => {
            let bits = address.to_bits() & (u128::MAX << 64);
            Ipv6Addr::from_bits(bits).into()
        }
        address => address,
    }
}

/// Bytes a second. One second's worth may be spent at once, and what is spent beyond is waited for
/// afterwards: the sizes of messages are not known before they are there.
#[derive(Debug)]
pub(crate) struct Rate {
    per_second: f64,
    state: Mutex<(f64, Instant)>,
}

impl Rate {
    fn new(per_second: u32, now: Instant) -> Self {
        let per_second = f64::from(per_second.max(1));
        Self {
            per_second,
            state: Mutex::new((per_second, now)),
        }
    }

    fn spend(&self, bytes: usize, now: Instant) -> Option<Duration> {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let (left, then) = *state;
        let since = now.saturating_duration_since(then).as_secs_f64();
        #[expect(clippy::cast_precision_loss, reason = "counts of bytes are small")]
        let left = (left + since * self.per_second).min(self.per_second) - bytes as f64;
        *state = (left, now.max(then));
        (left < 0.0).then(|| Duration::from_secs_f64((-left / self.per_second).min(WAIT_MAX)))
    }
}

/// Seconds that are waited at once.
const WAIT_MAX: f64 = 60.0;

#[cfg(test)]
mod tests {
    use super::*;

    fn register(change: impl FnOnce(&mut Limits)) -> Arc<Register> {
        let mut limits = Limits::default();
        change(&mut limits);
        Arc::new(Register::new(limits))
    }

    fn grant(holder: u8, connections_max: Option<u32>) -> Grant {
        Grant {
            holder: [holder; 16],
            label: "test".into(),
            scope: None,
            expires: None,
            connections_max,
        }
    }

    const A: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 1));
    const B: IpAddr = IpAddr::V4(core::net::Ipv4Addr::new(192, 0, 2, 2));

    #[test]
    fn places_are_bounded_and_given_back() {
        let register = register(|limits| {
            limits.connections_max = 3;
            limits.connections_per_address_max = 2;
        });
        let first = register.admit(A).unwrap();
        let _second = register.admit(A).unwrap();
        assert_eq!(register.admit(A).unwrap_err(), Full::Address);
        let _third = register.admit(B).unwrap();
        assert_eq!(register.admit(B).unwrap_err(), Full::Relay);
        drop(first);
        assert_eq!(register.count(), 2);
        let _fourth = register.admit(A).unwrap();
    }

    #[test]
    fn a_token_has_its_own_bound() {
        let register = register(|limits| limits.connections_per_token_max = 2);
        let hold = |grant: &Grant| {
            let mut admission = register.admit(A).unwrap();
            admission.hold(grant).map(|()| admission)
        };
        let _first = hold(&grant(1, Some(1))).unwrap();
        assert_eq!(hold(&grant(1, Some(1))).unwrap_err(), Full::Token);
        let _other = hold(&grant(2, None)).unwrap();
        let _another = hold(&grant(2, Some(9))).unwrap();
        assert_eq!(hold(&grant(2, Some(9))).unwrap_err(), Full::Token);
        assert_eq!(hold(&grant(3, Some(0))).unwrap_err(), Full::Token);
        assert_eq!(register.count(), 3);
    }

    #[test]
    fn nothing_is_remembered_of_those_who_left() {
        let register = register(|limits| limits.bytes_per_second_per_address = Some(1));
        let mut admission = register.admit(A).unwrap();
        admission.hold(&grant(1, None)).unwrap();
        drop(admission);
        register.with(|state| assert!(state.addresses.is_empty() && state.holders.is_empty()));
    }

    #[test]
    fn one_network_of_ipv6_is_one_address() {
        let register = register(|limits| limits.connections_per_address_max = 1);
        let _first = register.admit("2001:db8::1".parse().unwrap()).unwrap();
        let second = register.admit("2001:db8::2".parse().unwrap());
        assert_eq!(second.unwrap_err(), Full::Address);
        let mapped = register.admit("::ffff:192.0.2.1".parse().unwrap()).unwrap();
        assert_eq!(register.admit(A).unwrap_err(), Full::Address);
        drop(mapped);
    }

    #[test]
    fn what_is_spent_beyond_the_rate_is_waited_for() {
        let start = Instant::now();
        let rate = Rate::new(1000, start);
        assert_eq!(rate.spend(1000, start), None);
        assert_eq!(rate.spend(500, start), Some(Duration::from_millis(500)));
        let later = start + Duration::from_millis(500);
        assert_eq!(rate.spend(0, later), None);
        assert_eq!(rate.spend(1000, later), Some(Duration::from_secs(1)));
        let much_later = later + Duration::from_secs(100);
        assert_eq!(
            rate.spend(1000, much_later),
            None,
            "no more than one second is saved"
        );
        assert!(rate.spend(1, much_later).is_some());
    }
}
