/** The objects for Kubernetes, and what the models of its API say of them. */
import { mkdirSync, writeFileSync } from 'node:fs';
import { dirname, join } from 'node:path';
import { ScaledObject, TriggerAuthentication } from '@kubernetes-models/keda/keda.sh/v1alpha1';
import { PrometheusRule, ServiceMonitor } from '@kubernetes-models/prometheus-operator/monitoring.coreos.com/v1';
import { Deployment } from 'kubernetes-models/apps/v1';
import { NetworkPolicy } from 'kubernetes-models/networking.k8s.io/v1';
import { PodDisruptionBudget } from 'kubernetes-models/policy/v1';
import { ConfigMap, Secret, Service } from 'kubernetes-models/v1';
import { objectsOf, renderChart } from '../../scripts/generate/chart.mjs';
import { messageOf } from '../../src/kernel/errors.ts';

/** Whatever YAML is: a test says what it expects of it. */
export type Parsed = ReturnType<typeof JSON.parse>;

/** The password and the token of `EVERYTHING`: they may stand in its Secret and nowhere else. */
export const SECRETS = { redisUrl: 'redis://duestream:p4ssw0rd@redis:6379', token: 'a-token-of-16-or-more' };

/** Values with which the chart has every object, and each of its lists something in it. */
export const EVERYTHING = {
  imagePullSecrets: [{ name: 'registry' }],
  secret: SECRETS,
  config: { namespace: 'shop', http: { title: 'off' }, queues: { emails: { rate: '10/s' } } },
  daemon: {
    env: [{ name: 'NODE_OPTIONS', value: '--max-old-space-size=192' }],
    volumes: [{ name: 'ca', secret: { secretName: 'redis-ca' } }],
    volumeMounts: [{ name: 'ca', mountPath: '/etc/redis-ca', readOnly: true }],
    pod: { priorityClassName: 'high', tolerations: [{ key: 'jobs', operator: 'Exists' }] },
  },
  worker: {
    enabled: true,
    image: 'registry.example.com/shop:1.0.0',
    queues: ['emails', 'sms'],
    shutdownSeconds: 90,
    env: [{ name: 'SMTP_HOST', value: 'mail.internal' }],
    volumes: [{ name: 'scratch', emptyDir: {} }],
    volumeMounts: [{ name: 'scratch', mountPath: '/tmp' }],
    pod: { nodeSelector: { pool: 'jobs' }, serviceAccountName: 'shop' },
  },
  networkPolicy: { redisPorts: [6380, 26_379], egress: [{ ports: [{ port: 4318, protocol: 'TCP' }] }] },
  monitoring: { enabled: true, labels: { release: 'prometheus' } },
  keda: { enabled: true, authentication: 'prometheus', authModes: 'bearer' },
};

/** Values that the chart refuses: what is wrong with them, and what of its schema says so. */
export const REFUSED: readonly (readonly [what: string, given: Readonly<Record<string, Parsed>>, where: string])[] = [
  ['a section that there is not', { workers: {} }, ' workers'],
  ['a misspelt name', { daemon: { replica: 2 } }, '/daemon replica'],
  ['a number as a text', { daemon: { replicas: '2' } }, '/daemon/replicas integer'],
  ['no daemon at all', { daemon: { replicas: 0 } }, '/daemon/replicas >= 1'],
  ['a field of the pod that the chart sets itself', { daemon: { pod: { containers: [] } } }, '/daemon/pod containers'],
  ['workers without an image', { worker: { enabled: true } }, '/worker/image 1'],
  ['autoscaling without workers', { keda: { enabled: true } }, '/worker/enabled true'],
  [
    'autoscaling of workers whose queues nobody names',
    { keda: { enabled: true }, worker: { enabled: true, image: 'shop:1' } },
    '/worker/queues 1',
  ],
  [
    'autoscaling by the daemons of another release, which nobody names',
    {
      keda: { enabled: true },
      daemon: { enabled: false },
      worker: { enabled: true, image: 'shop:1', queues: ['emails'] },
    },
    '/keda/matchers 1',
  ],
  ['a Secret without a token', { secret: { redisUrl: 'redis://redis:6379' } }, '/secret/token 1'],
  ['a token that is too short', { secret: { redisUrl: 'redis://redis:6379', token: 'short' } }, '/secret/token ^'],
  ['a queue with a name that none can have', { worker: { queues: ['E-Mails'] } }, '/worker/queues/0 ^'],
  ['a port that is none', { networkPolicy: { redisPorts: [0] } }, '/networkPolicy/redisPorts/0 >= 1'],
  ['an option that there is not', { config: { mover: { leese: '5s' } } }, '/config/mover leese'],
  ['an option outside its range', { config: { mover: { batchMax: 0 } } }, '/config/mover/batchMax >= 1'],
  ['a text that YAML takes for a number', { config: { namespace: 7 } }, '/config/namespace string'],
  ['the address of Redis in the ConfigMap', { config: { redis: { url: 'redis://a' } } }, '/config/redis url'],
  ['the token in the ConfigMap', { config: { http: { token: 'a-token-of-16-or-more' } } }, '/config/http token'],
  ['another port than the one of probes', { config: { http: { port: 8080 } } }, '/config/http port'],
  [
    'a time to stop of which the pod knows nothing',
    { config: { worker: { shutdown: '1m' } } },
    '/config/worker shutdown',
  ],
];

/** Kind and name → object, as the chart renders it for the release `duestream` in the namespace `jobs`. */
export function objectsWith(values: Readonly<Record<string, unknown>> = {}): ReadonlyMap<string, Parsed> {
  return new Map(objectsOf(renderChart({ values })).map(({ id, object }) => [id, object]));
}

const MODELS: Readonly<Record<string, (object: Parsed) => { readonly validate: () => void }>> = {
  'apps/v1 Deployment': (one) => new Deployment(one),
  'keda.sh/v1alpha1 ScaledObject': (one) => new ScaledObject(one),
  'keda.sh/v1alpha1 TriggerAuthentication': (one) => new TriggerAuthentication(one),
  'monitoring.coreos.com/v1 PrometheusRule': (one) => new PrometheusRule(one),
  'monitoring.coreos.com/v1 ServiceMonitor': (one) => new ServiceMonitor(one),
  'networking.k8s.io/v1 NetworkPolicy': (one) => new NetworkPolicy(one),
  'policy/v1 PodDisruptionBudget': (one) => new PodDisruptionBudget(one),
  'v1 ConfigMap': (one) => new ConfigMap(one),
  'v1 Secret': (one) => new Secret(one),
  'v1 Service': (one) => new Service(one),
};

/** What Kubernetes would say against an object: nothing, or the words of its model. */
export function faultsOf(object: Parsed): readonly string[] {
  const model = MODELS[`${object.apiVersion} ${object.kind}`];
  if (model === undefined) return [`no model of ${object.apiVersion} ${object.kind}`];
  try {
    model(object).validate();
    return [];
  } catch (error) {
    return [`${object.kind} ${object.metadata?.name}: ${messageOf(error)}`];
  }
}

/** The only container of a Deployment. */
export const containerOf = (deployment: Parsed): Parsed => deployment.spec.template.spec.containers[0];

/**
 * The variables of a container of ours, with its ConfigMap and its Secret as files of a folder.
 *
 * @param redisUrl what the Secret holds in the test
 */
export function environmentOf(
  container: Parsed,
  of: { readonly folder: string; readonly objects: ReadonlyMap<string, Parsed>; readonly redisUrl?: string },
): Readonly<Record<string, string>> {
  const { folder, objects, redisUrl = SECRETS.redisUrl } = of;
  const files = {
    'config/duestream.yaml': objects.get('ConfigMap duestream').data['duestream.yaml'],
    'secret/redis-url': `${redisUrl}\n`,
    'secret/token': SECRETS.token,
  };
  for (const [name, text] of Object.entries(files)) {
    mkdirSync(dirname(join(folder, name)), { recursive: true });
    writeFileSync(join(folder, name), text);
  }
  const said: readonly { readonly name: string; readonly value: string }[] = container.env;
  return Object.fromEntries(said.map(({ name, value }) => [name, value.replace(/^\/etc\/duestream(?=\/)/, folder)]));
}
