/** What the server answers, as gatas/serving/answers.py has it. */

export type Id = string | number;

export interface About {
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

export interface Found {
  ids: Id[];
  more: boolean;
}

export interface Link {
  source: Id;
  type: string;
  target: Id;
  probability: number;
}

export interface Nearest {
  method: string;
  neighbours: { id: Id; similarity: number }[];
}

export interface Embeddings {
  embeddings: number[][];
}

export interface Part {
  name: string;
  num_rows: number;
  probability: number;
  attention: number;
  share: number;
  effect: number | null;
}

export interface Row {
  neighbour: Id;
  path: string;
  step: number;
  probability: number;
  attention: number;
  share: number;
  effect: number | null;
  probability_without: number | null;
}

export interface End {
  target: Id;
  answer: { name: string; probability: number; log_odds: number } | null;
  mode: string;
  num_rows: number;
  num_candidates: number;
  coverage: number;
  depth_coefficients: number[];
  depths: Part[];
  paths: Part[];
  rows: Row[];
}

export interface Explained extends End {
  classes: string[];
  prediction: { labels: string[]; probabilities: number[] } | null;
  other: End | null;
}
