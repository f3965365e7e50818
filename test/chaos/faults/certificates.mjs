/**
 * A private authority and what it signs, made for one run with `openssl`: the one on the PATH, else one that is unpacked
 * from Debian into the cache; nothing on the system changes.
 */
import { execFile } from 'node:child_process';
import { existsSync, mkdirSync, readdirSync, writeFileSync } from 'node:fs';
import { join } from 'node:path';
import { fileURLToPath } from 'node:url';
import { promisify } from 'node:util';
import { fetchDebianPackages } from '../../../scripts/debian.mjs';
import { findOnPath } from '../../../src/embedded/binary.mjs';

/** @typedef {{ readonly cert: string, readonly key: string }} Certificate paths of PEM files */

const run = promisify(execFile);
const CACHE = fileURLToPath(new URL('../../../.cache/openssl', import.meta.url));
const TIMEOUT_MS = 120_000;
const DAY_MS = 86_400_000;
const HERE = 'DNS:localhost,IP:127.0.0.1';
const NEW_KEY = ['-newkey', 'ec', '-pkeyopt', 'ec_paramgen_curve:prime256v1', '-nodes'];

/**
 * @param {string} folder to put them into
 * @returns {Promise<{ authority: string } & Record<'good' | 'expired' | 'elsewhere' | 'selfSigned', Certificate>>}
 */
export async function makeCertificates(folder) {
  const dir = join(folder, 'certificates');
  mkdirSync(dir);
  const { path, env } = await openssl();
  const config = join(dir, 'openssl.cnf');
  writeFileSync(config, configOf(dir));
  writeFileSync(join(dir, 'index.txt'), '');
  /** @param {readonly string[]} args */
  const call = (...args) => run(path, args, { cwd: dir, env: { ...process.env, ...env }, timeout: TIMEOUT_MS });
  const pathsOf = (/** @type {string} */ name) => ({ cert: join(dir, `${name}.pem`), key: join(dir, `${name}.key`) });

  /** @param {string} name @param {readonly string[]} extra */
  async function root(name, ...extra) {
    const { cert, key } = pathsOf(name);
    const to = ['-config', config, '-subj', `/CN=duestream test ${name}`, '-keyout', key, '-out', cert];
    await call('req', '-x509', ...NEW_KEY, ...to, '-days', '2', ...extra);
    return { cert, key };
  }

  /** @param {string} name @param {{ hosts: string, from: Date, to: Date }} of */
  async function leaf(name, { hosts, from, to }) {
    const { cert, key } = pathsOf(name);
    const request = join(dir, `${name}.csr`);
    const extensions = join(dir, `${name}.ext`);
    writeFileSync(extensions, `basicConstraints=CA:FALSE\nsubjectAltName=${hosts}\n`);
    await call('req', '-new', ...NEW_KEY, '-config', config, '-subj', `/CN=${name}`, '-keyout', key, '-out', request);
    const span = ['-startdate', stamp(from), '-enddate', stamp(to)];
    await call(
      'ca',
      '-batch',
      '-notext',
      '-config',
      config,
      '-extfile',
      extensions,
      ...span,
      '-in',
      request,
      '-out',
      cert,
    );
    return { cert, key };
  }

  const authority = await root('authority', '-extensions', 'authority');
  const now = Date.now();
  const valid = { hosts: HERE, from: new Date(now - DAY_MS), to: new Date(now + DAY_MS) };
  return {
    authority: authority.cert,
    good: await leaf('good', valid),
    expired: await leaf('expired', { ...valid, from: new Date(now - 2 * DAY_MS), to: new Date(now - DAY_MS) }),
    elsewhere: await leaf('elsewhere', { ...valid, hosts: 'DNS:redis.example.org' }),
    selfSigned: await root('self-signed', '-extensions', 'alone'),
  };
}

/** @param {string} dir */
const configOf = (dir) => `
[req]
distinguished_name = name
prompt = no
[name]
CN = duestream test
[authority]
basicConstraints = critical, CA:TRUE
keyUsage = critical, keyCertSign
[alone]
subjectAltName = ${HERE}
[ca]
default_ca = one
[one]
database = ${join(dir, 'index.txt')}
new_certs_dir = ${dir}
certificate = ${join(dir, 'authority.pem')}
private_key = ${join(dir, 'authority.key')}
rand_serial = yes
unique_subject = no
default_md = sha256
policy = any
[any]
commonName = supplied
`;

/** `20260131120000Z`. @param {Date} when */
const stamp = (when) => `${when.toISOString().replace(/\D/g, '').slice(0, 14)}Z`;

async function openssl() {
  const [path] = await findOnPath('openssl', process.env.PATH);
  if (path) return { path, env: {} };
  const { dir } = await fetchDebianPackages({ names: ['openssl'], dir: CACHE });
  const lib = join(dir, 'usr', 'lib');
  const triplet = existsSync(lib) ? readdirSync(lib).find((entry) => entry.includes('-linux-')) : undefined;
  return { path: join(dir, 'usr', 'bin', 'openssl'), env: triplet ? { LD_LIBRARY_PATH: join(lib, triplet) } : {} };
}
