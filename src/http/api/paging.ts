/** Where the next page begins, as a text that callers hand back and do not read. */
import { Problem } from './problem.ts';

type Place = Readonly<Record<string, unknown>>;

export const cursorOf = (place: Place): string => Buffer.from(JSON.stringify(place)).toString('base64url');

/** A whole number of the place. @throws Problem `bad-input` */
export function readCursor(cursor: string | undefined, name: string): number | undefined {
  if (cursor === undefined) return undefined;
  const value = placeOf(cursor)[name];
  if (typeof value === 'number' && Number.isInteger(value) && value >= 0) return value;
  throw unknownCursor();
}

/** The texts of a place, by their names. @throws Problem `bad-input` */
export function readTexts(cursor: string | undefined, form: RegExp): Readonly<Record<string, string>> {
  if (cursor === undefined) return {};
  const texts: Record<string, string> = {};
  for (const [name, value] of Object.entries(placeOf(cursor))) {
    if (typeof value !== 'string' || !form.test(value)) throw unknownCursor();
    texts[name] = value;
  }
  return texts;
}

function placeOf(cursor: string): Place {
  try {
    const value: unknown = JSON.parse(Buffer.from(cursor, 'base64url').toString());
    if (typeof value === 'object' && value !== null) return value as Place;
  } catch {
    // Said below.
  }
  throw unknownCursor();
}

function unknownCursor(): Problem {
  const allowed = 'what the page before said as next';
  return new Problem('bad-input', {
    detail: `query.cursor is of no page of this list; allowed: ${allowed}`,
    errors: [{ field: 'query.cursor', given: 'another text', allowed }],
  });
}
