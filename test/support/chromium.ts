/**
 * The browser that the tests of the dashboard drive: Chromium without a window. One on PATH is taken; else Debian's
 * package is unpacked once, with the libraries that the system lacks, into the cache of the repository, as the embedded
 * Redis is. Nothing is installed.
 */
import { execFile } from 'node:child_process';
import { mkdir, mkdtemp, readdir, rename, rm, writeFile } from 'node:fs/promises';
import { join } from 'node:path';
import { promisify } from 'node:util';
import { fetchDebianPackages } from '../../scripts/debian.mjs';
import { executable, findOnPath, firstLine } from '../../src/embedded/binary.mjs';
import { root } from './repository.ts';

export interface Chromium {
  readonly path: string;
  /** What its process needs besides ours: where its libraries and fonts are. */
  readonly env: Readonly<Record<string, string>>;
  /** As it says itself: `Chromium 150.0.7871.100`. */
  readonly version: string;
}

const run = promisify(execFile);
const CACHE = join(root, '.cache', 'chromium');
const VERSION_TIMEOUT_MS = 60_000;
const PROGRAMS = ['chromium-headless-shell', 'chromium', 'google-chrome'];
/** The first is smaller, and not every release has it. Without a font no text has a size. */
const PACKAGES = ['chromium-headless-shell', 'chromium'];
const FONTS = 'fonts-dejavu-core';

let found: Promise<Chromium> | undefined;

/** Rejects with what to do when it cannot be had. */
export function testChromium(): Promise<Chromium> {
  found ??= find();
  return found;
}

async function find(): Promise<Chromium> {
  const reasons: string[] = [];
  for (const path of await installed()) {
    const judged = await judge({ path, env: {} });
    if (typeof judged !== 'string') return judged;
    reasons.push(judged);
  }
  for (const name of PACKAGES) {
    const unpacked = await unpack(name).catch((error: unknown) => firstLine(error));
    const judged = typeof unpacked === 'string' ? unpacked : await judge(unpacked);
    if (typeof judged !== 'string') return judged;
    reasons.push(`${name}: ${judged}`);
  }
  throw new Error(
    `no Chromium for the tests of the dashboard (${reasons.join('; ')}); put one on PATH as ${PROGRAMS.join(', ')}, or let a mirror of Debian be reached`,
  );
}

async function installed(): Promise<readonly string[]> {
  const { DUESTREAM_CHROMIUM_BIN: given, PATH } = process.env;
  if (given !== undefined && given !== '') return [given];
  return (await Promise.all(PROGRAMS.map((name) => findOnPath(name, PATH)))).flat();
}

/** That a file exists says little: it may miss a library. */
async function judge({ path, env }: Omit<Chromium, 'version'>): Promise<Chromium | string> {
  try {
    const options = { env: { ...process.env, ...env }, timeout: VERSION_TIMEOUT_MS };
    const { stdout } = await run(path, ['--version', '--no-sandbox'], options);
    return { path, env, version: stdout.trim() };
  } catch (error) {
    return `${path} does not run (${firstLine(error)})`;
  }
}

/** Appears by one rename: what is there is complete. */
async function unpack(name: string): Promise<Omit<Chromium, 'version'>> {
  const dir = join(CACHE, name);
  const path = join(dir, 'usr', 'lib', 'chromium', name);
  if ((await executable(path)) === undefined) {
    await mkdir(CACHE, { recursive: true });
    const draft = await mkdtemp(join(CACHE, 'draft-'));
    try {
      const unpacked = join(draft, 'root');
      await fetchDebianPackages({ names: [name, FONTS], dir: unpacked, stateDir: join(draft, 'apt') });
      await writeFile(join(unpacked, 'fonts.conf'), fontsBeside(dir));
      await rename(unpacked, dir).catch(async (error: unknown) => {
        // Another process was quicker.
        if ((await executable(path)) === undefined) throw error;
      });
    } finally {
      await rm(draft, { recursive: true, force: true });
    }
  }
  return { path, env: await envOf(dir) };
}

/** The libraries of the package lie where Debian puts those of this machine, some in a folder of their own. */
async function envOf(dir: string): Promise<Readonly<Record<string, string>>> {
  const lib = join(dir, 'usr', 'lib');
  const ofMachine = (await readdir(lib)).filter((name) => name.includes('-linux-')).map((name) => join(lib, name));
  const libraries = ofMachine.flatMap((folder) => [folder, join(folder, 'pulseaudio')]);
  const before = process.env.LD_LIBRARY_PATH;
  return {
    LD_LIBRARY_PATH: [...libraries, ...(before ? [before] : [])].join(':'),
    FONTCONFIG_FILE: join(dir, 'fonts.conf'),
    XDG_CACHE_HOME: join(dir, 'cache'),
  };
}

/** The fonts that came with it, else those of the system. */
const fontsBeside = (dir: string): string => `<?xml version="1.0"?>
<!DOCTYPE fontconfig SYSTEM "fonts.dtd">
<fontconfig>
  <dir>${join(dir, 'usr', 'share', 'fonts')}</dir>
  <dir>/usr/share/fonts</dir>
  <cachedir>${join(dir, 'cache', 'fonts')}</cachedir>
  <alias><family>sans-serif</family><prefer><family>DejaVu Sans</family></prefer></alias>
  <alias><family>monospace</family><prefer><family>DejaVu Sans Mono</family></prefer></alias>
</fontconfig>
`;
