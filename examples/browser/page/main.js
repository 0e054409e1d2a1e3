// Puts the page together: asks the local server for the nodes' view now and then, and the driver for its own.

import { changeLeader, command, moveTablet, named, settings, state } from "./cluster.js";
import { Driver } from "./driver.js";
import { byId, chip, element } from "./element.js";
import { Figures } from "./figures.js";
import { Learning } from "./learning.js";
import { Load, TABLES } from "./load.js";
import { note } from "./log.js";
import { Nodes } from "./nodes.js";
import { Queries } from "./queries.js";
import { Ring } from "./ring.js";
import { TabletDetail } from "./tablet.js";
import { chooseTheme } from "./theme.js";

/** Milliseconds between two looks; for some seconds after something was changed they follow each other closely. */
const [EVERY, CLOSELY, CLOSE] = [500, 80, 4000];

const chosen = { table: "bank.accounts", tablet: 0 };
/** What was seen last: by the nodes, and by the driver of the chosen table's tablets. */
let shown = { nodes: [], tablets: [] };
let held;
let driver;

chooseTheme();
start().catch((error) => fail(`The page could not start: ${error.message}`));

async function start() {
  const given = await settings();
  const figures = new Figures();
  const nodes = new Nodes(given.nodes, power);
  const ring = new Ring(choose);
  const learning = new Learning();
  const detail = new TabletDetail();
  tabs();

  try {
    driver = await Driver.open(given);
  } catch (error) {
    fail(`The driver could not connect: ${error.message}`);
    driver = undefined;
  }
  const done = ({ time }) => figures.took(time);
  if (driver) {
    const status = byId("status");
    status.textContent = "connected through the relay";
    status.className = "pill up";
    new Queries(driver, done);
    new Load(driver, given.keys, done, failures());
  }

  async function refresh() {
    clearTimeout(timer);
    try {
      if (!document.hidden) {
        shown = await state(chosen.table);
        const cluster = driver?.cluster();
        held = cluster && driver.view(chosen.table, shown.tablets, cluster);
        nodes.show(shown.nodes, cluster ? driver.counted(cluster) : []);
        figures.show(shown.total, cluster);
        learning.look(chosen.table, shown, held);
        draw(ring, detail);
        connections();
      }
    } catch (error) {
      fail(`The local server does not answer: ${error.message}`);
    }
    clearTimeout(timer);
    timer = setTimeout(refresh, performance.now() < closelyUntil ? CLOSELY : EVERY);
  }
  lookClosely = () => {
    closelyUntil = performance.now() + CLOSE;
    refresh();
  };
  choose = (at) => {
    chosen.tablet = at;
    draw(ring, detail);
  };
  refresh();
}

function draw(ring, detail) {
  const { tablets } = shown;
  chosen.tablet = Math.min(chosen.tablet, tablets.length - 1);
  const tablet = tablets[chosen.tablet];
  if (!tablet) return;
  ring.onchoose = choose;
  ring.show(tablets, held, chosen.tablet);
  detail.show(chosen.table, chosen.tablet, tablet, held, held?.[chosen.tablet], [
    ["Move tablet", () => act(move)],
    ...(tablet.leader === null ? [] : [["Change leader", () => act(lead)]]),
    ["Split", () => act(split)],
    ...(tablets.length > 1 ? [["Merge", () => act(merge)]] : []),
  ]);
}

let choose = () => {};
let lookClosely = () => {};
let closelyUntil = 0;
let timer;

async function act(what) {
  try {
    note(await what(chosen.table, chosen.tablet, shown.tablets[chosen.tablet]));
    lookClosely();
  } catch (error) {
    note(error.message, "bad");
  }
}

const place = ({ node, shard }) => `node ${node + 1} shard ${shard}`;

async function move(table, at, tablet) {
  const { from, to } = await moveTablet(table, at, tablet, shown.nodes);
  return `Tablet ${at} of ${table} moved from ${place(from)} to ${place(to)}`;
}

async function lead(table, at, tablet) {
  const { from, to } = await changeLeader(table, at, tablet, shown.nodes);
  return `Tablet ${at} of ${table} is led by node ${to.node + 1} now, not node ${from.node + 1}`;
}

async function split(table, at) {
  await command({ cmd: "split", ...named(table), tablet: at });
  return `Tablet ${at} of ${table} was split`;
}

async function merge(table, at) {
  await command({ cmd: "merge", ...named(table), tablet: at });
  return `Tablet ${at} of ${table} was merged with the next`;
}

async function power(node, isAlive) {
  try {
    await command({ cmd: isAlive ? "kill" : "start", node });
    note(`Node ${node + 1} was ${isAlive ? "killed" : "started"}`);
    lookClosely();
  } catch (error) {
    note(error.message, "bad");
  }
}

/** The choice of a table. */
function tabs() {
  const choice = (table) => {
    const pick = element("input", { type: "radio", name: "table", value: table, checked: table === chosen.table,
      onchange: () => {
        Object.assign(chosen, { table, tablet: 0 });
        lookClosely();
      } });
    return element("label", {}, pick, table);
  };
  byId("tables").replaceChildren(...TABLES.map(choice));
  byId("ring-legend").replaceChildren("Outside: what the nodes say. Inside: what the driver has learned. Coloured by ★ leader, or by first node:",
    chip(0), chip(1), chip(2));
}

function connections() {
  const open = shown.nodes.flatMap((node) => node.shards).reduce((sum, shard) => sum + shard.connections, 0);
  if (driver) byId("status").textContent = `connected through the relay · ${open} connections`;
}

/** Says failures of the load without flooding the list: each kind once in three seconds, with its count. */
function failures() {
  const counts = new Map();
  return (error, table) => {
    const kind = `${table}: ${error.kind ?? "error"}: ${error.message}`;
    if (!counts.has(kind)) {
      note(kind, "bad");
      setTimeout(() => {
        if (counts.get(kind) > 1) note(`${kind} (${counts.get(kind)} times in 3 s)`, "bad");
        counts.delete(kind);
      }, 3000);
    }
    counts.set(kind, (counts.get(kind) ?? 0) + 1);
  };
}

function fail(text) {
  const status = byId("status");
  if (status.textContent !== text) note(text, "bad");
  status.textContent = "not connected";
  status.className = "pill down";
}
