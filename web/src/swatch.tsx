/** A square in the colour of a typed path or of a class. */
export function Swatch({ colour }: { colour: string }) {
  return <svg class={`swatch ${colour}`} viewBox="0 0 10 10" aria-hidden="true"><rect width="10" height="10" rx="2" /></svg>;
}
