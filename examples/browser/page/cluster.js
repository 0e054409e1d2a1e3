// The simulated nodes, as the example's local server tells of them: what they counted, and what they can be told.

/** Nodes with their addresses and ids, the relay, and how many keys the tables hold. */
export const settings = async () => (await fetch("settings")).json();

/** Counters of all nodes and shards, and the tablets of one table, named `keyspace.table`. */
export async function state(table) {
  const [keyspace, name] = table.split(".");
  const answer = await fetch(`state?${new URLSearchParams({ keyspace, table: name })}`);
  if (!answer.ok) throw new Error(`the local server says ${answer.status}`);
  const told = await answer.json();
  for (const tablet of told.tablets) tablet.replicas = ordered(tablet.replicas, tablet.leader);
  return told;
}

/** Replicas as they are where one leads, else by node: their order means nothing then. */
export const ordered = (replicas, leader) =>
  leader === null ? [...replicas].sort((one, other) => one.node - other.node) : replicas;

/** One command; throws what the simulator says against it. */
export async function command(fields) {
  const answer = await fetch("control", { method: "POST", body: JSON.stringify(fields) });
  const said = answer.ok ? await answer.json() : { ok: false, error: await answer.text() };
  if (!said.ok) throw new Error(said.error);
}

/** Moves a replica: to a node that holds none if there is one, else to the next shard of its node. */
export async function moveTablet(table, at, tablet, nodes) {
  const holders = new Set(tablet.replicas.map(({ node }) => node));
  const isFree = (_, node) => nodes[node].alive && !holders.has(node);
  const free = nodes.map((_, node) => node).filter((node) => isFree(undefined, node));
  const from = tablet.replicas[tablet.leader ?? 0];
  const to = free.length > 0
    ? { node: free[at % free.length], shard: Math.floor(Math.random() * nodes[free[at % free.length]].shards.length) }
    : { node: from.node, shard: (from.shard + 1) % nodes[from.node].shards.length };
  await command({ cmd: "move_tablet", ...named(table), tablet: at, from, to });
  return { from, to };
}

/** Makes the next replica on a living node the leader. */
export async function changeLeader(table, at, tablet, nodes) {
  const count = tablet.replicas.length;
  for (let step = 1; step < count; step++) {
    const leader = ((tablet.leader ?? 0) + step) % count;
    if (!nodes[tablet.replicas[leader].node].alive) continue;
    await command({ cmd: "set_leader", ...named(table), tablet: at, leader });
    return { from: tablet.replicas[tablet.leader ?? 0], to: tablet.replicas[leader] };
  }
  throw new Error("no other replica is up");
}

export function named(table) {
  const [keyspace, name] = table.split(".");
  return { keyspace, table: name };
}
