/** A view is the part of the address after #, which the browser keeps to itself: ids are in no server's log. */
import { useEffect, useState } from "preact/hooks";
import type { Id } from "./responses";

export type View =
  | { kind: "start" }
  | { kind: "node"; node: string; answer?: string; links?: string }
  | { kind: "pair"; first: string; second: string }
  | { kind: "link"; source: string; type: string; target: string };

export function read(hash: string): View {
  const given = new URLSearchParams(hash.replace(/^#/, ""));
  const [node, other, source, type, target] = ["node", "with", "source", "type", "target"].map((name) => given.get(name));
  if (source && type && target) return { kind: "link", source, type, target };
  if (node && other) return { kind: "pair", first: node, second: other };
  if (node) return { kind: "node", node, answer: given.get("class") ?? undefined, links: given.get("links") ?? undefined };
  return { kind: "start" };
}

const written = (parts: Record<string, Id>) =>
  "#" + new URLSearchParams(Object.entries(parts).map(([name, value]) => [name, String(value)]));

export const toNode = (node: Id) => written({ node });
export const toClass = (node: Id, name: string) => written({ node, class: name });
export const toLinks = (node: Id, type: string) => written({ node, links: type });
export const toPair = (first: Id, second: Id) => written({ node: first, with: second });
export const toLink = (source: Id, type: string, target: Id) => written({ source, type, target });

export function go(address: string): void {
  location.hash = address;
}

let left = false;

/** Whether this is no longer the view that the page was opened with. */
export const hasLeft = () => left;

export function useView(): View {
  const [hash, setHash] = useState(location.hash);
  useEffect(() => {
    const listen = () => ((left = true), setHash(location.hash));
    addEventListener("hashchange", listen);
    return () => removeEventListener("hashchange", listen);
  }, []);
  return read(hash);
}
