/** A field that finds ids while the user types; chosen by arrow keys and Enter, or by a click. */
import { useId, useState } from "preact/hooks";
import { search, useResponse } from "./loading";
import type { Id } from "./responses";

const SHOWN = 8;
const PAUSE = 120;

interface Props {
  label: string;
  hint: string;
  chosen: (id: Id) => void;
}

export function Search({ label, hint, chosen }: Props) {
  const name = useId();
  const [text, setText] = useState("");
  const [open, setOpen] = useState(false);
  const [active, setActive] = useState(-1);
  const found = useResponse(async (options) => {
    if (!open) return null;
    await new Promise((resolve) => setTimeout(resolve, PAUSE));
    options.signal.throwIfAborted();
    return search(text.trim(), SHOWN, options);
  }, [text, open]);
  const ids = (open && !found.busy && found.value?.ids) || [];

  function choose(id: Id) {
    setText("");
    setOpen(false);
    setActive(-1);
    chosen(id);
  }

  function press(event: KeyboardEvent) {
    if (event.key === "Escape") setOpen(false);
    else if (event.key === "Enter") {
      event.preventDefault();
      if (active >= 0 && active < ids.length) choose(ids[active]);
      else if (text.trim()) choose(text.trim());
    } else if (event.key === "ArrowDown" || event.key === "ArrowUp") {
      event.preventDefault();
      setOpen(true);
      if (ids.length) setActive((active + (event.key === "ArrowDown" ? 1 : active < 0 ? 0 : -1) + ids.length) % ids.length);
    }
  }

  return (
    <div class="search">
      <label for={name}>{label}</label>
      <input
        id={name}
        type="text"
        role="combobox"
        autocomplete="off"
        autocapitalize="off"
        spellcheck={false}
        maxLength={1000}
        placeholder={hint}
        aria-expanded={ids.length > 0}
        aria-controls={`${name}-found`}
        aria-autocomplete="list"
        aria-activedescendant={active >= 0 && active < ids.length ? `${name}-${active}` : undefined}
        value={text}
        onInput={(event) => (setText(event.currentTarget.value), setOpen(true), setActive(-1))}
        onFocus={() => setOpen(true)}
        onBlur={() => setOpen(false)}
        onKeyDown={press}
      />
      <div class="found" hidden={!open}>
        <ul id={`${name}-found`} role="listbox" aria-label="Ids found">
          {ids.map((id, place) => (
            <li
              key={id}
              id={`${name}-${place}`}
              role="option"
              aria-selected={place === active}
              onPointerDown={(event) => event.preventDefault()}
              onClick={() => choose(id)}
            >
              {id}
            </li>
          ))}
        </ul>
        <p role="status">
          {found.busy ? found.note || "Searching …" : found.problem ? found.problem.message : said(text, ids.length, found.value?.more)}
        </p>
      </div>
    </div>
  );
}

function said(text: string, count: number, more?: boolean): string {
  if (!count) return text.trim() ? `No id contains “${text.trim()}”` : "";
  return more ? "More ids match: type more to narrow the search" : "";
}
