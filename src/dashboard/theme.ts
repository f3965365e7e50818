/** Light, dark, or as the system has it. The choice stays in this browser. */

export const THEMES = ['system', 'light', 'dark'] as const;
export type Theme = (typeof THEMES)[number];

const KEY = 'duestream.theme';

const listeners = new Set<() => void>();

/** Calls whenever colours change, by choice or by the system. @returns what takes it back */
export function onColours(changed: () => void): () => void {
  const system = matchMedia('(prefers-color-scheme: dark)');
  listeners.add(changed);
  system.addEventListener('change', changed);
  return () => {
    listeners.delete(changed);
    system.removeEventListener('change', changed);
  };
}

export function chosenTheme(): Theme {
  try {
    const kept = localStorage.getItem(KEY);
    return THEMES.find((one) => one === kept) ?? 'system';
  } catch {
    // Storage may be forbidden.
    return 'system';
  }
}

export function applyTheme(theme: Theme = chosenTheme()): void {
  document.documentElement.dataset.theme = theme;
  for (const listener of listeners) listener();
  try {
    localStorage.setItem(KEY, theme);
  } catch {
    // It holds until the page is closed.
  }
}
