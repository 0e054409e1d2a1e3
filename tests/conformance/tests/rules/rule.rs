//! What a row of the tables is.

/// Whom a rule binds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Concerns {
    Driver,
    /// The simulated node.
    Node,
    Both,
}

/// What holds a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Held {
    /// Tests, each as `path: name` from the top of the tree.
    By(&'static [&'static str]),
    /// Nothing yet, and why.
    Missing(&'static str),
}

/// One rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Rule {
    /// A letter for the table and the number in it.
    pub(crate) number: &'static str,
    pub(crate) title: &'static str,
    pub(crate) concerns: Concerns,
    pub(crate) held: Held,
}

const fn rule(
    concerns: Concerns,
    number: &'static str,
    title: &'static str,
    tests: &'static [&'static str],
) -> Rule {
    Rule {
        number,
        title,
        concerns,
        held: Held::By(tests),
    }
}

/// A rule that binds the driver.
pub(crate) const fn driver(
    number: &'static str,
    title: &'static str,
    tests: &'static [&'static str],
) -> Rule {
    rule(Concerns::Driver, number, title, tests)
}

/// A rule that binds the simulated node.
pub(crate) const fn node(
    number: &'static str,
    title: &'static str,
    tests: &'static [&'static str],
) -> Rule {
    rule(Concerns::Node, number, title, tests)
}

/// A rule that binds both.
pub(crate) const fn both(
    number: &'static str,
    title: &'static str,
    tests: &'static [&'static str],
) -> Rule {
    rule(Concerns::Both, number, title, tests)
}

/// A rule that nothing holds.
#[expect(dead_code, reason = "no rule is missing at present")]
pub(crate) const fn missing(
    concerns: Concerns,
    number: &'static str,
    title: &'static str,
    why: &'static str,
) -> Rule {
    Rule {
        number,
        title,
        concerns,
        held: Held::Missing(why),
    }
}
