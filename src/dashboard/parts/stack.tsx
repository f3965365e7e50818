/** Where an error was thrown. */
export function Stack({ text }: { readonly text: string | undefined }) {
  if (text === undefined) return null;
  return (
    <details>
      <summary>Where it was thrown</summary>
      <pre class="error">{text}</pre>
    </details>
  );
}
