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
  limits: { max_rows: number };
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
  step: number;
  probability: number;
  attention: number;
  share: number;
  effect: number | null;
  probability_without: number | null;
}

export interface NodeExplanation {
  target: Id;
  answer: { name: string; probability: number; log_odds: number } | null;
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
  prediction: { labels: string[]; probabilities: number[] } | null;
  other: NodeExplanation | null;
}
