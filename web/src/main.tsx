/** The explorer: the predictions of a trained model, and their explanations. */
import { render } from "preact";
import { useEffect, useState } from "preact/hooks";
import { type View, go, toLink, toNode, toPair, useView } from "./address";
import { onOtherModel, send } from "./api";
import { Home } from "./home";
import { Loaded, useResponse } from "./loading";
import { counted } from "./numbers";
import type { Id, ModelResponse } from "./responses";
import { Search } from "./search";
import { LinkView, NodeView, PairView } from "./views";

function App() {
  const view = useView();
  const about = useResponse((options) => send<ModelResponse>("v1/model", null, options), []);
  useEffect(() => onOtherModel(about.again), [about.again]);
  return (
    <>
      <header>
        <h1><a href="#">gatas explorer</a></h1>
        {about.value && <p class="note">{summary(about.value)}</p>}
      </header>
      <main>
        <Loaded of={about} what="the model">{(found) => <><Controls about={found} view={view} /><Shown about={found} view={view} /></>}</Loaded>
      </main>
    </>
  );
}

function summary(about: ModelResponse): string {
  const links = about.task.includes("link");
  const numbers = about.task === "node regression";
  const names = counted(about.names.length, links ? "type" : numbers ? "number" : "class").replace("classs", "classes");
  return `${links ? "Predicts links" : `Predicts ${numbers ? "numbers" : "classes"} of nodes`} (${names}) · ${counted(about.num_nodes, "node")}, ${counted(about.num_edges, "edge")} · model ${about.model.slice(0, 12)}`;
}

/** The node of a view that a second one is compared with. */
function firstOf(view: View): string | undefined {
  return view.kind === "node" ? view.node : view.kind === "pair" ? view.first : view.kind === "link" ? view.source : undefined;
}

function Controls({ about, view }: { about: ModelResponse; view: View }) {
  const links = about.task.includes("link");
  const [type, setType] = useState("");
  const first = firstOf(view);
  const beside = (id: Id) => first !== undefined && go(type ? toLink(first, type, id) : toPair(first, id));
  return (
    <div class="controls">
      <Search label="Node" hint="Search by id" chosen={(id) => go(toNode(id))} />
      {first !== undefined && (
        <>
          {links && (
            <label>
              Action
              <select value={type} onChange={(event) => setType(event.currentTarget.value)}>
                <option value="">compare nodes</option>
                {about.names.map((name) => <option key={name} value={name}>explain link: {name}</option>)}
              </select>
            </label>
          )}
          <Search label={type ? `From ${first} to` : `Compare ${first} with`} hint="Search by id" chosen={beside} />
          <Share key={location.hash} />
        </>
      )}
    </div>
  );
}

function Share() {
  const [said, setSaid] = useState("");
  async function copy() {
    try {
      await navigator.clipboard.writeText(location.href);
      setSaid("Copied");
    } catch {
      setSaid(location.href); // pages that do not come over HTTPS may not write there
    }
  }
  return (
    <p class="share">
      <button type="button" onClick={copy}>Copy address</button> <span class="note" role="status">{said}</span>
    </p>
  );
}

function Shown({ about, view }: { about: ModelResponse; view: View }) {
  if (view.kind === "node") return <NodeView about={about} {...view} />;
  if (view.kind === "pair") return <PairView about={about} {...view} />;
  if (view.kind === "link") return <LinkView about={about} {...view} />;
  return <Home about={about} />;
}

render(<App />, document.body);
