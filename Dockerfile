# Serves one model: docker run -p 8000:8000 -v "$PWD/movies.ordrec:/model.ordrec:ro" ordrec
FROM python:3.13-slim
COPY . /src
RUN pip install --no-cache-dir '/src[serve]' && rm -rf /src
ENV NUMBA_CACHE_DIR=/compiled
# a small fit compiles what requests need, so that a container answers at once
RUN ordrec fit ml-latest-small-2016 --output /tmp/warm.ordrec --quiet && rm /tmp/warm.ordrec && chmod -R a+rwX /compiled
USER nobody
EXPOSE 8000
ENTRYPOINT ["ordrec", "serve", "/model.ordrec", "--host", "0.0.0.0"]
