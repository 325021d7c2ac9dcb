"""`make_app`: the HTTP API of a model service, and the explorer's page."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Annotated, Any

from fastapi import FastAPI, Query, Request, Response
from fastapi.responses import FileResponse

from gatas import __version__
from gatas.inference.columns import columns_of
from gatas.serving import responses
from gatas.serving.data_responses import BetweenResponse, NodeDataResponse
from gatas.serving.errors import ApiError, ErrorResponse, add_error_handlers, model_not_ready, retry_later, unprocessable
from gatas.serving.middleware import add_middleware
from gatas.serving.requests import (
    BetweenRequest,
    EmbedRequest,
    ExplainRequest,
    LinksRequest,
    NeighboursRequest,
    NewNodes,
    NodeDataRequest,
    PredictRequest,
    RankLinksRequest,
    SearchRequest,
)
from gatas.serving.service import ModelService

PAGE = Path(__file__).parent / "page"
"""The explorer, as it is built from `web/`."""


def _error(description: str) -> dict[str, Any]:
    return {"model": ErrorResponse, "description": description}


ERRORS: dict[int | str, dict[str, Any]] = {
    400: _error("The body is not JSON"),
    401: _error("The token is missing or wrong"),
    403: _error("The server has no token, and the request comes from another host or site"),
    408: _error("The request did not arrive in time"),
    413: _error("The body is too large"),
    422: _error("The request is well formed but cannot be answered: an unknown id or type, wrong features, or over a limit"),
    429: _error("Too many requests are waiting; Retry-After says when to retry"),
    503: _error("The model is not loaded yet, or the server is shutting down"),
    504: _error("There was no response within the time limit"),
}


def make_app(service: ModelService) -> FastAPI:
    """Return the application: health checks, the API, metrics, and the explorer's page."""

    @asynccontextmanager
    async def lifespan(_: FastAPI) -> AsyncIterator[None]:
        service.start()
        yield
        service.stop()

    app = FastAPI(
        title="gatas",
        version=__version__,
        description="Representations, classes, links and explanations from a trained model.",
        lifespan=lifespan,
        docs_url=None,  # their scripts come from another site, which a server may be unable to reach
        redoc_url=None,
        redirect_slashes=False,
    )
    add_middleware(app, service.settings, service.metrics)
    add_error_handlers(app)
    _add_health(app, service)
    _add_predictions(app, service)
    _add_data(app, service)
    _add_model(app, service)
    _add_page(app)
    return app


def _add_health(app: FastAPI, service: ModelService) -> None:
    @app.get("/v2/health/live", tags=["health"])
    async def live() -> responses.HealthResponse:
        """The server is running."""
        return responses.HealthResponse(status="live")

    @app.get("/v2/health/ready", tags=["health"], responses={503: ERRORS[503]})
    async def ready() -> responses.HealthResponse:
        """A model is loaded, and the server is not shutting down."""
        if service.shutting_down:
            raise retry_later(503, "ending", "the server is shutting down. Use another one.")
        if not service.ready:
            raise model_not_ready()
        return responses.HealthResponse(status="ready")

    if service.settings.metrics:

        @app.get("/metrics", tags=["health"], response_class=_PlainText, responses={401: ERRORS[401], 403: ERRORS[403]})
        async def metrics() -> Response:
            """Metrics in Prometheus's text format."""
            return _PlainText(service.metrics.to_text())


class _PlainText(Response):
    media_type = "text/plain; version=1.0.0; charset=utf-8"


def _add_predictions(app: FastAPI, service: ModelService) -> None:
    settings = service.settings

    async def respond(request: Any, size: int = 1) -> Response:
        _check_new_nodes(request, service)
        return Response(await service.submit(request, size), media_type="application/json")

    def num_ids(request: EmbedRequest | PredictRequest) -> int:
        new = request.new
        if request.ids is None and new is None:
            raise unprocessable("invalid", "the request has neither `ids` nor `new`. Give ids, or new nodes.")
        count = len(request.ids or ()) or (len(new.ids or new.features or new.values or ()) if new else 0)
        return _check_count(count, settings.max_ids, "ids")

    @app.post("/v1/embed", tags=["predictions"], response_model=responses.EmbedResponse, responses=ERRORS)
    async def embed(request: EmbedRequest) -> Response:
        """Return the representations of nodes, known or new."""
        return await respond(request, num_ids(request))

    @app.post(
        "/v1/predict",
        tags=["predictions"],
        response_model=responses.PredictResponse | responses.NumbersResponse,
        responses=ERRORS,
    )
    async def predict(request: PredictRequest) -> Response:
        """Return the classes of nodes, known or new, with their probabilities; or their numbers."""
        count = num_ids(request) * (request.draws or 1)
        return await respond(request, _check_count(count, settings.max_ids, "ids times draws"))

    @app.post("/v1/links", tags=["predictions"], response_model=responses.LinksResponse, responses=ERRORS)
    async def links(request: LinksRequest) -> Response:
        """Return the probabilities of links between nodes, known or new."""
        return await respond(request, 2 * _check_count(len(request.pairs), settings.max_ids, "pairs"))

    async def rank_links(request: RankLinksRequest) -> Response:
        """Return the most probable links of a node that are not known yet, the most probable first."""
        _check_count(request.top, settings.max_rows, "rows")
        return await respond(request)

    ranked: dict[str, Any] = {"tags": ["predictions"], "response_model": responses.LinksResponse, "responses": ERRORS}
    app.post("/v1/links/rank", **ranked)(rank_links)
    app.post("/v1/links/likeliest", deprecated=True, **ranked)(rank_links)  # its name in 0.1

    @app.post(
        "/v1/explain",
        tags=["predictions"],
        response_model=responses.ExplainResponse | responses.LinkExplanationResponse,
        responses=ERRORS,
    )
    async def explain(request: ExplainRequest) -> Response:
        """Explain the class of a node, or a link: neighbours, typed paths, attention, and the effect of each on the answer.

        A link whose score is a sum of parts is explained by what its log-odds add up from.
        """
        _check_count(request.top, settings.max_rows, "rows")
        return await respond(request)

    @app.post(
        "/v1/neighbours",
        tags=["predictions"],
        response_model=responses.NeighboursResponse,
        responses={**ERRORS, 404: _error("The server was started with --neighbours off")},
    )
    async def neighbours(request: NeighboursRequest) -> Response:
        """Return the nodes with the most similar representations, by cosine."""
        _check_count(request.top, settings.max_rows, "rows")
        return await respond(request)

    @app.get("/v1/nodes", tags=["predictions"], response_model=responses.SearchResponse, responses=ERRORS)
    async def nodes(
        query: Annotated[str, Query(max_length=1000, description="Text to search for; if empty, all ids match")] = "",
        limit: Annotated[int, Query(ge=1, description="Number of ids to return")] = 20,
    ) -> Response:
        """Search for ids: those that equal a text, then those that begin with it, then those that contain it."""
        return await respond(SearchRequest(query=query, limit=_check_count(limit, settings.max_rows, "rows")))


def _add_data(app: FastAPI, service: ModelService) -> None:
    @app.post("/v1/nodes/data", tags=["data"], response_model=NodeDataResponse, responses=ERRORS)
    async def node_data(request: NodeDataRequest) -> Response:
        """Return what the data says of nodes: type, true class or numbers, split, columns, edges. Nothing is predicted."""
        _check_count(request.top, service.settings.max_rows, "rows")
        count = _check_count(len(request.ids), service.settings.max_ids, "ids")
        _check_count(count * request.top, service.settings.max_edges, "ids times rows")
        return Response(await service.submit(request, count), media_type="application/json")

    @app.post("/v1/between", tags=["data"], response_model=BetweenResponse, responses=ERRORS)
    async def between(request: BetweenRequest) -> Response:
        """Return what lies between two nodes: neighbours that they share, and the likeliest walks over a typed path."""
        _check_count(request.top, service.settings.max_rows, "rows")
        return Response(await service.submit(request), media_type="application/json")


def _add_model(app: FastAPI, service: ModelService) -> None:
    @app.get("/v1/model", tags=["model"], response_model=responses.ModelResponse, responses=ERRORS)
    async def model() -> responses.ModelResponse:
        """Describe the model that answers, its graph, and the limits of this server."""
        return _describe_model(service)

    computing = {"model": responses.MapResponse, "description": "The map is being made; Retry-After says when to ask again"}

    @app.get("/v1/map", tags=["model"], response_model=responses.MapResponse, responses={**ERRORS, 202: computing})
    async def embedding_map() -> Response:
        """Return a map of the nodes' representations. It is made once, in the background, when it is first asked for."""
        finished, body = service.current_model().map.response()
        headers = {} if finished else {"retry-after": "1"}
        return Response(body, 200 if finished else 202, headers, "application/json")

    if service.settings.reload:

        @app.post("/v1/models/reload", tags=["model"], responses={**ERRORS, 409: _error("The new model cannot be used")})
        async def reload() -> responses.ModelResponse:
            """Load the run folder again, following a symbolic link anew. If that fails, the present model stays."""
            error = await _reload(service)
            if error is not None and not isinstance(error, ApiError):
                text = "the run folder could not be loaded; the server's log says why. The present model goes on answering."
                error = ApiError(409, "model_refused", text)
            if error is not None:
                raise error
            return _describe_model(service)


async def _reload(service: ModelService) -> Exception | None:
    """Wait until a model is loaded, without blocking other requests; return what went wrong, if anything."""
    loop = asyncio.get_running_loop()
    finished: asyncio.Future[Exception | None] = loop.create_future()

    def done(error: Exception | None) -> None:
        with suppress(RuntimeError):  # the loop may be closed
            loop.call_soon_threadsafe(lambda: None if finished.done() else finished.set_result(error))

    service.reload_in_background(done)
    return await finished


def _describe_model(service: ModelService) -> responses.ModelResponse:
    model = service.current_model()
    predictor = model.predictor
    graph = predictor.dataset.graph
    return responses.ModelResponse(
        model=model.fingerprint,
        gatas=__version__,
        task=predictor.task,
        names=list(predictor.names),
        num_nodes=graph.num_nodes,
        num_edges=graph.num_edges,
        edge_types=list(graph.edge_type_names),
        num_features=predictor.num_features,
        columns=columns_of(predictor.dataset),
        embedding_size=predictor.embedding_size,
        neighbours=model.neighbours,
        first_ids=model.first_ids(),
        results=model.results,
        limits=responses.RequestLimits(
            **{name: getattr(service.settings, name) for name in responses.RequestLimits.model_fields}
        ),
    )


def _check_count(count: int, most: int, what: str) -> int:
    if count > most:
        text = f"the request asks for {count:,} {what}; at most {most:,} are allowed. Send several requests."
        raise unprocessable("too_many", text)
    return count


def _check_new_nodes(request: Any, service: ModelService) -> None:
    new: NewNodes | None = getattr(request, "new", None)
    if new is not None:
        count = max(map(len, (new.ids or (), new.features or (), new.values or ())))
        _check_count(count, service.settings.max_ids, "new nodes")
        _check_count(len(new.edges), service.settings.max_edges, "new edges")


def _add_page(app: FastAPI) -> None:
    """Add the explorer file by file: mounted at /, it would answer for the API where a path does not take a method."""
    for file in sorted(PAGE.glob("*.*")):

        async def page(_: Request, file: Path = file) -> Response:
            return FileResponse(file)

        app.add_route("/" if file.name == "index.html" else f"/{file.name}", page, include_in_schema=False)
