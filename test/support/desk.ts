/** What somebody does at a page, and what the page then says: buttons by their exact words, dialogs, notes of success. */
import type { Locator } from 'playwright-core';
import { afterAll, afterEach, beforeAll, beforeEach, expect } from 'vitest';
import { PATIENCE_MS, startBrowser, type TestBrowser, type Window } from './browser.ts';
import { enter, must, type Served, servePages } from './dashboard.ts';

/** For hooks that download a browser, and for tests that go through many pages. */
export const HOOK_MS = 10 * PATIENCE_MS;

/** What a test has: the pages, and a window of its own in which an administrator has logged in. */
export interface Seat {
  readonly browser: TestBrowser;
  readonly api: Served;
  readonly window: Window;
  readonly desk: Desk;
}

export interface Desk {
  readonly button: (name: string | RegExp) => Locator;
  readonly dialog: Locator;
  readonly inDialog: (name: string | RegExp) => Locator;
  /** A field of the dialog that is open. */
  readonly field: (label: string) => Locator;
  /** Until the page says so where screen readers hear it. */
  readonly told: (text: string) => Promise<void>;
  /** Until the dialog that is open refuses with such words. @returns all that it says */
  readonly refused: (text: string | RegExp) => Promise<string>;
  /** Says no with Escape, and waits until the dialog is gone. */
  readonly escape: () => Promise<void>;
}

export function deskOf({ page }: Window): Desk {
  const dialog = page.getByRole('dialog');
  return {
    dialog,
    button: (name) => page.getByRole('button', exact(name)),
    inDialog: (name) => dialog.getByRole('button', exact(name)),
    field: (label) => dialog.getByLabel(label),
    told: (text) => page.getByRole('status').filter({ hasText: text }).first().waitFor(),
    async refused(text) {
      const alert = dialog.getByRole('alert').filter({ hasText: text });
      await alert.waitFor();
      return alert.innerText();
    },
    async escape() {
      // A key that comes before the dialog closes nothing.
      await dialog.waitFor();
      await page.keyboard.press('Escape');
      await dialog.waitFor({ state: 'detached' });
    },
  };
}

/**
 * One browser and one server for all tests of a file, and a new window for each; at the end of a test its window must have
 * logged no error.
 *
 * @param sit is given them before each test
 * @param prepare what all tests find
 */
export function useDesk(sit: (seat: Seat) => void, prepare?: (api: Served) => Promise<unknown>): void {
  let shared: Pick<Seat, 'browser' | 'api'> | undefined;
  let window: Window | undefined;
  beforeAll(async () => {
    const [browser, api] = await Promise.all([startBrowser(), servePages()]);
    shared = { browser, api };
    await prepare?.(api);
  }, HOOK_MS);
  afterAll(async () => {
    await shared?.browser.stop();
    await shared?.api.stop();
  }, HOOK_MS);
  beforeEach(async () => {
    if (!shared) throw new Error('there is no browser');
    window = await enter(shared.browser, shared.api, { token: shared.api.admin });
    sit({ ...shared, window, desk: deskOf(window) });
  }, HOOK_MS);
  afterEach(async () => {
    expect(await window?.noises()).toEqual([]);
    await window?.close();
  }, HOOK_MS);
}

const exact = (name: string | RegExp) => ({ name, exact: typeof name === 'string' });

/** The jobs of a queue that a filter finds, as the API lists them: one page. @param query `state=ready&tag=a` */
export async function listed(api: Served, queue: string, query: string) {
  const { jobs } = await must(api, `GET /v1/queues/${queue}/jobs?limit=1000&${query}`, api.admin);
  return jobs as readonly {
    readonly id: string;
    readonly state: string;
    readonly dueMs: number;
  }[];
}

export const idsOf = (rows: readonly { readonly id: string }[]): readonly string[] => rows.map(({ id }) => id).sort();

export async function jobOf(api: Served, queue: string, id: string) {
  return must(api, `GET /v1/queues/${queue}/jobs/${encodeURIComponent(id)}`, api.admin);
}

export async function scheduleAll(api: Served, queue: string, jobs: readonly object[]): Promise<void> {
  for (let from = 0; from < jobs.length; from += CHUNK) {
    const body = { jobs: jobs.slice(from, from + CHUNK) };
    await must(api, `POST /v1/queues/${queue}/batch/schedule`, api.admin, body);
  }
}

const CHUNK = 500;
