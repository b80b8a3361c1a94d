# The page in a container: `docker build -t batchviz .`, then `docker run -p 8501:8501 batchviz`. See DEPLOYMENT.md.
# WEIGHTS=none leaves the weights out: then the first live run fetches them (93 MB).
FROM python:3.11.11-slim-bookworm

ARG WEIGHTS=baked

ENV PYTHONDONTWRITEBYTECODE=1 \
    PYTHONUNBUFFERED=1 \
    PIP_NO_CACHE_DIR=1 \
    PIP_DISABLE_PIP_VERSION_CHECK=1 \
    BATCHVIZ_PORT=8501

RUN useradd --create-home --uid 1000 batchviz
WORKDIR /home/batchviz/app

# torch from PyTorch's own index: its build for processors alone is 0.2 GB instead of several.
COPY requirements.txt ./
RUN pip install "$(grep '^torch==' requirements.txt)" --index-url https://download.pytorch.org/whl/cpu \
    && pip install -r requirements.txt

COPY app.py pyproject.toml LICENSE ./
COPY .streamlit .streamlit
COPY batchviz batchviz
COPY assets assets
COPY lessons lessons

USER batchviz
RUN if [ "$WEIGHTS" != none ]; then python -m batchviz fetch; fi

EXPOSE 8501
HEALTHCHECK --interval=30s --timeout=5s --start-period=30s --retries=3 \
    CMD ["python", "-c", "import os, urllib.request as u; base = os.environ.get('STREAMLIT_SERVER_BASE_URL_PATH', '').strip('/'); u.urlopen(f\"http://127.0.0.1:{os.environ['BATCHVIZ_PORT']}/{base + '/' if base else ''}health\", timeout=4)"]

CMD ["sh", "-c", "exec python -m streamlit run app.py --server.address 0.0.0.0 --server.port \"$BATCHVIZ_PORT\""]
