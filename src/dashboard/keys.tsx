/** Keys that lead somewhere, and the list of them that `?` shows. Who types into a field, or holds a modifier, types. */
import { useEffect, useRef, useState } from 'preact/hooks';
import { Palette } from './pages/search/palette.tsx';
import { PLACES } from './places.ts';
import { go } from './router.ts';
import { words } from './words/words.ts';

/** How long `g` waits for the letter of a place. */
const SECOND_KEY_MS = 1500;

/** The button of the rail, and that of a phone, open the search as `/` does. */
let openSearch = (): void => undefined;
export const search = (): void => openSearch();

export function KeyHelp() {
  const [isOpen, setOpen] = useState(false);
  const [isSearching, setSearching] = useState(false);
  useEffect(() => {
    openSearch = () => setSearching(true);
    let ledMs = Number.NEGATIVE_INFINITY;
    const open: Readonly<Record<string, () => void>> = { '?': () => setOpen(true), '/': openSearch };
    const pressed = (event: KeyboardEvent) => {
      if (isTyping(event)) return;
      const act = open[event.key];
      const place = PLACES.find(({ key }) => key === event.key);
      if (act) {
        // Some browsers have a search of their own behind a key, and it would be the first letter of ours.
        event.preventDefault();
        act();
      } else if (event.key === 'g') ledMs = event.timeStamp;
      else if (place && event.timeStamp - ledMs < SECOND_KEY_MS) go(place.name);
    };
    addEventListener('keydown', pressed);
    return () => removeEventListener('keydown', pressed);
  }, []);
  return (
    <>
      {isOpen ? <Keys close={() => setOpen(false)} /> : null}
      {isSearching ? <Palette close={() => setSearching(false)} /> : null}
    </>
  );
}

function isTyping({ ctrlKey, metaKey, altKey, target }: KeyboardEvent): boolean {
  if (ctrlKey || metaKey || altKey) return true;
  return target instanceof Element && target.closest('input:not([type="radio"]), textarea, select, dialog') !== null;
}

function Keys({ close }: { readonly close: () => void }) {
  const dialog = useRef<HTMLDialogElement>(null);
  useEffect(() => {
    const { current } = dialog;
    current?.showModal();
    return () => current?.close();
  }, []);
  return (
    <dialog ref={dialog} aria-label={words.keys.title} onClose={close}>
      <h2>{words.keys.title}</h2>
      <dl class="keys">
        {[
          ['?', words.keys.these] as const,
          ['/', words.keys.search] as const,
          ['Esc', words.keys.closes] as const,
          ...PLACES.map(({ key, name }) => [`g ${key}`, words.places[name]] as const),
        ].map(([key, text]) => (
          <>
            <dt>
              <kbd>{key}</kbd>
            </dt>
            <dd>{text}</dd>
          </>
        ))}
      </dl>
      <form method="dialog" class="actions">
        <button type="submit">{words.keys.close}</button>
      </form>
    </dialog>
  );
}
