/** All that the command line sees of the process it runs in. It is handed in, so nothing below reads a global. */

/** What can be written to: a terminal, a pipe, a file. */
export interface Screen {
  readonly isTTY?: boolean;
  /** Of a terminal. */
  readonly rows?: number;
  write(text: string): unknown;
}

export interface Invocation {
  /** Without the names of node and of the script. */
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string | undefined>>;
  readonly cwd: string;
  readonly stdin: AsyncIterable<Uint8Array | string>;
  readonly stdout: Screen;
  readonly stderr: Screen;
}
