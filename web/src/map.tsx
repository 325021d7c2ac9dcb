/** A map of the nodes: near one another where the model represents them alike, coloured by what is known of them. */
import { useState } from "preact/hooks";
import { go, toNode } from "./address";
import { type RequestOptions, pause, send } from "./api";
import { Loaded, useResponse } from "./loading";
import { asCount, asNumber } from "./numbers";
import { useWidth } from "./picture";
import type { MapResponse } from "./responses";
import { Swatch } from "./swatch";

const COLOURED = 10;
const SHADES = 7;
const TALLEST = 620; // pixels
const MARGIN = 10;
const REACH = 14; // pixels from a dot to a pointer that means it

interface Group {
  name: string;
  colour: string;
  places: number[];
}

async function made(options: RequestOptions): Promise<MapResponse> {
  for (;;) {
    const found = await send<MapResponse>("v1/map", null, options);
    if (found.status !== "computing") return found;
    options.waiting("The map of all nodes is being computed …");
    await pause(1, options.signal);
  }
}

export function NodeMap({ model }: { model: string }) {
  const found = useResponse(made, [model]);
  return (
    <section class="map">
      <h3>Map of the nodes</h3>
      <Loaded of={found} what="the map">{(map) => (map.status === "ready" ? <Plane map={map} /> : <p class="note">No map: {map.reason}</p>)}</Loaded>
    </section>
  );
}

function Plane({ map }: { map: MapResponse }) {
  const [frame, width] = useWidth();
  const [place, setPlace] = useState<number | null>(null);
  const [chosen, setChosen] = useState<string | null>(null);
  const groups = groupsOf(map);
  const { x, y, height } = fitted(map, width);
  const radius = Math.max(2, Math.min(5, 90 / Math.sqrt(map.ids.length)));
  const shown = chosen === null ? null : new Set(groups.find((group) => group.name === chosen)?.places);
  function nearest(event: MouseEvent): number | null {
    const box = (event.currentTarget as Element).getBoundingClientRect();
    const distance = (one: number) => (x[one] - (event.clientX - box.left)) ** 2 + (y[one] - (event.clientY - box.top)) ** 2;
    const best = x.reduce((least, _, one) => ((shown === null || shown.has(one)) && (least < 0 || distance(one) < distance(least)) ? one : least), -1);
    return best >= 0 && distance(best) <= REACH ** 2 ? best : null;
  }
  function follow(event: MouseEvent) {
    const one = nearest(event);
    const touched = (event as PointerEvent).pointerType === "touch";
    if (touched && one !== place) setPlace(one); // the first touch names the node, the second follows it
    else if (one !== null) go(toNode(map.ids[one]));
  }
  return (
    <>
      <div ref={frame} class="plane">
        {width > 0 && (
          <svg
            width={width}
            height={height}
            role="img"
            class={place === null ? undefined : "over"}
            aria-label={`${asCount(map.ids.length)} nodes in a plane${groups.length > 1 ? `, coloured by ${map.known_as}` : ""}`}
            onPointerMove={(event) => event.pointerType === "touch" || setPlace(nearest(event))}
            onPointerLeave={(event) => event.pointerType === "touch" || setPlace(null)}
            onClick={follow}
          >
            {groups.map((group) => (
              <path
                key={group.name}
                class={`dots ${group.colour} ${chosen !== null && chosen !== group.name ? "dim" : ""}`}
                d={group.places.map((one) => `M${x[one]} ${y[one]}h0`).join("")}
                stroke-width={2 * radius}
              />
            ))}
            {place !== null && <circle class="spot" cx={x[place]} cy={y[place]} r={radius + 3} />}
          </svg>
        )}
      </div>
      <p class="told" role="status">{place === null ? <Hint /> : <Told map={map} place={place} />}</p>
      {groups.length > 1 && <Legend map={map} groups={groups} chosen={chosen} choose={setChosen} />}
      <p class="note">
        {map.ids.length < map.num_nodes ? `${asCount(map.ids.length)} of ${asCount(map.num_nodes)} nodes, drawn at random` : `All ${asCount(map.num_nodes)} nodes`}, placed by {map.method}: near one another where the model represents them alike.
      </p>
    </>
  );
}

/** What to do, for a pointer or for a finger; the style sheet shows one of them. */
function Hint() {
  return <span class="note"><span class="by-pointer">Point at a dot to read its id; click to see the node.</span><span class="by-touch">Tap a dot to read its id, and again to see the node.</span></span>;
}

function Told({ map, place }: { map: MapResponse; place: number }) {
  const value = map.values[place];
  return (
    <>
      <a href={toNode(map.ids[place])}>{map.ids[place]}</a>
      {value !== null && `: ${map.known_as} ${typeof value === "number" ? asNumber(value) : value}`}
    </>
  );
}

function Legend({ map, groups, chosen, choose }: { map: MapResponse; groups: Group[]; chosen: string | null; choose: (name: string | null) => void }) {
  return (
    <ul class="legend" aria-label={`Colours: ${map.known_as}`}>
      <li class="note">{map.known_as}</li>
      {groups.map(({ name, colour, places }) => (
        <li key={name}>
          <button type="button" aria-pressed={chosen === name} onClick={() => choose(chosen === name ? null : name)}>
            <Swatch colour={colour} />{name} <span class="note">{asCount(places.length)}</span>
          </button>
        </li>
      ))}
    </ul>
  );
}

function fitted(map: MapResponse, width: number): { x: number[]; y: number[]; height: number } {
  const [left, right] = [Math.min(...map.x), Math.max(...map.x)];
  const [top, bottom] = [Math.min(...map.y), Math.max(...map.y)];
  const [across, along] = [right - left || 1, bottom - top || 1];
  const scale = Math.min((width - 2 * MARGIN) / across, (TALLEST - 2 * MARGIN) / along);
  const height = Math.round(scale * along + 2 * MARGIN);
  const shift = (width - scale * across) / 2;
  const rounded = (value: number) => Math.round(10 * value) / 10;
  return { x: map.x.map((one) => rounded(shift + scale * (one - left))), y: map.y.map((one) => rounded(height - MARGIN - scale * (one - top))), height };
}

const natural = new Intl.Collator("en", { numeric: true });

const rest = (name: string, places: number[], colour = "path-other"): Group[] => (places.length ? [{ name, colour, places }] : []);

function groupsOf(map: MapResponse): Group[] {
  const places = map.values.map((_, place) => place);
  const unknown = places.filter((place) => map.values[place] === null);
  const known = places.filter((place) => map.values[place] !== null);
  if (!known.length) return rest("nodes", unknown, "path-0");
  const groups = typeof map.values[known[0]] === "number" ? ranges(map, known) : values(map, known);
  return [...rest("not known", unknown), ...groups];
}

/** All but the most frequent values together, then each of these with a colour of its own. */
function values(map: MapResponse, known: number[]): Group[] {
  const byName = new Map<string, number[]>();
  for (const place of known) {
    const name = String(map.values[place]);
    if (!byName.has(name)) byName.set(name, []);
    byName.get(name)!.push(place);
  }
  const all = [...byName].sort(([, one], [, other]) => other.length - one.length);
  const frequent = all.slice(0, COLOURED).sort(([one], [other]) => natural.compare(one, other));
  const others = all.slice(COLOURED).flatMap(([, places]) => places);
  return [...rest(`${all.length - COLOURED} others`, others), ...frequent.map(([name, places], rank) => ({ name, colour: `path-${rank}`, places }))];
}

/** Numbers by ranges of equal width. */
function ranges(map: MapResponse, known: number[]): Group[] {
  const numbers = known.map((place) => map.values[place] as number);
  const least = Math.min(...numbers);
  const width = (Math.max(...numbers) - least) / SHADES || 1;
  const shade = (place: number) => Math.min(SHADES - 1, Math.floor(((map.values[place] as number) - least) / width));
  const name = (rank: number) => `${asNumber(least + rank * width)} to ${asNumber(least + (rank + 1) * width)}`;
  return Array.from({ length: SHADES }).flatMap((_, rank) => rest(name(rank), known.filter((place) => shade(place) === rank), `shade-${rank}`));
}
