/**
 * Runs a command where nothing can be written but the folders that are named: every other mount becomes read-only. It
 * must itself run in a mount namespace of its own (see `sealed.ts`), or it would seal the whole machine, which it refuses.
 *
 *     seal.mjs '{"writable":["/repository","/tmp/x"],"user":[1000,1000]}' command arguments…
 *
 * `user` is whom the command is run as again, when a user namespace had to make us root first.
 */
import { execFileSync, spawnSync } from 'node:child_process';
import { readFileSync, readlinkSync, rmSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';

/** Devices and the kernel's own; nothing there stays. */
const KERNEL = ['/proc', '/sys', '/dev', '/dev/pts', '/dev/mqueue'];
/** Looked at afterwards, because a seal that leaks proves nothing. */
const SYSTEM = ['/', '/usr', '/etc', '/bin', '/lib', '/opt', '/var', '/tmp', '/root', '/home'];

const [settings = '{}', command = '', ...args] = process.argv.slice(2);
/** @type {{ writable: readonly string[], outside: string, user?: readonly [number, number] }} */
const { writable, outside, user } = JSON.parse(settings);

if (readlinkSync('/proc/self/ns/mnt') === outside) throw new Error('seal.mjs needs a mount namespace of its own');
for (const folder of writable) mount(['--rbind', folder, folder]);
for (const { point, options } of mounts()) {
  if (!isKernel(point) && !writable.some((folder) => `${point}/`.startsWith(`${folder}/`)))
    mount(['-o', ['remount,bind', ...options.filter((option) => option !== 'rw'), 'ro'].join(','), point]);
}
for (const folder of SYSTEM) probe(folder);
const again = user === undefined ? [] : ['unshare', '--user', `--map-user=${user[0]}`, `--map-group=${user[1]}`, '--'];
const [program = '', ...rest] = [...again, command, ...args];
process.exitCode = spawnSync(program, rest, { stdio: 'inherit' }).status ?? 1;

/** @param {readonly string[]} how */
function mount(how) {
  execFileSync('mount', how, { stdio: ['ignore', 'inherit', 'pipe'] });
}

/** With the flags that each has, because a user namespace may take none of them away. */
function mounts() {
  const lines = readFileSync('/proc/self/mountinfo', 'utf8').trim().split('\n');
  return lines.map((line) => {
    const [, , , , point = '', options = ''] = line.split(' ');
    const plain = point.replace(/\\(\d{3})/g, (_, code) => String.fromCharCode(Number.parseInt(code, 8)));
    return { point: plain, options: options.split(',') };
  });
}

/** @param {string} point */
function isKernel(point) {
  return KERNEL.includes(point) || point.startsWith('/proc/') || point.startsWith('/sys/');
}

/** @param {string} folder */
function probe(folder) {
  const file = join(folder, `.due-seal-${process.pid}`);
  try {
    writeFileSync(file, '', { flag: 'wx' });
  } catch {
    return;
  }
  rmSync(file);
  throw new Error(`the seal leaks: ${folder} can be written`);
}
