/** The shapes of what many verbs are asked. Each says in its own words what is allowed, because that is what a caller reads. */
import { z } from '@hono/zod-openapi';
import { GROUP_ALLOWED } from '../../job/labels.ts';
import { nearest, WORDS_ALLOWED, WORDS_CHARS_MAX } from '../../kernel/checks.ts';
import { oneLine } from '../../kernel/errors.ts';

/** A text of some form. */
export const textOf = (pattern: RegExp, allowed: string, example: string) =>
  z.string({ error: allowed }).regex(pattern, { error: allowed }).openapi({ description: allowed, example });

/** An object without other fields than these. */
export function strict<Shape extends z.core.$ZodShape>(shape: Shape) {
  const known = Object.keys(shape);
  return z.strictObject(shape, {
    error: ({ code, keys }) => {
      if (code !== 'unrecognized_keys' || !Array.isArray(keys)) return undefined;
      const near = nearest(String(keys[0]), known);
      return `${known.join(', ') || 'nothing'}${near === undefined ? '' : `; did you mean ${near}?`}`;
    },
  });
}

export const whole = (min: number, max: number) => {
  const error = `a whole number from ${min} to ${max}`;
  return z.int({ error }).min(min, { error }).max(max, { error });
};

/** A number in a query, where all is text. */
export const wholeText = (min: number, max: number, fallback: number) => {
  const error = `a whole number from ${min} to ${max}`;
  return z
    .string({ error })
    .regex(/^\d{1,9}$/, { error })
    .transform(Number)
    .pipe(whole(min, max))
    .default(fallback)
    .openapi({ type: 'integer', minimum: min, maximum: max, default: fallback });
};

const yesOrNo = z.enum(['true', 'false'], { error: 'true, false' }).transform((text) => text === 'true');

export const flagText = yesOrNo.default(false).openapi({ type: 'string', enum: ['true', 'false'], default: 'false' });

/** The same of a field that says nothing where it is left out. */
export const maybeText = yesOrNo.optional().openapi({ type: 'string', enum: ['true', 'false'] });

export const queueName = textOf(
  /^[a-z0-9][a-z0-9._-]{0,63}$/,
  '1 to 64 of a-z 0-9 . _ - beginning with a letter or digit',
  'emails',
);
const QUEUE = '[a-z0-9][a-z0-9._-]{0,63}';
export const queuesText = textOf(
  new RegExp(`^${QUEUE}(,${QUEUE}){0,99}$`),
  'names of queues, with commas between them, at most 100',
  'emails,mail',
);
export const jobId = textOf(
  /^(?!\.\.?$)[!-z|~]{1,128}$/,
  '1 to 128 printable ASCII characters without space, { and }, other than . and ..',
  'welcome:42',
);
export const tagName = textOf(
  /^(?!=)[!-+\--:<-{}~]{1,64}$/,
  '1 to 64 printable ASCII characters without space, comma, semicolon and bar, not beginning with =',
  'invoice:7',
);
export const setName = textOf(
  /^[A-Za-z0-9][A-Za-z0-9._:-]{0,47}$/,
  '1 to 48 of A-Z a-z 0-9 . _ : - beginning with a letter or digit',
  'import-7',
);
export const groupName = textOf(/^(?!schedule:|set:)[!-+\--:<-z~]{1,64}$/, GROUP_ALLOWED.replaceAll('`', ''), 'acme');
export const workerId = textOf(/^[\w.:-]{1,64}$/, 'the id of a worker: 1 to 64 of A-Z a-z 0-9 . _ : -', 'w-7f3a');
/** Also those that duestream made itself, and those of foreign producers. */
export const anyJobId = z.string().min(1).max(1024).openapi({
  description:
    'The id of a job. One with a `/`, a `%` or a `\\`, or that begins with `~`, is written as `~` and its base64url.',
  example: 'welcome:42',
});
export const scheduleName = textOf(
  /^[A-Za-z0-9][A-Za-z0-9._:-]{0,63}$/,
  '1 to 64 of A-Z a-z 0-9 . _ : - beginning with a letter or digit',
  'nightly',
);
export const deadLetterId = textOf(
  /^(\d{1,4}\/)?\d{1,16}-\d{1,16}$/,
  'the address of a dead letter, such as 1763719000000-0, or 3/1763719000000-0 where its queue has several partitions',
  '1763719000000-0',
);
const DURATION = 'milliseconds, or a text such as "500ms", "90s", "5m", "3d", "2w", "PT1H30M"';
export const duration = z
  .union(
    [
      z.int({ error: DURATION }).min(0, { error: DURATION }).max(Number.MAX_SAFE_INTEGER, { error: DURATION }),
      z.string({ error: DURATION }).regex(/^(\d+(\.\d+)?\s*(ms|s|m|h|d|w)|P.*\d.*)$/, { error: DURATION }),
    ],
    { error: DURATION },
  )
  .openapi({ description: DURATION, example: '5m' });
const SHIFT = 'milliseconds, or a text such as "1d"; below 0, as "-1h", for earlier';
export const signedDuration = z
  .union(
    [
      z.int({ error: SHIFT }),
      z.string({ error: SHIFT }).regex(/^-?(\d+(\.\d+)?\s*(ms|s|m|h|d|w)|P.*\d.*)$/, { error: SHIFT }),
    ],
    { error: SHIFT },
  )
  .openapi({
    description: 'So much later than the job is due now, but never before now; below 0, as "-1h", earlier.',
    example: '1d',
  });
export const instant = z.string({ error: 'ISO 8601' }).min(1).max(64).openapi({
  description: 'ISO 8601 with Z or an offset, such as 2026-03-01T10:00:00+01:00',
  example: '2030-03-01T10:00:00+01:00',
});
export const reason = z
  .string({ error: WORDS_ALLOWED })
  .max(WORDS_CHARS_MAX, { error: WORDS_ALLOWED })
  .overwrite((said) => oneLine(said))
  .openapi({ description: 'Why, for the next person who looks.', example: 'the mail server moves' });

export const ofQueue = strict({ queue: queueName });
export const ofJob = strict({ queue: queueName, id: anyJobId });
export const ofDeadLetter = strict({ queue: queueName, deadLetter: deadLetterId });
export const ofSchedule = strict({ name: scheduleName });

/** Where the next page begins. */
export const cursor = z
  .string()
  .regex(/^[A-Za-z0-9_-]{1,2000}$/, { error: 'what the page before said as cursor' })
  .optional()
  .openapi({ description: 'What the page before said as `cursor`.' });

export const problem = z
  .object({
    type: z.string().openapi({ example: 'urn:duestream:problem:bad-input' }),
    title: z.string(),
    status: z.int(),
    code: z.string().openapi({ description: 'Stable: programs decide by it.', example: 'bad-input' }),
    detail: z.string().optional(),
    errors: z.array(z.object({ field: z.string(), given: z.string(), allowed: z.string() })).optional(),
    login: z.enum(['application']).optional().openapi({
      description: 'With `unauthorized`: the application around has not let the request in. No token helps.',
    }),
  })
  .openapi('Problem');
