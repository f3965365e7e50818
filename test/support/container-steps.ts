/**
 * Carries out a Dockerfile without a container engine: each stage is a folder that stands for its root file system,
 * COPY copies into it, RUN runs in it. A step is not in a jail, so absolute paths in commands mean this machine; COPY,
 * WORKDIR and cache mounts stay inside, and a variable that names a cache mount is led there. What this interpreter does not know is an error, never a guess.
 *
 * Users are mapped as in a user namespace when we are root: root of the container is HOST_IDS, and so on. Otherwise
 * everything is done by whoever runs the tests. Nothing ever runs as root.
 */
import { type ChildProcess, spawn } from 'node:child_process';
import { once } from 'node:events';
import { cpSync, existsSync, lchownSync, mkdirSync, readdirSync, statSync } from 'node:fs';
import { basename, dirname, join, posix } from 'node:path';
import { contextFiles } from './container-context.ts';

export interface Image {
  /** The folder that stands for `/`. */
  readonly root: string;
  readonly env: Readonly<Record<string, string>>;
  readonly workdir: string;
  /** As it is written. */
  readonly user: string;
  readonly labels: Readonly<Record<string, string>>;
  readonly ports: readonly string[];
  readonly stopSignal: string;
  readonly healthcheck: readonly string[];
  readonly entrypoint: readonly string[];
  readonly cmd: readonly string[];
}

export interface BuildOptions {
  readonly dockerfile: string;
  readonly dockerignore: string;
  readonly context: string;
  /** Empty; stages are made in it. */
  readonly folder: string;
  /** For RUN: where the registry is, proxies. */
  readonly env: Readonly<Record<string, string>>;
  /** Fills a new cache mount. */
  readonly fillCache: (folder: string) => Promise<void>;
}

interface Step {
  readonly verb: string;
  readonly rest: string;
}

interface Stage {
  readonly name: string;
  image: Image;
  args: Readonly<Record<string, string>>;
}

/** Root of a container on this machine; nobody has this id. */
const HOST_IDS = 61_000;

const EMPTY: Omit<Image, 'root'> = {
  env: {},
  workdir: '/',
  user: '0:0',
  labels: {},
  ports: [],
  stopSignal: 'SIGTERM',
  healthcheck: [],
  entrypoint: [],
  cmd: [],
};

/** The last stage. */
export async function buildImage(options: BuildOptions): Promise<Image> {
  const stages: Stage[] = [];
  let globals: Readonly<Record<string, string>> = {};
  for (const { verb, rest } of stepsOf(options.dockerfile)) {
    const stage = stages.at(-1);
    if (verb === 'FROM') stages.push(begin(substitute(rest, globals), { stages, folder: options.folder }));
    else if (stage === undefined) globals = { ...globals, ...argument(rest) };
    else if (verb === 'RUN') await run(stage, rest, options);
    else if (verb === 'COPY') copy(stage, rest, { stages, options });
    else set(stage, { verb, rest });
  }
  const last = stages.at(-1);
  if (last === undefined) throw new Error('the Dockerfile has no stage');
  return last.image;
}

/** Runs a command in the image as its user, with its environment and no other but PATH. */
export function runIn(image: Image, command: readonly string[], env: Readonly<Record<string, string>>): ChildProcess {
  return start(image, command, { PATH: process.env.PATH ?? '', HOME: '/nonexistent', ...image.env, ...env });
}

/** The ids on this machine of a user in the image. */
export function hostIds(user: string): { readonly uid?: number; readonly gid?: number } {
  if (process.getuid?.() !== 0) return {};
  const [uid = 0, gid = uid] = user.split(':').map(Number);
  return { uid: HOST_IDS + uid, gid: HOST_IDS + gid };
}

function stepsOf(dockerfile: string): readonly Step[] {
  if (/<<[-~]?["']?\w/.test(dockerfile)) throw new Error('here-documents are not known here');
  const lines = dockerfile.split('\n').filter((line) => !/^\s*(#|$)/.test(line));
  const joined = lines.join('\n').replace(/\\\s*\n\s*/g, '');
  return joined.split('\n').map((line) => {
    const [, verb = '', rest = ''] = /^\s*([A-Z]+)\s+(.*)$/.exec(line) ?? [];
    if (verb === '') throw new Error(`no instruction: ${line}`);
    return { verb, rest };
  });
}

function begin(
  rest: string,
  { stages, folder }: { readonly stages: readonly Stage[]; readonly folder: string },
): Stage {
  const [, base = '', name = String(stages.length)] = /^(\S+)(?:\s+AS\s+(\S+))?$/i.exec(rest) ?? [];
  if (!/^node:\d+-slim$/.test(base)) throw new Error(`base image ${base}; known: node:<major>-slim, which is our node`);
  const root = join(folder, name);
  const stage = { name, image: { root, ...EMPTY }, args: {} };
  makeFolder(stage, '/root');
  return stage;
}

function set(stage: Stage, { verb, rest }: Step): void {
  const value = substitute(rest, { ...stage.args, ...stage.image.env });
  const change = (changed: Partial<Image>) => {
    stage.image = { ...stage.image, ...changed };
  };
  if (verb === 'ARG') stage.args = { ...stage.args, ...argument(rest) };
  else if (verb === 'ENV') change({ env: { ...stage.image.env, ...pairs(value) } });
  else if (verb === 'LABEL') change({ labels: { ...stage.image.labels, ...pairs(value) } });
  else if (verb === 'USER') change({ user: value });
  else if (verb === 'EXPOSE') change({ ports: [...stage.image.ports, value] });
  else if (verb === 'STOPSIGNAL') change({ stopSignal: value });
  else if (verb === 'ENTRYPOINT') change({ entrypoint: execForm(rest), cmd: [] });
  else if (verb === 'CMD') change({ cmd: execForm(rest) });
  else if (verb === 'HEALTHCHECK') change({ healthcheck: execForm(rest.replace(/^(--\S+\s+)*CMD\s+/, '')) });
  else if (verb === 'WORKDIR') {
    change({ workdir: posix.resolve(stage.image.workdir, value) });
    makeFolder(stage, stage.image.workdir);
  } else throw new Error(`the instruction ${verb} is not known here`);
}

function copy(stage: Stage, rest: string, { stages, options }: { stages: readonly Stage[]; options: BuildOptions }) {
  const [, from, sources = '', to = ''] = /^(?:--from=(\S+)\s+)?([^-].*?)\s+(\S+)$/.exec(rest) ?? [];
  if (to === '') throw new Error(`not known here: COPY ${rest}`);
  const folder = from === undefined ? options.context : stageOf(stages, from).image.root;
  const sent = from === undefined ? contextFiles(options.context, options.dockerignore) : undefined;
  for (const source of sources.split(/\s+/)) {
    if (sent && !sent.some((file) => file === source || file.startsWith(`${source}/`))) {
      throw new Error(`COPY ${source}: .dockerignore keeps it out, or it is not there`);
    }
    const path = join(folder, source);
    // The content of a folder goes to the target; a file goes into it when it ends with a slash.
    const name = to.endsWith('/') && !statSync(path).isDirectory() ? basename(source) : '';
    const target = posix.resolve(stage.image.workdir, to, name);
    makeFolder(stage, dirname(target));
    const place = join(stage.image.root, target);
    // Modes are kept, the owner is root whoever it was.
    cpSync(path, place, { recursive: true, verbatimSymlinks: true });
    own(stage, place);
  }
}

function stageOf(stages: readonly Stage[], wanted: string): Stage {
  const found = stages.find(({ name }) => name === wanted);
  if (found === undefined) throw new Error(`there is no stage ${wanted}`);
  return found;
}

async function run(stage: Stage, rest: string, { folder, env, fillCache }: BuildOptions): Promise<void> {
  const [, target, command = ''] = /^(?:--mount=type=cache,target=(\S+)\s+)?([^-].*)$/.exec(rest) ?? [];
  if (command === '') throw new Error(`not known here: RUN ${rest}`);
  const cache = target === undefined ? undefined : await cacheOf(stage, { target, folder, fillCache });
  const home = join(stage.image.root, 'root');
  const said = Object.entries(stage.image.env).map(([name, value]) => [name, value === target ? cache : value]);
  const all = { PATH: process.env.PATH ?? '', HOME: home, TMPDIR: home, ...Object.fromEntries(said), ...env };
  const child = start(stage.image, ['/bin/sh', '-c', command], all);
  let output = '';
  for (const stream of [child.stdout, child.stderr]) {
    stream?.on('data', (chunk) => {
      output += String(chunk);
    });
  }
  const [code] = await once(child, 'close');
  if (code !== 0) throw new Error(`RUN ${command} ended with ${code}:\n${output.slice(-3000)}`);
}

/** One folder for all stages, outside of them all, so that it is in no image. */
async function cacheOf(
  stage: Stage,
  { target, folder, fillCache }: Pick<BuildOptions, 'folder' | 'fillCache'> & { readonly target: string },
): Promise<string> {
  const cache = join(folder, `cache${target.replaceAll('/', '-')}`);
  if (!existsSync(cache)) {
    mkdirSync(cache);
    await fillCache(cache);
    own(stage, cache);
  }
  return cache;
}

function start(image: Image, [program = '', ...args]: readonly string[], env: Readonly<Record<string, string>>) {
  const cwd = join(image.root, image.workdir);
  return spawn(program, args, { cwd, env, stdio: ['ignore', 'pipe', 'pipe'], ...hostIds(image.user) });
}

function makeFolder(stage: Stage, path: string): void {
  const folder = join(stage.image.root, path);
  const first = mkdirSync(folder, { recursive: true, mode: 0o755 });
  if (first !== undefined) own(stage, first);
}

/** Gives a file or folder with all in it to the user of the stage. */
function own(stage: Stage, path: string): void {
  const { uid, gid } = hostIds('0:0');
  if (uid === undefined || gid === undefined) return;
  if (stage.image.user !== EMPTY.user) throw new Error('files come before USER, so that they belong to root');
  const below = statSync(path).isDirectory() ? readdirSync(path, { recursive: true, encoding: 'utf8' }) : [];
  // A link changes hands itself, and not what it leads to.
  for (const name of ['', ...below]) lchownSync(join(path, name), uid, gid);
}

function execForm(text: string): readonly string[] {
  if (!text.startsWith('[')) throw new Error(`not in exec form, so a shell would stand before it: ${text}`);
  return JSON.parse(text);
}

function argument(rest: string): Readonly<Record<string, string>> {
  const [name = '', value = ''] = rest.split('=', 2);
  return { [name]: value };
}

function pairs(text: string): Readonly<Record<string, string>> {
  return Object.fromEntries([...text.matchAll(/([\w.]+)=(?:"([^"]*)"|(\S+))/g)].map(([, key, a, b]) => [key, a ?? b]));
}

function substitute(text: string, values: Readonly<Record<string, string>>): string {
  return text.replace(/\$\{(\w+)\}|\$(\w+)/g, (_, braced, bare) => values[braced ?? bare] ?? '');
}
