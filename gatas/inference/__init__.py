"""What a trained model has to say: `Predictor`, and the runs that have one."""

from gatas.inference.attention import Attention, attention, shares_by_path
from gatas.inference.explanation import Answer, Explanation, ExplanationPart, NumberAnswer, SpreadLabels
from gatas.inference.fitting import fit, fit_many
from gatas.inference.link_explanation import LinkContribution, LinkExplanation, PathContribution
from gatas.inference.loading import load
from gatas.inference.neighbours import NearestIds, NearestNodes, read_embeddings
from gatas.inference.prediction import LinkPrediction, NumberPrediction, Prediction
from gatas.inference.predictor import Predictor
from gatas.inference.run import Run
from gatas.inference.strongest_paths import StrongPath

__all__ = [
    "Answer",
    "Attention",
    "Explanation",
    "ExplanationPart",
    "LinkContribution",
    "LinkExplanation",
    "LinkPrediction",
    "NearestIds",
    "NearestNodes",
    "NumberAnswer",
    "NumberPrediction",
    "PathContribution",
    "Prediction",
    "Predictor",
    "Run",
    "SpreadLabels",
    "StrongPath",
    "attention",
    "fit",
    "fit_many",
    "load",
    "read_embeddings",
    "shares_by_path",
]
