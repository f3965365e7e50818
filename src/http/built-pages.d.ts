/** What `src/dashboard/build.mjs` makes. Before the first build it is not there. */
declare module '*/dist/dashboard/pages.mjs' {
  /** Path → text: `index.html`, `icon.svg`, `assets/index-CgqgnixW.js`. */
  export const pages: Readonly<Record<string, string>>;
}
