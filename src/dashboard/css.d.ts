/** Vite takes styles in. */
declare module '*.css';
