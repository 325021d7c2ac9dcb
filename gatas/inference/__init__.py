"""What a trained model has to say."""

from gatas.inference.attention import Attention, attention, shares_by_path
from gatas.inference.embed import embed, embed_all, model_fingerprint, write_embeddings
from gatas.inference.explain import explain
from gatas.inference.explanation import Answer, Explanation, Part
from gatas.inference.links import Links, likeliest_targets, predict_links, score_pairs
from gatas.inference.neighbours import Nearest, NearestNodes, read_embeddings
from gatas.inference.new_nodes import embed_new, read_new_nodes, with_new_nodes
from gatas.inference.predict import Prediction, predict, write_predictions
from gatas.inference.view import View

__all__ = [
    "Answer",
    "Attention",
    "Explanation",
    "Links",
    "Nearest",
    "NearestNodes",
    "Part",
    "Prediction",
    "View",
    "attention",
    "embed",
    "embed_all",
    "embed_new",
    "explain",
    "likeliest_targets",
    "model_fingerprint",
    "predict",
    "predict_links",
    "read_embeddings",
    "read_new_nodes",
    "score_pairs",
    "shares_by_path",
    "with_new_nodes",
    "write_embeddings",
    "write_predictions",
]
