// Modules that build.mjs makes.

declare module "volsfu:worker" {
  /** The text of the script of all workers. */
  const text: string;
  export default text;
}

declare module "volsfu:wasm" {
  /** Loads WebAssembly in base64, by the name of its file. */
  const files: Record<string, () => Promise<{ default: string }>>;
  export default files;
}
