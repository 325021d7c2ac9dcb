/** Tables: the rows of an explanation, sums by path and by depth, classes, nearest nodes. */
import { useState } from "preact/hooks";
import { toClass, toNode, toPair } from "./address";
import { send } from "./api";
import { type Colours, colourOf } from "./colours";
import { type Known, KnownClass } from "./data";
import { Loaded, useResponse } from "./loading";
import { asCount, asEffect, asNumber, asPercent, asSteps, counted } from "./numbers";
import type { Lit } from "./picture";
import type { Contribution, ExplainResponse, Id, ModelResponse, NeighboursResponse, NodeExplanation } from "./responses";
import { Swatch } from "./swatch";

const FIRST = 10;
const MOST_CLASSES = 12;

export function Bar({ value, colour = "" }: { value: number; colour?: string }) {
  return (
    <svg class={`bar ${colour}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect width="100" height="8" class="trough" />
      <rect width={100 * Math.min(1, Math.max(0, value))} height="8" />
    </svg>
  );
}

/** Arrow keys go from row to row. */
function step(event: KeyboardEvent) {
  const links = [...(event.currentTarget as HTMLElement).querySelectorAll<HTMLElement>("tbody a")];
  const place = links.indexOf(document.activeElement as HTMLElement);
  const next = { ArrowDown: place + 1, ArrowUp: place - 1 }[event.key];
  if (place < 0 || next === undefined || !links[next]) return;
  event.preventDefault();
  links[next].focus();
}

interface RowsProps extends Lit {
  end: NodeExplanation;
  colours: Colours;
  known: Known;
  shared?: Set<Id>;
}

export function Rows({ end, colours, known, shared, row: lit, light }: RowsProps) {
  const [all, setAll] = useState(false);
  const rows = all ? end.rows : end.rows.slice(0, FIRST);
  const rest = end.num_rows - end.rows.length;
  const classes = end.rows.some((row) => row.step > 0 && known.get(row.neighbour)?.labels?.length);
  return (
    <section>
      <h3>Contributions</h3>
      <p class="note">
        {counted(end.num_rows, "row")} of {counted(end.num_candidates, "candidate")}, which hold {asPercent(end.coverage)} of P, the probability of being drawn.{" "}
        {end.answer && `Effect: how much ${end.answer.value === undefined ? "the log-odds of " : ""}“${end.answer.name}” ${end.answer.value === undefined ? "fall" : "falls"} without the row.`}
        {classes && " Class: as the data has it; ● the model was trained on it, ○ it was held out."}
      </p>
      <div class="table" onKeyDown={step}>
        <table>
          <thead>
            <tr>
              <th>neighbour</th><th>typed path</th>{classes && <th>class</th>}<th class="number">attention</th>
              {end.answer && <th class="number">effect</th>}
              <th class="number wide">share</th><th class={classes ? "number wide" : "number"}>P</th>
            </tr>
          </thead>
          <tbody onPointerLeave={() => light(null)}>
            {rows.map((row) => <OneRow key={`${row.neighbour} ${row.path}`} {...{ end, row, colours, known, shared, lit, light }} classes={!!classes} />)}
          </tbody>
        </table>
      </div>
      {end.rows.length > FIRST && (
        <button type="button" onClick={() => setAll(!all)}>{all ? `Show the first ${FIRST} rows` : `Show ${rest > 0 ? "" : "all "}${end.rows.length} rows`}</button>
      )}
      {all && rest > 0 && <p class="note">{asCount(rest)} more rows with less attention are not shown.</p>}
    </section>
  );
}

interface OneRowProps {
  end: NodeExplanation;
  row: Contribution;
  colours: Colours;
  known: Known;
  classes: boolean;
  shared?: Set<Id>;
  lit: Contribution | null;
  light: Lit["light"];
}

function OneRow({ end, row, colours, known, classes, shared, lit, light }: OneRowProps) {
  return (
    <tr class={row === lit ? "lit" : undefined} onPointerEnter={() => light(row)} onFocusCapture={() => light(row)} onBlurCapture={() => light(null)}>
      <td class="id">
        {row.step === 0 ? "itself" : <a href={toNode(row.neighbour)}>{row.neighbour}</a>}
        {shared?.has(row.neighbour) && <span class="shared" title="neighbour of both nodes"> ∩</span>}
      </td>
      <td><Swatch colour={colourOf(colours, row)} />{row.step === 0 ? "–" : row.path}</td>
      {classes && <td><KnownClass of={row.step === 0 ? undefined : known.get(row.neighbour)} /></td>}
      <td class="number">{asPercent(row.attention)}</td>
      {end.answer && <td class="number">{asEffect(row.effect)}</td>}
      <td class="number wide">{asPercent(row.share)}</td>
      <td class={classes ? "number wide" : "number"}>{asPercent(row.probability)}</td>
    </tr>
  );
}

export function Paths({ end, colours }: { end: NodeExplanation; colours: Colours }) {
  const parts = end.paths.slice(0, 10);
  return (
    <section>
      <h3>By typed path</h3>
      <div class="table">
        <table>
          <thead><tr><th>typed path</th><th class="number">rows</th><th class="number">attention</th>{end.answer && <th class="number">effect</th>}</tr></thead>
          <tbody>
            {parts.map((part) => (
              <tr key={part.name}>
                <td><Swatch colour={colours.get(part.name) ?? (part.name === "self" ? "path-self" : "path-other")} />{part.name === "self" ? "itself" : part.name}</td>
                <td class="number">{part.num_rows}</td>
                <td class="number">{asPercent(part.attention)}</td>
                {end.answer && <td class="number">{asEffect(part.effect)}</td>}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {end.paths.length > parts.length && <p class="note">{end.paths.length - parts.length} more paths.</p>}
    </section>
  );
}

export function Depths({ end }: { end: NodeExplanation }) {
  return (
    <section>
      <h3>Learned depth</h3>
      <div class="table">
        <table>
          <thead><tr><th>depth</th><th class="number">q</th><th aria-hidden="true" /><th class="number">attention</th></tr></thead>
          <tbody>
            {end.depth_coefficients.map((q, step) => (
              <tr key={step}>
                <td class="depth">{asSteps(step)}</td>
                <td class="number">{asPercent(q)}</td>
                <td class="bars"><Bar value={q} /></td>
                <td class="number">{end.depths[step] ? asPercent(end.depths[step].attention) : "–"}</td>
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">q is the weight that the model learned for each depth.</p>
    </section>
  );
}

/** What is predicted of a node: its numbers, or its classes. */
export function Classes({ explained, node, answer }: { explained: ExplainResponse; node: Id; answer?: string }) {
  const { prediction, classes } = explained;
  if (!prediction) return null;
  if ("values" in prediction) return <Numbers names={classes} values={prediction.values} node={node} shown={answer ?? explained.answer?.name} />;
  const ranked = prediction.probabilities.map((probability, place) => ({ name: classes[place], probability }));
  ranked.sort((one, other) => other.probability - one.probability);
  const shown = answer ?? explained.answer?.name;
  return (
    <section>
      <h3>Prediction</h3>
      <p class="answer">
        {prediction.labels.length ? prediction.labels.join(", ") : "no class"}
        {prediction.labels.length === 1 && <span class="note"> {asPercent(ranked[0].probability)}</span>}
      </p>
      <table class="classes">
        <tbody>
          {ranked.slice(0, MOST_CLASSES).map(({ name, probability }) => (
            <tr key={name}>
              <td class="id"><a href={toClass(node, name)} aria-current={name === shown}>{name}</a></td>
              <td class="bars"><Bar value={probability} /></td>
              <td class="number">{asPercent(probability)}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">The explanation is for “{shown}”. Choose another class to explain it instead.</p>
    </section>
  );
}

function Numbers({ names, values, node, shown }: { names: string[]; values: number[]; node: Id; shown?: string }) {
  return (
    <section>
      <h3>Prediction</h3>
      <table class="classes">
        <tbody>
          {names.map((name, place) => (
            <tr key={name}>
              <td class="id"><a href={toClass(node, name)} aria-current={name === shown}>{name}</a></td>
              <td class="number">{asNumber(values[place])}</td>
            </tr>
          ))}
        </tbody>
      </table>
      <p class="note">The explanation is for “{shown}”.{names.length > 1 && " Choose another number to explain it instead."}</p>
    </section>
  );
}

export function NearestNodes({ node, about }: { node: Id; about: ModelResponse }) {
  const top = Math.min(8, about.limits.max_rows);
  const nearest = useResponse((options) => send<NeighboursResponse>("v1/neighbours", { id: String(node), top }, options), [node, about.model]);
  return (
    <section>
      <h3>Nearest nodes</h3>
      <p class="note">Nodes with the most similar representations, by cosine.</p>
      <Loaded of={nearest} what="nearest nodes" asked={[node]}>
        {({ neighbours }) => (
          <table>
            <tbody>
              {neighbours.map(({ id, similarity }) => (
                <tr key={id}>
                  <td class="id"><a href={toNode(id)}>{id}</a></td>
                  <td class="number">{similarity.toFixed(3)}</td>
                  <td><a href={toPair(node, id)} aria-label={`Compare with ${id}`}>compare</a></td>
                </tr>
              ))}
            </tbody>
          </table>
        )}
      </Loaded>
    </section>
  );
}
