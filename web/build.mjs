// Builds the explorer into src/omnigraph/ui/static and writes BUILD.json: the digest of the sources and of each file.
// `node build.mjs FOLDER` builds into another folder, which CI compares with the committed one.
import { build } from "esbuild";
import { createHash } from "node:crypto";
import { copyFile, mkdir, readdir, readFile, rm, writeFile } from "node:fs/promises";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";

const HERE = dirname(fileURLToPath(import.meta.url));
const OUT = process.argv[2] ?? join(HERE, "..", "src", "omnigraph", "ui", "static");
const SKIPPED = new Set(["node_modules", "dist", ".vitest"]);
const ENTRIES = {
  app: "src/main.tsx",
  arrow: "src/api/arrow.ts",
  editor: "src/editor/Editor.tsx",
  picture: "src/picture/sigma.ts",
};
const FIRST_SCREEN = [ENTRIES.app, "src/screens/home/Home.tsx"];
const COMMON = {
  absWorkingDir: HERE,
  bundle: true,
  minify: true,
  target: "es2022",
  charset: "utf8",
  legalComments: "none",
  metafile: true,
  logLevel: "warning",
  jsx: "automatic",
  jsxImportSource: "preact",
};

const sha256 = (data) => createHash("sha256").update(data).digest("hex");

async function files(folder) {
  const found = [];
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    if (SKIPPED.has(entry.name)) continue;
    const path = join(folder, entry.name);
    found.push(...(entry.isDirectory() ? await files(path) : [path]));
  }
  return found;
}

/** One digest over every source: relative paths in code-point order, each with the digest of its text with LF ends. */
async function sourceDigest() {
  const paths = (await files(HERE)).map((path) => relative(HERE, path).split(sep).join("/"));
  paths.sort((a, b) => Buffer.compare(Buffer.from(a), Buffer.from(b)));
  let text = "";
  for (const path of paths) {
    const source = (await readFile(join(HERE, path), "utf8")).replaceAll("\r\n", "\n");
    text += `${path} ${sha256(source)}\n`;
  }
  return sha256(text);
}

/** The packages whose code is in the built files. */
function packages(...metafiles) {
  const names = new Set();
  for (const { inputs } of metafiles) {
    for (const path of Object.keys(inputs)) {
      const inside = path.split("node_modules/").at(-1).split("/");
      if (path.includes("node_modules/")) names.add(inside[0].startsWith("@") ? `${inside[0]}/${inside[1]}` : inside[0]);
    }
  }
  return [...names].sort();
}

async function licences(names) {
  const parts = [];
  for (const name of names) {
    const folder = join(HERE, "node_modules", name);
    const { version, license } = JSON.parse(await readFile(join(folder, "package.json"), "utf8"));
    const file = (await readdir(folder)).filter((each) => /^licen[cs]e/i.test(each)).sort()[0];
    const text = file ? (await readFile(join(folder, file), "utf8")).replaceAll("\r\n", "\n").trim() : "";
    parts.push(`${name} ${version} (${license})\n\n${text}\n`);
  }
  return parts.join(`\n${"-".repeat(80)}\n\n`);
}

const fileName = (path) => path.split("/").at(-1);
const imported = ({ imports }) => imports.filter(({ kind }) => kind === "import-statement").map(({ path }) => fileName(path));

/** Files that the page needs for its first screen, the home page: two entries and what they import statically. */
function firstScreen({ outputs }) {
  const byName = new Map(Object.entries(outputs).map(([path, output]) => [fileName(path), output]));
  const seen = new Map();
  const visit = (name) => {
    if (seen.has(name)) return;
    seen.set(name, byName.get(name));
    imported(byName.get(name)).forEach(visit);
  };
  for (const [name, { entryPoint }] of byName) if (FIRST_SCREEN.includes(entryPoint)) visit(name);
  return seen;
}

/**
 * Puts the modules that several entries share into two chunks: those of the first screen, and all others. esbuild makes a chunk
 * for every set of entries that share a module; dozens of small files compress badly. Here every entry imports all modules of the
 * first chunk, and every entry that needs one of the second imports them all. `metafile` is that of a build without this.
 */
function twoChunks(metafile) {
  const first = firstScreen(metafile);
  const groups = { first: [], rest: [] };
  const entries = new Map();
  for (const [path, output] of Object.entries(metafile.outputs)) {
    const group = first.has(fileName(path)) ? "first" : "rest";
    const needsRest = group === "rest" && imported(output).some((name) => !first.has(name));
    if (output.entryPoint !== undefined) entries.set(output.entryPoint, needsRest ? 'import "group:first"; import "group:rest";' : 'import "group:first";');
    else groups[group].push(...Object.keys(output.inputs).filter((each) => each.startsWith("src/")));
  }
  return {
    name: "two-chunks",
    setup({ onResolve, onLoad }) {
      onResolve({ filter: /^group:/ }, ({ path }) => ({ path: path.slice("group:".length), namespace: "group" }));
      onLoad({ filter: /.*/, namespace: "group" }, ({ path }) => ({ contents: groups[path].map((each) => `import "./${each}";`).join("\n"), resolveDir: HERE }));
      onLoad({ filter: /\.tsx?$/ }, async ({ path }) => {
        const imports = entries.get(relative(HERE, path).split(sep).join("/"));
        if (imports === undefined) return undefined;
        return { contents: `${await readFile(path, "utf8")}\n${imports}`, loader: path.endsWith("x") ? "tsx" : "ts" };
      });
    },
  };
}

await rm(OUT, { recursive: true, force: true });
await mkdir(OUT, { recursive: true });
const APP = {
  ...COMMON,
  entryPoints: ENTRIES,
  outdir: OUT,
  format: "esm",
  splitting: true,
  chunkNames: "chunk-[name]-[hash]",
};
const app = await build({ ...APP, plugins: [twoChunks((await build({ ...APP, write: false })).metafile)] });
const styles = await build({ ...COMMON, entryPoints: { app: "src/styles/app.css" }, outdir: OUT });
// A worker is one file: the policy of the page accepts exactly this address.
const worker = await build({
  ...COMMON,
  entryPoints: { "layout.worker": "src/picture/layout.worker.ts" },
  outdir: OUT,
  format: "iife",
});
// Notebooks and saved files take one module with its styles inside.
const widgetStyles = await build({ ...COMMON, entryPoints: ["src/styles/widget.css"], write: false });
const widget = await build({
  ...COMMON,
  entryPoints: { widget: "src/widget.tsx" },
  outdir: OUT,
  format: "esm",
  plugins: [
    {
      name: "widget-styles",
      setup({ onResolve, onLoad }) {
        onResolve({ filter: /^widget-styles$/ }, () => ({ path: "widget-styles", namespace: "styles" }));
        onLoad({ filter: /.*/, namespace: "styles" }, () => ({ contents: widgetStyles.outputFiles[0].text.trim(), loader: "text" }));
      },
    },
  ],
});
await copyFile(join(HERE, "saved.html"), join(OUT, "saved.html"));
await copyFile(join(HERE, "index.html"), join(OUT, "index.html"));
await copyFile(join(HERE, "icon.svg"), join(OUT, "icon.svg"));
await writeFile(
  join(OUT, "LICENSES.txt"),
  await licences(packages(app.metafile, styles.metafile, worker.metafile, widget.metafile)),
);
const built = {};
for (const path of (await files(OUT)).sort()) built[relative(OUT, path)] = sha256(await readFile(path));
const record = { sources: await sourceDigest(), first_screen: [...firstScreen(app.metafile).keys()].sort(), files: built };
await writeFile(join(OUT, "BUILD.json"), `${JSON.stringify(record, null, 2)}\n`);
