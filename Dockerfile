# Two stages: one that installs, one that runs as nobody in particular.
FROM python:3.12-slim AS build
WORKDIR /src
COPY requirements.lock pyproject.toml README.md LICENSE ./
RUN python -m venv /opt/collector \
    && /opt/collector/bin/pip install --no-cache-dir --require-hashes --requirement requirements.lock
COPY collector collector
COPY api api
COPY workers workers
COPY migrations migrations
RUN /opt/collector/bin/pip install --no-cache-dir --no-deps --no-build-isolation .

FROM python:3.12-slim
RUN useradd --system --uid 10001 --create-home collector \
    && install --directory --owner collector /data
COPY --from=build /opt/collector /opt/collector
ENV PATH=/opt/collector/bin:$PATH \
    PYTHONUNBUFFERED=1 \
    COLLECTOR_HOME=/home/collector/.collector \
    COLLECTOR_DATA=/data \
    COLLECTOR_LOGGING__FORMAT=json
USER 10001
VOLUME /data
ENTRYPOINT ["collector"]
CMD ["--help"]
