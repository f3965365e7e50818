/** What became of one job, where it is no success → the problem that says so. A batch tells it for each job instead. */
import { Problem } from '../problem.ts';

interface Became {
  readonly id: string;
  readonly status: string;
  readonly over?: string | undefined;
}

/** @throws Problem unless the status is a success */
export function refuseUnchanged(queue: string, { id, status, over }: Became): void {
  const job = `job ${id} of queue ${queue}`;
  const also = { job: { id, status, over } };
  switch (status) {
    case 'unknown':
      throw new Problem('not-found', { detail: `${job}: nothing is known of it`, also });
    case 'running':
      throw new Problem('running', { detail: `${job} runs; nothing was changed`, also });
    case 'over':
      throw new Problem('over', { detail: `${job} is over (${over ?? 'ended'}); nothing was changed`, also });
    case 'unreadable':
      throw new Problem('unreadable', { detail: `${job}: its record cannot be read; nothing was changed`, also });
    case 'changed':
      throw new Problem('changed', {
        detail: `${job}: somebody else changes it; nothing was changed, look at it again`,
        also,
      });
    case 'indeterminate':
      throw new Problem('indeterminate', { detail: `${job}: the reply of Redis was lost; look at it again`, also });
    default:
  }
}
