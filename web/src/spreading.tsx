/** What labels spread over the whole graph add to the log-odds of an answer. */
import { SumBar } from "./link";
import { asEffect, asPercent } from "./numbers";
import type { NodeExplanation } from "./responses";

const chance = (logOdds: number) => 1 / (1 + Math.exp(-logOdds));

export function Spreading({ end }: { end: NodeExplanation }) {
  const { label_spreading: spread, answer } = end;
  if (!spread || !answer) return null;
  const sum = spread.without + spread.effect;
  const range: [number, number] = [Math.min(0, spread.without, sum), Math.max(0, spread.without, sum)];
  return (
    <section class="spreading">
      <h3>Labels spread over the graph</h3>
      <p class="note">What they add to the log-odds of “{answer.name}”.</p>
      <div class="table">
        <table>
          <tbody>
            <tr><td>neighbourhood alone</td><td class="bars"><SumBar from={0} to={spread.without} range={range} colour="path-0" /></td><td class="number">{asEffect(spread.without)}</td></tr>
            <tr><td>spread labels</td><td class="bars"><SumBar from={spread.without} to={sum} range={range} colour="path-1" /></td><td class="number">{asEffect(spread.effect)}</td></tr>
          </tbody>
          <tfoot><tr><th>sum</th><th class="bars"><SumBar from={0} to={sum} range={range} colour="path-self" /></th><th class="number">{asEffect(sum)}</th></tr></tfoot>
        </table>
      </div>
      <p class="note">
        {spread.effect === 0 ? "Spread labels add nothing here." : `By its neighbourhood alone, the probability of “${answer.name}” would be ${asPercent(chance(spread.without))} instead of ${asPercent(chance(sum))}.`}
      </p>
    </section>
  );
}
