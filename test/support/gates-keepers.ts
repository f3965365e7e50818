/**
 * Who has each group of a queue in strict order, as the promise says it and not as the scripts keep it: who was let through has its
 * group until it is over. One book for all partitions of a queue, as all jobs of a group are in one of them.
 */

/** A job that was let through, or a dead letter that holds its group. */
export interface Head {
  /** A member; that of a dead letter begins with a mark. */
  readonly name: string;
  readonly partition: number;
  /** Whether it has its group still, whatever was answered to whoever ended it. */
  readonly counts: () => Promise<boolean>;
}

export class Keepers {
  readonly #heads = new Map<string, Head>();

  nameOf(group: string): string | undefined {
    return this.#heads.get(group)?.name;
  }

  /** Another one that has the group. */
  async other(group: string, { name, partition }: Pick<Head, 'name' | 'partition'>): Promise<string | undefined> {
    const head = this.#heads.get(group);
    const isSame = head?.name === name && head.partition === partition;
    return head !== undefined && !isSame && (await head.counts()) ? head.name : undefined;
  }

  /** It has its group from now on. */
  set(group: string, head: Head): void {
    this.#heads.set(group, head);
  }

  /** If this one has the group, nobody has it any more. @returns whether it had */
  drop(group: string, name: string | undefined): boolean {
    return this.nameOf(group) === name && this.#heads.delete(group);
  }

  /** Order has ended in a partition. */
  forget(partition: number): void {
    this.#forget((head) => head.partition === partition);
  }

  /** Dead letters of a partition hold groups no longer. */
  forgetDead(partition: number): void {
    this.#forget((head) => head.partition === partition && head.name.startsWith('!'));
  }

  #forget(isMeant: (head: Head) => boolean): void {
    for (const [group, head] of this.#heads) if (isMeant(head)) this.#heads.delete(group);
  }

  /** Who has each group now. */
  names(): ReadonlyMap<string, string> {
    return new Map([...this.#heads].map(([group, { name }]) => [group, name]));
  }
}
