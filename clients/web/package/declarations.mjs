// Prints the public declarations of the entry points, each as one flat text. The texts are the types
// of the package, and the report of its interface in package/api.
//
//   node package/declarations.mjs  writes the report

import { mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join, relative, resolve } from "node:path";
import { fileURLToPath } from "node:url";
import ts from "typescript";
import { entries } from "./entries.mjs";

const here = dirname(fileURLToPath(import.meta.url));
const web = dirname(here);
const src = join(web, "src");

/** Emits the declarations of all modules of the entry points, by the path of the module without .ts. */
function emit() {
  const { options } = ts.parseJsonConfigFileContent(ts.readConfigFile(join(web, "tsconfig.json"), ts.sys.readFile).config, ts.sys, web);
  const roots = Object.values(entries).map((path) => join(src, path));
  const program = ts.createProgram(roots, { ...options, noEmit: false, declaration: true, emitDeclarationOnly: true, stripInternal: true, outDir: join(web, "declarations"), rootDir: web });
  const modules = new Map();
  program.emit(undefined, (path, text) => modules.set(relative(join(web, "declarations"), path).replace(/\.d\.ts$/, ""), ts.createSourceFile(path, text, ts.ScriptTarget.Latest, true)));
  return modules;
}

/** Returns the name and the module of each import and re-export of a module, by local name. */
function referencesOf(module, source) {
  const found = new Map();
  for (const statement of source.statements) {
    const from = (ts.isImportDeclaration(statement) || ts.isExportDeclaration(statement)) && statement.moduleSpecifier?.text;
    if (!from) {
      continue;
    }
    const elements = ts.isImportDeclaration(statement) ? statement.importClause?.namedBindings?.elements : statement.exportClause?.elements;
    const target = from.startsWith(".") ? join(dirname(module), from) : from;
    for (const element of elements ?? []) {
      found.set(element.name.text, { module: target, name: (element.propertyName ?? element.name).text, local: from.startsWith(".") });
    }
  }
  return found;
}

function declaredBy(statement) {
  if (ts.isVariableStatement(statement)) {
    return statement.declarationList.declarations.map((d) => d.name.text);
  }
  return statement.name ? [statement.name.text] : [];
}

/** Collects the declarations of names, and of all names that they refer to. */
class Flat {
  /** The text of each declaration, by module and name. */
  texts = new Map();
  /** The module of each name. */
  names = new Map();
  /** The imported names, by the package. */
  imports = new Map();

  /** @param shared has the entry point of everything that earlier entry points export, by module and name */
  constructor(modules, shared) {
    this.modules = modules;
    this.shared = shared;
  }

  add(module, name) {
    const source = this.modules.get(module);
    if (!source) {
      throw new Error(`${module}, which declares ${name}, has no declarations`);
    }
    const references = referencesOf(module, source);
    const reference = references.get(name);
    if (reference) {
      return reference.local ? this.add(reference.module, reference.name) : this.import(reference.module, reference.name);
    }
    const owner = this.shared.get(`${module}#${name}`);
    if (owner) {
      return this.import(`./${owner.entry}.js`, owner.name === name ? name : `${owner.name} as ${name}`);
    }
    const key = `${module}#${name}`;
    if (this.texts.has(key)) {
      return;
    }
    const before = this.names.get(name);
    if (before !== undefined && before !== module) {
      throw new Error(`${name} is declared by ${before} and by ${module}, which the flat declarations cannot contain`);
    }
    this.names.set(name, module);
    const statements = source.statements.filter((s) => declaredBy(s).includes(name));
    if (statements.length === 0) {
      throw new Error(`${module} declares no ${name}`);
    }
    this.texts.set(key, "");
    const text = statements.map((s) => s.getFullText().trim().replace(/^((?:\/\*\*[\s\S]*?\*\/|\/\/[^\n]*|\s)*)export (declare )?/, (_, head, declare) => `${head}${declare ?? ""}`)).join("\n");
    this.texts.set(key, text.replace(/^((?:\/\*\*[\s\S]*?\*\/|\s)*)(class|function|const|let|abstract class) /, "$1declare $2 "));
    const own = new Set(source.statements.flatMap(declaredBy));
    const visit = (node) => {
      if (ts.isIdentifier(node) && !(ts.isPropertySignature(node.parent) && node.parent.name === node) && (own.has(node.text) || references.has(node.text)) && node.text !== name) {
        this.add(module, node.text);
      }
      ts.forEachChild(node, visit);
    };
    statements.forEach(visit);
  }

  import(from, name) {
    this.imports.set(from, (this.imports.get(from) ?? new Set()).add(name));
  }

  text(exported) {
    const parts = [...this.imports].sort().map(([from, names]) => `import type { ${[...names].sort().join(", ")} } from ${JSON.stringify(from)};`);
    const sorted = [...this.texts].sort(([a], [b]) => (nameOf(a) < nameOf(b) ? -1 : 1));
    parts.push(...sorted.map(([key, text]) => (exported.get(key) === nameOf(key) ? text.replace(/^((?:\/\*\*[\s\S]*?\*\/|\s)*)/, "$1export ") : text)));
    const renamed = [...exported].filter(([key, name]) => name !== nameOf(key)).map(([key, name]) => `${nameOf(key)} as ${name}`);
    parts.push(`export {${renamed.length > 0 ? ` ${renamed.sort().join(", ")} ` : ""}};`);
    return `${parts.join("\n\n")}\n`;
  }
}

function nameOf(key) {
  return key.split("#")[1];
}

/** Returns the public name of everything that a module exports, by the declaring module and the name there. */
function exportsOf(modules, module) {
  const source = modules.get(module);
  const references = referencesOf(module, source);
  const keys = new Map();
  for (const statement of source.statements) {
    if (ts.isExportDeclaration(statement) && statement.exportClause) {
      for (const { name } of statement.exportClause.elements) {
        const { module: from, name: original } = references.get(name.text) ?? { module, name: name.text };
        keys.set(resolveKey(modules, from, original), name.text);
      }
    } else if (statement.modifiers?.some((m) => m.kind === ts.SyntaxKind.ExportKeyword)) {
      declaredBy(statement).forEach((name) => keys.set(`${module}#${name}`, name));
    }
  }
  return keys;
}

function resolveKey(modules, module, name) {
  const reference = referencesOf(module, modules.get(module)).get(name);
  return reference?.local ? resolveKey(modules, reference.module, reference.name) : `${module}#${name}`;
}

/** Returns the declarations of each entry point, by its name. */
export function declarations() {
  const modules = emit();
  const texts = {};
  const shared = new Map();
  for (const [name, path] of Object.entries(entries)) {
    const module = join("src", path.replace(/\.ts$/, ""));
    const exported = exportsOf(modules, module);
    const flat = new Flat(modules, shared);
    [...exported.keys()].forEach((key) => flat.add(...key.split("#")));
    texts[name] = flat.text(exported) + globalsOf(modules.get(module));
    exported.forEach((public_, key) => shared.set(key, shared.get(key) ?? { entry: name, name: public_ }));
  }
  return texts;
}

/** Returns the declarations that a module adds to global names, as the names of elements. */
function globalsOf(source) {
  return source.statements.filter((s) => ts.isModuleDeclaration(s) && s.name.text === "global").map((s) => `\n${s.getText()}\n`).join("");
}

/** Returns the path of the report of an entry point. */
function reportOf(name) {
  return join(here, "api", `${name}.d.ts`);
}

/** Returns a sentence for each entry point whose report is not that of the sources. */
export function checkReport() {
  return Object.entries(declarations()).filter(([name, text]) => text !== readFileSync(reportOf(name), { encoding: "utf8", flag: "a+" }))
    .map(([name]) => `The public declarations differ from ${relative(web, reportOf(name))}. If the change is intended, run: scripts/npm.sh api`);
}

if (resolve(process.argv[1] ?? "") === fileURLToPath(import.meta.url)) {
  mkdirSync(join(here, "api"), { recursive: true });
  Object.entries(declarations()).forEach(([name, text]) => writeFileSync(reportOf(name), text));
}
