/** A row in words, for pointing and for touching, with the nodes that its path leads through. */
import { useEffect, useState } from "preact/hooks";
import { toNode } from "./address";
import { type RequestOptions, pause, send } from "./api";
import { useResponse } from "./loading";
import { asEffect, asNumber, asPercent, counted } from "./numbers";
import type { BetweenResponse, Contribution, Id, NodeExplanation } from "./responses";

const PAUSE = 0.2; // seconds that a row is pointed at before its walks are asked for
const WALKS = 3;

const asked = new Map<string, BetweenResponse>();

async function between(model: string, target: Id, row: Contribution, options: RequestOptions): Promise<BetweenResponse> {
  const key = JSON.stringify([model, target, row.neighbour, row.relations]);
  const known = asked.get(key);
  if (known) return known;
  await pause(PAUSE, options.signal);
  const request = { source: String(target), target: String(row.neighbour), relations: row.relations, top: WALKS };
  const found = await send<BetweenResponse>("v1/between", request, options);
  asked.set(key, found);
  return found;
}

export function RowSummary({ row: lit, end, model }: { row: Contribution | null; end: NodeExplanation; model: string }) {
  const [last, setLast] = useState<Contribution | null>(null);
  useEffect(() => {
    if (lit) setLast(lit);
  }, [lit]);
  const pointed = lit ?? (last && end.rows.includes(last) ? last : null); // the last one stays, so that its links can be followed
  const row = pointed ?? end.rows[0]; // with the most attention: room that is kept for a row is not left blank
  const hint = <p class="note"><span class="by-pointer">Point at a line, or move through the table, to read a row.</span><span class="by-touch">Tap a dot to read its row, and again to go to the node.</span></p>;
  if (!row) return <div class="told">{hint}</div>;
  const { answer } = end;
  const left = row.value_without !== null ? asNumber(row.value_without) : row.probability_without !== null ? asPercent(row.probability_without) : null;
  const without = answer && left !== null ? `; without it, ${row.value_without === null ? "the probability of " : ""}“${answer.name}” is ${left}` : "";
  return (
    <div class="told">
      <p>
        <strong>{row.step === 0 ? "itself" : <a href={toNode(row.neighbour)}>{row.neighbour}</a>}</strong>
        {row.step > 0 && ` over ${row.path}`}: attention {asPercent(row.attention)}, P {asPercent(row.probability)}, share {asPercent(row.share)}
        {row.effect !== null && `, effect ${asEffect(row.effect)}`}
        {without}.
      </p>
      {!pointed && hint}
      {row.step > 1 && <RowWalks key={`${row.neighbour} ${row.path}`} {...{ row, model }} target={end.target} />}
    </div>
  );
}

/** The likeliest walks over a row's path, node by node. */
function RowWalks({ row, target, model }: { row: Contribution; target: Id; model: string }) {
  const found = useResponse((options) => between(model, target, row, options), [row, target, model]);
  if (found.problem) return null;
  if (!found.value) return <p class="note">…</p>;
  const { walks, num_walks } = found.value;
  return (
    <ol class="row-walks">
      {walks.map((walk) => (
        <li key={walk.nodes.join("\u0000")}>
          {walk.nodes.map((node, step) => (
            <span key={step}>{step > 0 && <span class="note"> – {row.relations[step - 1]} → </span>}{step === 0 ? node : <a href={toNode(node)}>{node}</a>}</span>
          ))}
          {num_walks !== 1 && <span class="note"> {asPercent(walk.share)}</span>}
        </li>
      ))}
      {(num_walks ?? 0) > walks.length && <li class="note">{counted(num_walks! - walks.length, "more walk")}</li>}
    </ol>
  );
}
