// Checks the built package: the core uses no names of the DOM, and is at most 150 kB in gzip without
// three.js and Draco; the report of the interface is that of the sources.
//
//   node package/check.mjs

import { gzipSync } from "node:zlib";
import ts from "typescript";
import { buildPage, buildWorker, firstRoles } from "./build.mjs";
import { checkReport } from "./declarations.mjs";

const limit = 150_000;
/** Names that only pages have, unlike workers. */
const dom = new Set(["document", "window", "HTMLElement", "customElements", "localStorage", "sessionStorage"]);

/** Replaces Draco's code by nothing. */
const withoutDraco = {
  plugins: [{
    name: "without Draco",
    setup(build) {
      build.onLoad({ filter: /draco3d\/.*\.js$/ }, () => ({ contents: "module.exports = {};" }));
    },
  }],
};

/** Returns the modules that an entry point loads, at once or on demand, without WebAssembly. */
function reachable({ outputFiles, metafile }, entry) {
  const found = new Set();
  const add = (path) => {
    if (!found.has(path)) {
      found.add(path);
      metafile.outputs[path].imports.filter((i) => !i.external).forEach((i) => add(i.path));
    }
  };
  add(Object.keys(metafile.outputs).find((path) => path.endsWith(`/${entry}.js`)));
  return outputFiles.filter(({ path }) => [...found].some((f) => path.endsWith(f)) && !path.includes("draco_"));
}

/** Returns the global names of a set that a module uses. */
export function uses(text, names) {
  const used = new Set();
  const visit = (node) => {
    const member = ts.isPropertyAccessExpression(node.parent) && node.parent.name === node;
    const key = ts.isPropertyAssignment(node.parent) && node.parent.name === node;
    if (ts.isIdentifier(node) && names.has(node.text) && !member && !key) {
      used.add(node.text);
    }
    ts.forEachChild(node, visit);
  };
  ts.forEachChild(ts.createSourceFile("module.js", text, ts.ScriptTarget.Latest, true), visit);
  return [...used];
}

const failures = [];
const { text, wasm } = await buildWorker(await firstRoles(), withoutDraco);
const page = await buildPage(text, wasm, withoutDraco);
const core = reachable(page, "index");
const size = core.reduce((sum, { text }) => sum + gzipSync(text).length, 0);
console.log(`The core has ${(size / 1000).toFixed(1)} kB in gzip, without three.js and Draco. The limit is ${limit / 1000} kB.`);
if (size > limit || core.length < 4) {
  failures.push(`the core has ${core.length} modules of ${size} bytes`);
}
for (const { path, text } of core) {
  const used = uses(text, dom);
  if (used.length > 0) {
    failures.push(`${path} of the core uses ${used.join(", ")}`);
  }
}
// The check itself: the element draws in a document.
if (uses(reachable(page, "element").map(({ text }) => text).join("\n"), dom).length === 0) {
  failures.push("no names of the DOM were found in the element, which uses them");
}
failures.push(...checkReport());
if (failures.length > 0) {
  console.error(failures.join("\n"));
  process.exit(1);
}
