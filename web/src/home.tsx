/** What is shown before a node is chosen: what the run measured, and a map of the nodes. */
import { useEffect, useState } from "preact/hooks";
import { toNode } from "./address";
import { NodeMap } from "./map";
import { asCount, asMetric } from "./numbers";
import type { ModelResponse, RunResults } from "./responses";

const FIRST = 10;

const NAMES: Record<string, string> = {
  loss: "loss", accuracy: "accuracy", micro_f1: "micro-F1", macro_f1: "macro-F1", roc_auc: "ROC-AUC", pr_auc: "PR-AUC", f1: "F1", mrr: "MRR",
  hits_at_1: "Hits@1", hits_at_3: "Hits@3", hits_at_10: "Hits@10", mae: "MAE", rmse: "RMSE", r2: "R²", support: "nodes", count: "links",
};
const COUNTS = ["support", "positives", "negatives", "count"];

const named = (name: string) => NAMES[name] ?? name.replaceAll("_", " ");

export function Home({ about }: { about: ModelResponse }) {
  useEffect(() => {
    document.title = "gatas explorer";
  }, []);
  if (!about.num_nodes) return <p>The model's graph has no nodes.</p>;
  return (
    <div class="home">
      <div class="lead">
        <p>Search for a node by its id to see the model's prediction, and the neighbours and typed paths that it is based on. Or start with one of these, of {asCount(about.num_nodes)} nodes:</p>
        <ul class="ids">
          {about.first_ids.map((id) => <li key={id}><a href={toNode(id)}>{id}</a></li>)}
        </ul>
        {about.results && <Results results={about.results} />}
      </div>
      <NodeMap model={about.model} />
      {about.results && <Details results={about.results} />}
    </div>
  );
}

function Results({ results }: { results: RunResults }) {
  const splits = Object.keys(results.metrics);
  const names = [...new Set(splits.flatMap((split) => Object.keys(results.metrics[split])))];
  return (
    <section class="results">
      <h3>What the run measured</h3>
      <div class="table">
        <table>
          <thead><tr><th>{results.data}</th>{splits.map((split) => <th key={split} class="number">{split}</th>)}</tr></thead>
          <tbody>
            {names.map((name) => (
              <tr key={name}><td>{named(name)}</td>{splits.map((split) => <td key={split} class="number">{asMetric(results.metrics[split][name])}</td>)}</tr>
            ))}
          </tbody>
        </table>
      </div>
      <p class="note">Weights of epoch {results.epochs_to_best} of {results.epochs}.{results.note && ` The data: ${results.note}.`}</p>
    </section>
  );
}

/** The metrics of each class, type of link or number. */
function Details({ results }: { results: RunResults }) {
  const [all, setAll] = useState(false);
  const size = (own: Record<string, number>) => own.support ?? own.count ?? own.positives ?? 0;
  const rows = Object.entries(results.details).sort(([, one], [, other]) => size(other) - size(one));
  if (rows.length < 2) return null;
  const names = Object.keys(rows[0][1]);
  return (
    <section class="details">
      <h3>By {results.details_of === "type" ? "type of link" : results.details_of}, {Object.keys(results.metrics).pop()}</h3>
      <div class="table">
        <table>
          <thead><tr><th>{results.details_of}</th>{names.map((name) => <th key={name} class="number">{named(name)}</th>)}</tr></thead>
          <tbody>
            {(all ? rows : rows.slice(0, FIRST)).map(([name, own]) => (
              <tr key={name}>
                <td class="name">{name}</td>
                {names.map((metric) => <td key={metric} class="number">{COUNTS.includes(metric) ? asCount(own[metric] ?? 0) : asMetric(own[metric])}</td>)}
              </tr>
            ))}
          </tbody>
        </table>
      </div>
      {rows.length > FIRST && <button type="button" onClick={() => setAll(!all)}>{all ? `Show the first ${FIRST}` : `Show all ${rows.length}`}</button>}
    </section>
  );
}
