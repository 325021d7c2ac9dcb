/** What an address shows: a node, two nodes side by side, a link. */
import type { ComponentChildren } from "preact";
import { useEffect, useRef, useState } from "preact/hooks";
import { go, hasLeft, toLink, toLinks, toNode, toPair } from "./address";
import { type RequestOptions, send } from "./api";
import { type Colours, coloursOf } from "./colours";
import { Columns, Edges, Facts, SharedNeighbours, useKnown } from "./data";
import { LogOdds, Walks } from "./link";
import { Loaded, useResponse } from "./loading";
import { asPercent, counted } from "./numbers";
import { Picture } from "./picture";
import type { Contribution, EmbedResponse, ExplainResponse, Id, LinkExplanation, ModelResponse, NodeExplanation, ScoredLink } from "./responses";
import { RowSummary } from "./row";
import { Spreading } from "./spreading";
import { Bar, Classes, Depths, NearestNodes, Paths, Rows } from "./tables";

const ROWS = 100;
const MOST_TYPES = 20;

const predictsLinks = (about: ModelResponse) => about.task.includes("link");

const explain = (about: ModelResponse, request: object, options: RequestOptions) =>
  send<ExplainResponse>("v1/explain", { ...request, top: Math.min(ROWS, about.limits.max_rows) }, options);

/** Takes the focus when the view changes, so that the keyboard continues from there. */
function Heading({ children, title }: { children: ComponentChildren; title: string }) {
  const heading = useRef<HTMLHeadingElement>(null);
  useEffect(() => {
    document.title = `${title} – gatas explorer`;
    if (hasLeft()) heading.current?.focus();
  }, [title]);
  return <h2 ref={heading} tabIndex={-1}>{children}</h2>;
}

export function NodeView({ about, node, answer, links }: { about: ModelResponse; node: string; answer?: string; links?: string }) {
  const request = answer === undefined ? { id: node } : { id: node, answer };
  const explained = useResponse((options) => explain(about, request, options), [node, answer, about.model]);
  return (
    <Loaded of={explained} what="the node" asked={[node]}>
      {(found) => (
        <>
          <Heading title={String(found.target)}>{found.target}</Heading>
          <Neighbourhood
            about={about}
            end={found}
            colours={coloursOf([found])}
            lead={found.prediction ? <Classes explained={found} node={found.target} /> : <LikelyLinks about={about} node={found.target} type={links} />}
            tail={about.neighbours === "off" ? null : <NearestNodes about={about} node={found.target} />}
          />
        </>
      )}
    </Loaded>
  );
}

interface NeighbourhoodProps {
  about: ModelResponse;
  end: NodeExplanation;
  colours: Colours;
  lead?: ComponentChildren;
  tail?: ComponentChildren;
  marked?: Id;
  shared?: Set<Id>;
  narrow?: boolean;
}

/** A picture and its tables; what is pointed at in one is highlighted in the other. */
function Neighbourhood({ about, end, colours, lead, tail, marked, shared, narrow = false }: NeighbourhoodProps) {
  const [row, light] = useState<Contribution | null>(null);
  const { own, others } = useKnown(about, end);
  const predicted = "prediction" in end ? (end as ExplainResponse).prediction : null;
  return (
    <>
      <Facts own={own} about={about} predicted={predicted && "labels" in predicted ? predicted.labels : undefined} />
      <div class={narrow ? "end narrow" : "end"}>
        <div class="lead">
          {lead}
          <Spreading end={end} />
          <Columns key={end.target} own={own} />
        </div>
        {end.note === null ? (
          <figure>
            <Picture {...{ end, colours, marked, row, light }} />
            <RowSummary {...{ row, end }} model={about.model} />
          </figure>
        ) : (
          <p class="unattended">{end.note} Choose a link to see what it rests on.</p>
        )}
        {end.note === null && <div class="rows"><Rows {...{ end, colours, shared, row, light }} known={others} /></div>}
        <div class="known"><Edges key={end.target} {...{ own, others, about }} /></div>
        <div class="parts">
          {end.note === null && <Paths end={end} colours={colours} />}
          {end.note === null && <Depths end={end} />}
          {tail}
        </div>
      </div>
    </>
  );
}

function LikelyLinks({ about, node, type }: { about: ModelResponse; node: Id; type?: string }) {
  const chosen = type !== undefined && about.names.includes(type) ? type : about.names[0];
  const request = { source: String(node), type: chosen, top: Math.min(8, about.limits.max_rows) };
  const likely = useResponse((options) => send<{ links: ScoredLink[] }>("v1/links/rank", request, options), [node, chosen, about.model]);
  return (
    <section>
      <h3>Likely links</h3>
      <p>
        <label>
          Of type{" "}
          <select value={chosen} onChange={(event) => go(toLinks(node, event.currentTarget.value))}>
            {about.names.map((name) => <option key={name}>{name}</option>)}
          </select>
        </label>
      </p>
      <Loaded of={likely} what="likely links" asked={[node]}>
        {({ links }) => (links.length ? <LinkTable links={links} shown={(link) => link.target} /> : <p class="note">No link of this type that is not known already.</p>)}
      </Loaded>
      <p class="note">The most probable links that are not in the graph. Choose one to explain it.</p>
    </section>
  );
}

function LinkTable({ links, shown, current }: { links: ScoredLink[]; shown: (link: ScoredLink) => Id; current?: string }) {
  return (
    <table class="classes">
      <tbody>
        {links.map((link) => (
          <tr key={`${link.type} ${link.target}`}>
            <td class="id"><a href={toLink(link.source, link.type, link.target)} aria-current={link.type === current}>{shown(link)}</a></td>
            <td class="bars"><Bar value={link.probability} /></td>
            <td class="number">{asPercent(link.probability)}</td>
          </tr>
        ))}
      </tbody>
    </table>
  );
}

/** Links of every type between two nodes. */
function LinksBetween({ about, source, target, current }: { about: ModelResponse; source: Id; target: Id; current?: string }) {
  const pairs = about.names.slice(0, MOST_TYPES).map((type) => ({ source: String(source), type, target: String(target) }));
  const scored = useResponse((options) => send<{ links: ScoredLink[] }>("v1/links", { pairs }, options), [source, target, about.model]);
  return (
    <section>
      <h3>{source} → {target}</h3>
      <Loaded of={scored} what="links" asked={[source, target]}>
        {({ links }) => <LinkTable links={links} shown={(link) => link.type} current={current} />}
      </Loaded>
    </section>
  );
}

export function PairView({ about, first, second }: { about: ModelResponse; first: string; second: string }) {
  const both = useResponse(
    (options) => Promise.all([explain(about, { id: first }, options), explain(about, { id: second }, options), similarity(first, second, options)]),
    [first, second, about.model],
  );
  return (
    <Loaded of={both} what="both nodes" asked={[first, second]}>
      {([one, other, alike]) => {
        const colours = coloursOf([one, other]);
        const shared = inBoth(one, other);
        return (
          <>
            <Heading title={`${one.target} and ${other.target}`}>
              <a href={toNode(one.target)}>{one.target}</a> and <a href={toNode(other.target)}>{other.target}</a>
            </Heading>
            <p>
              The cosine between their representations is <strong>{alike.toFixed(3)}</strong>.{" "}
              {shared.size > 0 && `${counted(shared.size, "neighbour")} of both explanations ${shared.size === 1 ? "is" : "are"} marked\u00a0∩. `}
              <a href={toPair(other.target, one.target)}>Swap sides</a>
            </p>
            <SharedNeighbours about={about} source={one.target} target={other.target} />
            {predictsLinks(about) && (
              <div class="between">
                <LinksBetween about={about} source={one.target} target={other.target} />
                <LinksBetween about={about} source={other.target} target={one.target} />
              </div>
            )}
            <div class="pair">
              {[one, other].map((end, side) => (
                <article key={side}>
                  <h2><a href={toNode(end.target)}>{end.target}</a></h2>
                  <Neighbourhood narrow about={about} end={end} colours={colours} shared={shared} marked={[other, one][side].target}
                    lead={<Classes explained={end} node={end.target} />} />
                </article>
              ))}
            </div>
          </>
        );
      }}
    </Loaded>
  );
}

function inBoth(one: NodeExplanation, other: NodeExplanation): Set<Id> {
  const ids = new Set(other.rows.map((row) => row.neighbour));
  return new Set(one.rows.map((row) => row.neighbour).filter((id) => ids.has(id)));
}

async function similarity(first: string, second: string, options: RequestOptions): Promise<number> {
  const { embeddings } = await send<EmbedResponse>("v1/embed", { ids: [first, second] }, options);
  const product = (one: number[], other: number[]) => one.reduce((sum, value, place) => sum + value * other[place], 0);
  const [one, other] = embeddings;
  return product(one, other) / Math.sqrt(product(one, one) * product(other, other) || 1);
}

export function LinkView({ about, source, type, target }: { about: ModelResponse; source: string; type: string; target: string }) {
  const explained = useResponse((options) => explainLink(about, { source, type, target }, options), [source, type, target, about.model]);
  return (
    <Loaded of={explained} what="the link" asked={[source, target]}>
      {(found) => ("terms" in found ? <SummedLink about={about} link={found} /> : <LinkOfEnds about={about} ends={[found, found.other!]} />)}
    </Loaded>
  );
}

const explainLink = (about: ModelResponse, request: object, options: RequestOptions) =>
  send<ExplainResponse | LinkExplanation>("v1/explain", { ...request, top: Math.min(ROWS, about.limits.max_rows) }, options);

interface LinkHeadProps {
  about: ModelResponse;
  source: Id;
  type: string;
  target: Id;
  probability: number;
  known?: string;
}

/** The link and its probability, beside other links between the two nodes. */
function LinkHead({ about, source, type, target, probability, known = "" }: LinkHeadProps) {
  return (
    <>
      <Heading title={`${source} – ${type} → ${target}`}>
        <a href={toNode(source)}>{source}</a> – {type} → <a href={toNode(target)}>{target}</a>
      </Heading>
      <p class="answer">{asPercent(probability)} <span class="note">probability of this link{known}</span></p>
      <div class="between">
        <LinksBetween about={about} source={source} target={target} current={type} />
        <LinksBetween about={about} source={target} target={source} />
      </div>
    </>
  );
}

/** Whether the link is known, and whether that it is there may be evidence for it. */
const knownInWords = (link: LinkExplanation) =>
  !link.known ? ""
  : link.neighbourhood ? ", which is known already, and may be evidence for itself here: each node may be in the other's neighbourhood because of it"
  : ", which is known already: that it is there is no evidence here";

/** A link by what its log-odds add up from, and both neighbourhoods where these are a part of it. */
function SummedLink({ about, link }: { about: ModelResponse; link: LinkExplanation }) {
  return (
    <>
      <LinkHead about={about} source={link.source} type={link.type} target={link.target} probability={link.answer.probability} known={knownInWords(link)} />
      <div class="summed">
        <LogOdds link={link} />
        <Walks link={link} />
      </div>
      {link.neighbourhood && <BothEnds about={about} ends={[link.neighbourhood, link.neighbourhood.other]} />}
    </>
  );
}

function LinkOfEnds({ about, ends }: { about: ModelResponse; ends: [NodeExplanation, NodeExplanation] }) {
  const [source, target] = ends;
  return (
    <>
      <LinkHead about={about} source={source.target} type={source.answer!.name} target={target.target} probability={source.answer!.probability!} />
      <SharedNeighbours about={about} source={source.target} target={target.target} />
      <BothEnds about={about} ends={ends} />
    </>
  );
}

function BothEnds({ about, ends }: { about: ModelResponse; ends: [NodeExplanation, NodeExplanation] }) {
  const colours = coloursOf(ends);
  const shared = inBoth(...ends);
  return (
    <div class="pair">
      {ends.map((end, side) => (
        <article key={side}>
          <h2><a href={toNode(end.target)}>{end.target}</a></h2>
          <Neighbourhood narrow about={about} end={end} colours={colours} shared={shared} marked={ends[1 - side].target} />
        </article>
      ))}
    </div>
  );
}
