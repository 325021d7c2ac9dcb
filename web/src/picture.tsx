/** A neighbourhood: rings are steps, a line is a row, coloured by its typed path and as wide as its attention. */
import { curveBasis, line, pointRadial } from "d3-shape";
import type { RefObject } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go, toNode } from "./address";
import { type Colours, colourOf } from "./colours";
import { asPercent, asSteps } from "./numbers";
import type { Contribution, Id, NodeExplanation } from "./responses";
import { Swatch } from "./swatch";

const SHOWN = 24;
const WIDEST = 12;
const CENTRE = 16;
const LABEL = 16; // letters
const LETTER = 7; // pixels
const CAPTION_ROOM = 75; // pixels from the centre to the first ring; on smaller rings, captions are numbers alone
const GAP = 0.8; // of the circle, in radians, at the bottom: for the rings' captions

export interface Lit {
  row: Contribution | null;
  light: (row: Contribution | null) => void;
}

interface Props extends Lit {
  end: NodeExplanation;
  colours: Colours;
  marked?: Id;
}

interface Spot {
  id: Id;
  angle: number;
  step: number;
  rows: Contribution[];
}

export function Picture({ end, colours, marked, row: lit, light }: Props) {
  const [frame, width] = useWidth();
  const spots = arranged(end.rows, colours);
  const longest = Math.max(2, ...spots.map((spot) => [...String(spot.id)].length));
  const room = Math.min(16 + LETTER * Math.min(longest, LABEL), 0.25 * width); // for labels
  const letters = Math.floor((room - 16) / LETTER);
  const radius = Math.max(40, Math.min(width / 2 - room, 230));
  const numSteps = Math.max(1, ...spots.map((spot) => spot.step));
  const distance = (step: number) => CENTRE + ((radius - CENTRE) * step) / numSteps;
  const rings = end.depths.slice(0, numSteps + 1);
  const caption = (step: number) => (distance(1) > CAPTION_ROOM ? `${asSteps(step)}: ${asPercent(rings[step].attention)}` : String(step));
  const shown = spots.flatMap((spot) => spot.rows);
  const most = Math.max(...end.rows.map((row) => row.attention), 1e-9);
  const self = end.rows.find((row) => row.step === 0);
  const height = 2 * (radius + room);
  return (
    <div class="picture">
      <div ref={frame} class="drawing">
        {width > 0 && (
          <svg
            width={width}
            height={height}
            viewBox={`${-width / 2} ${-height / 2} ${width} ${height}`}
            role="img"
            aria-label={`The neighbourhood of ${end.target}; the table lists its rows.`}
          >
            {rings.map((_, step) => step > 0 && <circle key={step} class="ring" r={distance(step)} />)}
            {spots.map((spot) => (
              <Lines key={spot.id} spot={spot} distance={distance(spot.step)} colours={colours} most={most} lit={lit} light={light} />
            ))}
            <circle
              class={`centre ${self && self === lit ? "lit" : ""}`}
              r={CENTRE}
              stroke-width={1 + (self ? (WIDEST / 2) * (self.attention / most) : 0)}
              onPointerEnter={() => self && light(self)}
              onPointerLeave={() => light(null)}
            />
            {spots.map((spot) => (
              <Dot key={spot.id} spot={spot} distance={distance(spot.step)} colours={colours} letters={letters} marked={spot.id === marked} lit={lit} light={light} />
            ))}
            {rings.map((_, step) => step > 0 && <text key={step} class="caption" y={distance(step)} dy=".35em">{caption(step)}</text>)}
          </svg>
        )}
      </div>
      <Key {...{ rows: self ? [self, ...shown] : shown, colours }} />
      <p class="note">
        {shown.length + (self ? 1 : 0) < end.num_rows ? `The ${shown.length + (self ? 1 : 0)} of ${end.num_rows} rows with the most attention. ` : ""}
        Each ring is one step; a wider line has more attention.
        {end.answer && (end.answer.value === undefined ? ` Filled dots count for “${end.answer.name}”, open dots against it.` : ` Filled dots raise “${end.answer.name}”, open dots lower it.`)}
      </p>
    </div>
  );
}

/** The colours of the picture: a typed path each. */
function Key({ rows, colours }: { rows: Contribution[]; colours: Colours }) {
  const used = new Map(rows.map((row) => [colourOf(colours, row), row.step === 0 ? "itself" : row.path]));
  if (used.has("path-other")) used.set("path-other", "other paths");
  const order = ["path-self", ...colours.values(), "path-other"].filter((colour) => used.has(colour));
  return (
    <ul class="key" aria-label="Colours of paths">
      {order.map((colour) => <li key={colour}><Swatch colour={colour} />{used.get(colour)}</li>)}
    </ul>
  );
}

interface SpotProps {
  spot: Spot;
  distance: number;
  colours: Colours;
  lit: Contribution | null;
  light: Lit["light"];
}

function Lines({ spot, distance, colours, most, lit, light }: SpotProps & { most: number }) {
  return (
    <>
      {spot.rows.map((row, place) => (
        <path
          key={row.path}
          class={`line ${colourOf(colours, row)} ${row === lit ? "lit" : lit ? "dim" : ""}`}
          d={curve(spot.angle, distance, place)}
          stroke-width={1 + (WIDEST - 1) * (row.attention / most)}
          onPointerEnter={() => light(row)}
          onPointerLeave={() => light(null)}
        />
      ))}
    </>
  );
}

function Dot({ spot, distance, colours, letters, marked, lit, light }: SpotProps & { letters: number; marked: boolean }) {
  const [x, y] = pointRadial(spot.angle, distance);
  const row = spot.rows[0];
  const isLit = lit !== null && spot.rows.includes(lit);
  const left = spot.angle > Math.PI;
  const turn = (spot.angle * 180) / Math.PI + (left ? 90 : -90);
  function follow(event: MouseEvent) {
    const touched = (event as PointerEvent).pointerType === "touch";
    if (touched && !isLit) light(row); // a finger cannot hover: the first touch shows the row, the second follows it
    else go(toNode(spot.id));
  }
  return (
    <g
      class={`dot ${colourOf(colours, row)} ${against(spot) ? "against" : ""} ${isLit ? "lit" : lit ? "dim" : ""} ${marked ? "marked" : ""}`}
      transform={`translate(${x} ${y})`}
      onPointerEnter={(event) => event.pointerType === "touch" || light(row)}
      onPointerLeave={(event) => event.pointerType === "touch" || light(null)}
      onClick={follow}
    >
      <circle class="touch" r={11} />
      <circle r={5.5} />
      <text transform={`rotate(${turn})`} x={left ? -10 : 10} dy=".33em" text-anchor={left ? "end" : "start"}>{short(spot.id, letters)}</text>
    </g>
  );
}

const against = (spot: Spot) => spot.rows.reduce((sum, row) => sum + (row.effect ?? 0), 0) < 0;

/** Cut ids that are too long in their middle: what tells them apart is mostly at the end. */
function short(id: Id, letters: number): string {
  const text = [...String(id)];
  if (text.length <= letters) return text.join("");
  const first = Math.floor((letters - 1) / 3);
  return `${text.slice(0, first).join("")}…${text.slice(text.length - (letters - 1 - first)).join("")}`;
}

/** Neighbours around the circle, those of a path side by side. */
function arranged(rows: Contribution[], colours: Colours): Spot[] {
  const self = rows.some((row) => row.step === 0) ? 1 : 0;
  const byNode = new Map<Id, Contribution[]>();
  for (const row of rows.slice(0, SHOWN + self)) if (row.step > 0) byNode.set(row.neighbour, [...(byNode.get(row.neighbour) ?? []), row]);
  const order = [...colours.keys()];
  const rank = (row: Contribution) => (order.includes(row.path) ? order.indexOf(row.path) : order.length);
  const groups = [...byNode].sort(([, one], [, other]) => rank(one[0]) - rank(other[0]));
  return groups.map(([id, own], place) => ({ id, rows: own, step: own[0].step, angle: angleOf(place, groups.length) }));
}

/** From 0 at the top, clockwise. */
function angleOf(place: number, count: number): number {
  return (Math.PI + GAP / 2 + ((2 * Math.PI - GAP) * (place + 0.5)) / count) % (2 * Math.PI);
}

/** Straight for the first row of a neighbour, bent for others. */
function curve(angle: number, distance: number, place: number): string {
  const bend = Math.ceil(place / 2) * (place % 2 ? 1 : -1) * 0.35;
  const middle = pointRadial(angle + bend, distance / 2);
  const points = [pointRadial(angle, CENTRE), ...(place ? [middle] : []), pointRadial(angle, distance)];
  return line().curve(curveBasis)(points) ?? "";
}

export function useWidth(): [RefObject<HTMLDivElement | null>, number] {
  const frame = useRef<HTMLDivElement>(null);
  const [width, setWidth] = useState(0);
  useEffect(() => {
    const watch = new ResizeObserver(([entry]) => setWidth(Math.round(entry.contentRect.width)));
    watch.observe(frame.current!);
    return () => watch.disconnect();
  }, []);
  return [frame, width];
}
