/**
 * What a producer and a worker do not need: a daemon inside your process, and the dashboard as a route of your application.
 * They load the HTTP API and the checks of the configuration, so they are an entry of their own.
 *
 * @module duestream-daemon
 */

export type { Scope } from '../access/tokens.ts';
export type { ConfigInput } from '../config/options.ts';
export { createDaemon, type Daemon, type DaemonInput, type DaemonParts } from './daemon.ts';
export { type AuthorizedCaller, createDashboard, type Dashboard, type DashboardOptions } from './dashboard.ts';
