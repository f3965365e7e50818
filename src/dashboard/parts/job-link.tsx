/** An id that leads to the page of its job. A bare job, made by a plain ZADD, may have the id of another. */

interface Named {
  readonly queue: string;
  readonly id: string;
  readonly bare: boolean;
}

export function JobLink({ queue, id, bare }: Named) {
  return (
    <a class="id" href={`#/job/${encodeURIComponent(queue)}/${encodeURIComponent(id)}${bare ? '?bare=true' : ''}`}>
      {id}
    </a>
  );
}
