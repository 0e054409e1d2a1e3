// What the build makes of the module's file.

declare module "#base64" {
  export const WASM_BASE64: string;
}
