// Runs one check of the program: node run.mjs FOLDER CHECK ARGUMENT.. ; an argument is JSON or else text.
import { readFile } from "node:fs/promises";
import { pathToFileURL } from "node:url";

const [folder, check, ...rest] = process.argv.slice(2);
const glue = await import(pathToFileURL(`${folder}/program.js`).href);
glue.initSync({ module: await readFile(`${folder}/program_bg.wasm`) });
const value = (text) => {
  try {
    return JSON.parse(text);
  } catch {
    return text;
  }
};
try {
  console.log(await glue[check](...rest.map(value)));
  process.exit(0);
} catch (error) {
  console.error(error);
  process.exit(1);
}
