/**
 * `values.schema.json` of the chart: Helm refuses values that it does not allow, before anything is installed. What may stand in
 * `config` comes from the table of options.
 *
 * What must hold: an option that the chart sets itself is refused in `config`, because the variable of the chart would win in
 * silence; so is a secret, because a ConfigMap is none.
 */
import { options } from '../../src/config/options.ts';
import { workerOptions } from '../../src/job/worker-options.ts';
import { renderSchema } from './configuration.mjs';

/** @typedef {Readonly<Record<string, unknown>>} Schema */

/** What the chart sets by a variable or an argument, because other parts of an object depend on it. */
export const SET_BY_THE_CHART = [
  ...['roles', 'http.host', 'http.port', 'http.cert', 'http.key'],
  ...['worker.module', 'worker.concurrency', 'worker.shutdown'],
];

/** @param {string} description @param {Schema} [more] @returns {Schema} */
const text = (description, more = {}) => ({ description, type: 'string', ...more });
/** @param {string} description @param {{ min?: number, max?: number }} [range] @returns {Schema} */
const whole = (description, { min = 0, max = 1_000_000 } = {}) => ({
  description,
  type: 'integer',
  minimum: min,
  maximum: max,
});
/** @param {string} description @returns {Schema} */
const flag = (description) => ({ description, type: 'boolean' });
/** @param {string} description @param {Schema} items @returns {Schema} */
const list = (description, items) => ({ description, type: 'array', items });
/** Helm takes `null` for a default that shall not count. @param {string} description @returns {Schema} */
const free = (description) => ({ description, type: ['object', 'null'] });
/** @param {string} description @param {Readonly<Record<string, Schema>>} properties @returns {Schema} */
const section = (description, properties) => ({
  description,
  type: 'object',
  additionalProperties: false,
  properties,
});

const item = { type: 'object' };
const port = { type: 'integer', minimum: 1, maximum: 65_535 };
const queueName = { type: 'string', pattern: '^[a-z0-9][a-z0-9._-]{0,63}$' };
const RESOURCES = 'Requests and limits of the container.';
const POD = [
  ...['nodeSelector', 'tolerations', 'affinity', 'priorityClassName', 'serviceAccountName', 'runtimeClassName'],
  ...['hostAliases', 'dnsConfig', 'dnsPolicy', 'schedulerName', 'initContainers'],
];

/** What a Deployment takes beside what the chart sets. */
const more = {
  resources: free(RESOURCES),
  env: list('More variables of the container.', item),
  volumeMounts: list('More mounts of the container.', item),
  volumes: list('More volumes of the pod.', item),
  pod: section(
    'More fields of the pod, as Kubernetes names them.',
    Object.fromEntries(POD.map((name) => [name, { description: `${name} of the pod, as Kubernetes takes it.` }])),
  ),
};

const daemon = section('The daemons.', {
  enabled: flag('Whether there are daemons. A second release may have workers alone.'),
  replicas: whole('How many there are: one leads each partition, the others take over.', { min: 1, max: 100 }),
  ...more,
});

const { concurrency, shutdown } = workerOptions;

const worker = section('The workers: pods of your image.', {
  enabled: flag('Whether there are workers.'),
  image: text('Your image, with its tag or digest.'),
  command: list('What runs duestream in your image.', { type: 'string' }),
  module: text('The file whose default export holds the handlers, relative to the working directory of the image.', {
    minLength: 1,
  }),
  queues: list('Which queues of the file these workers serve; all of them if none is named.', queueName),
  replicas: whole('How many there are; KEDA decides it where it is enabled.', { max: 10_000 }),
  concurrency: whole(concurrency.doc, concurrency),
  shutdownSeconds: whole(`${shutdown.doc} In seconds; the pod gets 10 s more.`, { max: shutdown.max / 1000 }),
  ...more,
});

const monitoring = section('What the Prometheus Operator reads.', {
  enabled: flag('Whether there are a ServiceMonitor and a PrometheusRule.'),
  labels: { description: 'Labels by which your Prometheus chooses them.', type: 'object' },
  intervalSeconds: whole('How often daemons and workers are scraped.', { min: 1, max: 3600 }),
  withoutAlerts: list('Alerts that are left out.', { type: 'string' }),
});

const keda = section('Workers by how long due jobs wait.', {
  enabled: flag('Whether KEDA decides how many workers there are.'),
  prometheus: text('The address of Prometheus.', { pattern: '^https?://' }),
  minReplicas: whole('How many workers there are while nothing is to do.', { max: 10_000 }),
  maxReplicas: whole('How many workers there are at most.', { min: 1, max: 10_000 }),
  secondsPerWorker: whole('One more worker for each time that the oldest due job has waited for so long.', { min: 1 }),
  pollingSeconds: whole('How often KEDA asks.', { min: 1, max: 3600 }),
  cooldownSeconds: whole('How long nothing is to do before the last worker goes.', { max: 86_400 }),
  fallbackReplicas: whole('How many workers there are while Prometheus does not answer.', { max: 10_000 }),
  matchers: text(
    'Labels of the series of the daemons, if those are of another release or have not those of a ServiceMonitor.',
  ),
  authentication: text('The name of a TriggerAuthentication, if Prometheus asks for a login.'),
  authModes: text('Its modes, such as bearer.'),
});

const networkPolicy = section('Who may ask, and where daemons may go.', {
  enabled: flag('Whether there are policies.'),
  redisPorts: list('The ports of Redis, and of its Sentinels.', port),
  from: list('Who may ask beside the pods of this namespace: peers, as a NetworkPolicy takes them.', item),
  egress: list('Where daemons may go beside Redis: rules, as a NetworkPolicy takes them.', item),
});

const secret = section('The Secret with redis-url and token.', {
  name: text('Its name; empty: that of the release.'),
  redisUrl: text('The URL of Redis, if the chart is to make the Secret.'),
  token: text('What scrapers send, if the chart is to make the Secret.', { pattern: '^([!-~]{16,256})?$' }),
});

const image = section('The image of duestream.', {
  repository: text('Where it is, without a tag.', { minLength: 1 }),
  tag: text('Its tag; empty: the version of the chart.'),
  pullPolicy: { description: 'When it is pulled.', enum: ['Always', 'IfNotPresent', 'Never'] },
});

/** @param {Schema} condition @param {Schema} consequence */
const where = (condition, consequence) => ({ if: condition, then: consequence });
/** @param {string} name @param {Schema} inner @returns {Schema} */
const inside = (name, inner) => ({ required: [name], properties: { [name]: { properties: inner } } });
/** @param {string} name */
const enabled = (name) => inside(name, { enabled: { const: true } });
/** @param {string} name */
const disabled = (name) => inside(name, { enabled: { const: false } });
const said = { minLength: 1 };

export function renderValuesSchema() {
  const schema = {
    $schema: 'http://json-schema.org/draft-07/schema#',
    $comment: 'Made by `npm run generate`; edit scripts/generate/chart-schema.mjs.',
    title: 'Values of the chart duestream',
    type: 'object',
    additionalProperties: false,
    properties: {
      global: { description: 'What Helm hands to every chart.', type: 'object' },
      image,
      imagePullSecrets: list('Secrets with which images are pulled.', item),
      secret,
      config: configSchema(),
      daemon,
      worker,
      podSecurityContext: free('securityContext of every pod.'),
      securityContext: free('securityContext of every container.'),
      networkPolicy,
      monitoring,
      keda,
    },
    allOf: [
      where(enabled('worker'), inside('worker', { image: said })),
      where(enabled('keda'), enabled('worker')),
      where(enabled('keda'), inside('worker', { queues: { minItems: 1 } })),
      where({ allOf: [enabled('keda'), disabled('daemon')] }, inside('keda', { matchers: said })),
      where(inside('secret', { redisUrl: said }), inside('secret', { token: said })),
      where(inside('secret', { token: said }), inside('secret', { redisUrl: said })),
    ],
  };
  return `${JSON.stringify(schema, undefined, 2)}\n`;
}

/** duestream.yaml without what the chart says itself. */
function configSchema() {
  const allowed = options.filter(({ key, secret: isSecret }) => !isSecret && !SET_BY_THE_CHART.includes(key));
  const { $schema: _, title: _title, ...schema } = JSON.parse(renderSchema(allowed), withoutForeignPatterns);
  return { description: 'duestream.yaml, without what other values of the chart say.', ...schema };
}

/** The patterns of Helm know no lookahead and no properties of characters. The daemon refuses such a value when it starts. @param {string} name @param {unknown} value */
function withoutForeignPatterns(name, value) {
  return name === 'pattern' && typeof value === 'string' && /\(\?|\\p\{/.test(value) ? undefined : value;
}
