"""What a trained model has to say: `Predictor`, and the runs that have one."""

from gatas.inference.attention import Attention, attention, shares_by_path
from gatas.inference.explanation import Answer, Explanation, ExplanationPart
from gatas.inference.fitting import fit, fit_many
from gatas.inference.loading import load
from gatas.inference.neighbours import NearestIds, NearestNodes, read_embeddings
from gatas.inference.prediction import LinkPrediction, Prediction
from gatas.inference.predictor import Predictor
from gatas.inference.run import Run

__all__ = [
    "Answer",
    "Attention",
    "Explanation",
    "ExplanationPart",
    "LinkPrediction",
    "NearestIds",
    "NearestNodes",
    "Prediction",
    "Predictor",
    "Run",
    "attention",
    "fit",
    "fit_many",
    "load",
    "read_embeddings",
    "shares_by_path",
]
