# make run    opens the page            make test    runs every check
# make serve  the same for a room      make doctor  checks this machine before a workshop
# make offline  gathers all that laptops without a network need: FOLDER=/media/stick PLATFORMS="linux macos windows"
# make bench  measures this engine beside others and writes the README's table
# make record records the shipped runs anew, make golden writes the golden traces anew, make picture the README's picture
# make audit  asks PyPI whether anything is known against the packages that the app needs
# make load  thirty viewers and a live run on this machine, make soak  the same again and again; five minutes each, see LOAD.md
PYTHON ?= python3
VENV   := .venv
BIN    := $(VENV)/bin
PAGE_READY := $(VENV)/.page-ready
TEST_READY := $(VENV)/.test-ready
TORCH_CPU  := https://download.pytorch.org/whl/cpu
FOLDER     ?= batchviz-offline
PLATFORMS  ?=

.PHONY: run serve doctor offline test lint types unit fetch bench audit load soak record golden picture clean
.DELETE_ON_ERROR:

run: $(PAGE_READY) fetch
	$(BIN)/python -m batchviz app

# Others on the network can open this one; it says their address.
serve: $(PAGE_READY) fetch
	$(BIN)/python -m batchviz serve

doctor: $(PAGE_READY)
	$(BIN)/python -m batchviz doctor

offline: $(PAGE_READY)
	$(BIN)/python -m batchviz offline "$(FOLDER)" $(addprefix --platform ,$(PLATFORMS))

test: $(TEST_READY) fetch lint types unit

lint: $(TEST_READY)
	$(BIN)/ruff check .
	$(BIN)/ruff format --check .

types: $(TEST_READY)
	$(BIN)/mypy

unit: $(TEST_READY)
	@command -v chromium >/dev/null || echo "no 'chromium' on the PATH: the browser tests will be skipped"
	$(BIN)/python -m pytest

# The weights come once (93 MB) and are kept in the user's cache. Without a network the page opens on recorded runs.
fetch: $(PAGE_READY)
	@$(BIN)/python -m batchviz fetch || echo "going on without the weights: recorded runs work, live runs do not"

# llama.cpp takes part if llama-cpp-python is installed in .venv; needs a machine that does nothing else for ten minutes.
bench: $(PAGE_READY) fetch
	$(BIN)/python -m batchviz bench --slots 1,8,32 --peers generate,generate_batch,llama_cpp --into README.md

audit: $(VENV)/audit/bin/pip-audit
	$< --strict --no-deps --disable-pip --progress-spinner off --requirement requirements.txt

$(VENV)/audit/bin/pip-audit: | $(VENV)/bin/python
	$(PYTHON) -m venv $(VENV)/audit
	$(VENV)/audit/bin/python -m pip install --disable-pip-version-check -q pip-audit==2.10.1

load: $(TEST_READY) fetch
	$(BIN)/python -m tests.load

soak: $(TEST_READY) fetch
	$(BIN)/python -m tests.load.soak

record: $(PAGE_READY)
	$(BIN)/python -m batchviz record

golden: $(TEST_READY)
	$(BIN)/python -m tests.golden

picture: $(TEST_READY)
	$(BIN)/python -m tests.e2e.picture

$(VENV)/bin/python:
	$(PYTHON) -m venv $(VENV)

# Without a GPU, and where PyTorch's own CPU index answers, torch comes from there; otherwise from the default index.
$(PAGE_READY): requirements.txt | $(VENV)/bin/python
	@if ! command -v nvidia-smi >/dev/null && [ "$$(uname -s)" = Linux ] && \
	  $(BIN)/python -c "import urllib.request as u; u.urlopen('$(TORCH_CPU)/torch/', timeout=5)" 2>/dev/null; then \
	  $(BIN)/python -m pip install --disable-pip-version-check -q "$$(grep '^torch==' requirements.txt)" --index-url $(TORCH_CPU); \
	else \
	  $(BIN)/python -m pip install --disable-pip-version-check -q "$$(grep '^torch==' requirements.txt)"; \
	fi
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements.txt
	@touch $@

$(TEST_READY): requirements-dev.txt $(PAGE_READY)
	$(BIN)/python -m pip install --disable-pip-version-check -q -r requirements-dev.txt
	@touch $@

clean:
	rm -rf $(VENV) artifacts .pytest_cache .mypy_cache .ruff_cache .hypothesis
