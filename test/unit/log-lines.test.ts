/** Log lines as they are stored, and as they are read; and the book of a handler that waits for the next round trip. */
import { describe, expect, test } from 'vitest';
import { createEmitter } from '../../src/job/events.ts';
import type { EntryId, Token } from '../../src/job/job.ts';
import { decodeLog, encodeLogLine, LINES_BYTES_MAX, LINES_MAX, type LogFields } from '../../src/job/log-lines.ts';
import { partitionRef } from '../../src/redis/keys.ts';
import { LOG_JOBS_MAX } from '../../src/redis/scripts/bytes.ts';
import type { Jobs } from '../../src/redis/scripts/jobs.ts';
import { LogBook, sendLines } from '../../src/worker/run/log-book.ts';
import { listen } from '../support/worker-line.ts';

const open = { told: (text: string) => text, redact: undefined };
const encoded = (text: string, fields?: LogFields) => encodeLogLine({ atMs: 5, attempt: 2, text, fields }, open);
const read = (text: string, fields?: LogFields) => decodeLog(`7 1 0 -\n${encoded(text, fields)}`)?.lines[0];

describe('a line', () => {
  test('is read as it was said', () => {
    const fields = { n: 1.5, yes: true, none: null, list: ['a', { b: 'c' }] };
    expect(read('paid "it"', fields)).toEqual({ atMs: 5, attempt: 2, text: 'paid "it"', fields });
    expect(read('paid')).toEqual({ atMs: 5, attempt: 2, text: 'paid', fields: undefined });
  });

  test('is one line, however many it was said in, and not longer than what is kept', () => {
    expect(encoded('two\nlines', { text: 'a\nb' })).not.toContain('\n');
    expect(read('two\nlines')?.text).toBe('two lines');
    expect(read('x'.repeat(5000))?.text).toBe(`${'x'.repeat(999)}…`);
    expect(Buffer.byteLength(encoded('ä'.repeat(5000), { x: 'ä'.repeat(700) }))).toBeLessThan(LINES_BYTES_MAX / 2);
  });

  test('says what was too large, or can be no JSON, and is kept all the same', () => {
    expect(read('x', { big: Array.from({ length: 10 }, () => 'y'.repeat(300)) })?.fields).toEqual({
      notKept: '3039 bytes of JSON',
    });
    const broken = {
      get field() {
        throw new Error('gone');
      },
    };
    expect(read('x', { broken })?.fields).toEqual({ notKept: 'gone' });
  });

  test('names errors, dates and great numbers by their texts, and leaves out what has none', () => {
    const circular: Record<string, unknown> = { n: 1 };
    circular.self = circular;
    const given = { error: new Error('no'), at: new Date(0), count: 10n, nothing: undefined, call: () => 1 };
    expect(read('x', given)?.fields).toEqual({ error: 'no', at: '1970-01-01T00:00:00.000Z', count: '10' });
    expect(JSON.stringify(read('x', circular)?.fields)).toContain('…');
  });
});

describe('what is stored', () => {
  test('without a head is nothing', () => {
    expect([decodeLog(null), decodeLog(''), decodeLog('nonsense')]).toEqual([undefined, undefined, undefined]);
  });

  test('is shown as it is where nobody can read a line', () => {
    expect(decodeLog('7 3 2 -\nnonsense\n{"t":1}')).toEqual({
      leftOut: 2,
      lines: [
        { atMs: 0, attempt: 0, text: 'nonsense', fields: undefined },
        { atMs: 0, attempt: 0, text: '{"t":1}', fields: undefined },
      ],
    });
  });
});

describe('the book of a handler', () => {
  test('has what Redis does not know, and what it would keep', () => {
    const book = new LogBook('user:42');
    expect(book.unsent).toBeUndefined();
    for (let nth = 1; nth <= LINES_MAX + 5; nth += 1) book.add(`line ${nth}`);
    expect(book.unsent).toMatchObject({ last: LINES_MAX + 5, tags: 'user:42' });
    expect(book.unsent?.texts).toHaveLength(LINES_MAX);
    expect(book.unsent?.texts[0]).toBe('line 6');
  });

  test('keeps what was said while a call was under way', () => {
    const book = new LogBook('-');
    book.add('one');
    const { last = 0 } = book.unsent ?? {};
    book.add('two');
    expect(book.over(last)).toBe(1);
    expect(book.unsent).toEqual({ last: 2, tags: '-', texts: ['two'] });
    expect(book.over(last)).toBe(0);
    expect(book.over(2)).toBe(1);
    expect(book.unsent).toBeUndefined();
  });

  test('is bounded by bytes', () => {
    const book = new LogBook('-');
    for (let nth = 0; nth < 5; nth += 1) book.add('x'.repeat(LINES_BYTES_MAX / 4 - 1));
    expect(book.unsent?.texts).toHaveLength(4);
  });
});

describe('what is unsent', () => {
  const ref = partitionRef('t', { queue: 'q', partition: 0, layoutGeneration: 0 });
  function sending(answer: () => ReturnType<Jobs['log']>) {
    const calls: number[] = [];
    const events = createEmitter();
    const jobs: Pick<Jobs, 'log'> = {
      log(_ref, said) {
        calls.push(said.length);
        return answer();
      },
    };
    return { calls, heard: listen(events), parts: { jobs, events } };
  }
  const speaker = (nth: number, ...texts: readonly string[]) => {
    const book = new LogBook('-');
    for (const text of texts) book.add(text);
    return { claim: { entry: `${nth}-0` as EntryId, member: `j:${nth}`, token: '1' as Token }, book };
  };

  test('is sent before the call returns, in as few calls as it fits into, and of those alone who said something', async () => {
    const { calls, parts } = sending(async () => []);
    const all = Array.from({ length: LOG_JOBS_MAX + 1 }, (_, nth) => speaker(nth, 'x'));
    sendLines(parts, ref, [...all, speaker(1000), { ...speaker(1001), book: undefined }]);
    expect(calls).toEqual([LOG_JOBS_MAX, 1]);
    await Promise.resolve();
    expect(all.every(({ book }) => book.unsent === undefined)).toBe(true);
  });

  test('is divided by bytes, too', () => {
    const { calls, parts } = sending(async () => []);
    const large = () => 'x'.repeat(LINES_BYTES_MAX - 1);
    sendLines(
      parts,
      ref,
      Array.from({ length: 20 }, (_, nth) => speaker(nth, large())),
    );
    expect(calls).toEqual([16, 4]);
  });

  test('stays in the book when nobody knows what became of the call', async () => {
    const { heard, parts } = sending(() => Promise.reject(new Error('Connection is closed.')));
    const one = speaker(1, 'x');
    sendLines(parts, ref, [one]);
    await Promise.resolve();
    await Promise.resolve();
    expect(one.book.unsent?.texts).toEqual(['x']);
    expect(heard.names()).toEqual([]);
  });

  test('is dropped and counted when Redis is full', async () => {
    const full = Object.assign(new Error("OOM command not allowed when used memory > 'maxmemory'."), {
      name: 'ReplyError',
    });
    const { heard, parts } = sending(() => Promise.reject(full));
    const [one, other] = [speaker(1, 'x', 'y'), speaker(2, 'z')];
    sendLines(parts, ref, [one, other]);
    one.book.add('later');
    await Promise.resolve();
    await Promise.resolve();
    expect(one.book.unsent?.texts).toEqual(['later']);
    expect(heard.of('log.refused')).toEqual([{ queue: 'q', lines: 3 }]);
  });
});
