/**
 * What an import costs: `npm run bench -- import`. Each import is a process of its own, one after the other and in turns: its
 * time and its CPU time in that process, and the memory of the process behind it. The code is that of the package. A process
 * that imports nothing shows what Node takes. Figures are medians. Writes `bench/results/import.json`.
 *
 *     --rounds 15   how often each is imported
 */
import { cpSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { packageCode } from '../scripts/package-code.mjs';
import { capture, Failed } from '../scripts/run.mjs';
import { root } from '../scripts/steps.mjs';
import { median, rounded } from './parts.mjs';

const peers = join(root, 'bench');
const made = "const { createClient } = await import('duestream'); createClient({ redis: 'redis://127.0.0.1:6379' })";

/** @param {import('./bench.mjs').Asked} asked */
export async function run({ number }) {
  const rounds = number('rounds', { otherwise: 15, from: 1, to: 1000 });
  const folder = await packaged();
  const imports = [
    { what: 'nothing', code: '', cwd: root },
    { what: 'ioredis', code: "await import('ioredis')", cwd: root },
    { what: 'duestream', code: "await import('duestream')", cwd: folder },
    { what: 'duestream, and a client', code: made, cwd: folder },
    { what: 'duestream/daemon', code: "await import('duestream/daemon')", cwd: folder },
    { what: 'bullmq', code: "await import('bullmq')", cwd: peers },
    { what: 'bee-queue', code: "await import('bee-queue')", cwd: peers },
  ].map((one) => ({ ...one, seen: /** @type {Figures[]} */ ([]) }));
  try {
    for (let round = 0; round < rounds; round += 1) {
      for (const one of imports) one.seen.push(await measure(one));
    }
  } finally {
    rmSync(folder, { recursive: true });
  }
  const rows = imports.map(({ what, seen }) => {
    const of = (/** @type {keyof Figures} */ name) => median(seen.map((one) => one[name]));
    const megabytes = rounded(of('bytes') / 2 ** 20);
    return { what, ms: Math.round(of('ms')), cpuMs: Math.round(of('cpuMs')), megabytes };
  });
  return [{ name: 'import', what: `the cost of an import, ${rounds} rounds`, rows }];
}

/** The build as it is published, where the dependencies are found. */
async function packaged() {
  const made = mkdtempSync(join(root, '.cache', 'import-'));
  // Without it the name `duestream` means the repository that lies around.
  writeFileSync(join(made, 'package.json'), '{ "private": true }');
  const product = join(made, 'node_modules', 'duestream');
  for (const part of ['dist', 'lua/scripts.mjs', 'package.json']) {
    cpSync(join(root, part), join(product, part), { recursive: true });
  }
  await packageCode(product);
  return made;
}

/** @typedef {{ readonly ms: number, readonly cpuMs: number, readonly bytes: number }} Figures */

/** @param {{ readonly code: string, readonly cwd: string }} imported @returns {Promise<Figures>} */
async function measure({ code, cwd }) {
  const program = `const [beganMs, before] = [performance.now(), process.cpuUsage()];
    ${code};
    const { user, system } = process.cpuUsage(before);
    const figures = { ms: performance.now() - beganMs, cpuMs: (user + system) / 1000, bytes: process.memoryUsage.rss() };
    console.log(JSON.stringify(figures));
    process.exit();`;
  const { code: status, output } = await capture(process.execPath, ['--input-type=module', '-e', program], { cwd });
  if (status !== 0) throw new Failed(status, output);
  return JSON.parse(output);
}
