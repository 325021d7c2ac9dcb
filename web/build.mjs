// Bundles src/ into gatas/serving/page/: one script, one style sheet, the page, and the licences of what is bundled.
import { createHash } from "node:crypto";
import { copyFileSync, mkdirSync, readFileSync, readdirSync, rmSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const page = "../gatas/serving/page";
rmSync(page, { recursive: true, force: true });
mkdirSync(page);
const { metafile } = await build({
  entryPoints: [
    { in: "src/main.tsx", out: "explorer" },
    { in: "src/explorer.css", out: "explorer" },
  ],
  outdir: page,
  bundle: true,
  minify: true,
  target: "es2022",
  format: "iife",
  charset: "utf8",
  legalComments: "none",
  jsx: "automatic",
  jsxImportSource: "preact",
  metafile: true,
});
for (const file of ["index.html", "icon.svg"]) copyFileSync(`src/${file}`, `${page}/${file}`);

const bundled = new Set(Object.keys(metafile.inputs).flatMap((path) => path.match(/^node_modules\/((?:@[^/]+\/)?[^/]+)/)?.[1] ?? []));
const licences = [...bundled].sort().map((name) => {
  const { version } = JSON.parse(readFileSync(`node_modules/${name}/package.json`, "utf8"));
  return `${name} ${version}\n\n${readFileSync(`node_modules/${name}/LICENSE`, "utf8").trim()}\n`;
});
writeFileSync(`${page}/LICENSES.txt`, licences.join(`\n${"-".repeat(80)}\n\n`));

// Tests compare it with the sources, so that a page that was not built again is found without node.
const sources = ["build.mjs", "package-lock.json", ...readdirSync("src").sort().map((name) => `src/${name}`)];
const hash = createHash("sha256");
for (const path of sources) hash.update(readFileSync(path));
writeFileSync(`${page}/sources.sha256`, `${hash.digest("hex")}\n`);
