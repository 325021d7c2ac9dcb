"""`make_app`: the HTTP API over a model."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.exceptions import RequestValidationError
from fastapi.responses import FileResponse
from starlette.exceptions import HTTPException

from gatas import __version__
from gatas.errors import GatasError
from gatas.inference.columns import columns_of
from gatas.serving import answers
from gatas.serving.desk import Desk
from gatas.serving.guard import Guard
from gatas.serving.questions import Embed, Explain, LikeliestLinks, Links, Neighbours, NewNodes, Predict, Search
from gatas.serving.refusal import Problem, Refusal, come_back, loading, unusable

PAGE = Path(__file__).parent / "page"
"""The explorer, where it is built."""
CODES = {404: "not_found", 405: "method_not_allowed", 400: "not_json", 415: "not_json"}
MESSAGES = {404: "there is nothing here. /openapi.json says what there is.", 405: "this path knows other methods.",
            400: "the body could not be read as JSON."}  # fmt: skip
PROBLEMS: dict[int | str, dict[str, Any]] = {
    400: {"model": Problem, "description": "The body is no JSON"},
    401: {"model": Problem, "description": "The token is missing or wrong"},
    403: {"model": Problem, "description": "Asked from elsewhere, and there is no token"},
    408: {"model": Problem, "description": "The request did not arrive in time"},
    413: {"model": Problem, "description": "The body is too large"},
    422: {
        "model": Problem,
        "description": "Well formed, but cannot be answered: unknown ids or types, other features, too many",
    },
    429: {"model": Problem, "description": "Too many wait; Retry-After says when to come back"},
    503: {"model": Problem, "description": "No model is loaded yet, or the server is ending"},
    504: {"model": Problem, "description": "No answer within the time for one request"},
}


def make_app(desk: Desk) -> FastAPI:
    """The application: health, the API, metrics, and the explorer's page where it is built."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        desk.open()
        yield
        desk.close()

    app = FastAPI(
        title="gatas",
        version=__version__,
        description="Representations, classes, links and explanations from a trained model.",
        lifespan=lifespan,
        docs_url=None,  # their scripts come from elsewhere, and a server may have no way there
        redoc_url=None,
        redirect_slashes=False,
    )
    app.add_middleware(Guard, desk=desk)
    app.add_exception_handler(GatasError, _refused)
    app.add_exception_handler(HTTPException, _not_served)
    app.add_exception_handler(RequestValidationError, _invalid)
    _add_health(app, desk)
    _add_questions(app, desk)
    _add_model(app, desk)
    _add_page(app)
    return app


def _add_health(app: FastAPI, desk: Desk) -> None:
    @app.get("/v2/health/live", tags=["health"])
    async def live() -> answers.Health:
        """The program runs."""
        return answers.Health(status="live")

    @app.get("/v2/health/ready", tags=["health"], responses={503: PROBLEMS[503]})
    async def ready() -> answers.Health:
        """A model is loaded, and the server is not about to end."""
        if desk.leaving:
            raise come_back(503, "ending", "the server is ending. Ask another one.")
        if not desk.ready:
            raise loading()
        return answers.Health(status="ready")

    if desk.settings.metrics:

        @app.get("/metrics", tags=["health"], response_class=_Text, responses={401: PROBLEMS[401], 403: PROBLEMS[403]})
        async def metrics() -> Response:
            """Counters, in Prometheus's text format."""
            return _Text(desk.metrics.page())


class _Text(Response):
    media_type = "text/plain; version=1.0.0; charset=utf-8"


def _add_questions(app: FastAPI, desk: Desk) -> None:
    settings = desk.settings

    async def answered(question: Any, size: int = 1) -> Response:
        _check_new(question, desk)
        return Response(await desk.ask(question, size), media_type="application/json")

    def ids_of(question: Embed | Predict) -> int:
        new = question.new
        if question.ids is None and new is None:
            raise unusable("invalid", "give ids, or new nodes.")
        count = len(question.ids or ()) or (len(new.ids or new.features or new.values or ()) if new else 0)
        return _few(count, settings.max_ids, "ids")

    @app.post("/v1/embed", tags=["questions"], response_model=answers.Embeddings, responses=PROBLEMS)
    async def embed(question: Embed) -> Response:
        """Representations of nodes, known or new: the same numbers alone and among any others."""
        return await answered(question, ids_of(question))

    @app.post("/v1/predict", tags=["questions"], response_model=answers.Classes, responses=PROBLEMS)
    async def predict(question: Predict) -> Response:
        """Classes of nodes, known or new, with probabilities."""
        return await answered(question, ids_of(question))

    @app.post("/v1/links", tags=["questions"], response_model=answers.ScoredLinks, responses=PROBLEMS)
    async def links(question: Links) -> Response:
        """How likely links are, between nodes known or new."""
        return await answered(question, 2 * _few(len(question.pairs), settings.max_ids, "pairs"))

    @app.post("/v1/links/likeliest", tags=["questions"], response_model=answers.ScoredLinks, responses=PROBLEMS)
    async def likeliest(question: LikeliestLinks) -> Response:
        """Where a node's links most likely lead that are not known yet, the likeliest first."""
        _few(question.top, settings.max_rows, "rows")
        return await answered(question)

    @app.post("/v1/explain", tags=["questions"], response_model=answers.Explained, responses=PROBLEMS)
    async def explain(question: Explain) -> Response:
        """What a node's class or a link rests on: neighbours, typed paths, attention, and what each does to the answer."""
        _few(question.top, settings.max_rows, "rows")
        return await answered(question)

    @app.post(
        "/v1/neighbours", tags=["questions"], response_model=answers.Nearest, responses={**PROBLEMS, 404: _problem("Off")}
    )
    async def neighbours(question: Neighbours) -> Response:
        """The nodes whose representations are most alike, by the cosine between them."""
        _few(question.top, settings.max_rows, "rows")
        return await answered(question)

    @app.get("/v1/nodes", tags=["questions"], response_model=answers.Found, responses=PROBLEMS)
    async def nodes(
        query: Annotated[str, Query(max_length=1000, description="Text to look for; all ids if it is empty")] = "",
        limit: Annotated[int, Query(ge=1)] = 20,
    ) -> Response:
        """Search for ids: those that begin with some text, then those that contain it."""
        return await answered(Search(query=query, limit=_few(limit, settings.max_rows, "rows")))


def _add_model(app: FastAPI, desk: Desk) -> None:
    @app.get("/v1/model", tags=["model"], response_model=answers.About, responses=PROBLEMS)
    async def model() -> answers.About:
        """Which model answers, what it knows, and this server's limits."""
        return _about(desk)

    if desk.settings.reload:

        @app.post("/v1/models/reload", tags=["model"], responses={**PROBLEMS, 409: _problem("The new model is of no use")})
        async def reload() -> answers.About:
            """Load the run folder again, or where its link now points to. If that fails, the old model goes on answering."""
            error = await _renewed(desk)
            if error is not None and not isinstance(error, Refusal):
                text = "the run folder could not be loaded; the log says why. The model that there was goes on answering."
                error = Refusal(409, "model_refused", text)
            if error is not None:
                raise error
            return _about(desk)


async def _renewed(desk: Desk) -> Exception | None:
    """Wait for a new model, without keeping others waiting."""
    loop = asyncio.get_running_loop()
    ended: asyncio.Future[Exception | None] = loop.create_future()
    desk.renew_beside(lambda error: _tell(loop, ended, error))
    return await ended


def _tell(loop: asyncio.AbstractEventLoop, ended: asyncio.Future[Exception | None], error: Exception | None) -> None:
    with suppress(RuntimeError):  # the loop may be closed
        loop.call_soon_threadsafe(lambda: None if ended.done() else ended.set_result(error))


def _about(desk: Desk) -> answers.About:
    served = desk.current()
    predictor = served.predictor
    graph = predictor.dataset.graph
    return answers.About(
        model=served.fingerprint,
        gatas=__version__,
        task=predictor.task,
        names=list(predictor.names),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        edge_types=list(graph.edge_type_names),
        num_features=predictor.num_features,
        columns=columns_of(predictor.dataset),
        embedding_size=predictor.embedding_size,
        neighbours=served.method,
        first_ids=served.ids.names[:10].to_pylist(),
        limits=answers.Limits(**{name: getattr(desk.settings, name) for name in answers.Limits.model_fields}),
    )


def _problem(description: str) -> dict[str, Any]:
    return {"model": Problem, "description": description}


def _few(count: int, most: int, what: str) -> int:
    if count > most:
        raise unusable("too_many", f"{count:,} {what} are asked for in one request; the most is {most:,}. Ask in several.")
    return count


def _check_new(question: Any, desk: Desk) -> None:
    new: NewNodes | None = getattr(question, "new", None)
    if new is not None:
        _few(max(map(len, (new.ids or (), new.features or (), new.values or ()))), desk.settings.max_ids, "new nodes")
        _few(len(new.edges), desk.settings.max_edges, "new edges")


def _add_page(app: FastAPI) -> None:
    """The explorer, file by file: mounted at /, it would answer for the API where a path does not know a method."""
    for file in sorted(PAGE.glob("*.*")):

        async def page(_: Request, file: Path = file) -> Response:
            return FileResponse(file)

        app.add_route("/" if file.name == "index.html" else f"/{file.name}", page, include_in_schema=False)


async def _refused(_: Request, error: Exception) -> Response:
    refusal = error if isinstance(error, Refusal) else unusable("unusable", str(error))
    return Response(refusal.content, refusal.status, refusal.headers, "application/json")


async def _not_served(request: Request, error: Exception) -> Response:
    assert isinstance(error, HTTPException)
    code, message = CODES.get(error.status_code, "refused"), MESSAGES.get(error.status_code, "the request is refused.")
    return await _refused(request, Refusal(error.status_code, code, message, error.headers))


async def _invalid(request: Request, error: Exception) -> Response:
    """Where something is wrong and what was expected; not what came, which may be long or no JSON at all."""
    assert isinstance(error, RequestValidationError)
    problems = error.errors()
    if problems[0]["type"] == "json_invalid":
        return await _not_served(request, HTTPException(400))
    texts = dict.fromkeys(f"{_place(problem)}: {problem['msg']}" for problem in problems[:4])
    return await _refused(request, unusable("invalid", "; ".join(texts) + "."))


def _place(problem: Any) -> str:
    """Such as `ids.3`; a name that is not known is not repeated."""
    parts = problem["loc"][1:-1] if problem["type"] == "extra_forbidden" else problem["loc"][1:]
    return ".".join(str(part) for part in parts if not str(part).startswith("constrained-")) or "body"
