/**
 * duestream in a NestJS application: a module, decorators of handlers and of the client, and a health indicator. `@nestjs/common` and
 * `@nestjs/core` are those of the application.
 *
 * @module duestream-nestjs
 */

export {
  AbandonedOf,
  CLIENT,
  type HandlerDecorator,
  HandlerOf,
  type HandlerOptions,
  InjectClient,
} from './decorators.ts';
export { DuestreamHealth, type HealthStatus } from './health.ts';
export { type DuestreamAsyncOptions, DuestreamModule } from './module.ts';
export type { DuestreamOptions } from './parts.ts';
