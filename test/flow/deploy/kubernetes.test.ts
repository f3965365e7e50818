/**
 * The objects for Kubernetes, those of `deploy/kubernetes` and those that the chart renders: Kubernetes would take each, they fit
 * together, they have no more rights than they need, and what they say of duestream is true.
 */
import { mkdtempSync, rmSync } from 'node:fs';
import { tmpdir } from 'node:os';
import { join } from 'node:path';
import { afterAll, describe, expect, test } from 'vitest';
import { parse, parseAllDocuments } from 'yaml';
import { manifests, renderChart } from '../../../scripts/generate/chart.mjs';
import { SET_BY_THE_CHART } from '../../../scripts/generate/chart-schema.mjs';
import { loadConfig } from '../../../src/config/load.ts';
import { options } from '../../../src/config/options.ts';
import { envName } from '../../../src/config/table.ts';
import { version } from '../../../src/kernel/version.ts';
import { serveApi } from '../../support/api.ts';
import {
  containerOf,
  EVERYTHING,
  environmentOf,
  faultsOf,
  objectsWith,
  type Parsed,
  SECRETS,
} from '../../support/kubernetes.ts';
import { read } from '../../support/repository.ts';

const folder = mkdtempSync(join(tmpdir(), 'due-kubernetes-'));
afterAll(() => rmSync(folder, { recursive: true, force: true }));

const all = objectsWith(EVERYTHING);
const get = (id: string): Parsed => all.get(id) ?? expect.fail(`there is no ${id}`);
const ofKind = (kind: string): readonly Parsed[] => [...all.values()].filter((one) => one.kind === kind);
const deployments = [get('Deployment duestream'), get('Deployment duestream-worker')];

const HOW_TO = 'docs/how-to/kubernetes.md';
/** Whole objects that the how-to shows. */
const shown = [...read(HOW_TO).matchAll(/^```yaml\n([\s\S]*?)^```/gm)]
  .map(([, text = '']) => text)
  .filter((text) => /^kind: /m.test(text));

const objectsIn = (text: string): readonly Parsed[] => parseAllDocuments(text).map((document) => document.toJS());

describe('every object', () => {
  const sources: Readonly<Record<string, string>> = {
    ...Object.fromEntries(Object.keys(manifests).map((path) => [path, read(path)])),
    ...Object.fromEntries(shown.map((text, at) => [`${HOW_TO}, ${at + 1}`, text])),
  };

  test.for(Object.entries(sources))('of %s is one that Kubernetes takes', ([, text]) => {
    const objects = objectsIn(text);
    expect(objects.length).toBeGreaterThan(0);
    expect(objects.flatMap(faultsOf)).toEqual([]);
  });

  test.for<readonly [string, Readonly<Record<string, unknown>>]>([
    ['nothing', {}],
    ['everything', EVERYTHING],
    ['workers alone', { worker: EVERYTHING.worker, daemon: { enabled: false }, networkPolicy: { enabled: false } }],
  ])('that the chart renders with %s set is one that Kubernetes takes', ([, values]) => {
    const objects = [...objectsWith(values).values()];
    expect(objects.length).toBeGreaterThanOrEqual(4);
    expect(objects.flatMap(faultsOf)).toEqual([]);
  });

  test('that is wrong is noticed', () => {
    const wrong = { ...get('Service duestream'), spec: { ports: [{ port: 'http' }] } };
    expect(faultsOf(wrong)).toEqual([expect.stringContaining('Service duestream: ')]);
    expect(faultsOf({ ...wrong, kind: 'Ingress' })).toEqual(['no model of v1 Ingress']);
  });

  // kubectl and Helm read YAML 1.1, where `off` and `0440` are no texts.
  test('is read alike by both versions of YAML', () => {
    const { 'NOTES.txt': _, ...rendered } = renderChart({ values: EVERYTHING });
    const texts = [...Object.values(sources), ...Object.values(rendered)];
    const read11 = texts.flatMap((text) => parseAllDocuments(text, { version: '1.1' }).map((one) => one.toJS()));
    expect(read11).toEqual(texts.flatMap(objectsIn));
  });

  test('is part of the release, by its labels', () => {
    const labels = { 'app.kubernetes.io/name': 'duestream', 'app.kubernetes.io/instance': 'duestream' };
    for (const object of all.values()) expect(object.metadata.labels, object.metadata.name).toMatchObject(labels);
  });
});

describe('the objects fit together', () => {
  const labelsOf = (deployment: Parsed): Parsed => deployment.spec.template.metadata.labels;
  const chosenBy = (labels: Readonly<Record<string, string>>, among: readonly Parsed[], of = labelsOf) =>
    among
      .filter((one) => Object.entries(labels).every(([name, value]) => of(one)[name] === value))
      .map((one) => one.metadata.name);

  test('each service, budget and policy means the pods of one Deployment, and the policy of who may ask all of them', () => {
    const selectors = {
      Deployment: (one: Parsed) => one.spec.selector.matchLabels,
      Service: (one: Parsed) => one.spec.selector,
      PodDisruptionBudget: (one: Parsed) => one.spec.selector.matchLabels,
      NetworkPolicy: (one: Parsed) => one.spec.podSelector.matchLabels,
    };
    const found = Object.entries(selectors).flatMap(([kind, selectorOf]) =>
      ofKind(kind).map((one) => `${kind} ${one.metadata.name}: ${chosenBy(selectorOf(one), deployments).join(' ')}`),
    );
    expect(found).toEqual([
      ...['Deployment duestream: duestream', 'Deployment duestream-worker: duestream-worker'],
      ...['Service duestream: duestream', 'Service duestream-worker: duestream-worker'],
      ...['PodDisruptionBudget duestream: duestream', 'PodDisruptionBudget duestream-worker: duestream-worker'],
      'NetworkPolicy duestream: duestream duestream-worker',
      'NetworkPolicy duestream-daemon: duestream',
    ]);
  });

  test('pods are spread by the labels that they have', () => {
    for (const one of deployments) {
      const [spread] = one.spec.template.spec.topologySpreadConstraints;
      expect(chosenBy(spread.labelSelector.matchLabels, deployments)).toEqual([one.metadata.name]);
    }
  });

  test('every port that is named is a port of the container', () => {
    for (const one of deployments) {
      const container = containerOf(one);
      const ports: readonly Parsed[] = container.ports;
      expect(ports.map(({ name }) => name)).toEqual(['http']);
      for (const probe of ['startupProbe', 'livenessProbe', 'readinessProbe'])
        expect(container[probe].httpGet.port).toBe('http');
    }
    for (const one of ofKind('Service')) expect(one.spec.ports).toMatchObject([{ name: 'http', targetPort: 'http' }]);
    expect(get('NetworkPolicy duestream').spec.ingress[0].ports).toEqual([{ port: 'http', protocol: 'TCP' }]);
  });

  test('a mount has a volume, and the Secret has the files that are read', () => {
    for (const one of deployments) {
      const volumes: readonly Parsed[] = one.spec.template.spec.volumes;
      const mounts: readonly Parsed[] = containerOf(one).volumeMounts;
      expect(mounts.map(({ name }) => name).sort()).toEqual(volumes.map(({ name }) => name).sort());
      expect(volumes.find(({ name }) => name === 'secret')?.secret.secretName).toBe('duestream');
    }
    expect(get('Secret duestream').stringData).toEqual({ 'redis-url': SECRETS.redisUrl, token: SECRETS.token });
  });

  test('Prometheus scrapes both services, with the token', () => {
    const { selector, endpoints } = get('ServiceMonitor duestream').spec;
    const services = chosenBy(selector.matchLabels, ofKind('Service'), (one) => one.metadata.labels);
    expect(services).toEqual(['duestream', 'duestream-worker']);
    expect(endpoints).toMatchObject([
      { port: 'http', path: '/metrics', authorization: { credentials: { name: 'duestream', key: 'token' } } },
    ]);
  });

  test('KEDA scales the workers, whose number nobody else says', () => {
    const { scaleTargetRef } = get('ScaledObject duestream-worker').spec;
    expect(scaleTargetRef).toEqual({ name: 'duestream-worker' });
    expect(get('Deployment duestream-worker').spec).not.toHaveProperty('replicas');
    const alone = objectsWith({ worker: EVERYTHING.worker }).get('Deployment duestream-worker');
    expect(alone.spec.replicas).toBe(2);
  });

  test('the alerts are those of deploy/alerts.yaml, without those that nobody wants', () => {
    const { groups } = parse(read('deploy/alerts.yaml'));
    expect(get('PrometheusRule duestream').spec.groups).toEqual(groups);
    const fewer = objectsWith({ monitoring: { enabled: true, withoutAlerts: ['DuestreamNoWorkers'] } });
    const [{ name, rules }] = groups;
    const left = rules.filter(({ alert }: Parsed) => alert !== 'DuestreamNoWorkers');
    expect(left).toHaveLength(rules.length - 1);
    expect(fewer.get('PrometheusRule duestream').spec.groups).toEqual([{ name, rules: left }]);
    const workers = objectsWith({ ...EVERYTHING, daemon: { enabled: false } });
    expect([...workers.keys()]).toContain('ServiceMonitor duestream');
    expect([...workers.keys()]).not.toContain('PrometheusRule duestream');
  });
});

describe('a pod', () => {
  test.for(deployments.map((one) => [one.metadata.name, one] as const))(
    'of %s has what the policy "restricted" of Kubernetes asks for, and a file system that nobody can write',
    ([, { spec }]) => {
      const pod = spec.template.spec;
      expect(pod.securityContext).toMatchObject({ runAsNonRoot: true, seccompProfile: { type: 'RuntimeDefault' } });
      expect(pod.securityContext.runAsUser).toBeGreaterThan(0);
      expect(pod.hostNetwork ?? pod.hostPID ?? pod.hostIPC).toBeUndefined();
      expect(pod.containers).toHaveLength(1);
      expect(pod.containers[0].securityContext).toEqual({
        allowPrivilegeEscalation: false,
        readOnlyRootFilesystem: true,
        capabilities: { drop: ['ALL'] },
      });
      const kinds = pod.volumes.flatMap(({ name: _, ...source }: Parsed) => Object.keys(source));
      expect(kinds.filter((kind: string) => !['configMap', 'secret', 'emptyDir'].includes(kind))).toEqual([]);
    },
  );

  test('gets no right to ask Kubernetes, and says what it needs', () => {
    for (const { spec } of deployments) {
      expect(spec.template.spec).toMatchObject({ automountServiceAccountToken: false, enableServiceLinks: false });
      const { requests, limits } = spec.template.spec.containers[0].resources;
      expect(Object.keys(requests).sort()).toEqual(['cpu', 'memory']);
      expect(Object.keys(limits)).toEqual(['memory']);
    }
  });

  test('is never less than it was while another version comes', () => {
    for (const { spec } of deployments) expect(spec.strategy.rollingUpdate.maxUnavailable).toBe(0);
    for (const one of ofKind('PodDisruptionBudget')) expect(one.spec.unhealthyPodEvictionPolicy).toBe('AlwaysAllow');
  });

  test('gets another name when its configuration changes', () => {
    const checksum = (deployment: Parsed) => deployment.spec.template.metadata.annotations['checksum/config'];
    const other = objectsWith({ ...EVERYTHING, config: { namespace: 'other' } });
    for (const one of deployments) {
      expect(checksum(one)).toMatch(/^[0-9a-f]{64}$/);
      expect(checksum(other.get(`Deployment ${one.metadata.name}`))).not.toBe(checksum(one));
    }
  });

  test('runs the image of this version', () => {
    expect(containerOf(deployments[0]).image).toBe(`duestream:${version}`);
    const named = objectsWith({ image: { repository: 'registry.example.com/duestream', tag: '1' } });
    expect(containerOf(named.get('Deployment duestream')).image).toBe('registry.example.com/duestream:1');
  });
});

describe('what the objects say of duestream', () => {
  const configOf = (deployment: Parsed) => {
    const env = environmentOf(containerOf(deployment), { folder, objects: all });
    return loadConfig({ env, cwd: folder }).config;
  };

  test('is a configuration that it accepts, with the Redis and the token of the Secret', () => {
    for (const one of deployments) {
      const { redis, http, namespace, queues } = configOf(one);
      expect({ url: redis.url, host: http.host, token: http.token }).toEqual({
        url: SECRETS.redisUrl,
        host: '0.0.0.0',
        token: SECRETS.token,
      });
      expect({ namespace, title: http.title, queues: Object.keys(queues) }).toEqual({
        namespace: 'shop',
        title: 'off',
        queues: ['emails'],
      });
      expect(containerOf(one).ports[0].containerPort).toBe(http.port);
    }
    expect(deployments.map((one) => configOf(one).http.api)).toEqual(['on', 'off']);
  });

  test('starts the roles by their commands', () => {
    expect(deployments.map((one) => containerOf(one).args)).toEqual([
      ['start'],
      ['worker', 'dist/handlers.js', '--concurrency=50', '--http-port=7420', '--queue=emails', '--queue=sms'],
    ]);
    expect(containerOf(deployments[1]).command).toEqual(['node_modules/.bin/duestream']);
  });

  test('gives running jobs the time to end, whatever time that is', () => {
    for (const objects of [all, objectsWith({ worker: { ...EVERYTHING.worker, shutdownSeconds: 3600 } })]) {
      const deployment = objects.get('Deployment duestream-worker');
      const env = environmentOf(containerOf(deployment), { folder, objects });
      const { shutdownMs } = loadConfig({ env, cwd: folder }).config.worker;
      expect(shutdownMs).toBeGreaterThanOrEqual(90_000);
      // A process that does not stop in time ends itself two seconds later.
      expect(deployment.spec.template.spec.terminationGracePeriodSeconds * 1000).toBeGreaterThan(shutdownMs + 2000);
    }
    const [daemon] = deployments;
    const [, sleepSeconds] = containerOf(daemon).lifecycle.preStop.exec.command;
    const graceMs = daemon.spec.template.spec.terminationGracePeriodSeconds * 1000;
    expect(graceMs).toBeGreaterThan(Number(sleepSeconds) * 1000 + configOf(daemon).worker.shutdownMs + 2000);
  });

  test('tells no secret to anybody who may not read secrets', () => {
    const others = [...all.values()].filter(({ kind }) => kind !== 'Secret');
    const told = JSON.stringify([others, renderChart({ values: EVERYTHING })['NOTES.txt']]);
    expect(told).not.toContain('p4ssw0rd');
    expect(told).not.toContain(SECRETS.token);
  });

  test('sets no option twice: what is a variable or an argument here cannot be said in config', () => {
    const variables: readonly string[] = deployments.flatMap((one) =>
      containerOf(one).env.map(({ name }: Parsed) => name),
    );
    const keys = options.flatMap((option) => {
      const name = envName(option) ?? '';
      return variables.includes(name) || (option.secret && variables.includes(`${name}_FILE`)) ? [option] : [];
    });
    // The API is switched off for workers, and config says whether daemons have it.
    const said = keys.filter(({ key, secret }) => !secret && key !== 'http.api').map(({ key }) => key);
    expect(said).toEqual(['http.host', 'worker.shutdown']);
    expect(SET_BY_THE_CHART).toEqual(expect.arrayContaining(said));
  });
});

test('the metric that KEDA is told of in the how-to, where there is no Prometheus, is a number of the HTTP API', async () => {
  const served = await serveApi();
  try {
    const scaled = shown.flatMap(objectsIn).filter(({ kind }) => kind === 'ScaledObject');
    const asked = scaled.flatMap(({ spec }) => spec.triggers).filter(({ type }) => type === 'metrics-api');
    expect(asked.length).toBeGreaterThan(0);
    await served.ask('POST /v1/queues/emails/jobs', { body: { delay: '1h' } });
    for (const { metadata } of asked) {
      const { status, body } = await served.ask(`GET ${new URL(metadata.url).pathname}`);
      expect({ status, value: body[metadata.valueLocation] }).toEqual({ status: 200, value: 0 });
    }
  } finally {
    await served.stop();
  }
});
