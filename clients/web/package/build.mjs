// Builds the package @volsfu/client into a folder.
//
//   node package/build.mjs VERSION FOLDER
//
// Each entry point is a module; parts that several share, or that are loaded on demand, are modules
// of their own. Everything that a page does not need before the first publication is on demand.

import { copyFile, mkdir, readFile, writeFile } from "node:fs/promises";
import { createRequire } from "node:module";
import { basename, dirname, join, relative } from "node:path";
import { fileURLToPath } from "node:url";
import { build } from "esbuild";
import { declarations } from "./declarations.mjs";
import { entries } from "./entries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const web = dirname(here);
const src = join(web, "src");
const require = createRequire(import.meta.url);

/** The form in which all modules start workers. */
const workerStart = /new Worker\(new URL\("(\.\/[\w/]+)\.ts", import\.meta\.url\), \{ type: "module" \}\)/g;

/** Starts workers by their role: the path of their module. */
function workerPlugin(starter, roles) {
  return {
    name: "workers",
    setup(build) {
      build.onLoad({ filter: /\/src\/.*\.ts$/ }, async ({ path }) => {
        const text = await readFile(path, "utf8");
        let started = false;
        const contents = text.replace(workerStart, (_, name) => {
          started = true;
          const role = relative(src, join(dirname(path), name));
          roles.add(role);
          return `startWorker(${JSON.stringify(role)})`;
        });
        if (/new Worker\(new URL/.test(contents)) {
          throw new Error(`${path} starts a worker in another form than ${workerStart}`);
        }
        return { contents: started ? `${contents}\nimport { startWorker } from ${JSON.stringify(starter)};` : contents, loader: "ts" };
      });
    },
  };
}

/** Draco imports these modules in Node, and never uses them in a browser. */
const nodePlugin = {
  name: "node",
  setup(build) {
    build.onResolve({ filter: /^(node:)?(fs|path)$/ }, () => ({ path: join(src, "decode", "absent.ts") }));
  },
};

/** Takes the addresses of WebAssembly from the name of the worker, and collects the files. */
function wasmPlugin(found) {
  return {
    name: "wasm addresses",
    setup(build) {
      build.onResolve({ filter: /\.wasm\?url$/ }, ({ path, resolveDir }) => {
        const file = require.resolve(path.replace(/\?url$/, ""), { paths: [resolveDir] });
        return { path: file, namespace: "wasm-address" };
      });
      build.onLoad({ filter: /.*/, namespace: "wasm-address" }, ({ path }) => {
        const name = path.split("/").at(-1);
        found.set(name, path);
        return { contents: `import { fileURL } from ${JSON.stringify(join(here, "nested.ts"))};\nexport default fileURL(${JSON.stringify(name)});`, resolveDir: here, loader: "js" };
      });
    },
  };
}

const common = { bundle: true, minify: true, format: "esm", target: "es2022", platform: "browser", legalComments: "none", logLevel: "warning", absWorkingDir: web };

/**
 * Bundles the workers into one script. The workers' modules start further workers, so that the set
 * of roles is complete when a round finds no new one. A module runs only in its own role.
 */
export async function buildWorker(first, more = {}) {
  const roles = new Set(first);
  const wasm = new Map();
  for (let before = 0; ;) {
    before = roles.size;
    const cases = [...roles].sort().map((role) => `case ${JSON.stringify(role)}: require(${JSON.stringify(join(src, `${role}.ts`))}); break;`);
    const result = await build({
      ...common, ...more, write: false, metafile: true,
      stdin: { contents: `switch (JSON.parse(self.name).role) { ${cases.join("\n")} }`, resolveDir: src, sourcefile: "roles.js" },
      plugins: [...(more.plugins ?? []), workerPlugin(join(here, "nested.ts"), roles), nodePlugin, wasmPlugin(wasm)],
    });
    if (roles.size === before) {
      return { text: result.outputFiles[0].text, wasm };
    }
  }
}

/** Bundles the modules of the page. Returns the bundles without writing them. */
export async function buildPage(worker, wasm, more = {}) {
  const roles = new Set();
  const virtual = {
    name: "virtual",
    setup(build) {
      build.onResolve({ filter: /^\.\/workers$/ }, ({ importer }) => (dirname(importer) === join(src, "client") ? { path: join(here, "workers.ts") } : undefined));
      build.onResolve({ filter: /^volsfu:/ }, ({ path }) => ({ path: path.slice("volsfu:".length), namespace: "volsfu" }));
      build.onLoad({ filter: /.*/, namespace: "volsfu" }, async ({ path }) => {
        if (path === "worker") {
          return { contents: `export default ${JSON.stringify(worker)};` };
        }
        if (path === "wasm") {
          return { contents: `export default { ${[...wasm.keys()].map((name) => `${JSON.stringify(name)}: () => import(${JSON.stringify(`volsfu:${name}`)})`).join(", ")} };` };
        }
        return { contents: `export default ${JSON.stringify((await readFile(wasm.get(path))).toString("base64"))};` };
      });
    },
  };
  return build({
    ...common, ...more, write: false, metafile: true, splitting: true, outdir: join(here, "dist"), external: ["three", "react"], chunkNames: "[name]-[hash]",
    entryPoints: Object.fromEntries(Object.entries(entries).map(([name, path]) => [name, join(src, path)])),
    plugins: [...(more.plugins ?? []), virtual, workerPlugin(join(here, "workers.ts"), roles), nodePlugin],
  });
}

/** The modules that pages start as workers. */
export async function firstRoles() {
  const roles = new Set();
  await build({
    ...common, write: false, external: ["three", "react", "volsfu:*"], outdir: here, splitting: true,
    entryPoints: Object.values(entries).map((path) => join(src, path)), plugins: [workerPlugin(join(here, "workers.ts"), roles), nodePlugin],
  });
  return roles;
}

async function main(version, folder) {
  const { text, wasm } = await buildWorker(await firstRoles());
  const page = await buildPage(text, wasm);
  const manifest = JSON.parse(await readFile(join(here, "package.json"), "utf8"));
  const files = declarations();
  await Promise.all(["dist", "assets"].map((name) => mkdir(join(folder, name), { recursive: true })));
  await Promise.all([
    ...page.outputFiles.map(({ path, contents }) => writeFile(join(folder, "dist", basename(path)), contents)),
    ...Object.entries(files).map(([name, contents]) => writeFile(join(folder, "dist", `${name}.d.ts`), contents)),
    writeFile(join(folder, "assets", "worker.js"), text),
    ...[...wasm].map(([name, path]) => copyFile(path, join(folder, "assets", name))),
    writeFile(join(folder, "package.json"), `${JSON.stringify({ ...manifest, version }, undefined, 2)}\n`),
    copyFile(join(here, "README.md"), join(folder, "README.md")),
    copyFile(join(web, "..", "..", "LICENSE"), join(folder, "LICENSE")),
    copyFile(join(web, "public", "licenses.txt"), join(folder, "THIRD_PARTY_NOTICES.txt")),
  ]);
}

if (process.argv[1] === fileURLToPath(import.meta.url)) {
  const [version, folder] = process.argv.slice(2);
  await main(version, folder);
}
