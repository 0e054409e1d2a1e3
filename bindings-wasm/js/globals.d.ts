/** Where the module lies from the file that asks; the build puts it in. */
declare const WASM_FILE: string;
