/** What the data says of nodes, beside what the model predicts: true class and split, columns, known edges. */
import { useState } from "preact/hooks";
import { toNode } from "./address";
import { type RequestOptions, send } from "./api";
import { useResponse } from "./loading";
import { asCount, asGiven, asNumber, counted } from "./numbers";
import type { BetweenResponse, ColumnValue, Id, ModelResponse, NodeData, NodeDataResponse, NodeExplanation } from "./responses";

const ASKED = 100;
const FIRST = 10;
const LISTED = 8;

export type Known = Map<Id, NodeData>;

const ask = (ids: Id[], top: number, options: RequestOptions) =>
  send<NodeDataResponse>("v1/nodes/data", { ids: ids.map(String), top }, options).then(({ nodes }) => nodes);

/** What is known of a node, and in short of the neighbours that its explanation names and of those at its edges. */
export function useKnown(about: ModelResponse, end: NodeExplanation): { own?: NodeData; others: Known } {
  const found = useResponse(async (options) => {
    const [own] = await ask([end.target], Math.min(ASKED, about.limits.max_rows), options);
    const ids = new Set([...end.rows.map((row) => row.neighbour), ...own.edges.map((edge) => edge.node)]);
    const others = await ask([...ids].slice(0, about.limits.max_ids), 0, options);
    return { own, others: new Map([own, ...others].map((one) => [one.id, one])) };
  }, [end.target, about.model]);
  return found.value?.own.id === end.target ? found.value : { others: new Map() };
}

const said = (own: NodeData, about: ModelResponse): string | null => {
  if (own.labels !== null) return own.labels.length ? own.labels.join(", ") : "none";
  if (own.values === null) return null;
  return own.values.map((value, place) => `${about.names[place]} ${value === null ? "not known" : asNumber(value)}`).join(", ");
};

/** Type, true class and split in one line. */
export function Facts({ own, about, predicted }: { own?: NodeData; about: ModelResponse; predicted?: string[] }) {
  if (!own) return about.task.includes("link") ? null : <p class="facts">&nbsp;</p>;
  const truth = said(own, about);
  const nodes = !about.task.includes("link");
  if (!nodes && own.type === null) return null;
  const right = own.labels !== null && predicted !== undefined ? own.labels.join("\u0000") === predicted.join("\u0000") : null;
  return (
    <p class="facts">
      {own.type !== null && <span class="fact">{own.type}</span>}
      {truth !== null && <span class="fact">{own.values === null ? `true class ${truth}` : `true ${truth}`}{right !== null && (right ? " ✓" : " ✗")}</span>}
      {nodes && truth === null && <span class="fact note">no {about.task === "node regression" ? "number" : "class"} is known</span>}
      {own.split === "train" && <span class="fact trained">● the model was trained on this label</span>}
      {own.split !== null && own.split !== "train" && <span class="fact">○ {own.split}: the model was not trained on this label</span>}
    </p>
  );
}

/** The class of a neighbour, with a mark where the model was trained on it. */
export function KnownClass({ of }: { of?: NodeData }) {
  if (!of?.labels?.length) return <span class="soft">–</span>;
  return <span title={of.split === null ? undefined : of.split === "train" ? "trained on" : `${of.split}: not trained on`}>{of.labels.join(", ")}<Mark split={of.split} /></span>;
}

export function Mark({ split }: { split: string | null }) {
  if (split === null) return null;
  return <span class={split === "train" ? "mark trained" : "mark"} aria-label={split === "train" ? "trained on" : `${split}, not trained on`}> {split === "train" ? "●" : "○"}</span>;
}

function asColumn(value: ColumnValue): string {
  if (value === null) return "–";
  if (typeof value === "number") return asGiven(value);
  if (typeof value === "string" || typeof value === "boolean") return String(value);
  const shown = value.slice(0, LISTED).map(asGiven).join(", ");
  return value.length > LISTED ? `${shown} … (${asCount(value.length)} in all)` : shown || "none";
}

export function Columns({ own }: { own?: NodeData }) {
  const [all, setAll] = useState(false);
  const columns = Object.entries(own?.columns ?? {});
  if (!own || !columns.length) return null;
  const placed = columns[0][0].startsWith("feature ");
  return (
    <section class="columns">
      <h3>Its own columns</h3>
      <div class="table">
        <table>
          <tbody>
            {(all ? columns : columns.slice(0, FIRST)).map(([name, value]) => <tr key={name}><td class="name">{name}</td><td class="value">{asColumn(value)}</td></tr>)}
          </tbody>
        </table>
      </div>
      {columns.length > FIRST && <button type="button" onClick={() => setAll(!all)}>{all ? `Show the first ${FIRST}` : `Show ${columns.length}`}</button>}
      {placed && <p class="note">{counted(own.num_columns ?? 0, "feature")} that {own.num_columns === 1 ? "is" : "are"} not zero, by place.</p>}
    </section>
  );
}

export function Edges({ own, others, about }: { own?: NodeData; others: Known; about: ModelResponse }) {
  const [all, setAll] = useState(false);
  if (!own || own.num_edges === null) return null;
  const links = about.task.includes("link");
  const classes = own.edges.some((edge) => others.get(edge.node)?.labels != null);
  const types = own.edges.some((edge) => others.get(edge.node)?.type != null);
  const weights = own.edges.some((edge) => edge.weight !== null);
  const rest = own.num_edges - own.edges.length;
  return (
    <section class="edges">
      <h3>Known edges</h3>
      <p class="note">
        {counted(own.num_edges, "edge")}.{" "}
        {links ? "● the model was trained on the link, ○ it was held out; where its split is named, it is no edge of the graph." : classes && "● the model was trained on this class; ○ it was held out."}
      </p>
      {own.edges.length > 0 && (
        <div class="table">
          <table>
            <thead><tr><th>edge</th><th>node</th>{types && <th>type</th>}{classes && <th>class</th>}{weights && <th class="number">weight</th>}</tr></thead>
            <tbody>
              {(all ? own.edges : own.edges.slice(0, FIRST)).map((edge) => (
                <tr key={`${edge.type} ${edge.node} ${edge.split}`}>
                  <td class="name">{edge.type}{links && <Mark split={edge.split} />}{!edge.in_graph && <span class="note"> {edge.split}</span>}</td>
                  <td class="id"><a href={toNode(edge.node)}>{edge.node}</a></td>
                  {types && <td>{others.get(edge.node)?.type ?? "–"}</td>}
                  {classes && <td><KnownClass of={others.get(edge.node)} /></td>}
                  {weights && <td class="number">{edge.weight === null ? "–" : asNumber(edge.weight)}</td>}
                </tr>
              ))}
            </tbody>
          </table>
        </div>
      )}
      {own.edges.length > FIRST && <button type="button" onClick={() => setAll(!all)}>{all ? `Show the first ${FIRST} edges` : `Show ${rest > 0 ? "" : "all "}${own.edges.length} edges`}</button>}
      {all && rest > 0 && <p class="note">{asCount(rest)} more are not shown.</p>}
    </section>
  );
}

/** Neighbours of both of two nodes, in the graph. */
export function SharedNeighbours({ about, source, target }: { about: ModelResponse; source: Id; target: Id }) {
  const request = { source: String(source), target: String(target), top: Math.min(20, about.limits.max_rows) };
  const found = useResponse((options) => send<BetweenResponse>("v1/between", request, options), [source, target, about.model]);
  if (!found.value || found.value.source !== source || found.value.target !== target) return null;
  return <SharedIds ids={found.value.shared_neighbours} count={found.value.num_shared_neighbours} />;
}

export function SharedIds({ ids, count }: { ids: Id[]; count: number }) {
  if (!count) return <p class="note shared-ids">No node is a neighbour of both.</p>;
  return (
    <p class="shared-ids">
      {counted(count, "shared neighbour")}: {ids.map((node, place) => <span key={node}>{place > 0 && ", "}<a href={toNode(node)}>{node}</a></span>)}
      {count > ids.length && ` and ${asCount(count - ids.length)} more`}
    </p>
  );
}
