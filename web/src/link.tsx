/** A link whose log-odds are a sum: its terms as bars, and the walks behind each typed path. */
import { useState } from "preact/hooks";
import { toNode } from "./address";
import { SharedIds } from "./data";
import { asCount, asEffect, asPercent, asSmallPercent, counted } from "./numbers";
import type { LinkExplanation, LinkTerm, PathTerm } from "./responses";
import { Swatch } from "./swatch";

const COLOURS = 10;
const FIRST = 10;

const colourOfTerm = (term: LinkTerm, paths: PathTerm[]) => {
  const place = paths.indexOf(term as PathTerm);
  return place >= 0 && place < COLOURS ? `path-${place}` : "path-other";
};

/** A bar from where the sum stood to where the term brings it. */
export function SumBar({ from, to, range, colour }: { from: number; to: number; range: [number, number]; colour: string }) {
  const place = (value: number) => (100 * (value - range[0])) / (range[1] - range[0] || 1);
  const [left, right] = [Math.min(place(from), place(to)), Math.max(place(from), place(to))];
  return (
    <svg class={`sum ${colour}`} viewBox="0 0 100 8" preserveAspectRatio="none" aria-hidden="true">
      <rect class="zero" x={place(0) - 0.15} width="0.3" height="8" />
      <rect x={left} width={Math.max(0.4, right - left)} height="8" />
    </svg>
  );
}

export function LogOdds({ link }: { link: LinkExplanation }) {
  const [all, setAll] = useState(false);
  const paths = all ? link.paths : link.paths.slice(0, FIRST);
  const terms: LinkTerm[] = [...link.terms, ...paths];
  const rest = link.answer.log_odds - terms.reduce((sum, term) => sum + term.value, 0);
  const ends = terms.reduce((sums, term) => [...sums, sums[sums.length - 1] + term.value], [0]);
  const range: [number, number] = [Math.min(...ends, link.answer.log_odds), Math.max(...ends, link.answer.log_odds)];
  return (
    <section class="log-odds">
      <h3>What its log-odds are the sum of</h3>
      <div class="table">
        <table>
          <thead><tr><th>contribution</th><th class="number">log-odds</th><th aria-hidden="true" /><th class="number">without it</th></tr></thead>
          <tbody>
            {terms.map((term, place) => (
              <tr key={`${term.kind} ${term.name}`}>
                <td><Swatch colour={colourOfTerm(term, link.paths)} />{term.name}</td>
                <td class="number">{asEffect(term.value)}</td>
                <td class="bars"><SumBar from={ends[place]} to={ends[place + 1]} range={range} colour={colourOfTerm(term, link.paths)} /></td>
                <td class="number">{asPercent(term.probability_without)}</td>
              </tr>
            ))}
            {link.num_paths > paths.length && <tr><td>{counted(link.num_paths - paths.length, "more path")}</td><td class="number">{asEffect(rest)}</td><td /><td /></tr>}
          </tbody>
          <tfoot>
            <tr>
              <th>sum</th><th class="number">{asEffect(link.answer.log_odds)}</th>
              <th class="bars"><SumBar from={0} to={link.answer.log_odds} range={range} colour="path-self" /></th>
              <th class="number">{asPercent(link.answer.probability)}</th>
            </tr>
          </tfoot>
        </table>
      </div>
      {link.paths.length > FIRST && <button type="button" onClick={() => setAll(!all)}>{all ? `Show the first ${FIRST} paths` : `Show ${link.paths.length} paths`}</button>}
      <p class="note">Each bar begins where the one above ended. “Without it” is the probability of the link if this were not there.</p>
    </section>
  );
}

export function Walks({ link }: { link: LinkExplanation }) {
  const shown = link.paths.filter((path) => path.walks.length);
  return (
    <section class="walks">
      <h3>The likeliest walks</h3>
      {shown.length === 0 && <p class="note">No path of at most {link.num_steps} {link.num_steps === 1 ? "step" : "steps"} leads from one to the other{link.known && ", but for the link itself"}.</p>}
      {shown.map((path) => (
        <div key={path.name}>
          <p><Swatch colour={colourOfTerm(path, link.paths)} />{path.name} <span class="note">{asEffect(path.value)}; {counted(path.num_walks ?? 0, "walk")}, P {asSmallPercent(path.probability)} forth, about {asSmallPercent(path.probability_back)} back</span></p>
          <ol>
            {path.walks.map((walk) => (
              <li key={walk.nodes.join("\u0000")}>
                <span class="number note">{asPercent(walk.share)}</span>{" "}
                {walk.nodes.map((node, step) => (
                  <span key={step}>{step > 0 && <span class="note"> – {path.relations[step - 1]} → </span>}<a href={toNode(node)}>{node}</a></span>
                ))}
              </li>
            ))}
          </ol>
          {(path.num_between ?? 0) > 1 && (
            <p class="note">
              {asCount(path.num_between!)} nodes between:{" "}
              {path.between.map((one, place) => <span key={place}>{place > 0 && ", "}<a href={toNode(one.node)}>{one.node}</a> {asPercent(one.share)}</span>)}
              {path.num_between! > new Set(path.between.map((one) => one.node)).size && " …"}
            </p>
          )}
        </div>
      ))}
      <SharedIds ids={link.shared_neighbours} count={link.num_shared_neighbours} />
    </section>
  );
}
