/** A colour for each of the typed paths that are most attended to; the style sheet has the colours. */
import type { End, Row } from "./answers";

const COLOURS = 10;

export type Colours = Map<string, string>;

export function coloursOf(ends: End[]): Colours {
  const attention = new Map<string, number>();
  for (const row of ends.flatMap((end) => end.rows))
    if (row.step > 0) attention.set(row.path, (attention.get(row.path) ?? 0) + row.attention);
  const ranked = [...attention].sort(([, one], [, other]) => other - one).slice(0, COLOURS);
  return new Map(ranked.map(([path], place) => [path, `path-${place}`]));
}

export function colourOf(colours: Colours, row: Row): string {
  return row.step === 0 ? "path-self" : (colours.get(row.path) ?? "path-other");
}
