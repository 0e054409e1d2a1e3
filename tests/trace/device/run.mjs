// Prints the logs that the WASM module makes: `node run.mjs MODULE`.

import { readFile } from 'node:fs/promises';

const module = await readFile(process.argv[2]);
const { instance } = await WebAssembly.instantiate(module, {});
const { replay, logs, memory } = instance.exports;
const length = replay();
process.stdout.write(new Uint8Array(memory.buffer, logs(), length));
