# The server of a trained model, for CPUs:
#
#   docker build --tag gatas .
#   docker run --rm --publish 8000:8000 --env GATAS_TOKEN --volume "$PWD/runs/digits:/run:ro" gatas
#
# The explorer is then at http://127.0.0.1:8000; requests send the token, of 16 characters or more, as docs/serving.md says.
ARG PYTHON=3.12

FROM python:${PYTHON}-slim AS build
ENV PIP_NO_CACHE_DIR=1 PIP_DISABLE_PIP_VERSION_CHECK=1
RUN python -m venv /opt/gatas
ENV PATH=/opt/gatas/bin:$PATH
WORKDIR /source
COPY constraints.txt ./
# From PyTorch's own index, without CUDA, which would be gigabytes; what torch needs comes from PyPI with the rest.
RUN pip install --no-deps --constraint constraints.txt --index-url https://download.pytorch.org/whl/cpu torch
COPY pyproject.toml setup.py MANIFEST.in README.md LICENSE CHANGELOG.md CITATION.cff ./
COPY gatas ./gatas
RUN pip install --constraint constraints.txt '.[serve]' && pip check

FROM python:${PYTHON}-slim
COPY --from=build /opt/gatas /opt/gatas
RUN useradd --create-home --uid 10001 gatas
USER gatas
WORKDIR /home/gatas
# Compiled kernels are kept in the home folder, as the package itself is not the user's to write to.
ENV PATH=/opt/gatas/bin:$PATH PYTHONUNBUFFERED=1 NUMBA_CACHE_DIR=/home/gatas/.cache/numba
EXPOSE 8000
HEALTHCHECK --interval=30s --timeout=5s --start-period=2m --retries=3 \
  CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8000/v2/health/ready', timeout=4)"]
ENTRYPOINT ["gatas"]
CMD ["serve", "/run", "--host", "0.0.0.0", "--port", "8000"]
