// workerd and Miniflare: each test in a request of its own, as Workers live.

import { names, runSuite } from "./run.js";

export default {
  async fetch(request: Request): Promise<Response> {
    const config = await request.json();
    if (new URL(request.url).pathname === "/names") return Response.json(names(config as never));
    const lines: string[] = [];
    await runSuite(config as never, (line) => lines.push(line));
    return new Response(lines.join("\n"));
  },
};
