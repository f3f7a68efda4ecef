# Two stages: one that installs, one that runs as an unprivileged user.
#
#   make image
#   docker build --build-arg COLLECTOR_COMMIT="$(git rev-parse HEAD)" --tag collector:0.1.0 .
#
# Python 3.11 is what the tests run on.
FROM python:3.11.15-slim-bookworm AS build
WORKDIR /src
COPY requirements-build.lock requirements-run.lock ./
# Only what runs comes into the image: the builder's own pip installs it and stays behind.
RUN python -m venv /opt/build \
    && /opt/build/bin/pip install --no-cache-dir --require-hashes --requirement requirements-build.lock \
    && python -m venv --without-pip /opt/collector \
    && /opt/build/bin/pip --python /opt/collector/bin/python install --no-cache-dir --require-hashes \
        --requirement requirements-run.lock
COPY pyproject.toml README.md LICENSE datalayer.py ./
COPY collector collector
COPY api api
COPY workers workers
COPY migrations migrations
RUN /opt/build/bin/pip wheel --no-cache-dir --no-deps --no-build-isolation --wheel-dir /opt/wheel . \
    && /opt/build/bin/pip --python /opt/collector/bin/python install --no-cache-dir --no-deps --no-index \
        /opt/wheel/*.whl

FROM python:3.11.15-slim-bookworm
# Every file that is written names the commit. Without it the program that wrote a file is unknown.
ARG COLLECTOR_COMMIT
RUN test -n "$COLLECTOR_COMMIT" \
    || { echo "COLLECTOR_COMMIT is not set: build with 'make image'" >&2; exit 1; }
RUN useradd --system --uid 10001 --create-home collector \
    && install --directory --owner collector /data
COPY --from=build /opt/collector /opt/collector
# COLLECTOR_SECRETS_DIR is a folder's name, not a secret.
# hadolint ignore=DL3064
ENV PATH=/opt/collector/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    COLLECTOR_COMMIT=$COLLECTOR_COMMIT \
    COLLECTOR_HOME=/home/collector/.collector \
    COLLECTOR_DATA=/data \
    COLLECTOR_SECRETS_DIR=/run/exchange-keys \
    COLLECTOR_LOGGING__FORMAT=json
LABEL org.opencontainers.image.title=collector \
    org.opencontainers.image.version=0.1.0 \
    org.opencontainers.image.revision=$COLLECTOR_COMMIT
USER 10001
VOLUME /data
ENTRYPOINT ["collector"]
CMD ["--help"]
