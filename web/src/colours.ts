/** A colour for each of the typed paths with the most attention; the style sheet has the colours. */
import type { Contribution, NodeExplanation } from "./responses";

const COLOURS = 10;

export type Colours = Map<string, string>;

export function coloursOf(ends: NodeExplanation[]): Colours {
  const attention = new Map<string, number>();
  for (const row of ends.flatMap((end) => end.rows))
    if (row.step > 0) attention.set(row.path, (attention.get(row.path) ?? 0) + row.attention);
  const ranked = [...attention].sort(([, one], [, other]) => other - one).slice(0, COLOURS);
  return new Map(ranked.map(([path], place) => [path, `path-${place}`]));
}

export function colourOf(colours: Colours, row: Contribution): string {
  return row.step === 0 ? "path-self" : (colours.get(row.path) ?? "path-other");
}
