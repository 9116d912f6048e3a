# The server; its SQLite file is in the volume /data. How to run it: docs/server/operations.md, "Docker".
FROM python:3.11-slim

COPY pyproject.toml README.md LICENSE requirements.lock /app/
COPY src /app/src
WORKDIR /app
# The locked versions, without those that only contributors need.
RUN sed -n 's/^\([a-z].*==.*\) \\$/\1/p' requirements.lock > constraints.txt
RUN pip install --no-cache-dir --constraint constraints.txt '.[server,postgres]'

RUN useradd --system --create-home --home-dir /data duels
USER duels
WORKDIR /data
VOLUME /data
ENV DUELS_STORAGE=sqlite:////data/duels.db
EXPOSE 8080
HEALTHCHECK --interval=30s --timeout=5s --start-period=60s \
    CMD ["python", "-c", "import urllib.request; urllib.request.urlopen('http://127.0.0.1:8080/healthz', timeout=4)"]
CMD ["duels", "serve", "--host", "0.0.0.0", "--port", "8080"]
