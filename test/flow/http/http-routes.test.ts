/** Answers that take too long. No socket is open here, so the clock may be moved. */
import { afterEach, beforeEach, expect, test, vi } from 'vitest';
import { createRoutes } from '../../../src/http/server.ts';
import { silentLog } from '../../../src/kernel/log.ts';

beforeEach(() => {
  vi.useFakeTimers();
});
afterEach(() => {
  vi.useRealTimers();
});

const routesWith = (hanging: Promise<never>) =>
  createRoutes({
    live: () => ({ ok: true, detail: '' }),
    ready: () => hanging,
    scrape: () => hanging,
    contentType: 'text/plain',
    log: silentLog,
    draining: () => false,
  });

test.each(['/readyz', '/metrics'])('%s without an answer is 503 after 8 s, and leaves no timer', async (path) => {
  const answer = routesWith(new Promise(() => undefined)).request(path);
  await vi.advanceTimersByTimeAsync(8000);
  const response = await answer;
  expect([response.status, await response.json()]).toEqual([503, { error: 'unavailable' }]);
  expect(response.headers.get('cache-control')).toBe('no-store');
  expect(vi.getTimerCount()).toBe(0);
});

test('a failure that comes after the answer reaches nobody', async () => {
  let fail: (error: Error) => void = () => undefined;
  const hanging = new Promise<never>((_, reject) => {
    fail = reject;
  });
  const answer = routesWith(hanging).request('/metrics');
  await vi.advanceTimersByTimeAsync(8000);
  fail(new Error('too late'));
  expect((await answer).status).toBe(503);
  await vi.advanceTimersByTimeAsync(1);
});

test('an answer in time leaves no timer', async () => {
  expect((await routesWith(new Promise(() => undefined)).request('/livez')).status).toBe(200);
  expect(vi.getTimerCount()).toBe(0);
});
