/**
 * Signals of ours. Hundreds of calls may wait for one of them at the same moment (an outage, a start that 20 callers wait
 * for, a handler that sends 50 requests). Each takes its listener away when its wait is over, so none leaks, and Node must
 * not warn of a leak from the eleventh on.
 */
import { setMaxListeners } from 'node:events';

/** An `AbortController` whose signal any number of waits may listen to. All of ours are made here. */
export function createAbort(): AbortController {
  const controller = new AbortController();
  setMaxListeners(0, controller.signal);
  return controller;
}
