/** The settings of a queue and of its groups over HTTP: a shape for each row of `job/queue-settings.ts`. */
import { z } from '@hono/zod-openapi';
import {
  type EachSetting,
  type GroupSetting,
  groupLimitRows,
  perGroupRows,
  type QueueSetting,
  type QueueSettingName,
  type QueueSettingOptions,
  settingOf,
  settingWords,
} from '../../job/queue-settings.ts';
import { RATE_ALLOWED, RATE_TEXT, RATES_ALLOWED, rateRanges } from '../../job/rate.ts';
import { PATHS_MAX } from '../../job/redaction.ts';
import type { Part } from '../../job/setting-kinds.ts';
import { concurrencyRange } from '../../job/shared-limit.ts';
import {
  HEADERS_MAX,
  HOSTS_MAX,
  JOB_TARGET_ALLOWED,
  STATUS,
  STATUSES_MAX,
  TARGET_ALLOWED,
  TARGET_FORMATS,
  TARGET_METHODS,
} from '../../job/target.ts';
import { URL_CHARS_MAX } from '../../job/target-url.ts';
import type { Range } from '../../kernel/checks.ts';
import { duration, reason, strict, whole } from './schemas.ts';

const inRange = ({ min, max }: Range) => whole(min, max);
const limitWords = ({ min, max }: Range): string => `a whole number from ${min} to ${max}, or false for no limit`;
const limitShape = (range: Range) => z.union([inRange(range), z.literal(false)], { error: limitWords(range) });

const someRate = [
  z.string().regex(RATE_TEXT, { error: RATE_ALLOWED }),
  strict({ limit: inRange(rateRanges.limit), per: duration, burst: inRange(rateRanges.burst).optional() }),
] as const;
const rateShape = z.union([...someRate, z.literal(false)], { error: RATE_ALLOWED });
const twoRates = z.array(z.union(someRate, { error: RATE_ALLOWED }), { error: RATES_ALLOWED }).length(2, {
  error: RATES_ALLOWED,
});
const ratesShape = z.union([...someRate, twoRates, z.literal(false)], { error: RATES_ALLOWED });

/** With what is said of it, which ends in what is allowed. */
const describedAs = (shape: z.ZodType, description: string) => shape.optional().openapi({ description });

function groupShape(row: GroupSetting | EachSetting) {
  switch (row.kind) {
    case 'limit':
      return describedAs(limitShape(row.range), `${row.doc}: ${limitWords(row.range)}`);
    case 'rate':
      return describedAs(rateShape, `${row.doc}: ${row.allowed}`);
    case 'count':
      return describedAs(inRange(row.range), `${row.doc}.`);
    case 'word':
      return describedAs(wordShape(row.words), `${row.doc}: ${row.allowed}.`);
  }
}

const wordShape = (words: readonly string[]) => {
  const error = `${words.join(', ')}, or false`;
  return z.union([z.enum(words), z.literal(false)], { error });
};

const shapesOf = (rows: typeof perGroupRows) =>
  Object.fromEntries(rows.map(({ name, row }) => [name, groupShape(row)]));

/** What a group may have of its own. */
const groupLimits = strict(shapesOf(groupLimitRows)).openapi('GroupLimits');
export const groupLimitsRequest = strict({ ...shapesOf(groupLimitRows), reason: reason.optional() }).openapi(
  'GroupLimitsRequest',
);

/** A limit that several queues share. */
export const limitRequest = strict({
  rate: describedAs(rateShape, `How many jobs of all queues together may start in a time: ${RATE_ALLOWED}`),
  concurrency: describedAs(
    inRange(concurrencyRange),
    `How many jobs of all queues together may run at a time. Either this or a rate.`,
  ),
  reason: reason.optional(),
}).openapi('LimitRequest');

function partShape(part: Part): z.ZodType {
  switch (part.kind) {
    case 'duration':
      return duration;
    case 'count':
      return inRange(part.range);
    case 'share':
      return z.number().min(part.range.min).max(part.range.max);
    case 'flag':
      return z.boolean();
  }
}

const statuses = z.array(inRange(STATUS)).max(STATUSES_MAX);

const targetUrl = z.string().min(1).max(URL_CHARS_MAX);
/** What a job may say, too. */
const request = {
  method: z.enum(TARGET_METHODS).optional(),
  headers: z
    .record(z.string(), z.string().max(8192))
    .refine((headers) => Object.keys(headers).length <= HEADERS_MAX)
    .optional(),
  contentType: z.string().max(300).optional(),
};
export const jobTarget = z.union([targetUrl, strict({ url: targetUrl.optional(), ...request })], {
  error: JOB_TARGET_ALLOWED,
});

/** Its form; what each text may be is judged with the setting. */
const targetShape = z.union(
  [
    targetUrl,
    strict({
      url: targetUrl,
      hosts: z.array(z.string().max(255)).min(1).max(HOSTS_MAX).optional(),
      ...request,
      secret: z.string().max(64).optional(),
      format: z.enum(TARGET_FORMATS).optional(),
      timeout: duration.optional(),
      maxAge: duration.optional(),
      retryOn: statuses.optional(),
      deadOn: statuses.optional(),
      keepAnswer: z.boolean().optional(),
      certificate: z.string().max(64).optional(),
    }),
    z.literal(false),
  ],
  { error: TARGET_ALLOWED },
);

const PER_GROUP = `a number, or { ${perGroupRows.map(({ name }) => name).join(', ')} }, or false for no limit`;

/** Each as it is said; what nobody ever said is left out. */
function shapeOf(setting: QueueSetting) {
  const { doc, scope } = setting;
  const within = scope === undefined ? '' : ` Only with the scope \`${scope}\`.`;
  const described = (shape: z.ZodType, description: string) => describedAs(shape, `${description}${within}`);
  switch (setting.kind) {
    case 'limit':
      return described(limitShape(setting.range), `${doc}: ${limitWords(setting.range)}`);
    case 'rates':
      return described(ratesShape, `${doc}: ${setting.allowed}`);
    case 'duration':
      return described(duration, `${doc}: ${setting.allowed}.`);
    case 'paths': {
      const error = setting.allowed;
      return described(z.array(z.string({ error }), { error }).max(PATHS_MAX, { error }), `${doc}: ${error}.`);
    }
    case 'target':
      return described(targetShape, `${doc}: ${TARGET_ALLOWED}.`);
    case 'names': {
      const error = setting.allowed;
      return described(z.array(z.string({ error }), { error }).max(2, { error }), `${doc}: ${error}.`);
    }
    case 'yes':
      return described(z.literal(true, { error: 'true' }), `${doc}. It cannot be taken back.`);
    case 'bounds': {
      const error = `true, false, or { ${Object.keys(setting.parts).join(', ')} }`;
      const parts = Object.entries(setting.parts).map(([name, part]) => [name, partShape(part).optional()]);
      return described(z.union([z.boolean(), strict(Object.fromEntries(parts))], { error }), `${doc}: ${error}`);
    }
    case 'perGroup': {
      const [first] = perGroupRows;
      const most = first?.row.kind === 'limit' ? limitShape(first.row.range) : z.never();
      return described(z.union([most, strict(shapesOf(perGroupRows))], { error: PER_GROUP }), `${doc}: ${PER_GROUP}`);
    }
    case 'groups':
      return described(z.record(z.string(), groupLimits), `${doc}.`);
  }
}

export const settingShapes = Object.fromEntries(
  settingWords.map((word) => [word, shapeOf(settingOf(word))]),
) as unknown as {
  readonly [Word in QueueSettingName]: z.ZodOptional<z.ZodType<NonNullable<QueueSettingOptions[Word]>>>;
};

/** What is answered of them all. */
export const settingsShape = z.object(settingShapes);
