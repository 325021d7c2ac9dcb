/** The bodies of responses, as defined in gatas/serving/responses.py. */

export type Id = string | number;

export interface ModelResponse {
  model: string;
  gatas: string;
  task: string;
  names: string[];
  num_nodes: number;
  num_edges: number;
  edge_types: string[];
  neighbours: string;
  first_ids: Id[];
  limits: { max_rows: number; max_ids: number };
  results: RunResults | null;
}

export interface RunResults {
  data: string;
  note: string;
  epochs_to_best: number;
  epochs: number;
  metrics: Record<string, Record<string, number>>;
  details_of: string | null;
  details: Record<string, Record<string, number>>;
}

export type ColumnValue = boolean | number | string | number[] | null;

/** A node as the data has it. */
export interface NodeData {
  id: Id;
  type: string | null;
  split: string | null;
  labels: string[] | null;
  values: (number | null)[] | null;
  columns: Record<string, ColumnValue>;
  num_columns: number | null;
  edges: { type: string; node: Id; weight: number | null; in_graph: boolean; split: string | null }[];
  num_edges: number | null;
}

export interface NodeDataResponse {
  nodes: NodeData[];
}

export interface BetweenResponse {
  source: Id;
  target: Id;
  num_shared_neighbours: number;
  shared_neighbours: Id[];
  num_walks: number | null;
  walks: { nodes: Id[]; share: number }[];
}

export interface MapResponse {
  status: "ready" | "computing" | "unavailable";
  reason: string | null;
  method: string | null;
  known_as: string | null;
  num_nodes: number;
  ids: Id[];
  x: number[];
  y: number[];
  values: (string | number | null)[];
}

export interface SearchResponse {
  ids: Id[];
  more: boolean;
}

export interface ScoredLink {
  source: Id;
  type: string;
  target: Id;
  probability: number;
}

export interface NeighboursResponse {
  method: string;
  neighbours: { id: Id; similarity: number }[];
}

export interface EmbedResponse {
  embeddings: number[][];
}

export interface ContributionGroup {
  name: string;
  num_rows: number;
  probability: number;
  attention: number;
  share: number;
  effect: number | null;
}

export interface Contribution {
  neighbour: Id;
  path: string;
  relations: string[];
  step: number;
  probability: number;
  attention: number;
  share: number;
  effect: number | null;
  probability_without: number | null;
  value_without: number | null;
}

/** A class or a type of link with its probability, or a number with its value. */
export interface Answer {
  name: string;
  probability?: number;
  log_odds?: number;
  value?: number;
}

export interface NodeExplanation {
  target: Id;
  answer: Answer | null;
  label_spreading: { without: number; effect: number } | null;
  note: string | null;
  mode: string;
  num_rows: number;
  num_candidates: number;
  coverage: number;
  depth_coefficients: number[];
  depths: ContributionGroup[];
  paths: ContributionGroup[];
  rows: Contribution[];
}

export interface ExplainResponse extends NodeExplanation {
  classes: string[];
  prediction: { labels: string[]; probabilities: number[] } | { values: number[] } | null;
  other: NodeExplanation | null;
}

export interface LinkTerm {
  kind: string;
  name: string;
  value: number;
  probability_without: number;
}

export interface PathTerm extends LinkTerm {
  relations: string[];
  probability: number;
  probability_back: number;
  num_walks: number | null;
  walks: { nodes: Id[]; share: number }[];
  num_between: number | null;
  between: { node: Id; step: number; share: number }[];
}

/** A link whose log-odds are a sum of terms. */
export interface LinkExplanation {
  source: Id;
  type: string;
  target: Id;
  answer: { name: string; probability: number; log_odds: number };
  known: boolean;
  num_steps: number;
  terms: LinkTerm[];
  num_paths: number;
  paths: PathTerm[];
  num_shared_neighbours: number;
  shared_neighbours: Id[];
  neighbourhood: (NodeExplanation & { other: NodeExplanation }) | null;
}
